"""Coloured things on a table: the colour of one, or the number of some colour or kind.

Eight kinds of questions have their published frequencies. Things are in a heap, in a row, or in
groups of equal things; answers about a heap or groups do not depend on their order.
"""

from __future__ import annotations

import random
import re
from math import sqrt
from typing import Literal, NamedTuple

from keju.benchmarks.fresh.task import (
    FreshQuestion,
    FreshTask,
    Language,
    add_options,
    find_label,
    scale_size,
    split_options,
)
from keju.benchmarks.fresh.vocabulary import vocabulary

Kind = Literal["remove", "next", "count", "furthest", "color", "is", "end", "neither"]
PUBLISHED_KINDS: dict[Kind, int] = {
    "remove": 57, "next": 40, "count": 31, "furthest": 29, "color": 28, "is": 27, "end": 21,
    "neither": 17,
}  # fmt: skip
"""Published rows of each kind."""
IN_A_HEAP = ("color", "is", "neither")
PUBLISHED_HEAP, PUBLISHED_ROW, PUBLISHED_GRID = (2, 6), (3, 6), (2, 4)
"""The range of things in a heap and in a row, and of colours and kinds of things in groups."""
MOST_OF_A_GROUP = 3
ABSENT = 0.58
"""The share of rows without a thing of the colour that is excluded from a count."""
LAST_OPTION = {"remove": 16, "count": 6, "neither": 6}
"""Options are the numbers from zero to this one, and more if a question needs them."""

NOUNS = ("thing", "item", "object")
HEAPS = ("there is", "you see", "I see")
ROWS = ("a set of", "several", "a bunch of", "the following")
NUMBERS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen",
    "nineteen", "twenty", "twenty-one", "twenty-two", "twenty-three", "twenty-four",
)  # fmt: skip


class ColoredThing(NamedTuple):
    """Equal things: their number, and the indexes of their colour and name in vocabularies."""

    number: int
    colour: int
    name: int


class ColoredScene(NamedTuple):
    """The things, and the question about them."""

    kind: Kind
    place: int
    intro: int
    noun: int
    things: list[ColoredThing]
    asked_index: int
    """The thing that a question is about, as an index of `things`."""
    by_colour: bool
    """Whether the question names that thing by its colour, or removes groups by colour."""
    is_left: bool
    colours: list[int]
    """Additional colours in a question: colours to exclude or to test."""


class ReasoningAboutColoredObjects(FreshTask):
    """A problem is a `ColoredScene`."""

    subset = "reasoning_about_colored_objects"

    def invent(self, draw: random.Random, difficulty: float) -> ColoredScene:
        (kind,) = draw.choices(list(PUBLISHED_KINDS), list(PUBLISHED_KINDS.values()))
        if kind == "remove":
            things = _draw_groups(draw, difficulty)
        else:
            published = PUBLISHED_HEAP if kind in IN_A_HEAP else PUBLISHED_ROW
            size = 2 + scale_size(draw.randint(*published) - 2, difficulty, least=0)
            things = _draw_single_things(draw, size)
        is_left, by_colour = draw.random() < 0.5, draw.random() < 0.5
        asked_index = draw.choice(
            _askable_indexes(kind, things, is_left=is_left, by_colour=by_colour)
        )
        if kind != "remove" and _has_repeated_colour(things, asked_index):
            by_colour = False
        return ColoredScene(
            kind=kind,
            place=draw.randrange(len(vocabulary("surfaces.en"))),
            intro=draw.randrange(12),
            noun=draw.randrange(len(NOUNS)),
            things=things,
            asked_index=asked_index,
            by_colour=by_colour,
            is_left=is_left,
            colours=_draw_colours(draw, kind, things, asked_index),
        )

    def write(self, problem: ColoredScene, language: Language) -> FreshQuestion:
        place = vocabulary("surfaces.en")[problem.place]
        question_text, answer = WORDING[problem.kind](problem)
        text = f"On the {place}, {_things_text(problem)}. {question_text}"
        if problem.kind in LAST_OPTION:
            options = list(NUMBERS[: max(LAST_OPTION[problem.kind], _max_count(problem)) + 1])
            return add_options(text, options, int(answer), language)
        options = list(("yes", "no") if problem.kind == "is" else vocabulary("colours.en"))
        return add_options(text, options, options.index(answer), language)

    def solve(self, text: str) -> str | None:
        story, options = split_options(text)
        match = STORY.fullmatch(story)
        if match is None:
            return None
        things = [THING.fullmatch(part) for part in LIST_SEPARATOR.split(match["things"])]
        parsed_things = [(t["count"], t["colour"], t["object"]) for t in things if t is not None]
        answer = (
            solve_colors(parsed_things, match["asked"])
            if len(parsed_things) == len(things)
            else None
        )
        return None if answer is None else find_label(options, answer)


