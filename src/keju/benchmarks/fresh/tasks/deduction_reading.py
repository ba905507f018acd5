"""Read a paragraph about the order of things, and find the thing at the requested place.

The code knows the wordings of places and sides, but no names of things. It decides from the first
place to the last whether an order is possible. The next possible things depend only on the set of
things already placed, not on their order, so it visits each set once.
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
LIST_SEPARATOR = re.compile(r",? and |, |、|和")
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


def _place_phrases() -> Iterator[tuple[str, int]]:
    """Yield each phrase for a place with its number: 1 is the first one, -2 the last but one."""
    yield from {
        " is the leftmost": 1, " is the rightmost": -1, " is the newest": 1, " is the oldest": -1,
        " are the most expensive": 1, " are the cheapest": -1, " finished last": -1,
        "排在最左边": 1, "排在最右边": -1, "是最新的": 1, "是最旧的": -1, "是最贵的": 1,
        "是最便宜的": -1, "得了最后一名": -1,
    }.items()  # fmt: skip
    for place, (word, numeral) in enumerate(zip(ORDINALS, NUMERALS, strict=True), 1):
        for from_first, from_last in (
            (f" is the {word} from the left", f" is the {word} from the right"),
            (f" is the {word}-newest", f" is the {word}-oldest"),
            (f" are the {word}-most expensive", f" are the {word}-cheapest"),
            (f" finished {word}", f" finished {word}-to-last"),
            (f"排在左起第{numeral}位", f"排在右起第{numeral}位"),
            (f"是第{numeral}新的", f"是第{numeral}旧的"),
            (f"是第{numeral}贵的", f"是第{numeral}便宜的"),
            (f"得了第{numeral}名", f"得了倒数第{numeral}名"),
        ):
            yield from ((from_first, place), (from_last, -place))


PLACES = dict(_place_phrases())
PLACED = re.compile(f"(?P<thing>.+?)(?P<place>{'|'.join(map(re.escape, PLACES))})")


class ParagraphClues(NamedTuple):
    """The clues of a paragraph; things are numbers."""

    size: int
    fixed: dict[int, int]
    """Things whose place is stated, by place."""
    before: list[int]
    """For each thing, the set of things before it, as bits."""


def solve_deduction(head: str, options: Sequence[str]) -> int | None:
    """Return the index of the only option that can be true; None if there is not exactly one."""
    match = ENGLISH.fullmatch(head) or CHINESE.fullmatch(head)
    if match is None:
        return None
    things = [ARTICLE.sub("", thing, count=1) for thing in LIST_SEPARATOR.split(match["things"])]
    clues = _parse_clues(things, re.split(r"\. |。", match["clues"]))
    option_places = [_parse_place(option, things) for option in options]
    if clues is None or None in option_places:
        return None
    possible_numbers = [
        number
        for number, option_place in enumerate(option_places)
        if option_place and _is_possible(clues, *option_place)
    ]
    return possible_numbers[0] if len(possible_numbers) == 1 else None


def _parse_place(sentence: str, things: list[str]) -> tuple[int, int] | None:
    """Return the thing and the place (from zero) of ``The owl is the third from the left``."""
    match = PLACED.fullmatch(sentence)
    thing = match and ARTICLE.sub("", match["thing"], count=1)
    if match is None or thing not in things:
        return None
    place = PLACES[match["place"]]
    place = place - 1 if place > 0 else len(things) + place
    return (things.index(thing), place) if 0 <= place < len(things) else None


def _parse_clues(things: list[str], sentences: list[str]) -> ParagraphClues | None:
    clues = ParagraphClues(len(things), {}, [0] * len(things))
    for sentence in sentences:
        if placement := _parse_place(sentence, things):
            thing, place = placement
            if clues.fixed.setdefault(place, thing) != thing:
                return None
            continue
        match = next((match for side in SIDES if (match := side.fullmatch(sentence))), None)
        if match is None:
            return None
        pair = [ARTICLE.sub("", match[name], count=1) for name in ("one", "two")]
        if not set(pair) <= set(things):
            return None
        earlier_thing, later_thing = map(things.index, pair if match["before"] else reversed(pair))
        clues.before[later_thing] |= 1 << earlier_thing
    return clues


def _is_possible(clues: ParagraphClues, thing: int, place: int) -> bool:
    """Whether an order with a thing at a place exists: it follows the possible sets of first
    things."""
    fixed = clues.fixed | {place: thing}
    if len(set(fixed.values())) != len(fixed) or clues.fixed.get(place, thing) != thing:
        return False
    place_of_thing = {placed: where for where, placed in fixed.items()}
    reached = {0}
    for current_place in range(clues.size):
        fixed_thing = fixed.get(current_place)
        candidates = range(clues.size) if fixed_thing is None else [fixed_thing]
        reached = {
            placed_things | 1 << next_thing
            for placed_things in reached
            for next_thing in candidates
            if place_of_thing.get(next_thing, current_place) == current_place
            and not placed_things >> next_thing & 1
            and clues.before[next_thing] & ~placed_things == 0
        }
    return bool(reached)
