"""Things move through a row of places: the row as it is after each swap is written down again."""

from __future__ import annotations

import re

SWAP = re.compile(
    r"(?<=, )(\w+) and (\w+) \w+ (?:their )?\w+\.|(?<=，)([^，。和]+)和([^，。和]+)互换"
)


def answer(text: str) -> str:
    """The label of the thing that the person has who is asked for."""
    story, options = re.split(r"\nOptions:\n|\n选项：\n", text)
    labels_by_letter = dict(re.findall(r"\((\w)\) (.+)", options))
    before, after = story.split("\n")
    names = re.split(r", and |, |、|和", re.split(r" are |[一二三四五六七八九十]+人", before)[0])
    start_texts = re.split(r", and |, |，", re.split(r": |：", before)[1].rstrip(".。"))
    row = {of(names, part): longest(labels_by_letter, part) for part in start_texts}
    for names_found in SWAP.findall(after):
        giver, taker = [name for name in names_found if name]
        swap: dict[str, str] = {giver: taker, taker: giver}
        row = {name: row[swap.get(name, name)] for name in names}
    final_clause = re.split(r"[.。]", after)[-1].replace("，", ", ").partition(", ")[2]
    return f"({row[of(names, final_clause)]})"


def of(names: list[str], part: str) -> str:
    """The person with whom a sentence begins."""
    return max((name for name in names if part.startswith(name)), key=len)


def longest(labels_by_letter: dict[str, str], part: str) -> str:
    """The label of the thing with which a sentence ends."""
    return max(
        (la for la, object_name in labels_by_letter.items() if part.endswith(object_name)),
        key=lambda la: len(labels_by_letter[la]),
    )
