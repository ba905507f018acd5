"""Lists of options that small models write around an answer.

An option that stands apart, before all of them are listed or after, is the answer: ``C. three\\nA.
one\\nB. two``. What stands in a list is none.
"""

from __future__ import annotations

import re

from keju.types import Sample

LONGEST_ITEM = 300
"""Characters of an option that stands apart."""
_REACH = 1200
"""Characters at the beginning of a reply that are looked at."""

# `C. two`, `(C) two`, `C: two`: a line that begins with a label.
_ITEM = re.compile(r"[ \t*]{0,4}[(\[]?([A-Z])[)\].:、]{1,2}[ \t]*+\S")
# `选项：C. two`, `Options: A. one`: what may stand before it.
_OPTIONS = re.compile(r"(?:选项|Options?)[:：]\s?")


def option_before_list(text: str, sample: Sample) -> str | None:
    """The label of an option that stands apart, before the options are listed from the first on.

    ``C. two\\nA. one\\nB. two``, ``A. one\\n\\nA. one\\nB. two``; not ``C. two\\nD. three``, nor
    ``A. one\\n\\nA. one\\n\\nB. two``. The label counts, whatever text it has.
    """
    first = _ITEM.match(text)
    if first is None or first[1] not in sample.labels:
        return None
    line, _, rest = text[:_REACH].partition("\n")
    if len(line) > LONGEST_ITEM:
        return None
    own, named = first[1], [_label_of(each) for each in rest.split("\n")]
    while named and named[0] in ("-", own) and own != "A":
        del named[0]
    if own != "A":
        return own if named[:1] == ["A"] else None
    return own if named[:3] == ["-", "A", "B"] or named[:4] == ["-", "-", "A", "B"] else None


def _label_of(line: str) -> str:
    """The label with which a line begins; a dash for a blank line, nothing for any other."""
    prefix = _OPTIONS.match(line)
    item = _ITEM.match(line, prefix.end() if prefix else 0)
    if item:
        return item[1]
    return "" if line[prefix.end() if prefix else 0 :].strip() else "-"


def option_after_list(text: str, sample: Sample) -> str | None:
    """The label of the one option that stands apart after the options were listed.

    ``A. one\\nB. two\\nC. three\\n\\nB. two``, with ``选项：`` before it, too. What stands in
    another list does not count, nor do two different options.
    """
    lines = text[: 4 * _REACH].split("\n")
    named = [_label_of(line) for line in lines]
    wanted, at = list(sample.labels[:3]), 0
    listed = [place for place, label in enumerate(named) if label not in ("", "-")]
    if [named[place] for place in listed[: len(wanted)]] != wanted:
        return None
    for at in listed:
        if at + 1 == len(named) or (named[at + 1] == "-" and named[at] >= wanted[-1]):
            break
    apart = {
        named[place]
        for place in listed
        if place > at and not lines[place - 1].strip() and _stands_apart(place, named, lines)
    }
    return apart.pop() if len(apart) == 1 else None


def _stands_apart(place: int, named: list[str], lines: list[str]) -> bool:
    """Whether no list goes on after a line; the last line may have been the first of one."""
    if place + 1 < len(named):
        return named[place + 1] == "-"
    if named[place] == "A":
        return False
    if lines[place].startswith("选项"):
        return sum(line.startswith("选项") for line in lines) == 1
    return lines[place] in lines[:place]


# `\nB. `: a label of a list, behind which half a character was left.
_BARE_LABEL = re.compile(r"\n[ \t]*+[(\[]?[A-Z][)\].:、]{0,2}[ \t]*+\Z")


def without_half_character(text: str) -> str:
    """A reply without the half of a character with which it broke off, and its label."""
    text = text.rstrip("\ufffd")
    label = _BARE_LABEL.search(text, max(0, len(text) - 12))
    return text[: label.start()] if label else text
