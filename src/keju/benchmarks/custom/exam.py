"""Make an exam from a path: inspect the folder once, read its rows when the exam is prepared."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from keju import messages
from keju.benchmarks.base import (
    Benchmark,
    DataSource,
    Exam,
    Protocol,
    Reader,
    Subset,
    by_name,
    mean_over,
)
from keju.benchmarks.custom import data
from keju.benchmarks.custom.exam_file import (
    OPTION_LEADS,
    OPTION_READERS,
    ExamFile,
    Kind,
    ReaderRule,
    choose_templates,
    columns_in_templates,
    read_exam_file,
)
from keju.benchmarks.custom.guesses import reading_notices
from keju.benchmarks.custom.readers import LETTER, make_option_readers, make_readers
from keju.benchmarks.expectations import EXPECT, with_expectations
from keju.benchmarks.kit import choose_shots, choose_subsets
from keju.benchmarks.samples import ChosenSamples, ShuffledSamples
from keju.benchmarks.wording import PromptMaker
from keju.config import DatasetArgs
from keju.errors import ConfigError, DataError, Notice
from keju.sources.folder import DataFolder
from keju.types import Reading, Reply, Sample

if TYPE_CHECKING:
    from keju.benchmarks.programs import ProgramTests

TEXT, LETTERS, OPTIONS = "text", "letters", "continuations"
UNSETTLED = (
    *("custom.answer_neither", "custom.answer_both", "custom.answer_of_several"),
    *("custom.several_answers", "custom.rivals", "custom.misnamed"),
)
"""Errors of columns that may disappear with the user's templates, which use some columns."""


def custom_exam(path: Path, reserved_names: Sequence[str]) -> Benchmark:
    """Return the benchmark in a folder or file; it must not have one of `reserved_names`."""
    if not path.exists():
        raise data.no_exam_error(path)
    folder, single_file = (path, None) if path.is_dir() else (path.parent, path.name)
    exam, exam_file = read_exam_file(folder) if single_file is None else (ExamFile(), "")
    name = exam.name
    if name is None:
        path_name = path.resolve().name
        path_name = path_name.partition(".")[0] if path.is_file() else path_name
        clean_name = "".join(c if c.isalnum() or c in "._-" else "_" for c in path_name)
        name = clean_name.strip("._-") or "custom"
    if name in reserved_names:
        raise DataError("custom.name_taken", path=path, name=name)
    files = DataFolder(folder)
    tables = data.find_tables(files, exam, single_file)
    if not exam_file and data.has_chinese_columns(files, tables.questions, exam):
        exam = exam.model_copy(update={"language": "zh"})
    kind = exam.kind or ("free" if exam.grader else _guess_kind(files, tables, exam))
    try:
        reader, readers = make_readers(exam, kind)
    except ConfigError as error:
        raise DataError("custom.in_file", path=folder / exam_file, problem=error) from None
    protocols = _make_protocols(exam, kind, reader)
    custom = CustomBenchmark(name, folder, exam, exam_file, kind, tables, readers, protocols)
    return Benchmark(
        name=name,
        title=exam.title or name,
        about=exam.about or f"the exam in {path}",
        protocols=protocols,
        readers=readers,
        make=custom.make,
        programs=_program_tests if exam.grader else None,
    )


def _program_tests(sample: Sample) -> ProgramTests:
    """Return the tests of a row of an exam whose answers are programs."""
    from keju.benchmarks.custom.programs import make_tests

    return make_tests(sample)


def _guess_kind(files: DataFolder, tables: data.ExamFiles, exam: ExamFile) -> Kind:
    """Return the kind of the first question, by which readers and protocols are listed.

    All rows are read when the exam is prepared. They may be of both kinds.
    """
    template_columns = columns_in_templates(exam, DatasetArgs())
    try:
        first_question = data.read_first_question(files, tables.questions, exam, template_columns)
    except DataError as error:
        if error.code not in UNSETTLED:
            raise
        return "free"
    return "choice" if first_question.choices else "free"


