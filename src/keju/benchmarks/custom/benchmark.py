"""From a path to a benchmark: the folder is looked at once, its rows are read when it is sat."""

from __future__ import annotations

import random
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from keju.benchmarks.base import Benchmark, DataFacts, Exam, Protocol, Reader, Subset
from keju.benchmarks.choices import permuted, shuffle_order
from keju.benchmarks.custom import data
from keju.benchmarks.custom.data import Part, Question, QuestionBank, Tables
from keju.benchmarks.custom.exam import CustomExam
from keju.benchmarks.custom.exam_file import ExamFile, Kind, ReaderRule, read_exam_file
from keju.benchmarks.custom.prompts import Asked, Shot, Templates, wording_of
from keju.benchmarks.custom.readers import readers_of
from keju.benchmarks.samples import ChosenSamples, LazySamples
from keju.config import DatasetArgs
from keju.errors import ConfigError, DataError, did_you_mean
from keju.sources.folder import DataFolder
from keju.types import Sample

TEXT, LETTERS = "text", "letters"


def custom_exam(path: Path, taken: Sequence[str]) -> Benchmark:
    """The benchmark in a folder or file; `taken` are names it must not have."""
    if not path.exists():
        raise DataError(f"no exam at {path}: expected a folder or a file of questions")
    folder, only = (path, None) if path.is_dir() else (path.parent, path.name)
    exam, exam_file = read_exam_file(folder) if only is None else (ExamFile(), "")
    title = exam.name or _name_of(path)
    if title in taken:
        raise DataError(f"{path}: '{title}' is a benchmark already; set another name in exam.yaml")
    files = DataFolder(folder)
    tables = data.find_tables(files, exam, only)
    kind = exam.kind or _kind(files, tables)
    try:
        reader, readers = readers_of(exam, kind)
    except ConfigError as error:
        raise DataError(f"{folder / exam_file}: {error}") from None
    protocols = _protocols(exam, kind, reader)
    custom = Custom(title, folder, exam, exam_file, kind, tables, readers, protocols)
    return Benchmark(
        name=title,
        title=exam.title or title,
        about=exam.about or f"the exam in {path}",
        protocols=protocols,
        readers=readers,
        make=custom.prepare,
    )


def _name_of(path: Path) -> str:
    name = path.resolve().name.partition(".")[0] if path.is_file() else path.resolve().name
    return "".join(c if c.isalnum() or c in "._-" else "_" for c in name).strip("._-") or "custom"


def _kind(files: DataFolder, tables: Tables) -> Kind:
    """By whether the first question has options; that the others agree is checked with them."""
    return "choice" if data.first_question(files, tables.questions).choices else "free"


def _protocols(exam: ExamFile, kind: Kind, reader: str) -> dict[str, Protocol]:
    text = Protocol(
        name=TEXT,
        version="1",
        reader=reader,
        about="as the exam's own file says, else in Keju's plain wording",
        max_tokens=exam.max_tokens,
    )
    if kind == "free":
        return {TEXT: text}
    letters = Protocol(
        name=LETTERS,
        version="1",
        reader=reader,
        about="the likeliest option letter by log-probability",
        decode="labels",
    )
    return {TEXT: text, LETTERS: letters}


