"""The line that says how Keju reads a table of questions, before the run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from keju.answers.sentences import has_chinese
from keju.benchmarks.custom.columns import MEANINGS
from keju.benchmarks.custom.data import CHOICE_SUBSET, FREE_SUBSET, QuestionBank, TableReader
from keju.benchmarks.custom.exam_file import ExamFile
from keju.errors import Notice, TranslatableText, join_hints
from keju.types import LABELS


def reading_notices(name: str, exam: ExamFile, bank: QuestionBank) -> Iterator[Notice]:
    """Yield the line about everything that Keju guessed, and one about formulas."""
    guesses = [
        *(() if exam.columns else _column_guesses(bank.readers)),
        *_form_guesses(bank.readers, exam),
    ]
    if any(has_chinese(column) for reader in bank.readers[:1] for column in reader.columns.names):
        guesses.append(TranslatableText(f"custom.read_language_{exam.language}"))
    has_scores = any(part.asserted for part in bank.parts.values()) or exam.grader is not None
    if not has_scores and not any(sample.target for sample in bank.samples):
        guesses.append(TranslatableText("custom.read_no_answers"))
    if guesses or (exam.kind is None and bank.kind == "mixed"):
        parts = [_describe_kinds(bank), *guesses]
        yield Notice(
            "custom.read_as", {"exam": name, "parts": join_hints("joined_by_semicolon", parts)}
        )
    if formulas := sum(reader.form.formulas for reader in bank.readers):
        yield Notice("custom.formulas", {"exam": name, "n": formulas})


def _describe_kinds(bank: QuestionBank) -> str:
    """Return the number of questions of each kind, with their subsets if there are both kinds."""
    by_kind = {
        "choice": [name for name, part in bank.parts.items() if part.choices],
        "free": [name for name, part in bank.parts.items() if not part.choices],
    }
    is_mixed = all(by_kind.values())
    counts = []
    for kind, names in by_kind.items():
        if names:
            values: dict[str, Any] = {"n": sum(len(bank.parts[name].rows) for name in names)}
            is_named = is_mixed and names not in ([CHOICE_SUBSET], [FREE_SUBSET])
            code = f"custom.read_{kind}_subset" if is_named else f"custom.read_{kind}"
            counts.append(
                TranslatableText(code, **values, **({"subsets": names} if is_named else {}))
            )
    if is_mixed:
        counts.append(TranslatableText("custom.kinds_apart"))
    return join_hints("joined_by_comma", counts)


def _column_guesses(readers: Sequence[TableReader]) -> Iterator[str]:
    """Yield the columns with other names than the documented ones, once for the same columns."""
    for names in dict.fromkeys(tuple(reader.columns.names.items()) for reader in readers):
        if names:
            columns = describe_columns(dict(names))
            yield TranslatableText("custom.read_columns", columns=columns)


def describe_columns(names: dict[str, str]) -> list[str]:
    """Return the columns by meaning: ``question = Question``, ``A–D = option_a–option_d``."""
    by_meaning = {_meaning_of(name): column for column, name in names.items()}
    labels = [label for label in LABELS if label in by_meaning]
    described = [f"{name} = {column}" for name, column in by_meaning.items() if name not in labels]
    if len(labels) > 2:
        ends = by_meaning[labels[0]], by_meaning[labels[-1]]
        described.insert(1, f"{labels[0]}–{labels[-1]} = {ends[0]}–{ends[1]}")
    else:
        described += [f"{label} = {by_meaning[label]}" for label in labels]
    return described


def _meaning_of(name: str) -> str:
    """Return the meaning of a documented name: ``answer`` for ``target``."""
    return next((meaning for meaning, (usual, _) in MEANINGS.items() if name in usual), name)


def _form_guesses(readers: Sequence[TableReader], exam: ExamFile) -> Iterator[str]:
    """Yield separators, encodings and sheets that are not the usual ones or the stated ones."""
    forms = [reader.form for reader in readers]
    for separator in dict.fromkeys(form.separator for form in forms):
        if separator not in ("", ",", exam.separator):
            label = TranslatableText("custom.tab") if separator == "\t" else separator
            yield TranslatableText("custom.read_separator", separator=label)
    for encoding in dict.fromkeys(form.encoding for form in forms):
        if encoding not in ("", "UTF-8") and exam.encoding is None:
            yield TranslatableText("custom.read_encoding", encoding=encoding)
    for sheet in dict.fromkeys(form.sheet for form in forms):
        if sheet and exam.sheet is None:
            yield TranslatableText("custom.read_sheet", sheet=sheet)
