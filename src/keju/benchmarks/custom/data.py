"""Reading questions that people keep in tables: CSV, JSON Lines, JSON, YAML, Parquet.

Fields, the first that a row has: the question (``question``, ``input``), its options (``choices``,
``options``, or columns ``A``, ``B``, …), the right one (``answer``, ``target``), where it belongs
(``subset``, ``category``, ``subject``), ``id``, ``group`` and, for worked examples,
``explanation``. All other fields can be named in templates; one that seems to hold options or the
right answer under another name is refused where no template names it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from keju.answers.numbers import number_of
from keju.benchmarks.choices import check_choices
from keju.benchmarks.custom.columns import (
    ANSWER,
    CHOICES,
    EXPLANATION,
    KNOWN,
    QUESTION,
    SUBSET,
    misnamed,
)
from keju.benchmarks.custom.exam_file import FIELDS, ExamFile, Kind
from keju.benchmarks.custom.readers import ACCEPTED
from keju.benchmarks.data_checks import QuestionChecks, content_of
from keju.benchmarks.samples import DigestTable, StoredSamples, text_digest
from keju.config.exams import EXAM_FILES
from keju.config.strict import parse_yaml
from keju.errors import ConfigError, DataError, Hint, did_you_mean, nearest
from keju.files import TABLE, parse_json
from keju.sources.folder import SUFFIXES, DataFolder
from keju.types import LABELS, Sample

YAML_SUFFIXES = (".yaml", ".yml")
SHOT_STEMS = ("few_shot", "few-shot", "shots")
"""Names of the file of worked examples where the exam file names none."""
SOLVED = "####"
"""What stands between a worked solution and its outcome, where an answer holds both (GSM8K)."""
EVERYTHING = "all"
"""The subset of questions that name none and stand in a single file."""


class Question(NamedTuple):
    """One row, checked."""

    id: str
    """As the row has it; empty if it has none."""
    subset: str
    """Empty if the row names none."""
    text: str
    choices: tuple[str, ...]
    answers: tuple[str, ...]
    """The right letter, or the texts that are right; none where it is not known."""
    group: str
    explanation: str
    fields: Mapping[str, str]
    """Everything else that is a text or a number."""
    where: str
    """File and row, for messages."""

    @property
    def is_numeric(self) -> bool:
        """Whether its right answers are numbers; one that has none says nothing of it."""
        return not self.choices and all(number_of(answer) is not None for answer in self.answers)

    @property
    def content(self) -> bytes:
        """A digest of what is asked: the text, its options, and what templates can name."""
        names = self.fields.keys() - {"id", "group", *SUBSET}
        return content_of(self.text, self.choices, {name: self.fields[name] for name in names})


class Repeat(NamedTuple):
    """A question that asks what another one asks."""

    where: str
    other: str
    """Where that one stands."""


class Tables(NamedTuple):
    """The files of an exam."""

    questions: tuple[str, ...]
    shots: str | None


def find_tables(folder: DataFolder, exam: ExamFile, only: str | None) -> Tables:
    """Which files hold the questions and which the worked examples; `only` is a single file."""
    if only is not None:
        if not _stem(only):
            endings = [*SUFFIXES, *YAML_SUFFIXES]
            raise DataError("custom.unknown_ending", path=folder.path / only, endings=endings)
        return Tables((only,), None)
    present = [path.name for path in sorted(folder.path.iterdir()) if path.is_file()]
    tables = [name for name in present if _stem(name) and name not in EXAM_FILES]
    shots = exam.few_shot if isinstance(exam.few_shot, str) else None
    for name in [*(exam.questions or ()), *([shots] if shots else [])]:
        if name not in tables:
            hint = did_you_mean(name, tables) if tables else ""
            raise DataError("custom.no_table", path=folder.path, name=name, hint=hint)
    if shots is None:
        shots = next((name for name in tables if _stem(name) in SHOT_STEMS), None)
    if exam.questions:
        return Tables(tuple(exam.questions), shots)
    questions = [name for name in tables if name != shots]
    if not questions:
        raise DataError("custom.no_questions", path=folder.path)
    by_stem: dict[str, str] = {}
    for name in questions:
        other = by_stem.setdefault(_stem(name), name)
        if other != name:
            raise DataError("custom.same_name", path=folder.path, other=other, name=name)
    return Tables(tuple(questions), shots)


def _stem(name: str) -> str:
    """`name` without the suffix that makes it a table; empty if it is none."""
    for suffix in (*SUFFIXES, *YAML_SUFFIXES):
        if name.endswith(suffix):
            return name.removesuffix(suffix)
    return ""


def first_question(folder: DataFolder, names: Sequence[str]) -> Question:
    """The first row of the first file that has any."""
    for name in names:
        for question in _read_file(folder, name, None, None):
            return question
    raise DataError("custom.no_rows", path=folder.path / names[0])


@dataclass
class Part:
    """The questions of one subset."""

    columns: frozenset[str]
    """The further fields that every one of them has."""
    rows: array[int] = field(default_factory=lambda: array("I"))
    """Their numbers among all questions, in order."""
    grouped: bool = False
    """Whether any of them shares context with others."""
    numbers: int = 0
    """Questions whose right answers are numbers."""
    words: int = 0
    """Questions with other right answers."""


class QuestionBank:
    """The questions of an exam's files, checked and stored; few bytes of each stay in memory."""

    def __init__(
        self,
        exam: str,
        folder: DataFolder,
        names: Sequence[str],
        kind: Kind,
        decided_by: str,
        named: frozenset[str],
    ) -> None:
        """Read the rows of all files in order; DataError names the first that is wrong.

        `decided_by` is the row that told the kind, where the exam file does not say it; `named`
        are the fields that templates show.
        """
        self.samples = StoredSamples()
        self.parts: dict[str, Part] = {}
        """By subset, in the order of their first question."""
        self.repeated = 0
        """Questions that ask what one before them asks, word for word, with the same answer."""
        self.repeat: Repeat | None = None
        """The first of them."""
        self.checks = QuestionChecks(exam, ACCEPTED)
        """What is wrong with the questions."""
        ids, contents = DigestTable(), DigestTable()
        starts: list[int] = []

        def place(row: int) -> str:
            file = bisect_right(starts, row) - 1
            return _where(folder, names[file], row - starts[file] + 1)

        def find(row: int) -> tuple[Sample, str]:
            return self.samples[row], place(row)

        for name in names:
            starts.append(len(self.samples))
            with closing(_read_file(folder, name, kind, named, decided_by)) as questions:
                for question in questions:
                    row = len(self.samples)
                    # A row without an id enters its number: the table's numbers are the rows'.
                    first = ids.add(text_digest(question.id or f"\0{row}"))
                    if first != row:
                        values = {"where": question.where, "other": place(first)}
                        raise DataError("custom.id_twice", id=question.id, **values)
                    first = contents.add(question.content)
                    if first != row:
                        contents.add(text_digest(f"\0{row}"))
                    subset = question.subset or (_stem(name) if len(names) > 1 else EVERYTHING)
                    part = self.parts.get(subset)
                    if part is None:
                        part = self.parts[subset] = Part(frozenset(question.fields))
                    sample = _sample(exam, subset, len(part.rows), question)
                    is_contrary = self.checks.see(sample, question.where, first, find)
                    if first != row and not is_contrary:  # else it has its own notice
                        self.repeated += 1
                        self.repeat = self.repeat or Repeat(question.where, place(first))
                    self.samples.append(sample)
                    part.rows.append(row)
                    if not part.columns <= question.fields.keys():
                        part.columns = part.columns.intersection(question.fields)
                    part.grouped |= bool(question.group)
                    part.numbers += bool(question.answers) and question.is_numeric
                    part.words += not question.is_numeric
        if not self.parts:
            raise DataError("custom.no_rows", path=folder.path / names[0])


