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
from keju.errors import DataError
from keju.files import read_rows
from keju.results.aggregate import plain, results_document
from keju.results.golds import Gold, Golds, Graded
from keju.results.outputs import entries_of
from keju.runs.manifest import Manifest
from keju.runs.run import Run
from keju.types import Reading, Reply, Sample, Sampling


def score_run(
    run: Run, *, readers: list[str] | None = None, data_dir: str | None = None
) -> dict[str, Any]:
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
    for entry in entries if changed else ():
        note = f"the data has changed since the run ({changed[0]}): what no longer fits is left out"
        entry.setdefault("warnings", []).append(note)
    for entry in entries:
        if run.damaged:
            entry.setdefault("warnings", []).extend(notice.text() for notice in run.notices)
    for job, seen in zip(jobs, joint, strict=True):
        seen.add_metrics(job.exam, entries, sorted(seen.rows))
    return _document(run.manifest.run, run.manifest.model, entries, watch, readers)


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
) -> dict[str, Any]:
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
    joint.add_metrics(exam, entries, rows)
    golds.annotate(entries)
    for entry in entries:
        if len(rows) < len(exam.samples):
            missing = len(exam.samples) - len(rows)
            note = f"{missing} of {len(exam.samples)} questions have no prediction"
            entry.setdefault("warnings", []).append(note)
    return _document(predictions.name, predictions.name, entries, watch, readers)


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
        self.rows: list[dict[str, Any]] = []

    def see(self, sample: Sample, readings: Sequence[Reading]) -> None:
        """Keep the row if its outcome depends on the reader."""
        if len({reading.score.outcome for reading in readings}) < 2:
            return
        self.rows.append(
            {
                "id": sample.id,
                "subset": sample.subset,
                "target": sample.target,
                "answers": {reading.reader: reading.answer.value for reading in readings},
                "outcomes": {reading.reader: reading.score.outcome for reading in readings},
            }
        )


class JointReadings:
    """What several readers made of the same replies, for metrics that need all of them."""

    def __init__(self) -> None:
        self.rows: dict[int, tuple[str, Sequence[Reading]]] = {}

    def see(self, place: int, sample: Sample, readings: Sequence[Reading]) -> None:
        """Keep what was read of one reply; with a single reader there is nothing to keep."""
        if len(readings) > 1:
            self.rows[place] = sample.target, readings

    def add_metrics(
        self, exam: Exam, entries: Sequence[dict[str, Any]], order: Iterable[int]
    ) -> None:
        """Add the exam's joint metrics to its entries; `order` is that of the file or run."""
        answers: dict[str, list[str | None]] = {}
        targets: list[str] = []
        for target, readings in (self.rows[place] for place in order if place in self.rows):
            targets.append(target)
            for reading in readings:
                answers.setdefault(reading.reader, []).append(reading.answer.value)
        metrics = exam.joint_metrics(answers, targets) if targets else {}
        for entry in entries:
            if entry["name"] == exam.benchmark:
                own = metrics.get(entry["reader"], {})
                entry["metrics"] |= {name: plain(metric) for name, metric in own.items()}


def _document(
    run: str,
    model: str,
    entries: list[dict[str, Any]],
    watch: Disagreements,
    readers: list[str] | None,
) -> dict[str, Any]:
    document = results_document(run, model, entries)
    if readers and len(readers) > 1:
        document["disagreements"] = watch.rows
    return document


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