def _make_protocols(exam: ExamFile, kind: Kind, reader: str) -> dict[str, Protocol]:
    """Return the protocols of an exam of this kind."""
    text = Protocol(
        name=TEXT,
        version="1",
        reader=reader,
        about="as the exam's own file says, else in Keju's plain wording",
        max_tokens=exam.max_tokens,
    )
    letters = Protocol(
        name=LETTERS,
        version="1",
        reader=reader,
        about="the likeliest option letter by log-probability",
        decode="labels",
    )
    if kind != "choice":
        return by_name(text)
    options = Protocol(
        name=OPTIONS,
        version="1",
        reader=exam.reader
        if isinstance(exam.reader, str) and exam.reader in OPTION_READERS
        else OPTION_READERS[0],
        about="the likeliest option text by log-probability, without showing the options",
        form="completion",
        decode="continuations",
        label=OPTION_LEADS[exam.language],
        readers=make_option_readers(),
    )
    chosen = {"labels": letters, "continuations": options}.get(exam.decode or "", text)
    return by_name(chosen, *(p for p in (text, letters, options) if p is not chosen))


messages.add_folder(Path(__file__).parent / "texts")


class CustomExam(Exam):
    """The questions of a folder under one protocol."""

    def locate(self, row: Mapping[str, Any]) -> str:
        """Return the id for ``id``, or for ``subset`` and ``index``."""
        if isinstance(row.get("id"), str | int):
            return str(row["id"])
        name, index = row["subset"], row["index"]
        for subset in self.subsets:
            if subset.name == name and isinstance(index, int) and 0 <= index < len(subset):
                sample: Sample = self.samples[subset.start + index]
                if sample.index == index:
                    return sample.id
        return super().locate(row)

    def chance(self, sample: Sample) -> float | None:
        """Return the expected score of a blind guess: 0 for a free answer next to questions with
        options."""
        chance = super().chance(sample)
        return 0.0 if chance is None and self.settings["kind"] == "mixed" else chance

    def grade(self, reply: Reply, sample: Sample, reader: Reader) -> Reading:
        """Read and score one reply, and the assertions about its episode.

        A program needs tests and not a right answer, and so does a question with assertions.
        """
        graded = sample
        if not sample.target and (self.programs is not None or EXPECT in sample.metadata):
            graded = msgspec.structs.replace(sample, target=sample.text)
        reading = super().grade(reply, graded, reader)
        if EXPECT in sample.metadata:
            return with_expectations(reading, sample, reply)
        return reading


def _choose_secondary_reader(reader: str, numeric: bool) -> str:
    """Return the name of the secondary reader.

    If all right answers are numbers, it must not compare full lines: in ``2 + 3 = 5`` the robust
    reader reads the full line, this one reads ``5``.
    """
    if reader in OPTION_READERS:
        return next(name for name in OPTION_READERS if name != reader)
    if reader == "robust" and numeric:
        return "number"
    return LETTER if reader == LETTER else "robust"


def _mixed_answer_notices(
    exam: str, reader: str, parts: Sequence[data.SubsetQuestions]
) -> Iterator[Notice]:
    """Yield a notice if some right answers are numbers and others are words.

    One rule reads them all as texts.
    """
    numbers, words = sum(part.numbers for part in parts), sum(part.words for part in parts)
    if reader == "robust" and numbers and words:
        answer_count = numbers + words
        values = {
            "exam": exam,
            "numbers": numbers,
            "whole": answer_count,
            "share": numbers / answer_count,
        }
        yield Notice("custom.mixed_answers", values)


def _repeat_notices(exam: str, bank: data.QuestionBank) -> Iterator[Notice]:
    """Yield a notice if questions occur in the files more than once."""
    if (first_repeat := bank.first_repeat) is not None:
        values = {
            "exam": exam,
            "n": bank.repeat_count,
            "where": first_repeat.where,
            "other": first_repeat.earlier_place,
        }
        yield Notice("custom.repeated_questions", values)