# --- drawing -----------------------------------------------------------------------------------


def _draw_single_things(draw: random.Random, size: int) -> list[ColoredThing]:
    """Draw different things, with different colours if there are enough."""
    palette = list(range(len(vocabulary("colours.en"))))
    colours: list[int] = []
    while len(colours) < size:
        colours += draw.sample(palette, min(len(palette), size - len(colours)))
    draw.shuffle(colours)
    objects = draw.sample(range(len(vocabulary("objects.en"))), size)
    return [ColoredThing(1, colour, name) for colour, name in zip(colours, objects, strict=True)]


def _draw_groups(draw: random.Random, difficulty: float) -> list[ColoredThing]:
    """Draw a grid of colours and objects: up to three of each, some of none, in any order."""
    sizes = [scale_size(draw.randint(*PUBLISHED_GRID), sqrt(difficulty), least=2) for _ in range(2)]
    colours = draw.sample(range(len(vocabulary("colours.en"))), sizes[0])
    objects = draw.sample(range(len(vocabulary("objects.en"))), sizes[1])
    things: list[ColoredThing] = []
    while len(things) < 2:
        counts = [
            ColoredThing(draw.randint(0, MOST_OF_A_GROUP), colour, name)
            for colour in colours
            for name in objects
        ]
        things = [thing for thing in counts if thing.number]
    draw.shuffle(things)
    return things


def _askable_indexes(
    kind: Kind, things: list[ColoredThing], *, is_left: bool, by_colour: bool
) -> list[int]:
    """Return the indexes of things that a question may be about."""
    places = list(range(len(things)))
    if kind == "next":
        places = places[1:] if is_left else places[:-1]
    elif kind == "furthest":  # the one in the middle is equally far from both ends
        places = [place for place in places if 2 * place != len(things) - 1]
    if kind == "remove" or not by_colour:
        return places
    return [place for place in places if not _has_repeated_colour(things, place)] or places


def _has_repeated_colour(things: list[ColoredThing], place: int) -> bool:
    """Whether another thing has the same colour."""
    return sum(thing.colour == things[place].colour for thing in things) > 1


def _draw_colours(
    draw: random.Random, kind: Kind, things: list[ColoredThing], asked_index: int
) -> list[int]:
    """Draw the additional colours of a question."""
    present = sorted({thing.colour for thing in things})
    absent = [c for c in range(len(vocabulary("colours.en"))) if c not in present]
    other_colours = [colour for colour in present if colour != things[asked_index].colour]
    if kind == "count":
        return [draw.choice(absent if absent and draw.random() < ABSENT else other_colours)]
    if kind == "is":
        is_true = draw.random() < 0.5
        return [things[asked_index].colour if is_true else draw.choice(absent or other_colours)]
    if kind == "neither":
        present_count = max(draw.randint(0, 2), 2 - len(absent))
        colours = draw.sample(present, present_count) + draw.sample(absent, 2 - present_count)
        draw.shuffle(colours)
        return colours
    if kind == "remove":  # the colour or object to count afterwards
        objects = sorted({thing.name for thing in things})
        return [draw.choice(present), draw.choice(objects)]
    return []


