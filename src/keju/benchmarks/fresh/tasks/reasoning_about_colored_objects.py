"""Coloured things on a table: which colour has one, how many are there of a colour or a kind?

Eight kinds of questions, as often as they were published. Things stand in a heap, in a row, or in
groups of equal things; a question on a heap or on groups does not hang on their order.
"""

from __future__ import annotations

import random
import re
from math import sqrt
from typing import Literal, NamedTuple

from keju.benchmarks.fresh.task import (
    Language,
    Question,
    Task,
    label_of,
    scaled,
    split_options,
    with_options,
)
from keju.benchmarks.fresh.vocabulary import vocabulary

Kind = Literal["remove", "next", "count", "furthest", "color", "is", "end", "neither"]
PUBLISHED_KINDS: dict[Kind, int] = {
    "remove": 57, "next": 40, "count": 31, "furthest": 29, "color": 28, "is": 27, "end": 21,
    "neither": 17,
}  # fmt: skip
"""Rows of each kind."""
IN_A_HEAP = ("color", "is", "neither")
PUBLISHED_HEAP, PUBLISHED_ROW, PUBLISHED_GRID = (2, 6), (3, 6), (2, 4)
"""Things in a heap and in a row; colours, and as many kinds of things, of groups."""
MOST_OF_A_GROUP = 3
ABSENT = 0.58
"""How often a row has no thing of the colour that is left out of a count."""
LAST_OPTION = {"remove": 16, "count": 6, "neither": 6}
"""Options are the numbers from zero to this one, and on where a question needs more."""

NOUNS = ("thing", "item", "object")
HEAPS = ("there is", "you see", "I see")
ROWS = ("a set of", "several", "a bunch of", "the following")
NUMBERS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen",
    "nineteen", "twenty", "twenty-one", "twenty-two", "twenty-three", "twenty-four",
)  # fmt: skip


class Thing(NamedTuple):
    """Equal things: how many, and their colour and name as places in vocabularies."""

    number: int
    colour: int
    name: int


class Scene(NamedTuple):
    """What lies there, and what is asked about it."""

    kind: Kind
    place: int
    intro: int
    noun: int
    things: list[Thing]
    asked: int
    """The thing that a question is about: one of `things`."""
    by_colour: bool
    """Whether that thing is named by its colour, or groups of its colour are removed."""
    left: bool
    colours: list[int]
    """Colours that a question names beside: that it leaves out, or asks whether it is one."""


class ReasoningAboutColoredObjects(Task):
    """A problem is a `Scene`."""

    subset = "reasoning_about_colored_objects"

    def invent(self, draw: random.Random, difficulty: float) -> Scene:
        (kind,) = draw.choices(list(PUBLISHED_KINDS), list(PUBLISHED_KINDS.values()))
        if kind == "remove":
            things = _groups(draw, difficulty)
        else:
            published = PUBLISHED_HEAP if kind in IN_A_HEAP else PUBLISHED_ROW
            size = 2 + scaled(draw.randint(*published) - 2, difficulty, least=0)
            things = _single_things(draw, size)
        left, by_colour = draw.random() < 0.5, draw.random() < 0.5
        asked = draw.choice(_askable(kind, things, left=left, by_colour=by_colour))
        if kind != "remove" and _repeated(things, asked):
            by_colour = False
        return Scene(
            kind=kind,
            place=draw.randrange(len(vocabulary("surfaces.en"))),
            intro=draw.randrange(12),
            noun=draw.randrange(len(NOUNS)),
            things=things,
            asked=asked,
            by_colour=by_colour,
            left=left,
            colours=_colours(draw, kind, things, asked),
        )

    def write(self, problem: Scene, language: Language) -> Question:
        place = vocabulary("surfaces.en")[problem.place]
        asked, answer = WORDING[problem.kind](problem)
        text = f"On the {place}, {_told(problem)}. {asked}"
        if problem.kind in LAST_OPTION:
            options = list(NUMBERS[: max(LAST_OPTION[problem.kind], _most(problem)) + 1])
            return with_options(text, options, int(answer), language)
        options = list(("yes", "no") if problem.kind == "is" else vocabulary("colours.en"))
        return with_options(text, options, options.index(answer), language)

    def solve(self, text: str) -> str | None:
        story, options = split_options(text)
        found = STORY.fullmatch(story)
        if found is None:
            return None
        things = [THING.fullmatch(part) for part in BETWEEN.split(found["things"])]
        seen = [(t["count"], t["colour"], t["object"]) for t in things if t is not None]
        answer = answer_of(seen, found["asked"]) if len(seen) == len(things) else None
        return None if answer is None else label_of(options, answer)


