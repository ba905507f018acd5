"""A scored exam: one exam of one source under one reader, question by question.

A source is a stored run, a log of another tool, or a file of predictions. Each arm of a run is a
separate scored exam. All comparisons use scored exams, so that questions are paired in one place
(`keju.results.compare`).

Some facts about a scored exam are its *conditions*. Two scores under different conditions are not
comparable, for example scores by two protocols. Other facts are *circumstances*. They may differ,
for example two models, two temperatures, or a limit that only chooses questions: only questions in
both are compared.

A fact that is unknown for one of two scored exams is not counted as a difference. A file of
predictions does not say how its questions were asked, and the log of another tool says only a part
of it.
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
from typing import Any, Literal, NamedTuple, Protocol, TypedDict, Unpack
from weakref import finalize

from keju.benchmarks import registry
from keju.benchmarks.base import Exam
from keju.benchmarks.grading import GRADED
from keju.benchmarks.samples import DigestTable
from keju.config import Price, TaskConfig
from keju.config.address import key_flag
from keju.config.load import data_folder, runs_folder
from keju.errors import ConfigError, DataError, Notice, UsageError, did_you_mean
from keju.files import file_exists
from keju.judges import make_judge_stage
from keju.results.comparability import (
    args_of_exam,
    circumstances_of,
    has_exam_limit,
    is_comparable,
    judge_conditions,
    protocol_key,
    question_conditions,
    reader_key,
)
from keju.results.doubts import doubts_of
from keju.results.metrics import cluster_of
from keju.results.predictions import Gold, read_predictions
from keju.results.schema import DATA, Mismatch
from keju.runs.journal import is_fetched
from keju.runs.manifest import MANIFEST, Manifest
from keju.runs.resume_compat import find_changed_files
from keju.runs.run import Run, RunRequests, command_name, find_run, key_digest
from keju.scores.exam_scores import ExamScores
from keju.scores.exams import describe_exams, make_scores
from keju.scores.stored_replies import ExamRequests, StoredScores
from keju.scores.tally import PENDING, Tally
from keju.types import ALL_OUTCOMES, Outcome, Reply

LOGS = "keju.interop.imports.building"
"""The module that reads logs of other tools. It is named by text, since it is in a higher
package."""

# The part of a predictions file's name that is not its title: ``mistral_predictions.jsonl.gz``.
_PREDICTIONS = re.compile(r"([_-]predictions)?\.jsonl(\.gz)?$")


class HasRunFolder(Protocol):
    """Something stored in a run's folder: a run, or its results."""

    @property
    def folder(self) -> Path: ...


Source = str | Path | HasRunFolder


def path_of(source: Source) -> str | Path:
    """Return the path or id of a source, or the folder of an open run."""
    return source if isinstance(source, str | Path) else source.folder


class ScoredQuestion(NamedTuple):
    """One question of a scored exam."""

    id: str
    subset: str
    cluster: str | None
    """The context that it shares with other questions; None if questions are independent."""
    score: float | None
    """The mean over its repeats; None unless every repeat has a grade."""
    worst: float
    best: float
    """The score if all repeats that lack a grade were wrong, and if they were right."""
    outcome: Outcome | None
    """The outcome of the first repeat; None if nothing is recorded for the question."""
    answer: str | None
    """The answer that was read from the first repeat."""
    target: str


Taken = Literal["tokens", "cost", "seconds"]
"""The amounts of time and money that a question uses."""


