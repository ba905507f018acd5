"""Make an exam from a path: inspect the folder once, read its rows when the exam is prepared."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

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
    ExamFile,
    Kind,
    ReaderRule,
    choose_templates,
    columns_in_templates,
    read_exam_file,
)
from keju.benchmarks.custom.readers import LETTER, make_readers
from keju.benchmarks.kit import choose_shots, choose_subsets
from keju.benchmarks.samples import ChosenSamples, ShuffledSamples
from keju.config import DatasetArgs
from keju.errors import ConfigError, DataError, Notice
from keju.sources.folder import DataFolder
from keju.types import Sample

TEXT, LETTERS = "text", "letters"


def custom_exam(path: Path, reserved_names: Sequence[str]) -> Benchmark:
    """Return the benchmark in a folder or file; it must not have one of `reserved_names`."""
    if not path.exists():
        raise DataError("custom.no_exam", path=path)
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
    # The first question determines the kind; the other rows are compared with it when read.
    first_question = None if exam.kind else data.read_first_question(files, tables.questions)
    kind: Kind = exam.kind or ("choice" if first_question and first_question.choices else "free")
    try:
        reader, readers = make_readers(exam, kind)
    except ConfigError as error:
        raise DataError("custom.in_file", path=folder / exam_file, problem=error) from None
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
    protocols = by_name(text, letters) if kind == "choice" else by_name(text)
    decided_by = first_question.where if first_question else ""
    custom = CustomBenchmark(
        name, folder, exam, exam_file, kind, decided_by, tables, readers, protocols
    )
    return Benchmark(
        name=name,
        title=exam.title or name,
        about=exam.about or f"the exam in {path}",
        protocols=protocols,
        readers=readers,
        make=custom.make,
    )


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


def _choose_secondary_reader(reader: str, numeric: bool) -> str:
    """Return the name of the secondary reader.

    If all right answers are numbers, it must not compare full lines: in ``2 + 3 = 5`` the robust
    reader reads the full line, this one reads ``5``.
    """
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
    decided_by: str
    """The row that determined the kind; empty if the exam file names it."""
    tables: data.ExamFiles
    readers: Mapping[str, Reader]
    protocols: Mapping[str, Protocol]

    def make(self, args: DatasetArgs, folder: DataFolder, seed: int) -> Exam:
        """Read all rows and make the prompts; the `folder` argument is ignored."""
        del folder
        if args.local_path is not None:
            raise ConfigError("custom.local_path")
        if args.shuffle_choices and self.kind != "choice":
            raise ConfigError("custom.shuffle_choices")
        files = DataFolder(self.folder)
        if self.exam_file:
            files.bytes(self.exam_file)  # its hash is part of the manifest
        template_columns = columns_in_templates(self.exam, args)
        bank = data.QuestionBank(
            self.name, files, self.tables.questions, self.kind, self.decided_by, template_columns
        )
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
        shots = self._choose_shots(files, args, names, seed)
        bank.checks.check_shots(chain.from_iterable(shots.values()), bank.samples)
        faults = tuple(bank.checks.notices())
        if args.few_shot_prompt_template is not None:
            if not any(shots.values()):
                raise ConfigError("custom.no_shots")
            if args.prompt_template is not None:
                raise ConfigError("custom.two_templates")
        protocol = self.protocols[args.protocol or TEXT]
        templates = choose_templates(
            self.exam,
            self.kind,
            protocol.reader,
            args,
            letters=protocol.decode == "labels",
            columns=frozenset.intersection(*(bank.parts[name].columns for name in names)),
            file=self.folder / self.exam_file,
        )
        system, rule = args.system_prompt, self.exam.reader
        if system is None:
            system = self.exam.system_prompt
        return CustomExam(
            benchmark=self.name,
            protocol=protocol,
            samples=samples,
            subsets=tuple(subsets),
            readers=self.readers,
            data=DataSource(dict(files.hashes), notes=tuple(files.notes)),
            prompts=templates.wording(system).prompts(names, shots),
            averages=(mean_over(bank.parts),),
            clustered=any(bank.parts[name].grouped for name in names),
            beside=_choose_secondary_reader(
                protocol.reader,
                self.kind == "free" and not any(bank.parts[name].words for name in names),
            ),
            hints=(
                *_repeat_notices(self.name, bank),
                *_mixed_answer_notices(
                    self.name, protocol.reader, parts if self.kind == "free" else ()
                ),
                *faults,
            ),
            warnings=faults,
            settings={
                "kind": self.kind,
                "language": self.exam.language,
                "reader": rule.model_dump() if isinstance(rule, ReaderRule) else rule,
                "few_shot_random": args.few_shot_random,
                "shuffle_choices": args.shuffle_choices,
                "templates": templates._asdict(),
                "few_shot_num": {name: len(subset_shots) for name, subset_shots in shots.items()},
            }
            | ({"system_prompt": system} if system else {}),
        )

    def _choose_shots(
        self, files: DataFolder, args: DatasetArgs, subsets: Sequence[str], seed: int
    ) -> dict[str, list[Sample]]:
        """Return the worked examples of each subset: its own if they name subsets, else all."""
        count, file = args.few_shot_num, self.tables.shots
        if count is None and isinstance(self.exam.few_shot, int):
            count = self.exam.few_shot
        if count and file is None:
            raise ConfigError("custom.no_shot_file", name=self.name, asked=count)
        pool = []
        if file and count != 0:
            template_columns = columns_in_templates(self.exam, args)
            pool = data.read_shots(files, file, self.kind, self.decided_by, template_columns)
        if args.few_shot_random and not pool:
            raise ConfigError("custom.nothing_to_draw", name=self.name)
        shots_by_subset = choose_shots(
            self.name,
            pool,
            subsets,
            count,
            seed=seed if args.few_shot_random else None,
            where=str(self.folder / (file or "")),
        )
        return {
            name: [msgspec.structs.replace(shot, subset=name) for shot in subset_shots]
            for name, subset_shots in shots_by_subset.items()
        }