def _sample(exam: str, subset: str, index: int, question: Question) -> Sample:
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
    folder: DataFolder, name: str, kind: Kind, decided_by: str, named: frozenset[str]
) -> list[Sample]:
    """The worked examples; each needs an answer."""
    shots: list[Sample] = []
    for question in list(_read_file(folder, name, kind, named, decided_by)):
        if not question.answers:
            raise DataError("custom.shot_answer", where=question.where)
        shot = _sample("shot", question.subset, len(shots), question)
        explained = {**shot.metadata, "explanation": question.explanation}
        shots.append(msgspec.structs.replace(shot, metadata=explained))
    return shots


def _read_file(
    folder: DataFolder,
    name: str,
    kind: Kind | None,
    named: frozenset[str] | None,
    decided_by: str = "",
) -> Generator[Question, None, None]:
    """The rows of a file, checked; their fields too once it is known which templates name."""
    yaml = name.endswith(YAML_SUFFIXES)
    # Closed at once where a row is wrong: the error would keep the file open as long as it lives.
    with closing(_yaml_rows(folder, name) if yaml else folder.file_rows(name)) as rows:
        for number, row in enumerate(rows, 1):
            where = _where(folder, name, number)
            if named is not None:
                check_columns(row, named, where)
            yield make_question(row, kind, where, decided_by)


def _where(folder: DataFolder, name: str, row: int) -> str:
    return f"{folder.path / name}, row {row}"


def _yaml_rows(folder: DataFolder, name: str) -> Generator[dict[str, Any], None, None]:
    where = str(folder.path / name)
    try:
        loaded = parse_yaml(folder.text(name), where, as_written=True)
    except ConfigError as error:
        raise DataError(str(error)) from None
    if isinstance(loaded, dict):
        lists = [value for value in loaded.values() if isinstance(value, list)]
        loaded = lists[0] if len(lists) == 1 else None
    if not isinstance(loaded, list) or not all(isinstance(row, dict) for row in loaded):
        raise DataError("custom.no_list", where=where)
    yield from loaded


