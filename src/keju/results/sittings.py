"""A sitting: one exam of one source under one reader, question by question.

A source is a stored run, another tool's log, or a file of predictions; an arm of a run is a sitting
of its own. Whatever is compared is compared as sittings, so that pairs of questions are made in one
place (`keju.results.compare`).

Of the facts about a sitting some are its *conditions*: two scores under different ones are not
comparable, as those of two protocols. The others are *circumstances*: what may well be compared
(two models, two temperatures), and what only chooses the questions (a limit), since pairs are made
of those that both have. What one of two sittings does not know is not held against them: of a file
of predictions nobody knows how its questions were put, and another tool's log tells a part of it.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any, Literal, NamedTuple, Protocol
from weakref import finalize

from keju.benchmarks import registry
from keju.benchmarks.base import Exam
from keju.benchmarks.grading import GRADED
from keju.benchmarks.samples import DigestTable
from keju.config import Price, TaskConfig
from keju.config.address import key_flag
from keju.config.load import data_folder, runs_folder
from keju.engine.job import Job, describe_exams, make_jobs
from keju.engine.resume import JobRequests, StoredScores
from keju.engine.tally import PENDING
from keju.errors import ConfigError, DataError, Notice, UsageError, did_you_mean
from keju.files import file_exists
from keju.judges import judge_stage
from keju.results.conditions import (
    alike,
    args_of_exam,
    circumstances_of,
    has_exam_limit,
    judge_facts,
    manner_of_asking,
    manner_of_reading,
    questions_asked,
)
from keju.results.doubts import doubts_of
from keju.results.metrics import cluster_of
from keju.results.predictions import Gold, read_predictions
from keju.results.schema import DATA, Unlike
from keju.runs.journal import is_fetched
from keju.runs.manifest import MANIFEST, Manifest
from keju.runs.run import Requests, Run, command_name, find_run, key_digest
from keju.runs.sameness import find_changed_files
from keju.types import ALL_OUTCOMES, Outcome, Reply

LOGS = "keju.interop.imports.building"
"""The module that reads other tools' logs; named by text, since it stands above this room."""

# What a file of predictions is called beside its own name: ``mistral_predictions.jsonl.gz``.
_PREDICTIONS = re.compile(r"([_-]predictions)?\.jsonl(\.gz)?$")


class Stored(Protocol):
    """Something that lies in a run's folder: a run, or its results."""

    @property
    def folder(self) -> Path: ...


Source = str | Path | Stored


def path_of(source: Source) -> str | Path:
    """Where a source lies: what names it, or the folder of what is open already."""
    return source if isinstance(source, str | Path) else source.folder


class Item(NamedTuple):
    """One question of a sitting."""

    id: str
    subset: str
    cluster: str | None
    """What it shares with other questions; None where questions are independent."""
    score: float | None
    """The mean over its repeats; None unless every one of them has a grade."""
    least: float
    most: float
    """The score with all repeats that lack a grade wrong, and right."""
    outcome: Outcome | None
    """Of the first repeat; None where nothing is recorded of the question."""
    answer: str | None
    """What was read out of the first repeat."""
    target: str


Taken = Literal["tokens", "cost", "seconds"]
"""What a question takes of the model's time and money."""