class StoredAnswer(NamedTuple):
    """The reply to a question."""

    reply: Reply
    order: tuple[int, ...] = ()
    """The order in which its options were shown, if it differs from the exam's order."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ScoredExam:
    """One exam, in one arm, under one reader."""

    name: str
    """The run's id, or the name of the file."""
    model: str
    job: ExamScores
    place: int = 0
    """The position of the reader among the readers of the job."""
    price: Price | None = None
    conditions: Mapping[str, Any] = field(default_factory=dict)
    """Facts that must be the same for two scores to be comparable, the most important first."""
    circumstances: Mapping[str, Any] = field(default_factory=dict)
    """Facts that may differ; a notice reports them."""
    partial: bool = False
    """Whether some of these facts are unknown."""
    targets: Mapping[int, str] = field(default_factory=dict)
    """The gold answers that counted, if they differ from the exam's gold answers."""
    file: Path | None = None
    """The file of predictions that it was read from."""
    command: str = ""
    """The name of the run in commands; empty if the source is not a run."""
    manifest: Path | None = None
    """The manifest of a local run that can be resumed."""
    key_flag: str = ""
    """The flag for the key in a command that resumes the run; never the key itself."""
    has_exam_limit: bool = False
    """Whether the exam's settings limit its questions, not ``--limit``."""
    changed_file: str = ""
    """The data file that has changed since the run, so that replies to changed questions are left
    out; empty if no file has changed."""
    find_doubts: Callable[[], Sequence[Notice]] = tuple
    """Returns the notices that make the score doubtful, as the results list them. It returns
    nothing for an arm of a run whose results are being built."""
    read_answers: Callable[[Collection[int]], dict[int, StoredAnswer]] = lambda _: {}
    """Reads the source again and returns the replies to some questions."""

    @property
    def exam(self) -> Exam:
        """The exam with the questions of this source only."""
        return self.job.exam

    @property
    def protocol(self) -> str:
        """The protocol by which the questions were asked; empty if it is not known."""
        return str(self.conditions.get("protocol", ""))

    @property
    def reader(self) -> str:
        """The name of the reader."""
        return self.job.readers[self.place].name

    @property
    def arm(self) -> str:
        """The arm of the run; empty if the run has no arms."""
        return self.job.arm

    def is_same_source(self, other_exam: ScoredExam) -> bool:
        """Whether both are read from the same run or file."""
        if self.command or other_exam.command:
            return self.command == other_exam.command
        return (
            self.file is not None
            and other_exam.file is not None
            and self.file.samefile(other_exam.file)
        )

    def __len__(self) -> int:
        return len(self.exam.samples)

    def __iter__(self) -> Iterator[ScoredQuestion]:
        """Yield all questions in the order of the exam, including those without a record."""
        return map(self.question, range(len(self)))

    def question(self, number: int) -> ScoredQuestion:
        """Return one question."""
        exam, tally, epochs = self.exam, self.job.tallies[self.place], self.job.epochs
        sample, answers = exam.samples[number], tally.answers
        scores, unit = self._graded_scores(tally, number * epochs)
        worst_score = scores[0] if epochs == 1 and scores else math.fsum(scores) / epochs
        is_graded = len(scores) == epochs
        return ScoredQuestion(
            sample.id,
            sample.subset,
            cluster_of(exam, number) if exam.clustered else None,
            worst_score if is_graded else None,
            worst_score,
            worst_score if is_graded else worst_score + (epochs - len(scores)) / epochs,
            None if unit is None else ALL_OUTCOMES[tally.outcomes[unit]],
            answers[unit] if answers and unit is not None else None,
            self.targets.get(number, sample.target),
        )

    def _graded_scores(self, tally: Tally, first_unit: int) -> tuple[list[float], int | None]:
        """Return the scores of a question's repeats, and the first unit that has a record."""
        scores: list[float] = []
        recorded = None
        for unit in range(first_unit, first_unit + self.job.epochs):
            code = tally.outcomes[unit]
            if code != PENDING and recorded is None:
                recorded = unit
            if code in GRADED:
                scores.append(_restore_precision(tally.values[unit]))
        return scores, recorded

    @property
    def recorded(self) -> int:
        """The number of questions that have a record."""
        outcomes, epochs = self.job.tallies[self.place].outcomes, self.job.epochs
        first_units = range(0, len(outcomes), epochs)
        return sum(any(code != PENDING for code in outcomes[n : n + epochs]) for n in first_units)

    def usage_of(self, name: Taken, numbers: Iterable[int]) -> array[float]:
        """Return the average usage of one repeat of each of these questions; 0 if it is unknown."""
        job, epochs, ledger = self.job, self.job.epochs, self.job.ledger
        unit_amount: Callable[[int], float]
        if name == "seconds":
            unit_amount = job.seconds.__getitem__
        elif ledger is None:
            return array("d")
        elif name == "tokens":
            unit_amount = ledger.tokens
        elif self.price is None:
            return array("d")
        else:
            unit_amount = partial(ledger.cost, price=self.price)
        if epochs == 1:
            return array("d", map(unit_amount, numbers))
        return array(
            "d",
            (
                math.fsum(map(unit_amount, range(n * epochs, (n + 1) * epochs))) / epochs
                for n in numbers
            ),
        )