# --- writing -----------------------------------------------------------------------------------


def _things_text(scene: ColoredScene) -> str:
    """Return ``you see a red cup and an olive hat``."""
    colours, objects = vocabulary("colours.en"), vocabulary("objects.en")
    parts = []
    for thing in scene.things:
        colour, name = colours[thing.colour], objects[thing.name]
        if scene.kind == "remove":
            name = name if thing.number == 1 else _plural(name)
            parts.append(f"{NUMBERS[thing.number]} {colour} {name}")
        else:
            parts.append(f"{'an' if colour[0] in 'aeiou' else 'a'} {colour} {name}")
    listing = (
        ", ".join(parts[:-1]) + ", and " + parts[-1] if len(parts) > 2 else " and ".join(parts)
    )
    if scene.kind in IN_A_HEAP or scene.kind == "remove":
        intro = HEAPS[scene.intro % len(HEAPS)]
        return f"{intro if scene.things[0].number == 1 else intro.replace(' is', ' are')} {listing}"
    return (
        f"you see {ROWS[scene.intro % len(ROWS)]} {NOUNS[scene.noun]}s arranged in a row: {listing}"
    )


def _plural(name: str) -> str:
    """Return a plural: ``pairs of gloves``, ``lunch boxes``, ``wristwatches``."""
    head, of, tail = name.partition(" of ")
    ending = "es" if head.endswith(("s", "x", "sh", "ch")) else "s"
    return f"{head}{ending}{of}{tail}"


def _asked_thing(scene: ColoredScene) -> str:
    """Return ``the red item`` or ``the candle``."""
    thing = scene.things[scene.asked_index]
    if scene.by_colour:
        return f"the {vocabulary('colours.en')[thing.colour]} {NOUNS[scene.noun]}"
    return f"the {vocabulary('objects.en')[thing.name]}"


def _write_color(scene: ColoredScene) -> tuple[str, str]:
    thing = scene.things[scene.asked_index]
    answer = vocabulary("colours.en")[thing.colour]
    return f"What color is the {vocabulary('objects.en')[thing.name]}?", answer


def _write_is(scene: ColoredScene) -> tuple[str, str]:
    thing, (colour,) = scene.things[scene.asked_index], scene.colours
    name = vocabulary("objects.en")[thing.name]
    answer = "yes" if thing.colour == colour else "no"
    return f"Is the {name} {vocabulary('colours.en')[colour]}?", answer


def _write_neither(scene: ColoredScene) -> tuple[str, str]:
    first_colour, second_colour = (vocabulary("colours.en")[colour] for colour in scene.colours)
    count = sum(thing.colour not in scene.colours for thing in scene.things)
    return f"How many {NOUNS[scene.noun]}s are neither {first_colour} nor {second_colour}?", str(
        count
    )


def _write_end(scene: ColoredScene) -> tuple[str, str]:
    thing = scene.things[0 if scene.is_left else -1]
    end_word = "left-most" if scene.is_left else "right-most"
    question_text = f"What is the color of the {end_word} {NOUNS[scene.noun]}?"
    return question_text, vocabulary("colours.en")[thing.colour]


def _write_next(scene: ColoredScene) -> tuple[str, str]:
    thing = scene.things[scene.asked_index + (-1 if scene.is_left else 1)]
    where = f"directly to the {'left' if scene.is_left else 'right'} of {_asked_thing(scene)}"
    question_text = f"What is the color of the {NOUNS[scene.noun]} {where}?"
    return question_text, vocabulary("colours.en")[thing.colour]