class Said(NamedTuple):
    """What was said to a question."""

    reply: Reply
    order: tuple[int, ...] = ()
    """The order in which its options were shown, where it is another than the exam's."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Sitting:
    """One exam, in one arm, under one reader."""

    name: str
    """The run's id, or the name of the file."""
    model: str
    job: Job
    place: int = 0
    """Of the reader, among those of the job."""
    price: Price | None = None
    conditions: Mapping[str, Any] = field(default_factory=dict)
    """What must be alike for two scores to be comparable, the weightiest first."""
    circumstances: Mapping[str, Any] = field(default_factory=dict)
    """What may differ, and is said."""
    partial: bool = False
    """Whether not all of these are known."""
    targets: Mapping[int, str] = field(default_factory=dict)
    """The gold answers that counted where they are not those of the exam."""
    file: Path | None = None
    """The file of predictions that it was read from."""
    command: str = ""
    """What commands call the run; empty for what is none."""
    manifest: Path | None = None
    """Of a run that lies here and can be gone on with."""
    key_flag: str = ""
    """What a command that goes on with the run has to say about its key; never the key itself."""
    has_exam_limit: bool = False
    """Whether the exam's own settings limit its questions, not ``--limit``."""
    changed: str = ""
    """The file of its data that is not what it was, so that replies to other questions are left
    out; empty where none is."""
    doubts: Callable[[], Sequence[Notice]] = tuple
    """Returns what makes the number doubtful, as the results list it; nothing for an arm of a run
    whose results are being made."""
    said: Callable[[Collection[int]], dict[int, Said]] = lambda _: {}
    """Reads the source once more, for what was said to some questions."""

    @property
    def exam(self) -> Exam:
        """The exam, with the questions of this sitting alone."""
        return self.job.exam

    @property
    def protocol(self) -> str:
        """How the questions were put; empty where that is not known."""
        return str(self.conditions.get("protocol", ""))

    @property
    def reader(self) -> str:
        """Who read the answers."""
        return self.job.readers[self.place].name

    @property
    def arm(self) -> str:
        """With which tools; empty where the run has no arms."""
        return self.job.arm

    def is_of(self, other: Sitting) -> bool:
        """Whether both are read from the same run or file."""
        if self.command or other.command:
            return self.command == other.command
        return self.file is not None and other.file is not None and self.file.samefile(other.file)

    def __len__(self) -> int:
        return len(self.exam.samples)

    def __iter__(self) -> Iterator[Item]:
        """All questions in the order of the exam, those without a record among them."""
        return map(self.item, range(len(self)))

    def item(self, number: int) -> Item:
        """One question."""
        exam, job, epochs = self.exam, self.job, self.job.epochs
        tally, sample = job.tallies[self.place], self.exam.samples[number]
        first = number * epochs
        units = range(first, first + epochs)
        graded = [_exact(tally.values[u]) for u in units if tally.outcomes[u] in GRADED]
        least = math.fsum(graded) / epochs
        recorded = [unit for unit in units if tally.outcomes[unit] != PENDING]
        return Item(
            sample.id,
            sample.subset,
            cluster_of(exam, number) if exam.clustered else None,
            least if len(graded) == epochs else None,
            least,
            least + (epochs - len(graded)) / epochs,
            ALL_OUTCOMES[tally.outcomes[recorded[0]]] if recorded else None,
            tally.answers[recorded[0]] if tally.answers and recorded else None,
            self.targets.get(number, sample.target),
        )

    @property
    def recorded(self) -> int:
        """How many questions have a record."""
        outcomes, epochs = self.job.tallies[self.place].outcomes, self.job.epochs
        firsts = range(0, len(outcomes), epochs)
        return sum(any(c != PENDING for c in outcomes[n : n + epochs]) for n in firsts)

    def taken(self, name: Taken, numbers: Iterable[int]) -> array[float]:
        """What one repeat of each of these questions took on average; 0 where that is unknown."""
        job, epochs, ledger = self.job, self.job.epochs, self.job.ledger
        of: Callable[[int], float]
        if name == "seconds":
            of = job.seconds.__getitem__
        elif ledger is None:
            return array("d")
        elif name == "tokens":
            of = ledger.tokens
        elif self.price is None:
            return array("d")
        else:
            of = partial(ledger.cost, price=self.price)
        if epochs == 1:
            return array("d", map(of, numbers))
        return array(
            "d",
            (math.fsum(map(of, range(n * epochs, (n + 1) * epochs))) / epochs for n in numbers),
        )


