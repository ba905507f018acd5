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
    for label, statement in re.findall(r"\((\w)\) (.+)", text):
        (object_name,) = mentioned_objects(list(order), statement)
        if place_of(statement, object_name, len(order)) == order[object_name]:
            right.append(label)
    (label,) = right
    return f"({label})"


def orders(text: str) -> list[dict[str, int]]:
    """All orders that fit the clues of a paragraph, as the place of each thing."""
    head = re.split(r"\nOptions|\n选项", text)[0].replace("。", ". ")
    object_list, clue_text = re.split(r"[:：]", head, maxsplit=1)[1].split(".", maxsplit=1)
    names = re.split(r",? and |, |、|和", object_list)
    object_names = [re.sub(r"^(an?|the) ", "", name.strip()) for name in names]
    fixed, before = {}, set()
    for clue in filter(None, (part.strip(" .") for part in clue_text.split(". "))):
        about = mentioned_objects(object_names, clue)
        if PAIR.search(clue):
            left_object, right_object = about
            comparison = clue.replace(left_object, "").replace(right_object, "")
            before.add(
                (right_object, left_object)
                if BACK.search(comparison)
                else (left_object, right_object)
            )
        else:
            fixed[about[0]] = place_of(clue, about[0], len(object_names))
    for middle in object_names:  # what is before a thing that is before another is before that, too
        before |= {
            (a, c)
            for a in object_names
            for c in object_names
            if {(a, middle), (middle, c)} <= before
        }
    object_names.sort(
        key=lambda object_name: (
            object_name not in fixed,
            -sum(object_name in pair for pair in before),
        )
    )
    return list(extended({}, object_names, fixed, before))


def extended(
    order: dict[str, int],
    object_names: list[str],
    fixed: dict[str, int],
    before: set[tuple[str, str]],
) -> Iterator[dict[str, int]]:
    """What becomes of an order when the things that are left find places."""
    if len(order) == len(object_names):
        yield order
        return
    object_name = object_names[len(order)]
    lowest_place = sum(after == object_name for _, after in before)
    highest_place = len(object_names) - 1 - sum(earlier == object_name for earlier, _ in before)
    for place in range(lowest_place, highest_place + 1):
        if place in order.values() or fixed.get(object_name, place) != place:
            continue
        bigger = order | {object_name: place}
        pairs = [(a, b) for a, b in before if object_name in (a, b) and a in bigger and b in bigger]
        if all(bigger[a] < bigger[b] for a, b in pairs):
            yield from extended(bigger, object_names, fixed, before)


def mentioned_objects(object_names: list[str], sentence: str) -> list[str]:
    """The things that a sentence names, in its order; the loom is not in heirloom."""
    matches = [(re.search(rf"\b{t}\b" if t.isascii() else t, sentence), t) for t in object_names]
    return [
        object_name
        for _, object_name in sorted(
            (match.start(), object_name) for match, object_name in matches if match
        )
    ]


def place_of(clue: str, object_name: str, size: int) -> int:
    """The place that a clue tells of a thing, counted from nothing."""
    remainder = clue.replace(object_name, "")
    steps = [n for n, word in enumerate(WORDS) if re.search(rf"\b{word}\b", remainder)]
    steps += [n for n, numeral in enumerate("一二三四五六七") if f"第{numeral}" in remainder]
    return size - 1 - sum(steps) if BACK.search(remainder) else sum(steps)
