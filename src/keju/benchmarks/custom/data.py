"""Read questions from tables: CSV, TSV, XLSX, JSON Lines, JSON, YAML, Parquet.

Each row has these fields, of which the first present name is used: the question (``question``,
``input``), its options (``choices``, ``options``, or columns ``A``, ``B``, …), the right one
(``answer``, ``target``), its subset (``subset``, ``category``, ``subject``), ``id``, ``group`` and,
for worked examples, ``explanation``. `keju.benchmarks.custom.columns` knows other names. Templates
can use all other fields.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from keju.answers.numbers import parse_number
from keju.answers.sentences import has_chinese
from keju.benchmarks.custom.answers import read_letter
from keju.benchmarks.custom.columns import (
    ANSWER,
    CHOICES,
    EXPLANATION,
    KNOWN_COLUMNS,
    QUESTION,
    SUBSET,
    ColumnReading,
    count_known,
    read_columns,
)
from keju.benchmarks.custom.exam_file import FIELDS, ExamFile, Kind
from keju.benchmarks.custom.other_formats import (
    is_promptfoo,
    read_evaluation_xml,
    read_promptfoo,
)
from keju.benchmarks.custom.readers import ACCEPTED
from keju.benchmarks.data_checks import QuestionChecks, digest_content
from keju.benchmarks.expectations import EXPECT, VERIFY, read_expectations
from keju.benchmarks.samples import DigestTable, SpooledSamples, text_digest
from keju.config.exams import EXAM_FILES
from keju.config.strict import parse_yaml
from keju.errors import (
    ConfigError,
    DataError,
    TranslatableText,
    did_you_mean,
    find_nearest,
    near_hint,
)
from keju.files import TABLE, parse_json
from keju.sources.files import first_value
from keju.sources.folder import SUFFIXES, DataFolder
from keju.sources.sheets import SHEET_SUFFIXES, SheetForm, SheetSettings, is_sheet
from keju.types import LABELS, Sample

YAML_SUFFIXES = (".yaml", ".yml")
XML = ".xml"
"""The ending of mcp-builder's evaluations, which are read only if users name the file."""
TABLE_SUFFIXES = (*dict.fromkeys((*SUFFIXES, *SHEET_SUFFIXES)), *YAML_SUFFIXES)
CHOICE_SUBSET, FREE_SUBSET = "multiple-choice", "free-text"
"""The subsets of a table that has questions of both kinds."""
SHOT_STEMS = ("few_shot", "few-shot", "shots")
"""Names of the file of worked examples if the exam file names none."""
SOLUTION_MARK = "####"
"""Separates a worked solution from its result, in answers that hold both (GSM8K)."""
ASSERTIONS = (EXPECT, VERIFY, "expected_tools")
"""Columns with assertions about the tools and the state of an episode."""
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
    expectations: Mapping[str, dict[str, Any]] = MappingProxyType({})
    """The assertions about the tools and the state of its episodes."""

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


def no_exam_error(path: Path) -> DataError:
    """Return the error of a path without a file or folder, with the nearest name next to it."""
    names: list[str] = []
    with suppress(OSError):
        names = [file.name for file in path.parent.iterdir() if file.is_dir() or _stem(file.name)]
    return DataError("custom.no_exam", path=path, hint=near_hint(path.name, names))


def find_tables(folder: DataFolder, exam: ExamFile, single_file: str | None) -> ExamFiles:
    """Return the files of questions and of worked examples, or only `single_file`."""
    if single_file is not None:
        if not _stem(single_file) and not single_file.lower().endswith(XML):
            path, endings = folder.path / single_file, [*TABLE_SUFFIXES]
            raise DataError("custom.unknown_ending", path=path, endings=endings)
        return ExamFiles((single_file,), None)
    tables = _list_tables(folder)
    shots = exam.few_shot if isinstance(exam.few_shot, str) else None
    _check_named_tables(folder, tables, (*(exam.questions or ()), *filter(None, [shots])))
    if shots is None:
        shots = next((name for name in tables if _stem(name) in SHOT_STEMS), None)
    if exam.questions:
        return ExamFiles(tuple(exam.questions), shots)
    return ExamFiles(_choose_question_files(folder, tables, shots), shots)


def _list_tables(folder: DataFolder) -> list[str]:
    """Return the names of the tables in a folder; DataError if one is not text."""
    present = [path.name for path in sorted(folder.path.iterdir()) if path.is_file()]
    tables = [name for name in present if _stem(name) and name not in EXAM_FILES]
    for name in tables:
        if not _is_text(name):
            raise DataError("custom.name_not_text", path=folder.path, name=repr(name))
    return tables