def _exact(value: float) -> float:
    """A score as it was before it was stored in single precision."""
    return value if value in (0.0, 1.0) else float(f"{value:.7g}")


def sittings_of(
    source: Source,
    *,
    datasets: str | None = None,
    reader: str | None = None,
    gold: Gold | None = None,
    protocol: str | None = None,
    dataset_args: dict[str, Any] | None = None,
    data_dir: str | None = None,
    work_dir: str | None = None,
) -> list[Sitting]:
    """The sittings of a run (its folder or id), of another tool's log, or of predictions.

    A file of predictions needs `datasets`, the exam that it answers; of the others only this exam
    is taken where it is given. `gold`, `protocol` and `dataset_args`, the settings of the exam, say
    how predictions are read.
    """
    source = path_of(source)
    path, folder = Path(source), runs_folder(work_dir)
    if _is_run(path, folder, predictions=datasets is not None):
        run = Run(find_run(str(source), str(folder)))
        return sittings_of_run(run, reader, data_dir, datasets)
    exam = registry.get(datasets).name if datasets else None
    if _is_log(path):
        found = _of_log(path, datasets, reader, data_folder(data_dir))
        own = [sitting for sitting in found if exam in (None, sitting.exam.benchmark)]
        if not own:
            raise _other_exam(source, exam, [sitting.exam.benchmark for sitting in found])
        return own
    if datasets is None:
        raise UsageError("sitting_needs_exam", path=path)
    if path.is_dir():
        raise UsageError("sitting_folder", path=path)
    how = protocol, dataset_args, data_folder(data_dir)
    return [_of_predictions(path, datasets, reader, gold, *how)]


def refuse_unused(sittings: Iterable[Sitting], **how: Any) -> None:
    """Refuse settings that say how predictions are read where there are none."""
    given = [name for name in ("gold", "protocol", "dataset_args") if how.get(name) is not None]
    if given and not any(sitting.file for sitting in sittings):
        flag = f"--{given[0].replace('_', '-')}"
        raise UsageError("sitting_unused", flag=flag)


def _other_exam(source: Source, exam: str | None, sat: Iterable[str]) -> UsageError:
    names = list(dict.fromkeys(sat))
    values = {"source": source, "exam": exam, "sat": names}
    return UsageError("sitting_other_exam", **values, hint=did_you_mean(exam or "", names))


def sittings_of_run(
    run: Run, reader: str | None = None, data_dir: str | None = None, exam: str | None = None
) -> list[Sitting]:
    """The sittings of a stored run under a reader, by default the headline's of each exam.

    With `exam` those of this exam alone; UsageError if the run did not sit it.
    """
    read = read_run(run, reader, data_dir, exam)
    own = not is_fetched(run.folder) and run.manifest.imported is not True
    return [
        replace(
            sitting_of(job, run.manifest, reader),
            name=run.id,
            command=command_name(run.folder),
            manifest=run.folder / MANIFEST if own and not read.changed else None,
            changed=read.changed,
            key_flag=key_flag(
                run.manifest.config.get("model"), has_key=bool(run.manifest.endpoint.get("has_key"))
            ),
            doubts=partial(doubts_of, job, run.manifest),
            said=partial(read.said, place),
        )
        for place, job in enumerate(read.jobs)
    ]


def sitting_of(job: Job, manifest: Manifest, reader: str | None = None) -> Sitting:
    """A job of the run that a manifest describes, under one of the job's readers."""
    stored = {exam.name: exam for exam in manifest.benchmarks}
    facts = stored.get(job.exam.benchmark) or job.facts()
    names = [each.name for each in job.readers]
    place = names.index(reader) if reader else 0
    return Sitting(
        name=manifest.run,
        model=manifest.model,
        job=job,
        place=place,
        price=manifest.price,
        conditions=questions_asked(job, facts)
        | manner_of_asking(job, facts, manifest)
        | manner_of_reading(job, place)
        | judge_facts(manifest),
        circumstances=circumstances_of(job, facts, manifest),
        has_exam_limit=has_exam_limit(args_of_exam(facts, manifest)),
        partial=manifest.imported is True,
    )


