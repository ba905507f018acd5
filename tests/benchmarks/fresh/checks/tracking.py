"""Things move through a row of places: the row as it is after each swap is written down again."""

from __future__ import annotations

import re

SWAP = re.compile(
    r"(?<=, )(\w+) and (\w+) \w+ (?:their )?\w+\.|(?<=，)([^，。和]+)和([^，。和]+)互换"
)


def answer(text: str) -> str:
    """The label of the thing that the person has who is asked for."""
    story, options = re.split(r"\nOptions:\n|\n选项：\n", text)
    things = dict(re.findall(r"\((\w)\) (.+)", options))
    before, after = story.split("\n")
    names = re.split(r", and |, |、|和", re.split(r" are |[一二三四五六七八九十]+人", before)[0])
    told = re.split(r", and |, |，", re.split(r": |：", before)[1].rstrip(".。"))
    row = {of(names, part): longest(things, part) for part in told}
    for found in SWAP.findall(after):
        one, two = [name for name in found if name]
        moved: dict[str, str] = {one: two, two: one}
        row = {name: row[moved.get(name, name)] for name in names}
    asked = re.split(r"[.。]", after)[-1].replace("，", ", ").partition(", ")[2]
    return f"({row[of(names, asked)]})"


def of(names: list[str], part: str) -> str:
    """The person with whom a sentence begins."""
    return max((name for name in names if part.startswith(name)), key=len)


def longest(things: dict[str, str], part: str) -> str:
    """The label of the thing with which a sentence ends."""
    return max(
        (la for la, thing in things.items() if part.endswith(thing)), key=lambda la: len(things[la])
    )
