"""The order of things, deduced from clues: three subsets.

Published paragraphs name three, five or seven things and nearly always one clue fewer; no clue can
be left out, and together they leave one order. With the difficulty the number of clues grows with
its square root: at 4 there are twice as many, and one thing more than clues.

How the clues of a fresh paragraph leave one order, without a look at any other: some things are
fixed, their places told. The others, the free ones, stand in some order o1, o2, … in the places
that are left, and for each neighbours oi and oi+1 of them there is one more clue: that oi comes
before oi+1; or, where fixed things stand between them, that oi comes before one of those (*early*)
or that oi+1 comes after one (*late*). No early clue follows a late one in the order. So what is
before an early clue's fixed thing is just o1 to oi, as there is no more room, and what is after a
late one's is just oi+1 to the last; between them every neighbours are told.
"""

from __future__ import annotations

import random
from itertools import pairwise
from typing import NamedTuple

from keju.benchmarks.fresh.task import Language, Question, Task, split_options, with_options
from keju.benchmarks.fresh.tasks.deduction_reading import answer_of
from keju.benchmarks.fresh.vocabulary import vocabulary
from keju.types import LABELS

NUMBERS: dict[Language, str] = {
    "en": "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen",
    "zh": "零 一 两 三 四 五 六 七 八 九 十 十一 十二 十三 十四",
}
ORDINALS: dict[Language, str] = {
    "en": "zeroth first second third fourth fifth sixth seventh",
    "zh": "零 一 二 三 四 五 六 七",
}


class Scene(NamedTuple):
    """Where things stand in an order, in one language; ``{a}`` and ``{b}`` are things."""

    opening: str
    before: str
    after: str
    first: str
    last: str
    from_first: str
    """``{k}`` is an ordinal number."""
    from_last: str


def _row(opening: str) -> Scene:
    """Things from left to right."""
    return Scene(
        opening, "{a} is to the left of {b}", "{a} is to the right of {b}", "{a} is the leftmost",
        "{a} is the rightmost", "{a} is the {k} from the left", "{a} is the {k} from the right",
    )  # fmt: skip


def _chinese_row(opening: str) -> Scene:
    return Scene(
        opening, "{a}排在{b}的左边", "{a}排在{b}的右边", "{a}排在最左边", "{a}排在最右边",
        "{a}排在左起第{k}位", "{a}排在右起第{k}位",
    )  # fmt: skip


THINGS = ("plants", "shops", "exhibits", "pastries", "people")
"""Vocabularies: what stands in an order in each scene."""
SINGULAR = ("plants", "shops", "exhibits")
SCENES: dict[Language, tuple[Scene, ...]] = {
    "en": (
        _row("On a windowsill, there are {n} plants: {things}."),
        _row("On a street, there are {n} shops: {things}."),
        Scene(
            "In a museum of technology, there are {n} exhibits: {things}.",
            "{a} is newer than {b}", "{a} is older than {b}", "{a} is the newest",
            "{a} is the oldest", "{a} is the {k}-newest", "{a} is the {k}-oldest",
        ),
        Scene(
            "A bakery sells {n} kinds of pastries: {things}.",
            "{a} are more expensive than {b}", "{a} are less expensive than {b}",
            "{a} are the most expensive", "{a} are the cheapest",
            "{a} are the {k}-most expensive", "{a} are the {k}-cheapest",
        ),
        Scene(
            "In a swimming race, there were {n} swimmers: {things}.",
            "{a} finished above {b}", "{a} finished below {b}", "{a} finished first",
            "{a} finished last", "{a} finished {k}", "{a} finished {k}-to-last",
        ),
    ),
    "zh": (
        _chinese_row("窗台上有{n}盆植物：{things}。"),
        _chinese_row("一条街上有{n}家店铺：{things}。"),
        Scene(
            "科技博物馆里有{n}件展品：{things}。", "{a}比{b}新", "{a}比{b}旧", "{a}是最新的",
            "{a}是最旧的", "{a}是第{k}新的", "{a}是第{k}旧的",
        ),
        Scene(
            "一家糕点店出售{n}种点心：{things}。", "{a}比{b}贵", "{a}比{b}便宜", "{a}是最贵的",
            "{a}是最便宜的", "{a}是第{k}贵的", "{a}是第{k}便宜的",
        ),
        Scene(
            "一场游泳比赛有{n}名选手：{things}。", "{a}的名次在{b}之前", "{a}的名次在{b}之后",
            "{a}得了第一名", "{a}得了最后一名", "{a}得了第{k}名", "{a}得了倒数第{k}名",
        ),
    ),
}  # fmt: skip
BEGINNINGS: dict[Language, str] = {
    "en": "The following paragraphs each describe a set of {n} objects arranged in a fixed order. "
    "The statements are logically consistent within each paragraph. ",
    "zh": "下面的段落描述了按固定顺序排列的{n}个对象，段落中的各个说法互不矛盾。",
}