class ReadRun(NamedTuple):
    """A stored run with its replies entered on the scoreboards of its jobs."""

    run: Run
    requests: JobRequests
    changed: str
    """The first file of the data that is not what it was; empty where none is."""

    @property
    def jobs(self) -> Sequence[Job]:
        """Its exams, each in each arm."""
        return self.requests.jobs

    def said(self, position: int, items: Collection[int]) -> dict[int, Said]:
        """The first replies to some questions of the job at this position."""
        chosen = sorted(items)
        requests = FirstRequests(self.jobs[position], chosen)
        return {
            chosen[number]: Said(record.reply, record.order)
            for number, _, record in self.run.counting(requests, match_keys=not self.changed)
        }


class FirstRequests(Requests):
    """The first requests of some questions of a job; tables of all would be large."""

    def __init__(self, job: Job, items: Sequence[int]) -> None:
        self._job, self._items = job, items

    @property
    def by_hash(self) -> DigestTable:
        """The numbers of the requests by hash."""
        job = self._job
        hashes = (job.request(item * job.epochs).hash for item in self._items)
        return DigestTable(map(bytes.fromhex, hashes))

    @property
    def by_key(self) -> DigestTable:
        """The numbers of the requests by key."""
        exam, arm = self._job.exam, self._job.arm
        ids = (exam.samples[item].id for item in self._items)
        return DigestTable(key_digest(exam.benchmark, id, arm, 0) for id in ids)


def read_run(
    run: Run, reader: str | None = None, data_dir: str | None = None, exam: str | None = None
) -> ReadRun:
    """The jobs of a stored run with its replies entered, and the judges' verdicts on them.

    Stored scores are taken where they are what reading anew would give. `reader` is among the
    readers of every job: the run's own, or else this one in their place. `exam` leaves out the jobs
    of all others.
    """
    config = config_of_exam(run, exam, data_dir)
    jobs = make_jobs(config, detailed=True)
    if reader and any(reader not in [each.name for each in job.readers] for job in jobs):
        kept = {
            name: {key: value for key, value in args.items() if key != "reader"}
            for name, args in config.dataset_args.items()
        }
        config = config.model_copy(update={"reader": [reader], "dataset_args": kept})
        jobs = make_jobs(config, detailed=True)
    for job in jobs:
        job.stopping = (run.manifest.stopped or {}).get(job.exam.benchmark)
    stage = judge_stage(config, jobs)
    facts = describe_exams(jobs)
    requests, changed = JobRequests(jobs), find_changed_files(run.manifest, facts)
    since = run.manifest.find_trusted_start(facts)
    stored = StoredScores(requests, run.records, since)
    for number, start, record in run.counting(requests, match_keys=not changed):
        position, unit = requests.locate(number)
        trusted = stored.is_trusted(position, number, start, record)
        jobs[position].recall(unit, record, trusted=trusted)
    if changed and not any(job.tallies[0].done for job in jobs):
        raise DataError("score_data_changed", file=changed[0])
    if stage is not None:
        stage.grade(run.folder, None)
    requests.forget()
    return ReadRun(run, requests, changed[0] if changed else "")


def config_of_exam(run: Run, exam: str | None, data_dir: str | None = None) -> TaskConfig:
    """The settings of a run, of one of its exams alone where it is named.

    The name is the one in the run's results, or any by which the exam can be sat: its path, an
    alias. UsageError if the run did not sit it.
    """
    config = run.config(data_dir)
    if exam is None:
        return config
    sat = [stored.name for stored in run.manifest.benchmarks]
    try:
        own = exam if exam in sat else registry.get(exam).name
    except ConfigError as error:
        if error.code != "unknown_benchmark":
            raise
        own = ""
    if own not in sat:
        raise _other_exam(run.id, exam, sat)
    named = [name for name in config.datasets if registry.get(name).name == own]
    return config.model_copy(update={"datasets": named})