@dataclass(frozen=True)
class CustomBenchmark:
    """An exam in a folder."""

    name: str
    folder: Path
    exam: ExamFile
    exam_file: str
    """Its name; empty if there is none."""
    kind: Kind
    """The kind that the exam file names, or the kind of the first question."""
    tables: data.ExamFiles
    readers: Mapping[str, Reader]
    protocols: Mapping[str, Protocol]

    def make(self, args: DatasetArgs, folder: DataFolder, seed: int) -> Exam:
        """Read all rows and make the prompts; the `folder` argument is ignored."""
        del folder
        if args.local_path is not None:
            raise ConfigError("custom.local_path")
        files = DataFolder(self.folder)
        if self.exam_file:
            files.bytes(self.exam_file)  # its hash is part of the manifest
        template_columns = columns_in_templates(self.exam, args)
        bank = data.read_questions(
            self.name, files, self.tables.questions, self.exam, template_columns
        )
        if self.exam.decode not in (None, "generate") and bank.kind != "choice":
            raise DataError(
                "custom.decode_without_options", name=self.name, decode=self.exam.decode
            )
        return self._with_kind(bank.kind, args).make_exam(args, files, bank, seed)

    def _with_kind(self, kind: Kind, args: DatasetArgs) -> CustomBenchmark:
        """Return this benchmark for questions of this kind, with its readers and protocols."""
        if args.shuffle_choices and kind in ("free", "math"):
            raise ConfigError("custom.shuffle_choices")
        if kind == self.kind:
            return self
        try:
            reader, readers = make_readers(self.exam, kind)
        except ConfigError as error:
            raise DataError(
                "custom.in_file", path=self.folder / self.exam_file, problem=error
            ) from None
        protocols = _make_protocols(self.exam, kind, reader)
        if args.protocol not in (None, *protocols):
            raise ConfigError(
                "custom.letters_without_options", name=self.name, protocol=args.protocol
            )
        return replace(self, kind=kind, readers=readers, protocols=protocols)

    def make_exam(
        self, args: DatasetArgs, files: DataFolder, bank: data.QuestionBank, seed: int
    ) -> Exam:
        """Make the prompts of the questions."""
        names = choose_subsets(self.name, args.subset_list, list(bank.parts))
        rows: array[int] = array("I")
        subsets: list[Subset] = []
        for name in names:
            start = len(rows)
            rows.extend(bank.parts[name].rows)
            subsets.append(Subset(name, start, len(rows)))
        parts = [bank.parts[name] for name in names]
        samples: Sequence[Sample] = ChosenSamples(bank.samples, rows)
        if args.shuffle_choices:
            samples = ShuffledSamples(samples, seed)
        shots = self._choose_shots(files, args, bank, names, seed)
        bank.checks.check_shots(chain.from_iterable(shots.values()), bank.samples)
        faults = tuple(bank.checks.notices())
        if self.exam.grader:
            self._check_test_columns(bank)
            if any(part.asserted for part in parts):
                raise DataError("custom.expect_programs", name=self.name)
        self._refuse_templates(args, has_shots=any(shots.values()))
        protocol = self._choose_protocol(args)
        system, rule = args.system_prompt, self.exam.reader
        if system is None:
            system = self.exam.system_prompt
        prompts, templates = self._make_prompts(args, bank, names, shots, protocol, system)
        return CustomExam(
            benchmark=self.name,
            protocol=protocol,
            samples=samples,
            subsets=tuple(subsets),
            readers=self.readers_of(protocol),
            data=DataSource(dict(files.hashes), notes=tuple(files.notes)),
            prompts=prompts,
            averages=(mean_over(bank.parts),),
            clustered=any(bank.parts[name].grouped for name in names),
            asserted=any(part.asserted for part in parts),
            state_checks=self.folder if any(part.verified for part in parts) else None,
            beside=_choose_secondary_reader(
                protocol.reader, self.kind == "free" and not any(part.words for part in parts)
            ),
            hints=(
                *reading_notices(self.name, self.exam, bank),
                *_repeat_notices(self.name, bank),
                *_mixed_answer_notices(
                    self.name, protocol.reader, () if self.kind == "math" else parts
                ),
                *faults,
            ),
            warnings=faults,
            settings={
                "kind": self.kind,
                **({"grader": self.exam.grader} if self.exam.grader else {}),
                "language": self.exam.language,
                "reader": rule.model_dump() if isinstance(rule, ReaderRule) else rule,
                "few_shot_random": args.few_shot_random,
                "shuffle_choices": args.shuffle_choices,
                "templates": templates,
                "few_shot_num": {name: len(subset_shots) for name, subset_shots in shots.items()},
            }
            | ({"system_prompt": system} if system else {}),
        )

    def _choose_protocol(self, args: DatasetArgs) -> Protocol:
        """Return the protocol that the user names, or the exam's."""
        return self.protocols[args.protocol or next(iter(self.protocols))]

    def readers_of(self, protocol: Protocol) -> Mapping[str, Reader]:
        """Return the readers of replies to a protocol's prompts."""
        return protocol.readers or self.readers

    def _check_test_columns(self, bank: data.QuestionBank) -> None:
        """Raise DataError if a row lacks the tests of its program."""
        for part in bank.parts.values():
            for column in ("tests", "entry_point"):
                if column not in part.columns:
                    raise DataError("custom.no_test_column", name=self.name, column=column)

    def _refuse_templates(self, args: DatasetArgs, *, has_shots: bool) -> None:
        """Raise ConfigError for templates without effect."""
        exam = self.exam
        templates = (exam.template, exam.shot_template, exam.few_shot_template)
        user_templates = (args.prompt_template, args.few_shot_prompt_template)
        if self.kind == "mixed" and any((*templates, *user_templates)):
            raise ConfigError("custom.mixed_template", name=self.name)
        if args.few_shot_prompt_template is not None:
            if not has_shots:
                raise ConfigError("custom.no_shots")
            if args.prompt_template is not None:
                raise ConfigError("custom.two_templates")

    def _make_prompts(
        self,
        args: DatasetArgs,
        bank: data.QuestionBank,
        names: Sequence[str],
        shots: Mapping[str, Sequence[Sample]],
        protocol: Protocol,
        system: str | None,
    ) -> tuple[PromptMaker, dict[str, Any]]:
        """Return the prompts of the subsets, and the templates for the manifest."""
        makers: list[PromptMaker] = []
        templates_by_kind: dict[str, dict[str, Any]] = {}
        by_kind: dict[Kind, list[str]] = {}
        for name in names:
            free_kind: Kind = "math" if self.kind == "math" else "free"
            kind_of_part = "choice" if bank.parts[name].choices else free_kind
            by_kind.setdefault(kind_of_part, []).append(name)
        for kind, kind_names in by_kind.items():
            templates = choose_templates(
                self.exam,
                kind,
                protocol.reader,
                args,
                decode=protocol.decode,
                columns=frozenset.intersection(*(bank.parts[n].columns for n in kind_names)),
                file=self.folder / self.exam_file,
            )
            wording = templates.wording(system, option_texts=protocol.decode == "continuations")
            makers.append(wording.prompts(kind_names, shots))
            templates_by_kind[kind] = templates._asdict()
        is_mixed = self.kind == "mixed"
        recorded: dict[str, Any] = (
            dict(templates_by_kind) if is_mixed else next(iter(templates_by_kind.values()))
        )
        return PromptMaker.joined(makers), recorded

    def _choose_shots(
        self,
        files: DataFolder,
        args: DatasetArgs,
        bank: data.QuestionBank,
        subsets: Sequence[str],
        seed: int,
    ) -> dict[str, list[Sample]]:
        """Return the worked examples of each subset: its own if they name subsets, else all."""
        count, file = args.few_shot_num, self.tables.shots
        if count is None and isinstance(self.exam.few_shot, int):
            count = self.exam.few_shot
        if count and file is None:
            raise ConfigError("custom.no_shot_file", name=self.name, asked=count)
        pool = self._read_pool(files, args) if count != 0 else []
        if args.few_shot_random and not pool:
            raise ConfigError("custom.nothing_to_draw", name=self.name)
        shots: dict[str, list[Sample]] = {name: [] for name in subsets}
        for has_options in (True, False):
            kind_subsets = [n for n in subsets if bool(bank.parts[n].choices) == has_options]
            kind_pool = [shot for shot in pool if bool(shot.choices) == has_options]
            if not kind_subsets or not kind_pool:
                continue
            chosen = choose_shots(
                self.name,
                [_with_subset(shot, kind_subsets) for shot in kind_pool],
                kind_subsets,
                count,
                seed=seed if args.few_shot_random else None,
                where=str(self.folder / (file or "")),
            )
            shots |= {
                name: [msgspec.structs.replace(shot, subset=name) for shot in subset_shots]
                for name, subset_shots in chosen.items()
            }
        return shots

    def _read_pool(self, files: DataFolder, args: DatasetArgs) -> list[Sample]:
        """Return all worked examples; DataError if they are of another kind than the questions."""
        file = self.tables.shots
        if not file:
            return []
        pool = data.read_shots(files, file, self.exam, columns_in_templates(self.exam, args))
        have_options = {bool(shot.choices) for shot in pool}
        if self.kind != "mixed" and have_options - {self.kind == "choice"}:
            raise DataError("custom.shot_kind", where=self.folder / file)
        return pool


def _with_subset(shot: Sample, subsets: Sequence[str]) -> Sample:
    """Return a worked example with its subset's name after the subset was divided by kind."""
    divided = data.divide_subset(shot.subset, bool(shot.choices)) if shot.subset else ""
    if shot.subset in subsets or divided not in subsets:
        return shot
    return msgspec.structs.replace(shot, subset=divided)
