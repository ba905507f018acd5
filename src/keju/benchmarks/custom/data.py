"""Read questions from tables: CSV, JSON Lines, JSON, YAML, Parquet.

Each row has these fields, of which the first present name is used: the question (``question``,
``input``), its options (``choices``, ``options``, or columns ``A``, ``B``, …), the right one
(``answer``, ``target``), its subset (``subset``, ``category``, ``subject``), ``id``, ``group`` and,
for worked examples, ``explanation``. Templates can use all other fields. A field that probably
holds options or the right answer under another name is an error unless a template uses it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from keju.answers.numbers import parse_number
from keju.benchmarks.choices import check_choices
from keju.benchmarks.custom.columns import (
    ANSWER,
    CHOICES,
    EXPLANATION,
    KNOWN_COLUMNS,
    QUESTION,
    SUBSET,
    find_misnamed,
)
from keju.benchmarks.custom.exam_file import FIELDS, ExamFile, Kind
from keju.benchmarks.custom.readers import ACCEPTED
from keju.benchmarks.data_checks import QuestionChecks, digest_content
from keju.benchmarks.samples import DigestTable, SpooledSamples, text_digest
from keju.config.exams import EXAM_FILES
from keju.config.strict import parse_yaml
from keju.errors import ConfigError, DataError, TranslatableText, did_you_mean, find_nearest
from keju.files import TABLE, parse_json
from keju.sources.files import first_value
from keju.sources.folder import SUFFIXES, DataFolder
from keju.types import LABELS, Sample

YAML_SUFFIXES = (".yaml", ".yml")
SHOT_STEMS = ("few_shot", "few-shot", "shots")
"""Names of the file of worked examples if the exam file names none."""
SOLUTION_MARK = "####"
"""Separates a worked solution from its result, in answers that hold both (GSM8K)."""
DEFAULT_SUBSET = "all"
"""The subset of questions without a subset in a single file."""


class CustomQuestion(NamedTuple):
    """One checked row."""

    id: str
    """The row's id; empty if it has none."""
    subset: str
    """Empty if the row names none."""
    text: str
    choices: tuple[str, ...]
    answers: tuple[str, ...]
    """The right letter, or the accepted texts; empty if unknown."""
    group: str
    explanation: str
    fields: Mapping[str, str]
    """All other fields that are a text or a number."""
    where: str
    """File and row, for messages."""

    @property
    def is_numeric(self) -> bool:
        """Whether its right answers are numbers; also true if it has none."""
        return not self.choices and all(parse_number(answer) is not None for answer in self.answers)

    @property
    def content(self) -> bytes:
        """A digest of the text, its options, and the fields that templates can use."""
        names = self.fields.keys() - {"id", "group", *SUBSET}
        return digest_content(self.text, self.choices, {name: self.fields[name] for name in names})


class DuplicateQuestion(NamedTuple):
    """A question with the content of an earlier one."""

    where: str
    earlier_place: str
    """The place of the earlier question."""


class ExamFiles(NamedTuple):
    """The files of an exam."""

    questions: tuple[str, ...]
    shots: str | None


def find_tables(folder: DataFolder, exam: ExamFile, single_file: str | None) -> ExamFiles:
    """Return the files of questions and of worked examples, or only `single_file`."""
    if single_file is not None:
        if not _stem(single_file):
            endings = [*SUFFIXES, *YAML_SUFFIXES]
            raise DataError(
                "custom.unknown_ending", path=folder.path / single_file, endings=endings
            )
        return ExamFiles((single_file,), None)
    tables = _list_tables(folder)
    shots = exam.few_shot if isinstance(exam.few_shot, str) else None
    for name in (*(exam.questions or ()), *filter(None, [shots])):
        if name not in tables:
            hint = did_you_mean(name, tables) if tables else ""
            raise DataError("custom.no_table", path=folder.path, name=name, hint=hint)
    if shots is None:
        shots = next((name for name in tables if _stem(name) in SHOT_STEMS), None)
    if exam.questions:
        return ExamFiles(tuple(exam.questions), shots)
    questions = [name for name in tables if name != shots]
    if not questions:
        raise DataError("custom.no_questions", path=folder.path)
    _check_stems(folder, questions)
    return ExamFiles(tuple(questions), shots)


def _list_tables(folder: DataFolder) -> list[str]:
    """Return the names of the tables in a folder; DataError if one is not text."""
    present = [path.name for path in sorted(folder.path.iterdir()) if path.is_file()]
    tables = [name for name in present if _stem(name) and name not in EXAM_FILES]
    for name in tables:
        if not _is_text(name):
            raise DataError("custom.name_not_text", path=folder.path, name=repr(name))
    return tables