class Clue(NamedTuple):
    """Things by their place in the list: where the first stands, or on which side of the other."""

    thing: int
    other: int | None
    after: bool = False


class Paragraph(NamedTuple):
    """Things are numbers of entries, in the order in which they are listed."""

    scene: int
    things: list[int]
    order: list[int]
    """From first to last, by their place in the list."""
    clues: list[Clue]
    asked: int
    """The place in the order that is asked for."""


class LogicalDeduction(Task):
    """A problem is a `Paragraph`."""

    languages = ("en", "zh")

    def __init__(self, name: str, size: int) -> None:
        self.subset = f"logical_deduction_{name}_objects"
        self._size = size

    def invent(self, draw: random.Random, difficulty: float) -> Paragraph:
        size = 1 + _rounded(draw, (self._size - 1) * difficulty**0.5)
        scene = draw.randrange(len(THINGS))
        things = draw.sample(range(len(vocabulary(f"{THINGS[scene]}.en"))), size)
        order = draw.sample(range(size), size)
        return Paragraph(scene, things, order, _clues(draw, order), draw.randrange(size))

    def write(self, problem: Paragraph, language: Language) -> Question:
        kind, scene = THINGS[problem.scene], SCENES[language][problem.scene]
        entries = vocabulary(f"{kind}.{language}")
        names = [entries[thing] for thing in problem.things]
        size = len(names)
        places = {thing: place for place, thing in enumerate(problem.order)}
        article = language == "en" and kind != "people"
        sentences = []
        for thing, other, after in problem.clues:
            if other is None:
                told = _place(scene, places[thing], size, language)
            else:
                told = scene.after if after else scene.before
            a, b = names[thing], names[other or 0]
            sentences.append(
                told.format(a=f"The {a}", b=f"the {b}") if article else told.format(a=a, b=b)
            )
        numeral = NUMBERS[language].split()[size]
        things = [_with_article(name) for name in names] if article and kind in SINGULAR else names
        beginning = BEGINNINGS[language].format(n=numeral)
        opening = scene.opening.format(n=numeral, things=_listed(things, language))
        end, gap = ("。", "") if language == "zh" else (".", " ")
        text = beginning + gap.join([opening, *(sentence + end for sentence in sentences)])
        asked = _place(scene, problem.asked, size, language)
        options = [asked.format(a=f"The {name}" if article else name) for name in names]
        return with_options(text, options, problem.order[problem.asked], language)

    def solve(self, text: str) -> str | None:
        head, options = split_options(text)
        number = answer_of(head, options)
        return None if number is None else f"({LABELS[number]})"


def _rounded(draw: random.Random, size: float) -> int:
    """A size between two whole numbers is one or the other, so that it grows little by little."""
    return int(size) + (draw.random() < size - int(size))


def _clues(draw: random.Random, order: list[int]) -> list[Clue]:
    """One clue fewer than things, which leave no other order: the first lines say why."""
    size = len(order)
    share = 0.65 - 1.2 / size  # of clues that tell a place: .25, .41, .48 for 3, 5, 7 as published
    fixed = draw.sample(range(size), sum(draw.random() < share for _ in range(size - 1)))
    clues = [Clue(order[place], None) for place in fixed]
    free = [place for place in range(size) if place not in fixed]
    late = False
    for one, two in pairwise(free):
        ways = ["direct"]
        if two - one > 1:
            ways += ["late"] if late else ["late", "early"]
        way = draw.choice(ways)
        if way == "early":
            two = draw.randrange(one + 1, two)
        elif way == "late":
            one, late = draw.randrange(one + 1, two), True
        if draw.random() < 0.5:
            clues.append(Clue(order[one], order[two]))
        else:
            clues.append(Clue(order[two], order[one], after=True))
    draw.shuffle(clues)
    return clues


def _place(scene: Scene, place: int, size: int, language: Language) -> str:
    """How a place is told: from the end that is nearer, and from the first end in the middle."""
    if place in (0, size - 1):
        return scene.last if place else scene.first
    ordinals, back = ORDINALS[language].split(), size - place
    if place < back:
        return scene.from_first.replace("{k}", ordinals[place + 1])
    return scene.from_last.replace("{k}", ordinals[back])


def _with_article(name: str) -> str:
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _listed(things: list[str], language: Language) -> str:
    *rest, last = things
    if language == "zh":
        return f"{'、'.join(rest)}和{last}"
    return f"{', '.join(rest)}{',' * (len(rest) > 1)} and {last}"