def _is_run(path: Path, folder: Path, *, predictions: bool) -> bool:
    """Whether a source can only be a run, in `folder` where it is named by its id.

    What else lies at the path goes before an id if it is a source too: a log or, where they can be
    read, `predictions`. The folder of an exam is none.
    """
    if not path.exists() or (path / MANIFEST).is_file():
        return True
    if not file_exists(folder / path / MANIFEST) or (predictions and path.is_file()):
        return False
    return not _is_log(path)


def _is_log(path: Path) -> bool:
    """Whether a tool is known that could have written what lies there."""
    return (path.is_file() or path.is_dir()) and bool(import_module(LOGS).is_log(path))


def _of_log(
    path: Path, dataset: str | None, reader: str | None, data_dir: str | None
) -> list[Sitting]:
    """The sittings of another tool's log, through a run that is thrown away."""
    module, folder = import_module(LOGS), mkdtemp(prefix="keju-log-")
    wishes = module.Wishes(
        dataset=dataset,
        data_dir=data_dir,
        work_dir=folder,
        run_id="log",
        readers=[reader] if reader else None,
    )
    try:
        run = Run(module.import_log(path, wishes, report=False).folder)
        found = sittings_of_run(run, reader, data_dir)
    except BaseException:
        rmtree(folder, ignore_errors=True)
        raise
    finalize(run, rmtree, folder, ignore_errors=True)  # its sittings may be read once more
    return [replace(sitting, name=path.resolve().name, command="") for sitting in found]


def _of_predictions(
    path: Path,
    dataset: str,
    reader: str | None,
    gold: Gold | None,
    protocol: str | None,
    dataset_args: dict[str, Any] | None,
    data_dir: str | None,
) -> Sitting:
    """A file of predictions as a sitting; how its questions were put is not known."""
    read = read_predictions(
        dataset,
        path,
        protocol=protocol,
        readers=[reader] if reader else None,
        data_dir=data_dir,
        dataset_args=dataset_args,
        gold=gold,
        detailed=True,
    )
    job, name = read.job, _PREDICTIONS.sub("", path.name) or path.name
    return Sitting(
        name=name,
        model=name,
        job=job,
        conditions=questions_asked(job, job.facts()) | manner_of_reading(job, 0, read.golds.used),
        circumstances={"questions": len(job.exam.samples)},
        partial=True,
        targets=read.golds.targets,
        file=path,
        doubts=partial(doubts_of, job),
        said=lambda items: {item: Said(reply) for item, reply in read.replies(items)},
    )


def unlikes(first: Sitting, second: Sitting) -> list[Unlike]:
    """In what two sittings differ, the weightiest first; a decisive one makes them incomparable."""
    partial = first.partial or second.partial
    varied = varied_conditions(first, second)
    found: list[Unlike] = []
    for one, other, decisive in (
        (first.conditions, second.conditions, True),
        (first.circumstances, second.circumstances, False),
    ):
        for name in dict.fromkeys([*one, *other]):
            known = name in one and name in other
            if not known and (partial or name.startswith(DATA)):
                continue  # new subsets bring new files
            same = alike(one.get(name), other.get(name), first.exam, second.exam)
            if not same and not any(own.field == name for own in found):
                decides = decisive and name not in varied
                found.append(Unlike(name, one.get(name), other.get(name), decides))
    return sorted(found, key=lambda own: not own.decisive)


def varied_conditions(first: Sitting, second: Sitting) -> set[str]:
    """Conditions that two sittings have otherwise since they ask the same in another form."""
    return {
        name
        for setting, along in first.exam.varied.items()
        if first.exam.benchmark == second.exam.benchmark
        and first.conditions.get(setting) != second.conditions.get(setting)
        for name in (setting, *along)
    }