def _check_stems(folder: DataFolder, names: Sequence[str]) -> None:
    """Raise DataError if two files differ only in their suffix: both would name the same subset."""
    by_stem: dict[str, str] = {}
    for name in names:
        same_stem = by_stem.setdefault(_stem(name), name)
        if same_stem != name:
            raise DataError("custom.same_name", path=folder.path, other=same_stem, name=name)


def _is_text(name: str) -> bool:
    """Whether a file name is text; ``\\xff.csv`` is not UTF-8, so a subset cannot have its name."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _stem(name: str) -> str:
    """Return `name` without its suffix; empty if the suffix is not one of a table."""
    for suffix in (*SUFFIXES, *YAML_SUFFIXES):
        if name.endswith(suffix):
            return name.removesuffix(suffix)
    return ""


def read_first_question(folder: DataFolder, names: Sequence[str]) -> CustomQuestion:
    """Return the first row of the first file that has rows."""
    for name in names:
        for question in _read_file(folder, name, None, None):
            return question
    raise DataError("custom.no_rows", path=folder.path / names[0])


@dataclass
class SubsetQuestions:
    """The questions of one subset."""

    columns: frozenset[str]
    """The additional fields that all of them have."""
    rows: array[int] = field(default_factory=lambda: array("I"))
    """Their numbers among all questions, in order."""
    grouped: bool = False
    """Whether any of them shares context with others."""
    numbers: int = 0
    """Questions whose right answers are numbers."""
    words: int = 0
    """Questions with other right answers."""

    def add(self, row: int, question: CustomQuestion) -> None:
        """Count a question, which is number `row` of all."""
        self.rows.append(row)
        if not self.columns <= question.fields.keys():
            self.columns = self.columns.intersection(question.fields)
        self.grouped |= bool(question.group)
        self.numbers += bool(question.answers) and question.is_numeric
        self.words += not question.is_numeric


class QuestionBank:
    """The checked questions of an exam's files, stored on disk; only a few bytes each stay in
    memory."""

    def __init__(
        self,
        exam: str,
        folder: DataFolder,
        names: Sequence[str],
        kind: Kind,
        decided_by: str,
        template_columns: frozenset[str],
    ) -> None:
        """Read the rows of all files in order; DataError names the first invalid row.

        `decided_by` is the row that determined the kind, if the exam file does not name it;
        `template_columns` are the fields that templates use.
        """
        self._exam = exam
        self.samples = SpooledSamples()
        self.parts: dict[str, SubsetQuestions] = {}
        """By subset, in the order of their first question."""
        self.repeat_count = 0
        """The number of questions that repeat an earlier one word for word, with the same answer.
        """
        self.first_repeat: DuplicateQuestion | None = None
        """The first of them."""
        self.checks = QuestionChecks(exam, ACCEPTED)
        """The faults of the questions."""
        self._ids, self._contents = DigestTable(), DigestTable()
        self._places = _RowPlaces(folder)
        for name in names:
            self._places.begin_file(name, len(self.samples))
            default_subset = _stem(name) if len(names) > 1 else DEFAULT_SUBSET
            with closing(_read_file(folder, name, kind, template_columns, decided_by)) as questions:
                for question in questions:
                    self._add(question, question.subset or default_subset)
        if not self.parts:
            raise DataError("custom.no_rows", path=folder.path / names[0])

    def _add(self, question: CustomQuestion, subset: str) -> None:
        """Check a question and add it to its subset."""
        row = len(self.samples)
        # A row without an id adds its number: so the table's numbers equal the rows'.
        first_row = self._ids.add(text_digest(question.id or f"\0{row}"))
        if first_row != row:
            values = {"where": question.where, "other": self._places.of(first_row)}
            raise DataError("custom.id_twice", id=question.id, **values)
        first_row = self._contents.add(question.content)
        if first_row != row:
            self._contents.add(text_digest(f"\0{row}"))
        part = self.parts.get(subset)
        if part is None:
            part = self.parts[subset] = SubsetQuestions(frozenset(question.fields))
        sample = _make_sample(self._exam, subset, len(part.rows), question)
        is_contrary = self.checks.check(sample, question.where, first_row, self._find)
        if first_row != row and not is_contrary:  # otherwise it has a separate notice
            self.repeat_count += 1
            repeat = DuplicateQuestion(question.where, self._places.of(first_row))
            self.first_repeat = self.first_repeat or repeat
        self.samples.append(sample)
        part.add(row, question)

    def _find(self, row: int) -> tuple[Sample, str]:
        """Return an earlier question and its place, for messages."""
        return self.samples[row], self._places.of(row)


class _RowPlaces:
    """The file and row of each question, by its number."""

    def __init__(self, folder: DataFolder) -> None:
        self._folder = folder
        self._names: list[str] = []
        self._starts: list[int] = []

    def begin_file(self, name: str, start: int) -> None:
        """Add a file, whose first question has the number `start`."""
        self._names.append(name)
        self._starts.append(start)

    def of(self, number: int) -> str:
        """Return the place of a question for messages."""
        file = bisect_right(self._starts, number) - 1
        return _row_place(self._folder, self._names[file], number - self._starts[file] + 1)


def _make_sample(exam: str, subset: str, index: int, question: CustomQuestion) -> Sample:
    metadata: dict[str, Any] = {}
    if question.fields:
        metadata[FIELDS] = question.fields
    if len(question.answers) > 1:
        metadata[ACCEPTED] = question.answers
    return Sample(
        id=question.id or f"{exam}_{subset}_{index}",
        subset=subset,
        index=index,
        text=question.text,
        target=question.answers[0] if question.answers else "",
        choices=question.choices,
        group=question.group,
        metadata=metadata,
    )


def read_shots(
    folder: DataFolder, name: str, kind: Kind, decided_by: str, template_columns: frozenset[str]
) -> list[Sample]:
    """Return the worked examples; each needs an answer."""
    shots: list[Sample] = []
    for question in list(_read_file(folder, name, kind, template_columns, decided_by)):
        if not question.answers:
            raise DataError("custom.shot_answer", where=question.where)
        shot = _make_sample("shot", question.subset, len(shots), question)
        shot_metadata = {**shot.metadata, "explanation": question.explanation}
        shots.append(msgspec.structs.replace(shot, metadata=shot_metadata))
    return shots


def _read_file(
    folder: DataFolder,
    name: str,
    kind: Kind | None,
    template_columns: frozenset[str] | None,
    decided_by: str = "",
) -> Generator[CustomQuestion, None, None]:
    """Yield the checked rows of a file; fields are checked if `template_columns` are known."""
    yaml = name.endswith(YAML_SUFFIXES)
    # Close it at once if a row is invalid: otherwise the error would keep the file open.
    with closing(_read_yaml_rows(folder, name) if yaml else folder.file_rows(name)) as rows:
        for number, row in enumerate(rows, 1):
            where = _row_place(folder, name, number)
            if template_columns is not None:
                check_columns(row, template_columns, where)
            yield make_question(row, kind, where, decided_by)


def _row_place(folder: DataFolder, name: str, row: int) -> str:
    return f"{folder.path / name}, row {row}"


def _read_yaml_rows(folder: DataFolder, name: str) -> Generator[dict[str, Any], None, None]:
    where = str(folder.path / name)
    try:
        content = parse_yaml(folder.text(name), where, as_written=True)
    except ConfigError as error:
        raise DataError(str(error)) from None
    if isinstance(content, dict):
        lists = [value for value in content.values() if isinstance(value, list)]
        content = lists[0] if len(lists) == 1 else None
    if not isinstance(content, list) or not all(isinstance(row, dict) for row in content):
        raise DataError("custom.no_list", where=where)
    yield from content


def make_question(
    row: Mapping[str, Any], kind: Kind | None, where: str, decided_by: str = ""
) -> CustomQuestion:
    """Return one checked row of the given kind; `decided_by` is the row that determined it."""
    text = _text_field(first_value(row, QUESTION), "question", where)
    if not text.strip():
        raise _question_error(row, where)
    choices = read_choices(row, where)
    if kind is not None and (kind == "choice") != bool(choices):
        code = "custom.has_options" if choices else "custom.has_no_options"
        if decided_by:
            raise DataError(f"{code}_unlike", where=where, first=decided_by)
        raise DataError(code, where=where, kind=kind)
    answers, solution = _read_answers(row, choices, where)
    fields = {
        key: str(value)
        for key, value in row.items()
        if key not in KNOWN_COLUMNS and isinstance(value, str | int | float)
    }
    return CustomQuestion(
        id=_text_field(row.get("id"), "id", where),
        subset=_text_field(first_value(row, SUBSET), "subset", where).strip(),
        text=text,
        choices=choices,
        answers=answers,
        group=_text_field(row.get("group"), "group", where),
        explanation=_text_field(first_value(row, EXPLANATION), "explanation", where) or solution,
        fields=fields,
        where=where,
    )


def _read_answers(
    row: Mapping[str, Any], choices: Sequence[str], where: str
) -> tuple[tuple[str, ...], str]:
    """Return the right answers (one, several in a list, or none) and a solution before them."""
    value = first_value(row, ANSWER)
    values = value if isinstance(value, list) else [value]
    stripped = [_text_field(text_or_number, "answer", where).strip() for text_or_number in values]
    if choices:
        return read_letter(list(filter(None, stripped)), choices, where), ""
    solution = ""
    if len(stripped) == 1 and SOLUTION_MARK in stripped[0]:
        solution, _, final_answer = stripped[0].rpartition(SOLUTION_MARK)
        stripped = [final_answer.strip()]
    return tuple(filter(None, stripped)), solution.strip()


def check_columns(row: Mapping[str, Any], template_columns: frozenset[str], where: str) -> None:
    """Raise DataError if a field with an unread name probably holds options or the answer."""
    if misnamed_columns := find_misnamed(tuple(map(str, row)), template_columns):
        columns, names = (
            [column.column for column in misnamed_columns],
            [column.name for column in misnamed_columns],
        )
        values = {"where": where, "columns": columns, "names": names, "n": len(misnamed_columns)}
        raise DataError("custom.misnamed", **values)


def _question_error(row: Mapping[str, Any], where: str) -> DataError:
    """Return the error of a row without a question: the field is empty, or has another name."""
    if any(name in row for name in QUESTION):
        return DataError("custom.no_question", where=where)
    field_names = [str(name) for name in row]
    similar_name = find_nearest(QUESTION[0], field_names)
    hint = TranslatableText("custom.rename", name=similar_name) if similar_name else ""
    return DataError("custom.no_question_field", where=where, found=field_names, hint=hint)


def _text_field(value: Any, name: str, where: str) -> str:
    """Return a field as text; empty if it is missing."""
    if value is None:
        return ""
    if isinstance(value, bool):
        raise DataError("custom.truth_value", where=where, name=name)
    if not isinstance(value, str | int | float):
        raise DataError("custom.no_text", where=where, name=name)
    return str(value)


def read_choices(row: Mapping[str, Any], where: str) -> tuple[str, ...]:
    """Return the options from a list or columns ``A``, ``B``, …; the last may be empty."""
    raw_choices = first_value(row, CHOICES)
    if raw_choices is None or raw_choices == "":
        return _read_option_columns(row, where)
    if isinstance(raw_choices, str):
        try:
            raw_choices = parse_json(raw_choices.encode(), TABLE)
        except DataError:
            raw_choices = None
    if not isinstance(raw_choices, list):
        raise DataError("custom.choices", where=where)
    options = []
    for number, value in enumerate(raw_choices, 1):
        options.append(_text_field(value, f"option {number}", where))
        if not options[-1].strip():
            raise DataError("custom.empty_numbered", where=where, number=number)
    return tuple(options)


def _read_option_columns(row: Mapping[str, Any], where: str) -> tuple[str, ...]:
    """Return the options in the columns ``A``, ``B``, …; only the last ones may be empty."""
    cells = [_text_field(row.get(label), label, where) for label in LABELS if label in row]
    if cells and "A" not in row:
        return ()
    while cells and not cells[-1].strip():
        cells.pop()
    for label, cell in zip(LABELS, cells, strict=False):
        if label not in row or not cell.strip():
            raise DataError("custom.empty_option", where=where, label=label)
    return tuple(cells)


def read_letter(answers: Sequence[str], choices: Sequence[str], where: str) -> tuple[str, ...]:
    """Return the label of the right option, given as a letter or as the option's text."""
    if not answers:
        check_choices(choices, "", where)
        return ()
    if len(answers) > 1:
        raise DataError("custom.several_answers", where=where)
    (answer,) = answers
    by_text = [LABELS[i] for i, choice in enumerate(choices) if choice.strip() == answer]
    by_label = answer.upper() if answer.upper() in [*LABELS[: len(choices)]] else ""
    if len(by_text) > 1:
        raise DataError("custom.answer_of_several", where=where, answer=answer)
    if by_text and by_label and by_text[0] != by_label:
        raise DataError("custom.answer_both", where=where, answer=answer, option=by_text[0])
    letter = by_label or "".join(by_text)
    if not letter:
        last_label = LABELS[len(choices) - 1]
        raise DataError("custom.answer_neither", where=where, answer=answer, last=last_label)
    check_choices(choices, letter, where)
    return (letter,)
