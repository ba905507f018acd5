"""Who holds what at the end, when people have swapped what they hold: three subsets.

Published stories have three, five or seven people and as many swaps; everybody takes part in one,
and no two people swap twice in a row. With the difficulty the number of swaps grows, and the
number of people with its square root: at 4 there are four times as many swaps among twice as many.
"""

from __future__ import annotations

import random
import re
from typing import NamedTuple

from keju.benchmarks.fresh.task import (
    Language,
    Question,
    Task,
    label_of,
    scaled,
    split_options,
    with_options,
)  # fmt: skip
from keju.benchmarks.fresh.vocabulary import vocabulary

FEWEST = 3
"""People of the easiest stories: with two there would be only one swap, again and again."""


class Story(NamedTuple):
    """A story in one language; ``{}`` in a sentence is a person, a thing, or both in turn."""

    people: str
    """Who they are, and what each has at the start."""
    holds: str
    meanwhile: str
    swap: str
    end: str


THINGS = ("hats", "instruments", "posts", "countries", "people")
"""Vocabularies: what is swapped in each story."""
STORIES: dict[Language, tuple[Story, ...]] = {
    "en": (
        Story(
            "{} are guests at a costume party. At the start of the party, they are each wearing a "
            "hat of a different color: ",
            "{} has {}", "As the party goes on, pairs of guests swap hats.", "{} and {} swap hats.",
            "At the end of the party, {} has the",
        ),
        Story(
            "{} are members of a street band. At the start of the evening, they each pick up an "
            "instrument: ",
            "{} has {}", "As the evening goes on, pairs of players trade instruments.",
            "{} and {} trade instruments.", "At the end of the evening, {} has the",
        ),
        Story(
            "{} are sailors on the same ship. At the start of the voyage, they are each given a "
            "post: ",
            "{} is working as {}",
            "As the voyage continues, pairs of sailors sometimes swap posts.",
            "{} and {} swap posts.", "At the end of the voyage, {} is working as",
        ),
        Story(
            "{} are students who prepare talks about foreign countries. At the start of the term, "
            "they each choose one country: ",
            "{} gets {}", "As the term proceeds, they begin to trade the countries.",
            "{} and {} trade countries.", "At the end of the term, {} has",
        ),
        Story(
            "{} are players at a chess evening. At the start of the evening, they each have an "
            "opponent: ",
            "{} is playing against {}",
            "Throughout the evening, the players often change opponents.",
            "{} and {} change opponents.", "At the end of the evening, {} is playing against",
        ),
    ),
    "zh": (
        Story(
            "{}人在参加化装舞会。舞会开始时，他们各戴着一顶不同颜色的帽子：",
            "{}戴着{}", "舞会上，不时有两个人互换帽子。", "{}和{}互换帽子。", "舞会结束时，{}戴着",
        ),
        Story(
            "{}人是一支街头乐队的成员。晚上开始演出时，他们各拿起一件乐器：",
            "{}拿着{}", "演出中，不时有两个人互换乐器。", "{}和{}互换乐器。", "演出结束时，{}拿着",
        ),
        Story(
            "{}人是同一艘船上的船员。航行开始时，他们各分到一个岗位：",
            "{}担任{}", "航行途中，有时会有两名船员互换岗位。", "{}和{}互换岗位。",
            "航行结束时，{}担任",
        ),
        Story(
            "{}人是学生，正在准备介绍外国的演讲。学期开始时，他们各选了一个国家：",
            "{}选了{}", "学期中，他们开始互换国家。", "{}和{}互换国家。", "学期结束时，{}要介绍",
        ),
        Story(
            "{}人在参加国际象棋之夜。晚上开始时，他们各有一位对手：",
            "{}的对手是{}", "整个晚上，棋手们常常互换对手。", "{}和{}互换对手。",
            "晚上结束时，{}的对手是",
        ),
    ),
}  # fmt: skip
TURNS: dict[Language, tuple[str, str, str]] = {
    "en": ("First, ", "Then, ", "Finally, "),
    "zh": ("首先，", "然后，", "最后，"),
}
NUMERALS = "零一二三四五六七八九十"

# Alice, Bob, and Claire are … each …: Alice gets Ulysses, Bob …, and Claire ….⏎As …, … the end …
ENGLISH = re.compile(r"(?P<people>[\w, ]+?),? and (?P<last>\w+) are [^:]+: (?P<start>.+)\.\n.+")
ENGLISH_SWAP = re.compile(r"(?:First|Then|Finally), (\w+) and (\w+) (?:swap|switch|trade|change) ")
ENGLISH_END = re.compile(r"At the end of the \w+, (\w+) (?:has|is) ?[\w ]*")
# 陈晓雯、李国栋和王雅琴三人…：陈晓雯戴着…，…。⏎舞会上…首先，…舞会结束时，陈晓雯戴着
CHINESE = re.compile(
    r"(?P<people>[^和]+)和(?P<last>[^和]+?)[一二三四五六七八九十]+人[^：]+：(?P<start>.+)。\n.+"
)
CHINESE_SWAP = re.compile(r"(?:首先|然后|最后)，([^，。和]+)和([^，。和]+)互换")
CHINESE_END = re.compile(r"[^，。]+结束时，([^，。]+)")