def make_question(
    row: Mapping[str, Any], kind: Kind | None, where: str, decided_by: str = ""
) -> Question:
    """One row, checked; of the given kind where that is known, and by which row if by one."""
    text = _text(_first(row, QUESTION), "question", where)
    if not text.strip():
        raise _no_question(row, where)
    choices = read_choices(row, where)
    if kind is not None and (kind == "choice") != bool(choices):
        code = "custom.has_options" if choices else "custom.has_no_options"
        if decided_by:
            raise DataError(f"{code}_unlike", where=where, first=decided_by)
        raise DataError(code, where=where, kind=kind)
    # The right answers: one, several in a list, or none.
    value = _first(row, ANSWER)
    values = value if isinstance(value, list) else [value]
    stripped = [_text(each, "answer", where).strip() for each in values]
    solution = ""
    if len(stripped) == 1 and not choices and SOLVED in stripped[0]:
        solution, _, final = stripped[0].rpartition(SOLVED)
        stripped = [final.strip()]
    answers = tuple(answer for answer in stripped if answer)
    if choices:
        answers = read_letter(answers, choices, where)
    fields = {
        key: str(value)
        for key, value in row.items()
        if key not in KNOWN and isinstance(value, str | int | float)
    }
    return Question(
        id=_text(row.get("id"), "id", where),
        subset=_text(_first(row, SUBSET), "subset", where).strip(),
        text=text,
        choices=choices,
        answers=answers,
        group=_text(row.get("group"), "group", where),
        explanation=_text(_first(row, EXPLANATION), "explanation", where) or solution.strip(),
        fields=fields,
        where=where,
    )


def check_columns(row: Mapping[str, Any], named: frozenset[str], where: str) -> None:
    """That no field holds options or the right answer under a name that is not read."""
    if found := misnamed(tuple(map(str, row)), named):
        columns, names = [each.column for each in found], [each.name for each in found]
        values = {"where": where, "columns": columns, "names": names, "n": len(found)}
        raise DataError("custom.misnamed", **values)


def _no_question(row: Mapping[str, Any], where: str) -> DataError:
    """What is wrong with a row without a question: the field is empty, or called otherwise."""
    if any(name in row for name in QUESTION):
        return DataError("custom.no_question", where=where)
    found = [str(name) for name in row]
    near = nearest(QUESTION[0], found)
    hint = Hint("custom.rename", name=near) if near else ""
    return DataError("custom.no_question_field", where=where, found=found, hint=hint)


def _first(row: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((row[name] for name in names if row.get(name) is not None), None)


def _text(value: Any, name: str, where: str) -> str:
    """A field as text; empty where it is missing."""
    if value is None:
        return ""
    if isinstance(value, bool):
        raise DataError("custom.truth_value", where=where, name=name)
    if not isinstance(value, str | int | float):
        raise DataError("custom.no_text", where=where, name=name)
    return str(value)


def read_choices(row: Mapping[str, Any], where: str) -> tuple[str, ...]:
    """The options in a list or in columns ``A``, ``B``, …, of which the last may be empty."""
    listed = _first(row, CHOICES)
    if listed is None or listed == "":
        cells = [_text(row.get(label), label, where) for label in LABELS if label in row]
        if cells and "A" not in row:
            return ()
        while cells and not cells[-1].strip():
            cells.pop()
        for label, cell in zip(LABELS, cells, strict=False):
            if label not in row or not cell.strip():
                raise DataError("custom.empty_option", where=where, label=label)
        return tuple(cells)
    if isinstance(listed, str):
        try:
            listed = parse_json(listed.encode(), TABLE)
        except DataError:
            listed = None
    if not isinstance(listed, list):
        raise DataError("custom.choices", where=where)
    options = []
    for number, value in enumerate(listed, 1):
        options.append(_text(value, f"option {number}", where))
        if not options[-1].strip():
            raise DataError("custom.empty_numbered", where=where, number=number)
    return tuple(options)


def read_letter(answers: Sequence[str], choices: Sequence[str], where: str) -> tuple[str, ...]:
    """The label of the right option, given as a letter or as the option's text."""
    if not answers:
        check_choices(choices, "", where)
        return ()
    if len(answers) > 1:
        raise DataError("custom.several_answers", where=where)
    (answer,) = answers
    by_text = [LABELS[i] for i, choice in enumerate(choices) if choice.strip() == answer]
    label = answer.upper() if len(answer) == 1 and answer.upper() in LABELS else ""
    by_label = label if label and LABELS.index(label) < len(choices) else ""
    if len(by_text) > 1:
        raise DataError("custom.answer_of_several", where=where, answer=answer)
    if by_text and by_label and by_text[0] != by_label:
        raise DataError("custom.answer_both", where=where, answer=answer, option=by_text[0])
    letter = by_label or "".join(by_text)
    if not letter:
        last = LABELS[len(choices) - 1]
        raise DataError("custom.answer_neither", where=where, answer=answer, last=last)
    check_choices(choices, letter, where)
    return (letter,)