@dataclass(frozen=True)
class Custom:
    """An exam in a folder."""

    name: str
    folder: Path
    exam: ExamFile
    exam_file: str
    """Its name; empty where there is none."""
    kind: Kind
    tables: Tables
    readers: Mapping[str, Reader]
    protocols: Mapping[str, Protocol]

    def prepare(self, args: DatasetArgs, folder: DataFolder, seed: int) -> Exam:
        """Read all rows and word the prompts; the folder is the exam's own."""
        del folder
        _refuse(args, self.kind)
        files = DataFolder(self.folder)
        if self.exam_file:
            files.bytes(self.exam_file)
        bank = QuestionBank(self.name, files, self.tables.questions, self.kind)
        parts = _chosen(bank.parts, args.subset_list, self.name)
        rows: array[int] = array("I")
        subsets = []
        for name, part in parts.items():
            subsets.append(Subset(name, len(rows), len(rows) + len(part.rows)))
            rows.extend(part.rows)
        samples: LazySamples = ChosenSamples(bank.samples, rows)
        if args.shuffle_choices:
            samples = ShuffledSamples(samples, seed)
        shots = self._shots(files, args, subsets, seed)
        protocol = self.protocols[args.protocol or TEXT]
        wording = wording_of(
            self.exam,
            self.kind,
            protocol.reader,
            _templates(args, any(shots.values())),
            letters=protocol.name == LETTERS,
            columns=frozenset.intersection(*(part.columns for part in parts.values())),
        )
        examples = {name: wording.examples(own) for name, own in shots.items()}
        settings = _settings(args, self.exam, self.kind, wording._asdict())
        settings["few_shot_num"] = {name: len(own) for name, own in shots.items()}
        return CustomExam(
            name=self.name,
            protocol=protocol,
            readers=self.readers,
            samples=samples,
            subsets=tuple(subsets),
            clustered=any(part.grouped for part in parts.values()),
            wording=wording,
            examples=examples,
            data=DataFacts(dict(files.hashes), notes=tuple(files.notes)),
            settings=settings,
        )

    def _shots(
        self, files: DataFolder, args: DatasetArgs, subsets: Sequence[Subset], seed: int
    ) -> dict[str, list[Shot]]:
        """The worked examples of each subset: its own where they name subsets, else all."""
        wanted = args.few_shot_num
        if wanted is None and isinstance(self.exam.few_shot, int):
            wanted = self.exam.few_shot
        pool: list[Question] = []
        if wanted != 0 and self.tables.shots is not None:
            pool = data.read_shots(files, self.tables.shots, self.kind)
        if args.few_shot_random and not pool:
            raise ConfigError(f"{self.name}: few_shot_random: there are no worked examples to draw")
        named = any(question.subset for question in pool)
        shots: dict[str, list[Shot]] = {}
        for subset in subsets:
            own = [q for q in pool if q.subset == subset.name] if named else pool
            count = len(own) if wanted is None else wanted
            if count > len(own):
                where = self.tables.shots or "few_shot.jsonl"
                raise ConfigError(
                    f"{self.name}: {count} worked examples asked for, {self.folder / where} has "
                    f"{len(own)}" + (f" of '{subset.name}'" if named else "")
                )
            if args.few_shot_random:
                draw = random.Random(f"{seed}:{self.name}:{subset.name}:shots")
                own = draw.sample(own, count)
            shots[subset.name] = [_shot(question, subset.name) for question in own[:count]]
        return shots


def _shot(question: Question, subset: str) -> Shot:
    fields = dict(question.fields) | {"subset": subset}
    asked = Asked(question.text, question.choices, fields)
    return Shot(asked, question.answers[0], question.explanation)


def _chosen(
    parts: Mapping[str, Part], wanted: Sequence[str] | None, name: str
) -> Mapping[str, Part]:
    if wanted is None:
        return parts
    if not wanted:
        raise ConfigError(f"{name}: subset_list is empty: name a subset, or leave it out for all")
    chosen: set[str] = set()
    for subset in wanted:
        same = [own for own in parts if own.casefold() == subset.casefold()]
        if not same:
            raise ConfigError(f"{name} has no subset '{subset}'{did_you_mean(subset, parts)}")
        chosen.update([subset] if subset in same else same)
    return {subset: part for subset, part in parts.items() if subset in chosen}


class ShuffledSamples(LazySamples):
    """Samples with their options in an order that depends on the seed and their id."""

    def __init__(self, samples: Sequence[Sample], seed: int) -> None:
        self._samples = samples
        self._seed = seed

    def __len__(self) -> int:
        return len(self._samples)

    def make(self, index: int) -> Sample:
        sample = self._samples[index]
        return permuted(sample, shuffle_order(len(sample.choices), self._seed, sample.id))


def _refuse(args: DatasetArgs, kind: Kind) -> None:
    if args.local_path is not None:
        raise ConfigError("local_path has no effect: a custom exam is named by its path")
    if args.shuffle_choices and kind == "free":
        raise ConfigError("shuffle_choices: the questions have no options")


def _templates(args: DatasetArgs, shots: bool) -> Templates:
    if args.few_shot_prompt_template is not None:
        if not shots:
            raise ConfigError("few_shot_prompt_template has no effect without worked examples")
        if args.prompt_template is not None:
            raise ConfigError(
                "prompt_template has no effect beside few_shot_prompt_template, which is the "
                "whole prompt: give one of them"
            )
    return Templates(args.prompt_template, args.few_shot_prompt_template)


def _settings(
    args: DatasetArgs, exam: ExamFile, kind: Kind, templates: Mapping[str, str]
) -> dict[str, Any]:
    system = args.system_prompt if args.system_prompt is not None else exam.system_prompt
    reader = exam.reader.model_dump() if isinstance(exam.reader, ReaderRule) else exam.reader
    return {
        "kind": kind,
        "language": exam.language,
        "reader": reader,
        "few_shot_random": args.few_shot_random,
        "shuffle_choices": args.shuffle_choices,
        "templates": dict(templates),
    } | ({"system_prompt": system} if system else {})
