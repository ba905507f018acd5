"""Reads a paragraph about the order of things, and finds what must stand at the place asked for.

It knows how places and sides are told, and no thing by name. Whether an order is possible is
decided from its first place to its last: what may come next depends on which things have been
placed, and not on their order, so that every set of things is looked at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

# The following paragraphs … within each paragraph. On a branch, there are two birds: an owl and …
ENGLISH = re.compile(
    r"The following paragraphs each describe a set of \w+ objects arranged in a fixed order\. "
    r"The statements are logically consistent within each paragraph\. "
    r"[^:.]+: (?P<things>[^:.]+)\. (?P<clues>.+)\."
)
CHINESE = re.compile(
    r"下面的段落描述了按固定顺序排列的.+个对象，段落中的各个说法互不矛盾。"
    r"[^：。]+：(?P<things>[^：。]+)。(?P<clues>.+)。"
)
LISTED = re.compile(r",? and |, |、|和")
ARTICLE = re.compile(r"(?:an?|the|The) ")
SIDES = (
    # The owl is to the left of the crow. Joe finished above Ann.
    re.compile(
        r"(?P<one>.+?) (?:is|are|finished) (?:(?P<before>to the left of|newer than|above|"
        r"more expensive than)|to the right of|older than|below|less expensive than) (?P<two>.+)"
    ),
    # 蕨草排在兰花的左边。织布机比座钟新。陈晓雯的名次在李国栋之前。
    re.compile(r"(?P<one>.+)排在(?P<two>.+)的(?:(?P<before>左边)|右边)"),
    re.compile(r"(?P<one>.+)比(?P<two>.+?)(?:(?P<before>新|贵)|旧|便宜)"),
    re.compile(r"(?P<one>.+)的名次在(?P<two>.+)(?:(?P<before>之前)|之后)"),
)
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")
NUMERALS = "一二三四五六七八九"


def _places() -> Iterator[tuple[str, int]]:
    """How a place is told, and which it is: 1 is the first one, -2 the last but one."""
    yield from {
        " is the leftmost": 1, " is the rightmost": -1, " is the newest": 1, " is the oldest": -1,
        " are the most expensive": 1, " are the cheapest": -1, " finished last": -1,
        "排在最左边": 1, "排在最右边": -1, "是最新的": 1, "是最旧的": -1, "是最贵的": 1,
        "是最便宜的": -1, "得了最后一名": -1,
    }.items()  # fmt: skip
    for place, (word, numeral) in enumerate(zip(ORDINALS, NUMERALS, strict=True), 1):
        for first, last in (
            (f" is the {word} from the left", f" is the {word} from the right"),
            (f" is the {word}-newest", f" is the {word}-oldest"),
            (f" are the {word}-most expensive", f" are the {word}-cheapest"),
            (f" finished {word}", f" finished {word}-to-last"),
            (f"排在左起第{numeral}位", f"排在右起第{numeral}位"),
            (f"是第{numeral}新的", f"是第{numeral}旧的"),
            (f"是第{numeral}贵的", f"是第{numeral}便宜的"),
            (f"得了第{numeral}名", f"得了倒数第{numeral}名"),
        ):
            yield from ((first, place), (last, -place))


PLACES = dict(_places())
PLACED = re.compile(f"(?P<thing>.+?)(?P<place>{'|'.join(map(re.escape, PLACES))})")


class Clues(NamedTuple):
    """What a paragraph says of things, which are numbers."""

    size: int
    fixed: dict[int, int]
    """Things at the places that are told."""
    before: list[int]
    """For each thing the set of things that come before it, as bits."""


def answer_of(head: str, options: Sequence[str]) -> int | None:
    """The number of the one option that can be true, None where the question is not understood."""
    found = ENGLISH.fullmatch(head) or CHINESE.fullmatch(head)
    if found is None:
        return None
    things = [ARTICLE.sub("", thing, count=1) for thing in LISTED.split(found["things"])]
    clues = _read(things, re.split(r"\. |。", found["clues"]))
    asked = [_placed(option, things) for option in options]
    if clues is None or None in asked:
        return None
    possible = [number for number, told in enumerate(asked) if told and _possible(clues, *told)]
    return possible[0] if len(possible) == 1 else None


def _placed(sentence: str, things: list[str]) -> tuple[int, int] | None:
    """The thing and the place of ``The owl is the third from the left``: counted from nothing."""
    found = PLACED.fullmatch(sentence)
    thing = found and ARTICLE.sub("", found["thing"], count=1)
    if found is None or thing not in things:
        return None
    place = PLACES[found["place"]]
    place = place - 1 if place > 0 else len(things) + place
    return (things.index(thing), place) if 0 <= place < len(things) else None


def _read(things: list[str], sentences: list[str]) -> Clues | None:
    clues = Clues(len(things), {}, [0] * len(things))
    for sentence in sentences:
        if told := _placed(sentence, things):
            thing, place = told
            if clues.fixed.setdefault(place, thing) != thing:
                return None
            continue
        found = next((found for side in SIDES if (found := side.fullmatch(sentence))), None)
        if found is None:
            return None
        pair = [ARTICLE.sub("", found[name], count=1) for name in ("one", "two")]
        if not set(pair) <= set(things):
            return None
        one, two = map(things.index, pair if found["before"] else reversed(pair))
        clues.before[two] |= 1 << one
    return clues


def _possible(clues: Clues, thing: int, place: int) -> bool:
    """Whether there is an order with a thing at a place: which sets of things can come first."""
    fixed = clues.fixed | {place: thing}
    if len(set(fixed.values())) != len(fixed) or clues.fixed.get(place, thing) != thing:
        return False
    at = {placed: where for where, placed in fixed.items()}
    reached = {0}
    for where in range(clues.size):
        only = fixed.get(where)
        candidates = range(clues.size) if only is None else [only]
        reached = {
            done | 1 << new
            for done in reached
            for new in candidates
            if at.get(new, where) == where
            and not done >> new & 1
            and clues.before[new] & ~done == 0
        }
    return bool(reached)