def _restore_precision(value: float) -> float:
    """Return a score as it was before it was stored in single precision."""
    return value if value in (0.0, 1.0) else float(f"{value:.7g}")


class SourceOptions(TypedDict, total=False):
    """How the sources of a comparison are found and read."""

    datasets: str | None
    """The exam that files of predictions answer. It selects one exam of other sources."""
    reader: str | None
    """The reader of all answers, by default the headline's."""
    gold: Gold | None
    """Whether the gold answers in the rows of predictions count, or the current ones."""
    protocol: str | None
    """The protocol of predictions."""
    dataset_args: dict[str, Any] | None
    """The settings of the exam of predictions."""
    data_dir: str | None
    work_dir: str | None


def scored_exams_of(source: Source, **options: Unpack[SourceOptions]) -> list[ScoredExam]:
    """Return the scored exams of a run, of another tool's log, or of predictions.

    `source` is the folder or id of a run, or the path of a file.
    """
    datasets, reader = options.get("datasets"), options.get("reader")
    data_dir = options.get("data_dir")
    source = path_of(source)
    path, folder = Path(source), runs_folder(options.get("work_dir"))
    if _is_run(path, folder, predictions=datasets is not None):
        run = Run(find_run(str(source), str(folder)))
        return scored_exams_of_run(run, reader, data_dir, datasets)
    exam = registry.get(datasets).name if datasets else None
    if _is_log(path):
        log_exams = _load_log(path, datasets, reader, data_folder(data_dir))
        matching_exams = [
            scored_exam for scored_exam in log_exams if exam in (None, scored_exam.exam.benchmark)
        ]
        if not matching_exams:
            raise _other_exam_error(
                source, exam, [scored_exam.exam.benchmark for scored_exam in log_exams]
            )
        return matching_exams
    if datasets is None:
        raise UsageError("sitting_needs_exam", path=path)
    if path.is_dir():
        raise UsageError("sitting_folder", path=path)
    settings = options.get("protocol"), options.get("dataset_args"), data_folder(data_dir)
    return [_load_predictions(path, datasets, reader, options.get("gold"), *settings)]


def refuse_unused(scored_exams: Iterable[ScoredExam], **options: Unpack[SourceOptions]) -> None:
    """Raise UsageError for settings of predictions if no source is a file of predictions."""
    unused_settings = [
        name for name in ("gold", "protocol", "dataset_args") if options.get(name) is not None
    ]
    if unused_settings and not any(scored_exam.file for scored_exam in scored_exams):
        flag = f"--{unused_settings[0].replace('_', '-')}"
        raise UsageError("sitting_unused", flag=flag)


def _other_exam_error(
    source: Source, exam: str | None, available_exams: Iterable[str]
) -> UsageError:
    names = list(dict.fromkeys(available_exams))
    values = {"source": source, "exam": exam, "available": names}
    return UsageError("sitting_other_exam", **values, hint=did_you_mean(exam or "", names))


def scored_exams_of_run(
    run: Run, reader: str | None = None, data_dir: str | None = None, exam: str | None = None
) -> list[ScoredExam]:
    """Return the scored exams of a stored run under a reader, by default the headline's.

    `exam` selects one exam; raise UsageError if the run does not have it.
    """
    loaded_run = read_run(run, reader, data_dir, exam)
    is_local = not is_fetched(run.folder) and run.manifest.imported is not True
    return [
        replace(
            scored_exam_of(job, run.manifest, reader),
            name=run.id,
            command=command_name(run.folder),
            manifest=run.folder / MANIFEST if is_local and not loaded_run.changed_file else None,
            changed_file=loaded_run.changed_file,
            key_flag=key_flag(
                run.manifest.config.get("model"), has_key=bool(run.manifest.endpoint.get("has_key"))
            ),
            find_doubts=partial(doubts_of, job, run.manifest),
            read_answers=partial(loaded_run.read_answers, place),
        )
        for place, job in enumerate(loaded_run.jobs)
    ]