def _write_furthest(scene: ColoredScene) -> tuple[str, str]:
    thing = scene.things[-1 if 2 * scene.asked_index < len(scene.things) - 1 else 0]
    question_text = (
        f"What is the color of the {NOUNS[scene.noun]} furthest from {_asked_thing(scene)}?"
    )
    return question_text, vocabulary("colours.en")[thing.colour]


def _write_count(scene: ColoredScene) -> tuple[str, str]:
    (colour,) = scene.colours
    side = (
        scene.things[: scene.asked_index]
        if scene.is_left
        else scene.things[scene.asked_index + 1 :]
    )
    where = f"to the {'left' if scene.is_left else 'right'} of {_asked_thing(scene)}"
    what = f"non-{vocabulary('colours.en')[colour]} {NOUNS[scene.noun]}s"
    count = sum(thing.colour != colour for thing in side)
    return f"How many {what} do you see {where}?", str(count)


def _write_remove(scene: ColoredScene) -> tuple[str, str]:
    colours, objects = vocabulary("colours.en"), vocabulary("objects.en")
    removed_thing, (colour, name), noun = (
        scene.things[scene.asked_index],
        scene.colours,
        NOUNS[scene.noun],
    )
    if scene.by_colour:
        removed_phrase, counted_phrase = (
            f"{colours[removed_thing.colour]} {noun}s",
            _plural(objects[name]),
        )
        remaining_things = (
            t for t in scene.things if t.colour != removed_thing.colour and t.name == name
        )
    else:
        removed_phrase, counted_phrase = (
            _plural(objects[removed_thing.name]),
            f"{colours[colour]} {noun}s",
        )
        remaining_things = (
            t for t in scene.things if t.name != removed_thing.name and t.colour == colour
        )
    place = vocabulary("surfaces.en")[scene.place]
    question_text = (
        f"If I remove all the {removed_phrase} from the {place}, "
        f"how many {counted_phrase} remain on it?"
    )
    return question_text, str(sum(thing.number for thing in remaining_things))


WORDING = {
    "remove": _write_remove, "next": _write_next, "count": _write_count,
    "furthest": _write_furthest, "color": _write_color,
    "is": _write_is, "end": _write_end, "neither": _write_neither,
}  # fmt: skip


def _max_count(scene: ColoredScene) -> int:
    """Return a number that no count in the question can exceed."""
    if scene.kind != "remove":
        return len(scene.things)
    sides = ({thing.colour for thing in scene.things}, {thing.name for thing in scene.things})
    return MOST_OF_A_GROUP * max(map(len, sides))


# --- solving -----------------------------------------------------------------------------------

STORY = re.compile(
    r"On the .+?, (?:there is|there are|you see|I see)"
    r"(?: [\w ]+ arranged in a row:)? (?P<things>[^.:]+)\. (?P<asked>[^.]+\?)"
)  # On the desk, you see a red cup and a tan mug. What color is the cup?
LIST_SEPARATOR = re.compile(r", and |, | and ")
THING = re.compile(r"(?P<count>[\w-]+) (?P<colour>\w+) (?P<object>.+)")  # two mauve sheets of paper
ANY = r"(?:thing|item|object)"
COLOR_OF = re.compile(r"What color is the (?P<object>.+)\?")
IS_COLOR = re.compile(r"Is the (?P<object>.+) (?P<colour>\w+)\?")
NEITHER = re.compile(rf"How many {ANY}s are neither (?P<one>\w+) nor (?P<two>\w+)\?")
END = re.compile(rf"What is the color of the (?P<side>left|right)-most {ANY}\?")
PLACED = re.compile(
    rf"What is the color of the {ANY} (?P<where>furthest from|directly to the left of|"
    rf"directly to the right of) the (?P<thing>.+)\?"
)
SIDE = re.compile(
    rf"How many non-(?P<colour>\w+) {ANY}s do you see to the (?P<side>left|right) of "
    rf"the (?P<thing>.+)\?"
)
REMOVED = re.compile(
    r"If I remove all the (?P<removed>.+) from the .+, how many (?P<counted>.+) remain on it\?"
)
COLOURED_NOUN = re.compile(rf"(?P<colour>\w+) {ANY}s?")  # red things

