"""The columns of a table of questions: which one is read as what.

Every column may have the name that Keju's documentation gives it, in any case, or a usual other
name, also in Chinese: ``Question``, ``option_a``, ``答案``. If two columns may have one meaning, or
a name is only similar (``anwser``), the table is refused with a line that says what to rename.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from keju.errors import DataError
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
        *(
            "answerkey",
            "correct",
            "correctanswer",
            "correctanswers",
            "correctoption",
            "rightanswer",
        ),
        *("expected", "expectedanswer", "referenceanswer", "solution"),
        *("答案", "正确答案", "标准答案", "参考答案", "正确选项"),
    }
)
"""Common names of the right answer in other formats, normalised by `_normalize`."""
MEANINGS: Mapping[str, tuple[Sequence[str], frozenset[str]]] = {
    "question": (
        QUESTION,
        frozenset(
            ("questiontext", "questionstem", "stem", "problem", "题目", "问题", "题干", "试题")
        ),
    ),
    "answer": (ANSWER, OTHER_ANSWERS),
    "choices": (CHOICES, frozenset(("answeroptions", "answerchoices", "选项", "备选项"))),
    "subset": (SUBSET, frozenset(("类别", "分类", "科目", "学科", "章节"))),
    "explanation": (EXPLANATION, frozenset(("解析", "答案解析", "解释"))),
    "id": (("id",), frozenset()),
    "group": (("group",), frozenset()),
}
"""The names of each column: as documented, and other usual ones, normalised by `_normalize`."""
MEANING_NAMES = (*MEANINGS, *LABELS)
"""The keys of ``columns`` in an exam file."""
OPTION = re.compile(r"(?:answer)?(?:option|opt|op|choice|选项)?(?:([a-z])|([0-9]{1,2}))")
"""One option in a separate column, normalised by `_normalize`: a letter, or a number."""
MIN_SIMILARITY = 0.82
"""Minimum similarity of a misspelt name: ``anwser`` reaches it, ``answer_type`` does not."""


class MisnamedColumn(NamedTuple):
    """A column, and the name under which it is read, or would be."""

    column: str
    name: str


class ColumnReading(NamedTuple):
    """The meaning of the columns of a table."""

    names: Mapping[str, str]
    """The documented name of each column that has another one."""
    first_number: int | None = None
    """The number of the first option, if the options' columns have numbers."""
    misnamed: tuple[MisnamedColumn, ...] = ()
    """Columns that probably hold the options or the answer, although their names are unknown."""
    rivals: tuple[str, ...] = ()
    """Columns of which only one can have the meaning `rival_meaning`."""
    rival_meaning: str = ""

    def rename(self, row: Mapping[str, object]) -> dict[str, object]:
        """Return a row with documented names."""
        if not self.names:
            return dict(row)
        unchanged = {column: value for column, value in row.items() if column not in self.names}
        renamed = {name: row[column] for column, name in self.names.items() if column in row}
        return unchanged | renamed

    def check(self, where: str) -> None:
        """Raise DataError if the columns have no clear meaning."""
        if self.rivals:
            rivals, meaning = [*self.rivals], self.rival_meaning
            raise DataError("custom.rivals", where=where, columns=rivals, name=meaning)
        if self.misnamed:
            columns = [misnamed.column for misnamed in self.misnamed]
            names = [misnamed.name for misnamed in self.misnamed]
            values: dict[str, Any] = {"where": where, "columns": columns, "names": names}
            raise DataError("custom.misnamed", n=len(names), **values)


def count_known(columns: Sequence[str]) -> int:
    """Return the number of columns with a meaning; 0 if none of them holds the questions."""
    reading = read_columns(tuple(columns), frozenset())
    names = {reading.names.get(column, column) for column in columns}
    known_names = names & {*KNOWN_COLUMNS, *SUBSET, "id", "group"}
    return len(known_names) if names & {*QUESTION} else 0


def _usual_name(column: str, usual_names: Sequence[str]) -> str:
    """Return the usual name that a column has in another letter case, else the first one."""
    lower_name = column.strip().casefold()
    return lower_name if lower_name in usual_names else usual_names[0]


@lru_cache(maxsize=256)
def read_columns(
    columns: tuple[str, ...],
    template_columns: frozenset[str],
    stated: tuple[tuple[str, str], ...] = (),
) -> ColumnReading:
    """Return what the columns of a table are read as.

    `template_columns` are columns that templates use, so they have no other meaning. `stated` are
    meanings and columns from the exam file.
    """
    names = {column: name for name, column in stated if column != name}
    stated_names = {name for name, _ in stated}
    free_columns = [c for c in columns if c not in template_columns and c not in names]
    option_columns: list[MisnamedColumn] = []
    if not stated_names.intersection(("choices", *LABELS)) and not {*CHOICES} & {*columns}:
        option_columns = _find_option_columns(
            [c for c in free_columns if c not in KNOWN_COLUMNS], [c for c in columns if c in LABELS]
        )
        names |= dict(option_columns)
    has_options = bool(option_columns) or "A" in {*columns, *names.values()}
    for name, (usual_names, other_names) in MEANINGS.items():
        is_known = name in stated_names or not {*usual_names}.isdisjoint(columns)
        if is_known or (name == "choices" and has_options):
            continue
        candidates = _find_candidates(
            [c for c in free_columns if c not in names], usual_names, other_names
        )
        if len(candidates) > 1:
            return ColumnReading(names, rivals=tuple(candidates), rival_meaning=name)
        names |= {column: _usual_name(column, usual_names) for column in candidates}
    unread_columns = tuple(c for c in free_columns if c not in names and c not in KNOWN_COLUMNS)
    read_names = {*columns, *names.values()}
    misnamed = tuple(_find_misspelt(unread_columns, read_names, has_options=has_options))
    return ColumnReading(names, _first_number(option_columns), misnamed)


def _find_candidates(
    columns: Sequence[str], usual_names: Sequence[str], other_names: frozenset[str]
) -> list[str]:
    """Return the columns with one of the usual names in any case, or else with another name."""
    usual = [column for column in columns if column.strip().casefold() in usual_names]
    return usual or [column for column in columns if _normalize(column) in other_names]


def _find_misspelt(
    columns: Sequence[str], read_names: set[str], *, has_options: bool
) -> Iterator[MisnamedColumn]:
    """Yield the columns that probably hold the options or the answer, under a similar name."""
    if not has_options and not read_names & {*CHOICES}:
        yield from _find_list_column(columns)
    if not read_names & {*ANSWER}:
        yield from _find_answer_column(columns)


def _first_number(options: Sequence[MisnamedColumn]) -> int | None:
    """Return the number in the name of the first option's column."""
    match = _match_option(options[0].column) if options else None
    return int(match[2]) if match and match[2] else None


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
    """Return the column whose name resembles a name of the right answer."""
    return [
        MisnamedColumn(column, close_name)
        for column in unread
        for close_name in _find_close_name(column, ANSWER)
    ][:1]


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
