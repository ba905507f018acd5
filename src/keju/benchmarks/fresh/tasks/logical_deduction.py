"""The order of things, deduced from clues: three subsets.

Published paragraphs name three, five or seven things and nearly always have one clue fewer. Every
clue is needed, and together they allow only one order. The number of clues grows with the square
root of the difficulty: at 4 there are twice as many, and one more thing than clues.

The clues of a fresh paragraph allow only one order by construction, so no search is needed. Some
things are fixed: a clue gives their place. The others are free. They take the remaining places in
some order o1, o2, … For each pair of neighbours oi and oi+1 there is one more clue. It says that oi
comes before oi+1. If fixed things are between them, it may instead say that oi comes before one of
those (*early*), or that oi+1 comes after one (*late*). No early clue follows a late one in the
order. So exactly o1 to oi come before an early clue's fixed thing, because there is no more room.
Exactly oi+1 to the last come after a late one's. Between them, clues order all pairs of neighbours.
"""

from __future__ import annotations

import random
from itertools import pairwise
from typing import NamedTuple

import msgspec

from keju.benchmarks.fresh.task import (
    FreshQuestion,
    FreshTask,
    Language,
    add_options,
    split_options,
)
from keju.benchmarks.fresh.tasks.deduction_reading import solve_deduction
from keju.benchmarks.fresh.vocabulary import read_phrases, vocabulary
from keju.types import LABELS

NUMBERS: dict[Language, str] = {
    "en": "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen",
    "zh": "零 一 两 三 四 五 六 七 八 九 十 十一 十二 十三 十四",
}
ORDINALS: dict[Language, str] = {
    "en": "zeroth first second third fourth fifth sixth seventh",
    "zh": "零 一 二 三 四 五 六 七",
}


class OrderScene(msgspec.Struct, frozen=True):
    """The phrases for an order in one language; ``{a}`` and ``{b}`` are things."""

    opening: str
    before: str
    after: str
    first_place: str
    last_place: str
    from_first: str
    """``{k}`` is an ordinal number."""
    from_last: str


THINGS = ("plants", "shops", "exhibits", "pastries", "people")
"""The vocabulary of the things in each scene."""
SINGULAR = ("plants", "shops", "exhibits")
SCENES = read_phrases("order_scenes", dict[Language, tuple[OrderScene, ...]])
BEGINNINGS: dict[Language, str] = {
    "en": "The following paragraphs each describe a set of {n} objects arranged in a fixed order. "
    "The statements are logically consistent within each paragraph. ",
    "zh": "下面的段落描述了按固定顺序排列的{n}个对象，段落中的各个说法互不矛盾。",
}


class OrderClue(NamedTuple):
    """A clue about things by their index in the list: the place of one, or its side."""

    thing: int
    other_thing: int | None
    after: bool = False


class Paragraph(NamedTuple):
    """Things are indexes of vocabulary entries, in the order of the list."""

    scene: int
    things: list[int]
    order: list[int]
    """From first to last, by their index in the list."""
    clues: list[OrderClue]
    asked_place: int
    """The place in the order that the question asks about."""


class LogicalDeduction(FreshTask):
    """A problem is a `Paragraph`."""

    languages = ("en", "zh")

    def __init__(self, name: str, size: int) -> None:
        self.subset = f"logical_deduction_{name}_objects"
        self._size = size

    def invent(self, draw: random.Random, difficulty: float) -> Paragraph:
        size = 1 + _round_randomly(draw, (self._size - 1) * difficulty**0.5)
        scene = draw.randrange(len(THINGS))
        things = draw.sample(range(len(vocabulary(f"{THINGS[scene]}.en"))), size)
        order = draw.sample(range(size), size)
        return Paragraph(scene, things, order, _draw_clues(draw, order), draw.randrange(size))

    def write(self, problem: Paragraph, language: Language) -> FreshQuestion:
        kind, scene = THINGS[problem.scene], SCENES[language][problem.scene]
        entries = vocabulary(f"{kind}.{language}")
        names = [entries[thing] for thing in problem.things]
        size = len(names)
        places = {thing: place for place, thing in enumerate(problem.order)}
        article = language == "en" and kind != "people"
        sentences = []
        article_inside, article_first = ("the ", "The ") if article else ("", "")
        for thing, other_thing, after in problem.clues:
            if other_thing is None:
                clue_form = _place_form(scene, places[thing], size, language)
            else:
                clue_form = scene.after if after else scene.before
            b = names[other_thing or 0]
            sentences.append(
                clue_form.format(a=f"{article_first}{names[thing]}", b=f"{article_inside}{b}")
            )
        numeral = NUMBERS[language].split()[size]
        things = [_with_article(name) for name in names] if article and kind in SINGULAR else names
        beginning = BEGINNINGS[language].format(n=numeral)
        opening = scene.opening.format(n=numeral, things=_join_names(things, language))
        end, gap = ("。", "") if language == "zh" else (".", " ")
        text = beginning + gap.join([opening, *(sentence + end for sentence in sentences)])
        asked_form = _place_form(scene, problem.asked_place, size, language)
        options = [asked_form.format(a=f"{article_first}{name}") for name in names]
        return add_options(text, options, problem.order[problem.asked_place], language)

    def solve(self, text: str) -> str | None:
        head, options = split_options(text)
        number = solve_deduction(head, options)
        return None if number is None else f"({LABELS[number]})"


def _round_randomly(draw: random.Random, size: float) -> int:
    """Round a size up or down at random, so that it grows gradually."""
    return int(size) + (draw.random() < size - int(size))


def _draw_clues(draw: random.Random, order: list[int]) -> list[OrderClue]:
    """Draw clues, one fewer than things, that allow only one order (see the module's docstring)."""
    size = len(order)
    share = 0.65 - 1.2 / size  # of clues that give a place: .25, .41, .48 for 3, 5, 7 as published
    fixed = draw.sample(range(size), sum(draw.random() < share for _ in range(size - 1)))
    clues = [OrderClue(order[place], None) for place in fixed]
    free = [place for place in range(size) if place not in fixed]
    late = False
    for left_place, right_place in pairwise(free):
        ways = ["direct"]
        if right_place - left_place > 1:
            ways += ["late"] if late else ["late", "early"]
        way = draw.choice(ways)
        if way == "early":
            right_place = draw.randrange(left_place + 1, right_place)
        elif way == "late":
            left_place, late = draw.randrange(left_place + 1, right_place), True
        if draw.random() < 0.5:
            clues.append(OrderClue(order[left_place], order[right_place]))
        else:
            clues.append(OrderClue(order[right_place], order[left_place], after=True))
    draw.shuffle(clues)
    return clues


def _place_form(scene: OrderScene, place: int, size: int, language: Language) -> str:
    """Return the phrase for a place, counted from the nearer end."""
    if place in (0, size - 1):
        return scene.last_place if place else scene.first_place
    ordinals, rank_from_end = ORDINALS[language].split(), size - place
    if place < rank_from_end:
        return scene.from_first.replace("{k}", ordinals[place + 1])
    return scene.from_last.replace("{k}", ordinals[rank_from_end])


def _with_article(name: str) -> str:
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _join_names(things: list[str], language: Language) -> str:
    *leading_things, last_thing = things
    if language == "zh":
        return f"{'、'.join(leading_things)}和{last_thing}"
    return f"{', '.join(leading_things)}{',' * (len(leading_things) > 1)} and {last_thing}"
