"""The names of the fields that a row of questions has, and columns that miss one of them narrowly.

A field without one of these names goes unused. Where it holds the options or the right answer
under a name of its own, the exam would be another one: free-form, or without labels.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from keju.types import LABELS

QUESTION = ("question", "input")
CHOICES = ("choices", "options")
ANSWER = ("answer", "target")
SUBSET = ("subset", "category", "subject")
EXPLANATION = ("explanation",)
KNOWN = frozenset({*QUESTION, *CHOICES, *ANSWER, *EXPLANATION, *LABELS})

OTHER_ANSWERS = frozenset(
    {
        *("gold", "goldanswer", "goldlabel", "label", "groundtruth", "ideal"),
        *("answerkey", "correct", "correctanswer", "correctoption", "rightanswer"),
        *("expected", "expectedanswer", "referenceanswer", "答案", "正确答案", "标准答案"),
    }
)
"""What the right answer is called elsewhere, as `_plain` writes it."""
OPTION = re.compile(r"(?:option|opt|op|choice|选项)?(?:([a-z])|([0-9]{1,2}))")
"""One option in a column of its own, as `_plain` writes it: a letter, or a number."""
LIKENESS = 0.82
"""From where on a name is a misspelt one: ``anwser`` is, ``answer_type`` is not."""


class Misnamed(NamedTuple):
    """A column that is not read, and the name under which it would be."""

    column: str
    name: str


@lru_cache(maxsize=256)
def misnamed(columns: tuple[str, ...], named: frozenset[str]) -> tuple[Misnamed, ...]:
    """The columns of a row that seem to hold its options or answer, where it has none by name.

    `named` are columns that templates show: they are not unused.
    """
    unread = [name for name in columns if name not in KNOWN and name not in named]
    found: list[Misnamed] = []
    if not any(name in columns for name in CHOICES):
        present = [name for name in columns if name in LABELS]
        found += _options(unread, present) or ([] if "A" in present else _lists(unread))
    if not any(name in columns for name in ANSWER):
        taken = {each.column for each in found}
        found += _answers([name for name in unread if name not in taken])
    return tuple(found)


def _plain(name: str) -> str:
    """A name without letter case and separators: ``optiona`` of ``Option_A``."""
    return "".join(c for c in name.casefold() if c.isalnum())


def _lists(unread: Sequence[str]) -> list[Misnamed]:
    """The column that holds all options, if one seems to; one of a single option does not."""
    whole = [name for name in unread if _plain(name) in CHOICES or not _option(name)]
    return [Misnamed(column, near) for column in whole for near in _near(column, CHOICES)][:1]


def _answers(unread: Sequence[str]) -> list[Misnamed]:
    """The column that holds the right answer, if one seems to; nearer names come first."""
    found = [Misnamed(column, near) for column in unread for near in _near(column, ANSWER)]
    found += [Misnamed(name, ANSWER[0]) for name in unread if _plain(name) in OTHER_ANSWERS]
    return found[:1]


def _near(column: str, names: Sequence[str]) -> list[str]:
    """The one of `names` that `column` is like, if it is."""
    return difflib.get_close_matches(_plain(column), names, n=1, cutoff=LIKENESS)


def _option(column: str) -> re.Match[str] | None:
    return OPTION.fullmatch(_plain(column))


def _options(unread: Sequence[str], present: Sequence[str]) -> list[Misnamed]:
    """Columns of single options; fewer than two of an exam's options are none."""
    matches = [(name, match) for name in unread if (match := _option(name))]
    first = 0 if any(match[2] and int(match[2]) == 0 for _, match in matches) else 1
    found: dict[str, str] = {}
    for column, match in matches:
        place = LABELS.index(match[1].upper()) if match[1] else int(match[2]) - first
        if place < len(LABELS) and LABELS[place] not in present:
            found.setdefault(LABELS[place], column)
    if not {"A", "B"} <= {*found, *present}:
        return []
    return [Misnamed(column, label) for label, column in sorted(found.items())]