def _check_named_tables(folder: DataFolder, tables: Sequence[str], names: Sequence[str]) -> None:
    """Raise DataError if a table that the exam file names does not exist."""
    for name in names:
        if name not in tables:
            hint = did_you_mean(name, tables) if tables else ""
            raise DataError("custom.no_table", path=folder.path, name=name, hint=hint)


def _choose_question_files(
    folder: DataFolder, tables: Sequence[str], shots: str | None
) -> tuple[str, ...]:
    """Return all tables but the one of worked examples; DataError if two name the same subset."""
    questions = tuple(name for name in tables if name != shots)
    if not questions:
        raise DataError("custom.no_questions", path=folder.path)
    by_stem: dict[str, str] = {}
    for name in questions:
        same_stem = by_stem.setdefault(_stem(name), name)
        if same_stem != name:
            raise DataError("custom.same_name", path=folder.path, other=same_stem, name=name)
    return questions


def _is_text(name: str) -> bool:
    """Whether a file name is text; ``\\xff.csv`` is not UTF-8, so a subset cannot have its name."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _stem(name: str) -> str:
    """Return `name` without its suffix; empty if the suffix is not one of a table."""
    for suffix in TABLE_SUFFIXES:
        if name.lower().endswith(suffix):
            return name[: -len(suffix)]
    return ""


def read_first_question(
    folder: DataFolder, names: Sequence[str], exam: ExamFile, template_columns: frozenset[str]
) -> CustomQuestion:
    """Return the first row of the first file that has rows."""
    for name in names:
        reader = TableReader(folder, name, exam, template_columns)
        with closing(reader.questions(None)) as questions:
            for question in questions:
                return question
    raise DataError("custom.no_rows", path=folder.path / names[0])


def has_chinese_columns(folder: DataFolder, names: Sequence[str], exam: ExamFile) -> bool:
    """Return whether the first table has a Chinese column with a meaning: ``题目``, ``答案``."""
    reader = TableReader(folder, names[0], exam, frozenset())
    # An error is reported when all questions are read.
    with suppress(DataError), closing(reader.questions(None)) as questions:
        next(questions, None)
    return any(map(has_chinese, reader.columns.names))


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
    choices: int = 0
    """Questions with options."""
    asserted: int = 0
    """Questions with assertions about tools or state."""
    verified: int = 0
    """Those of them whose state is checked by a command."""

    def add(self, row: int, question: CustomQuestion) -> None:
        """Count a question."""
        self.rows.append(row)
        if not self.columns <= question.fields.keys():
            self.columns = self.columns.intersection(question.fields)
        self.grouped |= bool(question.group)
        self.choices += bool(question.choices)
        self.asserted += bool(question.expectations)
        self.verified += VERIFY in question.expectations
        self.numbers += bool(question.answers) and question.is_numeric
        self.words += not question.choices and not question.is_numeric


class QuestionBank:
    """The checked questions of an exam's files, stored on disk; only a few bytes each stay in
    memory."""

    def __init__(
        self,
        name: str,
        folder: DataFolder,
        tables: Sequence[str],
        exam: ExamFile,
        template_columns: frozenset[str],
        split: Collection[str] = (),
    ) -> None:
        """Read the rows of all files in order; DataError names the first invalid row.

        `template_columns` are the fields that templates use. The subsets in `split` become two: one
        of questions with options, and one of the others.
        """
        self.samples = SpooledSamples()
        self.parts: dict[str, SubsetQuestions] = {}
        """By subset, in the order of their first question."""
        self.repeat_count = 0
        """The number of questions that repeat an earlier one word for word, with the same answer.
        """
        self.first_repeat: DuplicateQuestion | None = None
        """The first of them."""
        self.checks = QuestionChecks(name, ACCEPTED)
        """The faults of the questions."""
        self.readers: list[TableReader] = []
        """How each file was read."""
        self.lettered_free: CustomQuestion | None = None
        """The first question without options whose answer is a single letter."""
        self._is_math = exam.kind == "math"
        self._name, self._folder, self._tables, self._split = name, folder, tables, split
        self._ids, self._contents = DigestTable(), DigestTable()
        self._starts: list[int] = []
        for table in tables:
            self._starts.append(len(self.samples))
            reader = TableReader(folder, table, exam, template_columns)
            self.readers.append(reader)
            with closing(reader.questions(exam.kind)) as questions:
                for question in questions:
                    self._add(question, table)
        if not self.parts:
            raise DataError("custom.no_rows", path=folder.path / tables[0])

    @property
    def kind(self) -> Kind:
        """The kind of the questions."""
        if self._is_math:
            return "math"
        count = sum(part.choices for part in self.parts.values())
        return "free" if not count else "choice" if count == len(self.samples) else "mixed"

    @property
    def mixed_subsets(self) -> list[str]:
        """The subsets with questions of both kinds."""
        return [name for name, part in self.parts.items() if 0 < part.choices < len(part.rows)]

    def _place(self, row: int) -> str:
        file = bisect_right(self._starts, row) - 1
        return _row_place(self._folder, self._tables[file], row - self._starts[file] + 1)

    def _find(self, row: int) -> tuple[Sample, str]:
        return self.samples[row], self._place(row)

    def _add(self, question: CustomQuestion, table: str) -> None:
        row = len(self.samples)
        # A row without an id adds its number: so the table's numbers equal the rows'.
        first_row = self._ids.add(text_digest(question.id or f"\0{row}"))
        if first_row != row:
            values = {"where": question.where, "other": self._place(first_row)}
            raise DataError("custom.id_twice", id=question.id, **values)
        first_row = self._contents.add(question.content)
        if first_row != row:
            self._contents.add(text_digest(f"\0{row}"))
        subset = self._subset_of(question, table)
        part = self.parts.get(subset)
        if part is None:
            part = self.parts[subset] = SubsetQuestions(frozenset(question.fields))
        sample = _make_sample(self._name, subset, len(part.rows), question)
        is_contrary = self.checks.check(sample, question.where, first_row, self._find)
        if first_row != row and not is_contrary:  # otherwise it has a separate notice
            self.repeat_count += 1
            self.first_repeat = self.first_repeat or DuplicateQuestion(
                question.where, self._place(first_row)
            )
        self.samples.append(sample)
        part.add(row, question)
        if not question.choices and any(answer in LABELS for answer in question.answers):
            self.lettered_free = self.lettered_free or question

    def _subset_of(self, question: CustomQuestion, table: str) -> str:
        subset = question.subset or (_stem(table) if len(self._tables) > 1 else DEFAULT_SUBSET)
        return divide_subset(subset, bool(question.choices)) if subset in self._split else subset


def divide_subset(subset: str, has_options: bool) -> str:
    """Return the part of a subset with questions of both kinds: ``europe-free-text``."""
    kind = CHOICE_SUBSET if has_options else FREE_SUBSET
    return kind if subset == DEFAULT_SUBSET else f"{subset}-{kind}"


def read_questions(
    name: str,
    folder: DataFolder,
    tables: Sequence[str],
    exam: ExamFile,
    template_columns: frozenset[str],
) -> QuestionBank:
    """Return the questions of the files, in subsets of one kind each."""
    bank = QuestionBank(name, folder, tables, exam, template_columns)
    if bank.kind == "mixed" and bank.lettered_free is not None:
        question = bank.lettered_free
        values = {"where": question.where, "answer": question.answers[0]}
        raise DataError("custom.letter_without_options", **values)
    if split := bank.mixed_subsets:
        bank = QuestionBank(name, folder, tables, exam, template_columns, split)
    return bank


def _make_sample(exam: str, subset: str, index: int, question: CustomQuestion) -> Sample:
    metadata: dict[str, Any] = {}
    if question.fields:
        metadata[FIELDS] = question.fields
    if len(question.answers) > 1:
        metadata[ACCEPTED] = question.answers
    metadata |= question.expectations
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
    folder: DataFolder, name: str, exam: ExamFile, template_columns: frozenset[str]
) -> list[Sample]:
    """Return the worked examples; each needs an answer."""
    shots: list[Sample] = []
    reader = TableReader(folder, name, exam, template_columns)
    for question in list(reader.questions(exam.kind)):
        if not question.answers:
            raise DataError("custom.shot_answer", where=question.where)
        shot = _make_sample("shot", question.subset, len(shots), question)
        shot_metadata = {**shot.metadata, "explanation": question.explanation}
        shots.append(msgspec.structs.replace(shot, metadata=shot_metadata))
    return shots


class TableReader:
    """Reads the rows of one file, and remembers how the file and its columns were read."""

    def __init__(
        self, folder: DataFolder, name: str, exam: ExamFile, template_columns: frozenset[str]
    ) -> None:
        self.name = name
        self.form = SheetForm()
        self.columns = ColumnReading({})
        self._folder, self._exam, self._template_columns = folder, exam, template_columns
        self._where = str(folder.path / name)

    def questions(self, kind: Kind | None) -> Generator[CustomQuestion, None, None]:
        """Yield the checked rows, which must have this kind if one is given."""
        # Close it at once if a row is invalid: otherwise the error would keep the file open.
        with closing(self._rows()) as rows:
            for number, row in enumerate(rows, 1):
                where = _row_place(self._folder, self.name, number)
                self.columns = self._read_columns(tuple(map(str, row)), where)
                renamed = self.columns.rename(row)
                first_number = self.columns.first_number
                yield make_question(renamed, kind, where, first_number, self._template_columns)

    def _read_columns(self, columns: tuple[str, ...], where: str) -> ColumnReading:
        stated = tuple(sorted((self._exam.columns or {}).items()))
        for name, column in stated:
            if column not in columns:
                hint = did_you_mean(column, columns)
                values = {"where": where, "name": name, "column": column, "hint": hint}
                raise DataError("custom.no_column", **values)
        reading = read_columns(columns, self._template_columns, stated)
        reading.check(where)
        return reading

    def _rows(self) -> Generator[dict[str, Any], None, None]:
        if self.name.lower().endswith(XML):
            where = str(self._folder.path / self.name)
            yield from read_evaluation_xml(self._folder.bytes(self.name), where)
        elif self.name.endswith(YAML_SUFFIXES):
            yield from _read_yaml_rows(self._folder, self.name)
        elif is_sheet(self.name):
            exam = self._exam
            settings = SheetSettings(exam.separator or "", exam.encoding or "", exam.sheet or "")
            with self._folder.open_sheet(self.name, self._count_known, settings) as sheet:
                self.form = sheet.form
                yield from sheet.rows
        else:
            yield from self._folder.file_rows(self.name)

    def _count_known(self, columns: Sequence[str]) -> int:
        """Return how many columns have a meaning, also by the exam file."""
        stated_columns = (self._exam.columns or {}).values()
        return count_known(columns) + sum(column in columns for column in stated_columns)


def _row_place(folder: DataFolder, name: str, row: int) -> str:
    return f"{folder.path / name}, row {row}"


def _read_yaml_rows(folder: DataFolder, name: str) -> Generator[dict[str, Any], None, None]:
    where = str(folder.path / name)
    try:
        content = parse_yaml(folder.text(name), where, as_written=True)
    except ConfigError as error:
        raise DataError(str(error)) from None
    if is_promptfoo(content):
        yield from read_promptfoo(parse_yaml(folder.text(name), where), where)
        return
    if isinstance(content, dict):
        lists = [value for value in content.values() if isinstance(value, list)]
        content = lists[0] if len(lists) == 1 else None
    if not isinstance(content, list) or not all(isinstance(row, dict) for row in content):
        raise DataError("custom.no_list", where=where)
    if any(key in row for row in content for key in ASSERTIONS):
        # Assertions are about values, so their numbers are numbers.
        typed = parse_yaml(folder.text(name), where)
        rows = (
            next(value for value in typed.values() if isinstance(value, list))
            if isinstance(typed, dict)
            else typed
        )
        content = [
            row | {key: typed_row[key] for key in ASSERTIONS if key in typed_row}
            for row, typed_row in zip(content, rows, strict=True)
        ]
    yield from content


def make_question(
    row: Mapping[str, Any],
    kind: Kind | None,
    where: str,
    first_number: int | None = None,
    template_columns: frozenset[str] = frozenset(),
) -> CustomQuestion:
    """Return one checked row, of the given kind if there is one.

    `first_number` is the number of the first option if the columns of options have numbers.
    `template_columns` have no other meaning.
    """
    text = _text_field(first_value(row, QUESTION), "question", where)
    if not text.strip():
        raise _question_error(row, where)
    choices = read_choices(row, where)
    if kind not in (None, "mixed") and (kind == "choice") != bool(choices):
        code = "custom.has_options" if choices else "custom.has_no_options"
        raise DataError(code, where=where, kind=kind)
    # The right answers: one, several in a list, or none.
    value = first_value(row, ANSWER)
    values = value if isinstance(value, list) else [value]
    stripped = [_text_field(text_or_number, "answer", where).strip() for text_or_number in values]
    solution = ""
    if len(stripped) == 1 and not choices and SOLUTION_MARK in stripped[0]:
        solution, _, final_answer = stripped[0].rpartition(SOLUTION_MARK)
        stripped = [final_answer.strip()]
    answers = tuple(answer for answer in stripped if answer)
    if choices:
        answers = read_letter(answers, choices, where, first_number)
    fields = {
        key: str(value)
        for key, value in row.items()
        if key not in KNOWN_COLUMNS and isinstance(value, str | int | float)
    }
    asserted = {key: row[key] for key in ASSERTIONS if key in row and key not in template_columns}
    return CustomQuestion(
        id=_text_field(row.get("id"), "id", where),
        subset=_text_field(first_value(row, SUBSET), "subset", where).strip(),
        text=text,
        choices=choices,
        answers=answers,
        group=_text_field(row.get("group"), "group", where),
        explanation=_text_field(first_value(row, EXPLANATION), "explanation", where)
        or solution.strip(),
        fields=fields,
        where=where,
        expectations=read_expectations(asserted, where, has_answer=bool(answers))
        if asserted
        else {},
    )


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
