"""The exam file of a table of questions, which states everything that Keju would guess."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from keju.answers.sentences import has_chinese
from keju.benchmarks.custom.columns import MEANINGS
from keju.benchmarks.custom.data import (
    QuestionBank,
    TableReader,
    find_tables,
    no_exam_error,
    read_questions,
)
from keju.benchmarks.custom.exam_file import ExamFile
from keju.benchmarks.custom.readers import make_readers
from keju.errors import ConfigError
from keju.sources.folder import DataFolder
from keju.types import LABELS

SAMPLED = 20
"""The first questions, by which the language is chosen."""


class ExamDraft(NamedTuple):
    """An exam file that is not written yet."""

    text: str
    tables: tuple[str, ...]
    choice_count: int
    free_count: int


def draft_exam(path: Path, name: str) -> ExamDraft:
    """Return the exam file of a folder or a file of questions. DataError if it cannot be read."""
    if not path.exists():
        raise no_exam_error(path)
    folder = DataFolder(path if path.is_dir() else path.parent)
    tables = find_tables(folder, ExamFile(), None if path.is_dir() else path.name)
    bank = read_questions(name, folder, tables.questions, ExamFile(), frozenset())
    forms = {(tuple(r.columns.names.items()), r.form._replace(columns=())) for r in bank.readers}
    if len(forms) > 1:
        raise ConfigError("custom.unlike_tables", path=path)
    choice_count = sum(part.choices for part in bank.parts.values())
    lines = [*_describe_exam(bank, name, tables.questions), *_describe_table(bank.readers[0])]
    return ExamDraft(
        "\n".join(lines) + "\n", tables.questions, choice_count, len(bank.samples) - choice_count
    )


def _describe_exam(bank: QuestionBank, name: str, tables: tuple[str, ...]) -> Iterator[str]:
    reader, readers = make_readers(ExamFile(), bank.kind)
    first_texts = "".join(bank.samples[i].text for i in range(min(SAMPLED, len(bank.samples))))
    yield f"# How Keju reads {', '.join(tables)}. Change a line if it is wrong."
    yield f"name: {_quote(name)}"
    yield f"kind: {bank.kind}  # choice, free, or mixed: questions of both kinds"
    yield f"questions: [{', '.join(map(_quote, tables))}]"
    yield f"reader: {reader}  # how answers are read: {', '.join(readers)}"
    language = "zh" if has_chinese(first_texts) else "en"
    yield f"language: {language}  # en or zh: the language of Keju's instructions"


def _describe_table(reader: TableReader) -> Iterator[str]:
    """Yield the lines about the columns and the form of a table."""
    by_meaning = _columns_by_meaning(reader)
    if by_meaning:
        yield "columns:  # the column for each meaning"
        for meaning, column in by_meaning.items():
            yield f"  {meaning}: {_quote(column)}"
    form = reader.form
    if form.separator:
        separator = '"\\t"' if form.separator == "\t" else _quote(form.separator)
        yield f"separator: {separator}"
        yield f"encoding: {form.encoding.lower()}"
    if form.sheet:
        yield f"sheet: {_quote(form.sheet)}"


def _columns_by_meaning(reader: TableReader) -> dict[str, str]:
    """Return the column of each meaning that the table has, in a usual order."""
    names = reader.columns.names
    columns = {names.get(column, column): column for column in (*reader.form.columns, *names)}
    columns_by_meaning = {}
    for meaning, (usual_names, _) in MEANINGS.items():
        column = next((columns[name] for name in usual_names if name in columns), None)
        if column is not None:
            columns_by_meaning[meaning] = column
    return columns_by_meaning | {label: columns[label] for label in LABELS if label in columns}


def _quote(text: str) -> str:
    """Return a text as a YAML value that is read as this very text."""
    plain = text.isascii() and text.replace("_", "").replace(".", "").isalpha()
    if plain and text.lower() not in ("yes", "no", "on", "off", "true", "false", "null", "y", "n"):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
