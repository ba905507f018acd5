"""Reading the tables of C-Eval: `{dev,val,test}/<subject>_<split>.csv`, or a hub's layout of them.

Text is kept as published, line breaks (some of them CRLF) included. A missing file, column or
answer is an error in one line; a row count that differs from the published one is noted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from keju.benchmarks.ceval.subjects import Split, Subject, check_mapping
from keju.benchmarks.kit import Count
from keju.errors import DataError

if TYPE_CHECKING:
    from keju.sources.folder import DataFolder

OPTIONS = "ABCD"
MAPPING = "subject_mapping.json"


class Row(NamedTuple):
    """One line of a file, checked."""

    id: int
    question: str
    options: tuple[str, ...]
    answer: str
    """The gold letter; empty where the file has none."""
    explanation: str


def file_name(subject: Subject, split: Split) -> str:
    """Where `subject`'s rows of `split` lie in the folder."""
    return f"{split}/{subject.name}_{split}.csv"


def read_rows(folder: DataFolder, subject: Subject, split: Split) -> list[Row]:
    """The rows of one subject in file order; only the test split may lack answers."""
    table = f"{split}/{subject.name}"
    if not folder.has(table):
        missing = folder.path / file_name(subject, split)
        raise DataError(
            f"C-Eval: {missing} is missing; restore it, or leave '{subject.name}' out of"
            " subset_list"
        )
    origin = folder.name_of(table)
    rows: list[Row] = []
    seen: set[int] = set()
    for number, fields in enumerate(folder.rows(table), 1):
        row = _row(fields, split, f"{origin}, row {number}")
        if row.id in seen:
            raise DataError(f"{origin}, row {number}: id {row.id} occurs twice")
        seen.add(row.id)
        rows.append(row)
    if not rows:
        raise DataError(f"{origin} holds no rows")
    return rows


def _row(fields: Mapping[str, Any], split: Split, where: str) -> Row:
    needed = ["id", "question", *OPTIONS]
    needed += ["answer"] if split != "test" else []
    needed += ["explanation"] if split == "dev" else []
    lacking = [column for column in needed if fields.get(column) is None]
    if lacking:
        raise DataError(f"{where}: no value for column {', '.join(lacking)}")
    text = {column: "" if value is None else str(value) for column, value in fields.items()}
    if not text["id"].strip().isdecimal():
        raise DataError(f"{where}: id '{text['id']}' is not a whole number")
    if not text["question"].strip():
        raise DataError(f"{where}: the question is empty")
    answer = text.get("answer", "").strip()
    if (answer or split != "test") and (len(answer) != 1 or answer not in OPTIONS):
        raise DataError(f"{where}: answer '{answer}' is not one of A, B, C, D")
    options = tuple(text[label] for label in OPTIONS)
    return Row(int(text["id"]), text["question"], options, answer, text.get("explanation", ""))


def check_names(folder: DataFolder) -> None:
    """Compare the folder's subject mapping, where it has one, with the published names."""
    if folder.exists(MAPPING):
        check_mapping(folder.json(MAPPING), str(folder.path / MAPPING))


def counts_of(
    rows: Mapping[str, list[Row]], subjects: Iterable[Subject], split: Split
) -> list[Count]:
    """Rows of each subject beside the published number."""
    return [Count(s.name, len(rows[s.name]), s.rows(split)) for s in subjects]


def count_notes(counts: Iterable[Count], split: Split) -> list[str]:
    """A line for each subject whose number of rows is not the published one."""
    return [
        f"{count.name}: {count.rows} {split} rows, published {count.published}"
        for count in counts
        if count.differs
    ]


def unlabelled_note(unlabelled: int, total: int) -> str:
    """Say before the first call that rows without a label cannot be scored."""
    if unlabelled == total:
        return "no labels: no score, only outcome counts and predictions"
    return f"{unlabelled} of {total} rows have no label: no score for them"


def fault_of(row: Row) -> str | None:
    """What is known to be wrong with a row: options that cannot be told apart."""
    for option in row.options:
        same = [OPTIONS[i] for i, other in enumerate(row.options) if other == option]
        if len(same) > 1:
            return f"options {' and '.join(same)} are identical"
    return None