def scored_exam_of(job: ExamScores, manifest: Manifest, reader: str | None = None) -> ScoredExam:
    """Return a job of a run under one of its readers, described by the run's manifest."""
    stored = {exam.name: exam for exam in manifest.benchmarks}
    facts = stored.get(job.exam.benchmark) or job.facts()
    names = [job_reader.name for job_reader in job.readers]
    place = names.index(reader) if reader else 0
    return ScoredExam(
        name=manifest.run,
        model=manifest.model,
        job=job,
        place=place,
        price=manifest.price,
        conditions=question_conditions(job, facts)
        | protocol_key(job, facts, manifest)
        | reader_key(job, place)
        | judge_conditions(manifest),
        circumstances=circumstances_of(job, facts, manifest),
        has_exam_limit=has_exam_limit(args_of_exam(facts, manifest)),
        partial=manifest.imported is True,
    )


class ReadRun(NamedTuple):
    """A stored run whose replies have been added to the tallies of its jobs."""

    run: Run
    requests: ExamRequests
    changed_file: str
    """The first data file that has changed since the run; empty if no file has changed."""

    @property
    def jobs(self) -> Sequence[ExamScores]:
        """The jobs of the run, one for each exam and arm."""
        return self.requests.jobs

    def read_answers(self, position: int, positions: Collection[int]) -> dict[int, StoredAnswer]:
        """Return the first replies to some questions of the job at this position."""
        sorted_positions = sorted(positions)
        requests = FirstRequests(self.jobs[position], sorted_positions)
        return {
            sorted_positions[number]: StoredAnswer(record.reply, record.order)
            for number, _, record in self.run.counting(requests, match_keys=not self.changed_file)
        }


class FirstRequests(RunRequests):
    """The first requests of some questions of a job; tables of all requests would be large."""

    def __init__(self, job: ExamScores, positions: Sequence[int]) -> None:
        self._job, self._positions = job, positions

    @property
    def by_hash(self) -> DigestTable:
        """The numbers of the requests by hash."""
        job = self._job
        hashes = (job.request(position * job.epochs).hash for position in self._positions)
        return DigestTable(map(bytes.fromhex, hashes))

    @property
    def by_key(self) -> DigestTable:
        """The numbers of the requests by key."""
        exam, arm = self._job.exam, self._job.arm
        ids = (exam.samples[position].id for position in self._positions)
        return DigestTable(key_digest(exam.benchmark, id, arm, 0) for id in ids)


def read_run(
    run: Run, reader: str | None = None, data_dir: str | None = None, exam: str | None = None
) -> ReadRun:
    """Return the jobs of a stored run with its replies and the judges' verdicts.

    Stored scores are used if reading the replies again would give the same. Every job has `reader`
    among its readers: one of the run's readers, or otherwise `reader` replaces them. `exam` selects
    one exam.
    """
    config = config_of_exam(run, exam, data_dir)
    jobs = make_scores(config, detailed=True)
    if reader and any(
        reader not in [job_reader.name for job_reader in job.readers] for job in jobs
    ):
        dataset_args = {
            name: {key: value for key, value in args.items() if key != "reader"}
            for name, args in config.dataset_args.items()
        }
        config = config.model_copy(update={"reader": [reader], "dataset_args": dataset_args})
        jobs = make_scores(config, detailed=True)
    for job in jobs:
        job.stopping = (run.manifest.stopped or {}).get(job.title)
    stage = make_judge_stage(config, jobs)
    facts = describe_exams(jobs)
    requests, changed = ExamRequests(jobs), find_changed_files(run.manifest, facts)
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
    """Return the settings of a run, reduced to one of its exams if `exam` is given.

    `exam` is the name in the run's results, or any other name of the exam: its path or an alias.
    Raise UsageError if the run does not have it.
    """
    config = run.config(data_dir)
    if exam is None:
        return config
    run_exams = [stored.name for stored in run.manifest.benchmarks]
    try:
        exam_name = exam if exam in run_exams else registry.get(exam).name
    except ConfigError as error:
        if error.code != "unknown_benchmark":
            raise
        exam_name = ""
    if exam_name not in run_exams:
        raise _other_exam_error(run.id, exam, run_exams)
    dataset_names = [name for name in config.datasets if registry.get(name).name == exam_name]
    return config.model_copy(update={"datasets": dataset_names})


