"""Scoring what is already there: stored runs and files of predictions. No model is called."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from keju.answers.thinking import as_reply
from keju.benchmarks.base import Exam
from keju.benchmarks.prepare import choose_readers, prepare_exam
from keju.benchmarks.selection import restrict
from keju.config import TaskConfig
from keju.engine.job import Job
from keju.engine.resume import JobRequests, stored_replies
from keju.errors import DataError, Notice
from keju.files import read_rows
from keju.results.golds import Gold, Golds, Graded
from keju.results.schema import SCHEMA, Disagreement, Entry, Results
from keju.results.summarise import entries_of
from keju.runs.manifest import Manifest
from keju.runs.run import Run
from keju.types import Reading, Reply, Sample, Sampling


def score_run(
    run: Run, *, readers: list[str] | None = None, data_dir: str | None = None
) -> Results:
    """Read a stored run anew, with the readers asked for or those it was made with.

    What a judge has said about the answers counts as it did; it is not asked again.
    """
    from keju.engine.job import make_jobs
    from keju.judges import judging_of

    config = run.config(data_dir)
    if readers:
        config = _with_readers(config, readers)
    jobs = make_jobs(config)
    changed = changed_files(run.manifest, jobs)
    watch = Disagreements()
    joint = [JointReadings() for _ in jobs]
    requests = JobRequests(jobs)
    for reply in stored_replies(run, requests, match_keys=not changed):
        readings, sample = reply.enter(), reply.sample
        watch.see(sample, readings)
        if readers:
            joint[jobs.index(reply.job)].see(reply.unit, sample, readings)
    judging = judging_of(config, jobs)
    judgement = judging.grade(run, requests, None) if judging is not None else None
    entries = [
        entry
        for job in jobs
        for entry in entries_of(job, beside=readers is None, judgement=judgement)
    ]
    if changed and not any(job.tallies[0].done for job in jobs):
        raise DataError(
            f"the data has changed since the run ({changed[0]}), so that no stored reply fits it: "
            "name the folder that it was made with (--data-dir)"
        )
    notices = [Notice("data_changed", {"file": changed[0]})] if changed else []
    entries = [entry.with_notices([*notices, *run.notices]) for entry in entries]
    for job, seen in zip(jobs, joint, strict=True):
        entries = seen.annotated(job.exam, entries, sorted(seen.rows))
    return _results(run.manifest.run, run.manifest.model, entries, watch, readers)


def _with_readers(config: TaskConfig, readers: list[str]) -> TaskConfig:
    """`config` with these readers for all its exams, whichever it named for one of them."""
    kept = {
        name: {key: value for key, value in args.items() if key != "reader"}
        for name, args in config.dataset_args.items()
    }
    return config.model_copy(update={"reader": readers, "dataset_args": kept})


def score_predictions(
    dataset: str,
    predictions: Path,
    *,
    protocol: str | None = None,
    readers: list[str] | None = None,
    data_dir: str | None = None,
    dataset_args: dict[str, Any] | None = None,
    gold: Gold | None = None,
    seed: int = 42,
) -> Results:
    """Score a file of recorded outputs as if they were replies to this exam.

    `gold` says which target counts where a row carries its own; by default the recorded one
    where the row also carries its own choices, else the current one.
    """
    exam, _ = prepare_exam(dataset, dataset_args, data_dir=data_dir, protocol=protocol, seed=seed)
    rows = located_rows(exam, predictions)
    part = restrict(exam, sorted(rows))
    job = Job(part, Sampling(), choose_readers(part, readers), model="")
    watch = Disagreements()
    joint = JointReadings()
    golds = Golds(part, job.readers)
    for unit, index in enumerate(sorted(rows)):
        row, where = rows[index]
        counts = gold or ("recorded" if row.get("choices") is not None else "current")
        try:
            sample = exam.as_recorded(exam.samples[index], row, gold=counts == "recorded")
        except DataError as error:
            raise DataError(f"{where}: {error}") from None
        reply = recorded_reply(row)
        graded = tuple(exam.grade(reply, sample, reader) for reader in job.readers)
        job.enter_readings(unit, reply, (), graded)
        golds.see(unit, row, Graded(reply, sample, graded), counts)
        watch.see(sample, graded)
        if readers:
            joint.see(index, sample, graded)
    entries = entries_of(job, beside=readers is None)
    entries = [golds.annotated(entry) for entry in joint.annotated(exam, entries, rows)]
    missing = len(exam.samples) - len(rows)
    if missing:
        notice = Notice("missing_predictions", {"missing": missing, "whole": len(exam.samples)})
        entries = [entry.with_notices([notice]) for entry in entries]
    return _results(predictions.name, predictions.name, entries, watch, readers)


def changed_files(manifest: Manifest, jobs: Sequence[Job]) -> list[str]:
    """The data files that are not what they were when the run was made."""
    before = {exam.name: exam.data.files for exam in manifest.benchmarks}
    return [
        name
        for job in jobs
        for name, digest in job.exam.data.files.items()
        if before.get(job.exam.benchmark, {}).get(name, digest) != digest
    ]


class Disagreements:
    """The rows on which readers do not agree, in the order of the exam."""

    def __init__(self) -> None:
        self.rows: list[Disagreement] = []

    def see(self, sample: Sample, readings: Sequence[Reading]) -> None:
        """Keep the row if its outcome depends on the reader."""
        if len({reading.score.outcome for reading in readings}) < 2:
            return
        self.rows.append(
            Disagreement(
                sample.id,
                sample.subset,
                sample.target,
                {reading.reader: reading.answer.value for reading in readings},
                {reading.reader: reading.score.outcome for reading in readings},
            )
        )


class JointReadings:
    """What several readers made of the same replies, for metrics that need all of them."""

    def __init__(self) -> None:
        self.rows: dict[int, tuple[str, Sequence[Reading]]] = {}

    def see(self, place: int, sample: Sample, readings: Sequence[Reading]) -> None:
        """Keep what was read of one reply; with a single reader there is nothing to keep."""
        if len(readings) > 1:
            self.rows[place] = sample.target, readings

    def annotated(self, exam: Exam, entries: Sequence[Entry], order: Iterable[int]) -> list[Entry]:
        """`entries` with the exam's joint metrics; `order` is that of the file or run."""
        answers: dict[str, list[str | None]] = {}
        targets: list[str] = []
        for target, readings in (self.rows[place] for place in order if place in self.rows):
            targets.append(target)
            for reading in readings:
                answers.setdefault(reading.reader, []).append(reading.answer.value)
        metrics = exam.joint_metrics(answers, targets) if targets else {}
        return [
            entry.with_metrics(metrics.get(entry.reader, {}))
            if entry.name == exam.benchmark
            else entry
            for entry in entries
        ]


