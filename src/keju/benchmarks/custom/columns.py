"""The field names of a row of questions, and the search for misnamed columns.

A field with any other name is not used. If such a field held the options or the right answer, Keju
would treat the exam as free-form, or as one without answers.
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
KNOWN_COLUMNS = frozenset({*QUESTION, *CHOICES, *ANSWER, *EXPLANATION, *LABELS})

OTHER_ANSWERS = frozenset(
    {
        *("gold", "goldanswer", "goldlabel", "label", "groundtruth", "ideal"),
        *("answerkey", "correct", "correctanswer", "correctoption", "rightanswer"),
        *("expected", "expectedanswer", "referenceanswer", "答案", "正确答案", "标准答案"),
    }
)
"""Common names of the right answer in other formats, normalised by `_plain`."""
OPTION = re.compile(r"(?:option|opt|op|choice|选项)?(?:([a-z])|([0-9]{1,2}))")
"""One option in a separate column, normalised by `_plain`: a letter, or a number."""
MIN_SIMILARITY = 0.82
"""Minimum similarity of a misspelt name: ``anwser`` reaches it, ``answer_type`` does not."""


class MisnamedColumn(NamedTuple):
    """A column that is not read, and the name under which it would be."""

    column: str
    name: str


@lru_cache(maxsize=256)
def find_misnamed(
    columns: tuple[str, ...], template_columns: frozenset[str]
) -> tuple[MisnamedColumn, ...]:
    """Return columns that probably hold the options or the answer, if no column has those names.

    `template_columns` are columns that templates use, so they are not unread.
    """
    unread_columns = [
        name for name in columns if name not in KNOWN_COLUMNS and name not in template_columns
    ]
    misnamed_columns: list[MisnamedColumn] = []
    if not set(CHOICES).intersection(columns):
        present = [name for name in columns if name in LABELS]
        misnamed_columns += _find_option_columns(unread_columns, present)
        if not misnamed_columns and "A" not in present:
            misnamed_columns += _find_list_column(unread_columns)
    if not set(ANSWER).intersection(columns):
        option_columns = {misnamed_column.column for misnamed_column in misnamed_columns}
        misnamed_columns += _find_answer_column(
            [name for name in unread_columns if name not in option_columns]
        )
    return tuple(misnamed_columns)


def _normalize(name: str) -> str:
    """Return a name without letter case and separators: ``optiona`` for ``Option_A``."""
    return "".join(c for c in name.casefold() if c.isalnum())


def _find_list_column(unread: Sequence[str]) -> list[MisnamedColumn]:
    """Return the column that probably holds all options, not one that holds a single option."""
    candidates = [name for name in unread if _normalize(name) in CHOICES or not _match_option(name)]
    return [
        MisnamedColumn(column, close_name)
        for column in candidates
        for close_name in _find_close_name(column, CHOICES)
    ][:1]


def _find_answer_column(unread: Sequence[str]) -> list[MisnamedColumn]:
    """Return the column that probably holds the right answer; closer names come first."""
    answer_columns = [
        MisnamedColumn(column, close_name)
        for column in unread
        for close_name in _find_close_name(column, ANSWER)
    ]
    answer_columns += [
        MisnamedColumn(name, ANSWER[0]) for name in unread if _normalize(name) in OTHER_ANSWERS
    ]
    return answer_columns[:1]


def _find_close_name(column: str, names: Sequence[str]) -> list[str]:
    """Return the name that `column` resembles, if there is one."""
    return difflib.get_close_matches(_normalize(column), names, n=1, cutoff=MIN_SIMILARITY)


def _match_option(column: str) -> re.Match[str] | None:
    return OPTION.fullmatch(_normalize(column))


def _find_option_columns(unread: Sequence[str], present: Sequence[str]) -> list[MisnamedColumn]:
    """Return columns of single options, unless there are fewer than two options."""
    matches = [(name, match) for name in unread if (match := _match_option(name))]
    first_number = 0 if any(match[2] and int(match[2]) == 0 for _, match in matches) else 1
    columns_by_label: dict[str, str] = {}
    for column, match in matches:
        place = LABELS.index(match[1].upper()) if match[1] else int(match[2]) - first_number
        if place < len(LABELS) and LABELS[place] not in present:
            columns_by_label.setdefault(LABELS[place], column)
    if not {"A", "B"} <= {*columns_by_label, *present}:
        return []
    return [MisnamedColumn(column, label) for label, column in sorted(columns_by_label.items())]