# --- drawing -----------------------------------------------------------------------------------


def _single_things(draw: random.Random, size: int) -> list[Thing]:
    """Different things, of different colours as long as there are so many."""
    palette = list(range(len(vocabulary("colours.en"))))
    colours: list[int] = []
    while len(colours) < size:
        colours += draw.sample(palette, min(len(palette), size - len(colours)))
    draw.shuffle(colours)
    objects = draw.sample(range(len(vocabulary("objects.en"))), size)
    return [Thing(1, colour, name) for colour, name in zip(colours, objects, strict=True)]


def _groups(draw: random.Random, difficulty: float) -> list[Thing]:
    """A table of colours and objects: up to three of each, some of none, in any order."""
    sizes = [scaled(draw.randint(*PUBLISHED_GRID), sqrt(difficulty), least=2) for _ in range(2)]
    colours = draw.sample(range(len(vocabulary("colours.en"))), sizes[0])
    objects = draw.sample(range(len(vocabulary("objects.en"))), sizes[1])
    things: list[Thing] = []
    while len(things) < 2:
        counts = [
            Thing(draw.randint(0, MOST_OF_A_GROUP), colour, name)
            for colour in colours
            for name in objects
        ]
        things = [thing for thing in counts if thing.number]
    draw.shuffle(things)
    return things


def _askable(kind: Kind, things: list[Thing], *, left: bool, by_colour: bool) -> list[int]:
    """The things that a question may be about."""
    places = list(range(len(things)))
    if kind == "next":
        places = places[1:] if left else places[:-1]
    elif kind == "furthest":  # the one in the middle is as far from both ends
        places = [place for place in places if 2 * place != len(things) - 1]
    if kind == "remove" or not by_colour:
        return places
    return [place for place in places if not _repeated(things, place)] or places


def _repeated(things: list[Thing], place: int) -> bool:
    """Whether another thing has the colour of this one."""
    return sum(thing.colour == things[place].colour for thing in things) > 1


def _colours(draw: random.Random, kind: Kind, things: list[Thing], asked: int) -> list[int]:
    """The colours that a question names beside that of its thing."""
    present = sorted({thing.colour for thing in things})
    absent = [c for c in range(len(vocabulary("colours.en"))) if c not in present]
    others = [colour for colour in present if colour != things[asked].colour]
    if kind == "count":
        return [draw.choice(absent if absent and draw.random() < ABSENT else others)]
    if kind == "is":
        return [things[asked].colour if draw.random() < 0.5 else draw.choice(absent or others)]
    if kind == "neither":
        here = max(draw.randint(0, 2), 2 - len(absent))
        colours = draw.sample(present, here) + draw.sample(absent, 2 - here)
        draw.shuffle(colours)
        return colours
    if kind == "remove":  # the colour or object that is counted afterwards
        objects = sorted({thing.name for thing in things})
        return [draw.choice(present), draw.choice(objects)]
    return []


# --- writing -----------------------------------------------------------------------------------


def _told(scene: Scene) -> str:
    """``you see a red cup and an olive hat``."""
    colours, objects = vocabulary("colours.en"), vocabulary("objects.en")
    parts = []
    for thing in scene.things:
        colour, name = colours[thing.colour], objects[thing.name]
        if scene.kind == "remove":
            name = name if thing.number == 1 else _plural(name)
            parts.append(f"{NUMBERS[thing.number]} {colour} {name}")
        else:
            parts.append(f"{'an' if colour[0] in 'aeiou' else 'a'} {colour} {name}")
    listed = ", ".join(parts[:-1]) + ", and " + parts[-1] if len(parts) > 2 else " and ".join(parts)
    if scene.kind in IN_A_HEAP or scene.kind == "remove":
        intro = HEAPS[scene.intro % len(HEAPS)]
        return f"{intro if scene.things[0].number == 1 else intro.replace(' is', ' are')} {listed}"
    return (
        f"you see {ROWS[scene.intro % len(ROWS)]} {NOUNS[scene.noun]}s arranged in a row: {listed}"
    )