def _results(
    run: str,
    model: str,
    entries: Sequence[Entry],
    watch: Disagreements,
    readers: list[str] | None,
) -> Results:
    several = readers is not None and len(readers) > 1
    return Results(
        schema=SCHEMA,
        run=run,
        model=model,
        benchmarks=tuple(entries),
        disagreements=tuple(watch.rows) if several else None,
    )


class Located(NamedTuple):
    """A row of a predictions file, and the file and line it stands in."""

    row: dict[str, Any]
    where: str


def located_rows(exam: Exam, predictions: Path) -> dict[int, Located]:
    """The rows of a predictions file by the position of their sample, in the file's order."""
    positions = {sample.id: index for index, sample in enumerate(exam.samples)}
    rows: dict[int, Located] = {}
    for number, row in read_rows(predictions):
        where = f"{predictions}, line {number}"
        try:
            sample_id = exam.locate(row)
        except KeyError as error:
            raise DataError(
                f"{where}: the row has no key {error} to find its question by"
            ) from None
        if sample_id not in positions:
            raise DataError(f"{where}: {exam.benchmark} has no question '{sample_id}'")
        if not isinstance(row.get("output"), str | None) or "output" not in row:
            raise DataError(f"{where}: the row needs an 'output' with the model's text")
        if positions[sample_id] in rows:
            raise DataError(f"{where}: question '{sample_id}' occurs a second time")
        rows[positions[sample_id]] = Located(row, where)
    if not rows:
        raise DataError(f"{predictions} holds no predictions")
    return rows


def recorded_reply(row: dict[str, Any]) -> Reply:
    """The recorded output of a row as the reply it was."""
    return as_reply(row["output"] or "", finish=str(row.get("finish_reason") or ""))
