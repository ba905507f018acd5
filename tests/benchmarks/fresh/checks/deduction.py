"""Search: things are given places one after the other, and every order that fits is kept."""

from __future__ import annotations

import re
from collections.abc import Iterator

WORDS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh")
PAIR = re.compile(r"than|left of|right of|above|below|比|的[左右]边|之[前后]")
BACK = re.compile(r"right|olde|less exp|cheap|below|last|右|旧|便宜|后|倒数")


def answer(text: str) -> str:
    """The label of the only thing that stands where it is asked for, in the only order there is."""
    (order,) = orders(text)
    right = []
    for label, said in re.findall(r"\((\w)\) (.+)", text):
        (thing,) = named(list(order), said)
        if place_of(said, thing, len(order)) == order[thing]:
            right.append(label)
    (label,) = right
    return f"({label})"


def orders(text: str) -> list[dict[str, int]]:
    """All orders that fit the clues of a paragraph, as the place of each thing."""
    head = re.split(r"\nOptions|\n选项", text)[0].replace("。", ". ")
    listed, said = re.split(r"[:：]", head, maxsplit=1)[1].split(".", maxsplit=1)
    names = re.split(r",? and |, |、|和", listed)
    things = [re.sub(r"^(an?|the) ", "", name.strip()) for name in names]
    fixed, before = {}, set()
    for clue in filter(None, (part.strip(" .") for part in said.split(". "))):
        about = named(things, clue)
        if PAIR.search(clue):
            one, two = about
            rest = clue.replace(one, "").replace(two, "")
            before.add((two, one) if BACK.search(rest) else (one, two))
        else:
            fixed[about[0]] = place_of(clue, about[0], len(things))
    for middle in things:  # what is before a thing that is before another is before that, too
        before |= {(a, c) for a in things for c in things if {(a, middle), (middle, c)} <= before}
    things.sort(key=lambda thing: (thing not in fixed, -sum(thing in pair for pair in before)))
    return list(extended({}, things, fixed, before))


def extended(
    order: dict[str, int], things: list[str], fixed: dict[str, int], before: set[tuple[str, str]]
) -> Iterator[dict[str, int]]:
    """What becomes of an order when the things that are left find places."""
    if len(order) == len(things):
        yield order
        return
    thing = things[len(order)]
    least = sum(two == thing for _, two in before)
    most = len(things) - 1 - sum(one == thing for one, _ in before)
    for place in range(least, most + 1):
        if place in order.values() or fixed.get(thing, place) != place:
            continue
        bigger = order | {thing: place}
        pairs = [(a, b) for a, b in before if thing in (a, b) and a in bigger and b in bigger]
        if all(bigger[a] < bigger[b] for a, b in pairs):
            yield from extended(bigger, things, fixed, before)


def named(things: list[str], said: str) -> list[str]:
    """The things that a sentence names, in its order; the loom is not in heirloom."""
    found = [(re.search(rf"\b{t}\b" if t.isascii() else t, said), t) for t in things]
    return [thing for _, thing in sorted((match.start(), thing) for match, thing in found if match)]


def place_of(clue: str, thing: str, size: int) -> int:
    """The place that a clue tells of a thing, counted from nothing."""
    rest = clue.replace(thing, "")
    steps = [n for n, word in enumerate(WORDS) if re.search(rf"\b{word}\b", rest)]
    steps += [n for n, numeral in enumerate("一二三四五六七") if f"第{numeral}" in rest]
    return size - 1 - sum(steps) if BACK.search(rest) else sum(steps)