def _plural(name: str) -> str:
    """``pairs of gloves``, ``lunch boxes``, ``wristwatches``."""
    head, of, tail = name.partition(" of ")
    ending = "es" if head.endswith(("s", "x", "sh", "ch")) else "s"
    return f"{head}{ending}{of}{tail}"


def _asked_thing(scene: Scene) -> str:
    """``the red item`` or ``the candle``."""
    thing = scene.things[scene.asked]
    if scene.by_colour:
        return f"the {vocabulary('colours.en')[thing.colour]} {NOUNS[scene.noun]}"
    return f"the {vocabulary('objects.en')[thing.name]}"


def _color(scene: Scene) -> tuple[str, str]:
    thing = scene.things[scene.asked]
    answer = vocabulary("colours.en")[thing.colour]
    return f"What color is the {vocabulary('objects.en')[thing.name]}?", answer


def _is(scene: Scene) -> tuple[str, str]:
    thing, (colour,) = scene.things[scene.asked], scene.colours
    name = vocabulary("objects.en")[thing.name]
    answer = "yes" if thing.colour == colour else "no"
    return f"Is the {name} {vocabulary('colours.en')[colour]}?", answer


def _neither(scene: Scene) -> tuple[str, str]:
    one, two = (vocabulary("colours.en")[colour] for colour in scene.colours)
    count = sum(thing.colour not in scene.colours for thing in scene.things)
    return f"How many {NOUNS[scene.noun]}s are neither {one} nor {two}?", str(count)


def _end(scene: Scene) -> tuple[str, str]:
    thing = scene.things[0 if scene.left else -1]
    which = "left-most" if scene.left else "right-most"
    asked = f"What is the color of the {which} {NOUNS[scene.noun]}?"
    return asked, vocabulary("colours.en")[thing.colour]


def _next(scene: Scene) -> tuple[str, str]:
    thing = scene.things[scene.asked + (-1 if scene.left else 1)]
    where = f"directly to the {'left' if scene.left else 'right'} of {_asked_thing(scene)}"
    asked = f"What is the color of the {NOUNS[scene.noun]} {where}?"
    return asked, vocabulary("colours.en")[thing.colour]


def _furthest(scene: Scene) -> tuple[str, str]:
    thing = scene.things[-1 if 2 * scene.asked < len(scene.things) - 1 else 0]
    asked = f"What is the color of the {NOUNS[scene.noun]} furthest from {_asked_thing(scene)}?"
    return asked, vocabulary("colours.en")[thing.colour]


def _count(scene: Scene) -> tuple[str, str]:
    (colour,) = scene.colours
    side = scene.things[: scene.asked] if scene.left else scene.things[scene.asked + 1 :]
    where = f"to the {'left' if scene.left else 'right'} of {_asked_thing(scene)}"
    what = f"non-{vocabulary('colours.en')[colour]} {NOUNS[scene.noun]}s"
    count = sum(thing.colour != colour for thing in side)
    return f"How many {what} do you see {where}?", str(count)


def _remove(scene: Scene) -> tuple[str, str]:
    colours, objects = vocabulary("colours.en"), vocabulary("objects.en")
    gone, (colour, name), noun = scene.things[scene.asked], scene.colours, NOUNS[scene.noun]
    if scene.by_colour:
        removed, counted = f"{colours[gone.colour]} {noun}s", _plural(objects[name])
        left = (t for t in scene.things if t.colour != gone.colour and t.name == name)
    else:
        removed, counted = _plural(objects[gone.name]), f"{colours[colour]} {noun}s"
        left = (t for t in scene.things if t.name != gone.name and t.colour == colour)
    place = vocabulary("surfaces.en")[scene.place]
    asked = f"If I remove all the {removed} from the {place}, how many {counted} remain on it?"
    return asked, str(sum(thing.number for thing in left))