ParsedThings = list[tuple[str, str, str]]
"""Count, colour and object, as words."""


def solve_colors(parsed_things: ParsedThings, question: str) -> str | None:
    """Return the word that answers a question."""
    colours = [colour for _, colour, _ in parsed_things]
    if match := COLOR_OF.fullmatch(question):
        place = _find_place(parsed_things, match["object"])
        return None if place is None else colours[place]
    if match := IS_COLOR.fullmatch(question):
        place = _find_place(parsed_things, match["object"])
        return None if place is None else "yes" if colours[place] == match["colour"] else "no"
    if match := NEITHER.fullmatch(question):
        return NUMBERS[len([c for c in colours if c not in match.groups()])]
    if match := END.fullmatch(question):
        return colours[0] if match["side"] == "left" else colours[-1]
    if match := REMOVED.fullmatch(question):
        return _count_remaining(parsed_things, match["removed"], match["counted"])
    return _solve_row(parsed_things, question)


def _solve_row(parsed_things: ParsedThings, question: str) -> str | None:
    """Answer questions about places next to a thing in a row."""
    colours = [colour for _, colour, _ in parsed_things]
    match = PLACED.fullmatch(question) or SIDE.fullmatch(question)
    place = _find_place(parsed_things, match["thing"]) if match else None
    if match is None or place is None:
        return None
    if match.re is SIDE:
        side_colours = colours[:place] if match["side"] == "left" else colours[place + 1 :]
        return NUMBERS[len([colour for colour in side_colours if colour != match["colour"]])]
    if match["where"] == "furthest from":
        return _find_furthest_colour(colours, place)
    other_place = place + (-1 if "left" in match["where"] else 1)
    return colours[other_place] if 0 <= other_place < len(colours) else None


def _find_furthest_colour(colours: list[str], place: int) -> str | None:
    """Return the colour at the end that is further away; None in the middle of the row."""
    count_before, count_after = place, len(colours) - 1 - place
    if count_before == count_after:
        return None
    return colours[0] if count_before > count_after else colours[-1]


def _find_place(parsed_things: ParsedThings, thing: str) -> int | None:
    """Return the place of the only thing of this name: ``red item``, ``pair of gloves``."""
    colour_match = COLOURED_NOUN.fullmatch(thing)
    searched_word = colour_match["colour"] if colour_match else thing
    places = [
        place
        for place, (_, colour, name) in enumerate(parsed_things)
        if searched_word in (colour, name)
    ]
    return places[0] if len(places) == 1 else None


def _count_remaining(parsed_things: ParsedThings, removed: str, counted: str) -> str | None:
    """Return how many of one kind remain without another: by colour and object, or the reverse."""
    tests = []
    for phrase in (removed, counted):
        colour_match = COLOURED_NOUN.fullmatch(phrase)
        tests.append((1, colour_match["colour"]) if colour_match else (2, _stem(phrase)))
    total = 0
    for thing in parsed_things:
        thing_words = (thing[0], thing[1], _stem(thing[2]))
        if thing[0] not in NUMBERS:
            return None
        (removed_field, removed_word), (counted_field, counted_word) = tests
        if (
            thing_words[removed_field] != removed_word
            and thing_words[counted_field] == counted_word
        ):
            total += NUMBERS.index(thing[0])
    return NUMBERS[total] if total < len(NUMBERS) else None


def _stem(name: str) -> str:
    """Return the part that singular and plural share: ``dog leash`` also for ``dog leashes``."""
    head, of, tail = name.partition(" of ")
    if head.endswith(("shes", "ches", "xes", "sses")):
        head = head[:-2]
    elif head.endswith("s") and not head.endswith("ss"):
        head = head[:-1]
    return f"{head}{of}{tail}"