class Shuffle(NamedTuple):
    """People and things are numbers of entries; swaps name people by their place in the story."""

    story: int
    people: list[int]
    things: list[int]
    swaps: list[tuple[int, int]]
    answer: int
    """The place of the thing that is asked for, by the person who ends up with it."""


class TrackingShuffledObjects(Task):
    """A problem is a `Shuffle`."""

    languages = ("en", "zh")

    def __init__(self, name: str, size: int) -> None:
        self.subset = f"tracking_shuffled_objects_{name}_objects"
        self._size = size

    def invent(self, draw: random.Random, difficulty: float) -> Shuffle:
        size = scaled(self._size, difficulty**0.5, least=FEWEST)
        swaps = _swaps(draw, size, scaled(self._size, difficulty, least=1))
        story = draw.randrange(len(THINGS))
        names = draw.sample(range(len(vocabulary("people.en"))), 2 * size)
        things = names[size:]
        if THINGS[story] != "people":
            things = draw.sample(range(len(vocabulary("hats.en"))), size)
        return Shuffle(story, names[:size], things, swaps, draw.randrange(size))

    def write(self, problem: Shuffle, language: Language) -> Question:
        story, names = STORIES[language][problem.story], vocabulary(f"people.{language}")
        people = [names[person] for person in problem.people]
        entries = vocabulary(f"{THINGS[problem.story]}.{language}")
        things = [entries[thing] for thing in problem.things]
        if language == "zh" and THINGS[problem.story] == "instruments":
            things = [thing[1:] for thing in things]  # without the word by which they are counted
        said = [
            _with_article(thing, problem.story) if language == "en" else thing for thing in things
        ]
        start = [story.holds.format(*pair) for pair in zip(people, said, strict=True)]
        holders, turns = list(range(len(people))), _turns(len(problem.swaps), language)
        for one, two in problem.swaps:
            holders[one], holders[two] = holders[two], holders[one]
        swaps = [
            turn + story.swap.format(people[one], people[two])
            for turn, (one, two) in zip(turns, problem.swaps, strict=True)
        ]
        end = story.end.format(people[holders.index(problem.answer)])
        gap = "" if language == "zh" else " "
        text = (
            f"{story.people.format(_listed(people, language))}{_joined(start, language)}\n"
            f"{gap.join([story.meanwhile, *swaps, end])}"
        )
        return with_options(text, things, problem.answer, language)

    def solve(self, text: str) -> str | None:
        head, options = split_options(text)
        if found := ENGLISH.fullmatch(head):
            people = [*found["people"].split(", "), found["last"]]
            start = found["start"].replace(", and ", ", ").split(", ")
            swaps, ends = ENGLISH_SWAP.findall(head), ENGLISH_END.findall(head)
        elif found := CHINESE.fullmatch(head):
            people = [*found["people"].split("、"), found["last"]]
            start = found["start"].split("，")
            swaps, ends = CHINESE_SWAP.findall(head), CHINESE_END.findall(head)
        else:
            return None
        return _trace(people, start, swaps, ends, options)


# --- drawing and writing -----------------------------------------------------------------------


def _swaps(draw: random.Random, people: int, number: int) -> list[tuple[int, int]]:
    """Pairs of people of whom none swaps twice in a row, and everybody once if there is time."""
    while True:
        swaps: list[tuple[int, int]] = []
        before: set[int] = set()
        while len(swaps) < number:
            one = draw.randrange(people)
            two = (one + draw.randrange(1, people)) % people
            if before != {one, two}:
                swaps.append((one, two))
                before = {one, two}
        taking_part = {person for pair in swaps for person in pair}
        if len(taking_part) == min(people, 2 * number):
            return swaps


def _with_article(thing: str, story: int) -> str:
    if THINGS[story] not in ("hats", "instruments"):
        return thing
    return f"{'an' if thing[0] in 'aeio' else 'a'} {thing}"


def _turns(number: int, language: Language) -> list[str]:
    """The words before the swaps: first, then, then, finally."""
    first, then, finally_ = TURNS[language]
    return [first, *[then] * (number - 2), finally_][:number]


def _listed(people: list[str], language: Language) -> str:
    *rest, last = people
    if language == "en":
        return f"{', '.join(rest)}, and {last}"
    tens, ones = divmod(len(people), 10)
    numeral = "十" * tens + (NUMERALS[ones] if ones or not tens else "")
    return f"{'、'.join(rest)}和{last}{numeral}"


def _joined(start: list[str], language: Language) -> str:
    *rest, last = start
    return f"{', '.join(rest)}, and {last}." if language == "en" else f"{'，'.join(start)}。"


# --- solving -----------------------------------------------------------------------------------


def _trace(
    people: list[str],
    start: list[str],
    swaps: list[tuple[str, str]],
    ends: list[str],
    options: list[str],
) -> str | None:
    """Go back from the end: whoever held the thing before the last swap, before the one before."""

    def person(said: str) -> str:
        # The longest name, as Milan is not Mila.
        return max((name for name in people if said.startswith(name)), key=len, default="")

    told = {person(said): said for said in start}
    swapping = {name for pair in swaps for name in pair}
    if len(ends) != 1 or set(told) != set(people) or not swapping <= set(people):
        return None
    holder = person(ends[0])
    for one, two in reversed(swaps):
        holder = two if holder == one else one if holder == two else holder
    said = told.get(holder, "")
    return label_of(options, max((o for o in options if said.endswith(o)), key=len, default=""))