WORDING = {
    "remove": _remove, "next": _next, "count": _count, "furthest": _furthest, "color": _color,
    "is": _is, "end": _end, "neither": _neither,
}  # fmt: skip


def _most(scene: Scene) -> int:
    """A count that cannot be exceeded, whatever is asked."""
    if scene.kind != "remove":
        return len(scene.things)
    sides = ({thing.colour for thing in scene.things}, {thing.name for thing in scene.things})
    return MOST_OF_A_GROUP * max(map(len, sides))


# --- solving -----------------------------------------------------------------------------------

STORY = re.compile(
    r"On the .+?, (?:there is|there are|you see|I see)"
    r"(?: [\w ]+ arranged in a row:)? (?P<things>[^.:]+)\. (?P<asked>[^.]+\?)"
)  # On the desk, you see a red cup and a tan mug. What color is the cup?
BETWEEN = re.compile(r", and |, | and ")
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
COLOURED = re.compile(rf"(?P<colour>\w+) {ANY}s?")  # red things

Seen = list[tuple[str, str, str]]
"""Count, colour and object, as they are told."""


def answer_of(seen: Seen, asked: str) -> str | None:
    """The word that answers a question."""
    colours = [colour for _, colour, _ in seen]
    if found := COLOR_OF.fullmatch(asked):
        place = _place(seen, found["object"])
        return None if place is None else colours[place]
    if found := IS_COLOR.fullmatch(asked):
        place = _place(seen, found["object"])
        return None if place is None else "yes" if colours[place] == found["colour"] else "no"
    if found := NEITHER.fullmatch(asked):
        return NUMBERS[len([c for c in colours if c not in found.groups()])]
    if found := END.fullmatch(asked):
        return colours[0] if found["side"] == "left" else colours[-1]
    if found := REMOVED.fullmatch(asked):
        return _remaining(seen, found["removed"], found["counted"])
    return _in_a_row(seen, asked)


def _in_a_row(seen: Seen, asked: str) -> str | None:
    """Questions on places beside a thing of a row."""
    colours = [colour for _, colour, _ in seen]
    found = PLACED.fullmatch(asked) or SIDE.fullmatch(asked)
    place = _place(seen, found["thing"]) if found else None
    if found is None or place is None:
        return None
    if found.re is SIDE:
        beside = colours[:place] if found["side"] == "left" else colours[place + 1 :]
        return NUMBERS[len([colour for colour in beside if colour != found["colour"]])]
    if found["where"] == "furthest from":
        before, after = place, len(seen) - 1 - place
        return None if before == after else colours[0] if before > after else colours[-1]
    other = place + (-1 if "left" in found["where"] else 1)
    return colours[other] if 0 <= other < len(colours) else None


def _place(seen: Seen, thing: str) -> int | None:
    """Where the one thing stands that is called so: ``red item``, ``pair of gloves``."""
    coloured = COLOURED.fullmatch(thing)
    wanted = coloured["colour"] if coloured else thing
    places = [at for at, (_, colour, name) in enumerate(seen) if wanted in (colour, name)]
    return places[0] if len(places) == 1 else None


def _remaining(seen: Seen, removed: str, counted: str) -> str | None:
    """How many of a kind remain when another kind is gone: by colour and object, or reverse."""
    tests = []
    for what in (removed, counted):
        coloured = COLOURED.fullmatch(what)
        tests.append((1, coloured["colour"]) if coloured else (2, _stem(what)))
    total = 0
    for thing in seen:
        named = (thing[0], thing[1], _stem(thing[2]))
        if thing[0] not in NUMBERS:
            return None
        (gone_by, gone), (kept_by, kept) = tests
        if named[gone_by] != gone and named[kept_by] == kept:
            total += NUMBERS.index(thing[0])
    return NUMBERS[total] if total < len(NUMBERS) else None


def _stem(name: str) -> str:
    """What one and many have in common: ``dog leash`` for ``dog leashes`` too."""
    head, of, tail = name.partition(" of ")
    if head.endswith(("shes", "ches", "xes", "sses")):
        head = head[:-2]
    elif head.endswith("s") and not head.endswith("ss"):
        head = head[:-1]
    return f"{head}{of}{tail}"