def _is_run(path: Path, folder: Path, *, predictions: bool) -> bool:
    """Whether a source can only be a run; `folder` is where runs are found by their ids.

    Another source at the path takes precedence over an id: a log or, if they can be read,
    `predictions`. The folder of an exam is not a source.
    """
    if not path.exists() or (path / MANIFEST).is_file():
        return True
    if not file_exists(folder / path / MANIFEST) or (predictions and path.is_file()):
        return False
    return not _is_log(path)


def _is_log(path: Path) -> bool:
    """Whether another tool could have written this file or folder."""
    return (path.is_file() or path.is_dir()) and bool(import_module(LOGS).is_log(path))


def _load_log(
    path: Path, dataset: str | None, reader: str | None, data_dir: str | None
) -> list[ScoredExam]:
    """Return the scored exams of another tool's log, by way of a temporary run."""
    module, folder = import_module(LOGS), mkdtemp(prefix="keju-log-")
    import_options = module.ImportOptions(
        dataset=dataset,
        data_dir=data_dir,
        work_dir=folder,
        run_id="log",
        readers=[reader] if reader else None,
    )
    try:
        run = Run(module.import_log(path, import_options, report=False).folder)
        scored_exams = scored_exams_of_run(run, reader, data_dir)
    except BaseException:
        rmtree(folder, ignore_errors=True)
        raise
    # The folder lives as long as the run, because the replies may be read again.
    finalize(run, rmtree, folder, ignore_errors=True)
    return [
        replace(scored_exam, name=path.resolve().name, command="") for scored_exam in scored_exams
    ]


def _load_predictions(
    path: Path,
    dataset: str,
    reader: str | None,
    gold: Gold | None,
    protocol: str | None,
    dataset_args: dict[str, Any] | None,
    data_dir: str | None,
) -> ScoredExam:
    """Return a file of predictions as a scored exam; it does not say how questions were asked."""
    predictions = read_predictions(
        dataset,
        path,
        protocol=protocol,
        readers=[reader] if reader else None,
        data_dir=data_dir,
        dataset_args=dataset_args,
        gold=gold,
        detailed=True,
    )
    job, name = predictions.job, _PREDICTIONS.sub("", path.name) or path.name
    return ScoredExam(
        name=name,
        model=name,
        job=job,
        conditions=question_conditions(job, job.facts())
        | reader_key(job, 0, predictions.golds.used_gold),
        circumstances={"questions": len(job.exam.samples)},
        partial=True,
        targets=predictions.golds.targets,
        file=path,
        find_doubts=partial(doubts_of, job),
        read_answers=lambda positions: {
            position: StoredAnswer(reply) for position, reply in predictions.replies(positions)
        },
    )


def mismatches(left_exam: ScoredExam, right_exam: ScoredExam) -> list[Mismatch]:
    """Return the differences between two scored exams, the most important first.

    A decisive one makes them incomparable.
    """
    partial = left_exam.partial or right_exam.partial
    varied = varied_settings(left_exam, right_exam)
    exam_mismatches: dict[str, Mismatch] = {}
    for left_facts, right_facts, decisive in (
        (left_exam.conditions, right_exam.conditions, True),
        (left_exam.circumstances, right_exam.circumstances, False),
    ):
        for name in dict.fromkeys([*left_facts, *right_facts]):
            is_known_of_both = name in left_facts and name in right_facts
            if not is_known_of_both and (partial or name.startswith(DATA)):
                continue  # New subsets have new files.
            values = left_facts.get(name), right_facts.get(name)
            if not is_comparable(*values, left_exam.exam, right_exam.exam):
                decides = decisive and name not in varied
                exam_mismatches.setdefault(name, Mismatch(name, *values, decides))
    return sorted(exam_mismatches.values(), key=lambda mismatch: not mismatch.decisive)


def varied_settings(left_exam: ScoredExam, right_exam: ScoredExam) -> set[str]:
    """Return the conditions that differ because the exams ask the same in another form."""
    return {
        name
        for setting, dependent_settings in left_exam.exam.varied.items()
        if left_exam.exam.benchmark == right_exam.exam.benchmark
        and left_exam.conditions.get(setting) != right_exam.conditions.get(setting)
        for name in (setting, *dependent_settings)
    }
