"""Scoring what is already there: stored runs and files of predictions. No model is called."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from keju.config import TaskConfig
from keju.engine.job import Job, exams_of, make_jobs
from keju.engine.resume import JobRequests, read_anew, stored_replies
from keju.errors import ConfigError, DataError, Notice
from keju.files import read_json
from keju.judges import make_judge_stage
from keju.results.doubts import declared_names
from keju.results.predictions import Gold, read_predictions
from keju.results.schema import SCHEMA, Disagreement, Entry, Results, from_document
from keju.results.sittings import config_of_exam
from keju.results.summarise import entries_of, results_of, tools_of
from keju.runs.run import RESULTS, Run, command_name, damage_notices
from keju.runs.sameness import changed_files, other_versions
from keju.types import Reading, Sample


def score_run(
    run: Run,
    *,
    readers: list[str] | None = None,
    data_dir: str | None = None,
    exam: str | None = None,
) -> Results:
    """Read a stored run anew, with the readers asked for or those it was made with.

    Of a run that sat several exams only `exam` where it is named. What a judge has said about the
    answers counts as it did; it is not asked again.
    """
    config = config_of_exam(run, exam, data_dir)
    if readers:  # they count for all exams, whichever the run named for one of them
        kept = {
            name: {key: value for key, value in args.items() if key != "reader"}
            for name, args in config.dataset_args.items()
        }
        config = config.model_copy(update={"reader": readers, "dataset_args": kept})
    jobs = _jobs_read_by(config, run)
    stage = make_judge_stage(config, jobs)
    facts = exams_of(jobs)
    changed = changed_files(run.manifest, facts)
    several = bool(readers and len(readers) > 1)
    disagreements: list[Disagreement] = []
    joint: list[dict[int, Joint]] = [{} for _ in jobs]
    requests = JobRequests(jobs)
    replies = stored_replies(run, requests, match_keys=not changed)
    for reply, readings in read_anew(replies, jobs):
        reply.enter(readings)
        if several:
            sample = reply.sample
            disagreements += _disagreement(sample, readings)
            joint[jobs.index(reply.job)][reply.unit] = Joint(sample.target, readings)
    if stage is not None:
        stage.grade(run.folder, None)
    for job in jobs:
        job.stopping = (run.manifest.stopped or {}).get(job.exam.benchmark)
    price = run.manifest.price
    entries = [
        entry
        for job in jobs
        for entry in entries_of(
            job,
            beside=not several,
            stage=stage,
            price=price,
            tools=tools_of(run.manifest, job),
            declared=declared_names(run.manifest),
            asked=run.manifest.imported is not True,
        )
    ]
    if changed and not any(job.tallies[0].done for job in jobs):
        raise DataError("score_data_changed", file=changed[0])
    notices = other_versions(run.manifest, facts)
    if changed:
        notices.append(Notice("data_changed", {"file": changed[0]}))
    missing = sum(job.missing for job in jobs)
    notices += damage_notices(run.damaged, missing)
    name = command_name(run.folder)
    alone = len(run.manifest.benchmarks) == 1
    entries = [entry.with_notices(notices).told_of(name, alone=alone) for entry in entries]
    for job, rows in zip(jobs, joint, strict=True):
        entries = _with_joint_metrics(job, entries, [rows[unit] for unit in sorted(rows)])
    return results_of(
        run.manifest,
        run.folder,
        jobs,
        entries,
        complete=_is_complete(run, missing, data_changed=bool(changed)),
        disagreements=_weightiest_first(disagreements) if several else None,
    )


def _is_complete(run: Run, missing: int, *, data_changed: bool) -> bool | None:
    """Whether the run answered all its questions; None where the log of another tool was imported.

    If the data has changed, questions without a reply were added later, so the manifest decides.
    """
    if run.manifest.imported is True:
        return None
    return bool(run.manifest.complete) if data_changed else not missing


def _jobs_read_by(config: TaskConfig, run: Run) -> list[Job]:
    """The jobs of a run; where its exams do not share the readers, one that has them is named."""
    try:
        return make_jobs(config)
    except ConfigError as error:
        if error.code != "prepare_no_reader" or len(config.datasets) < 2:
            raise
        for name in config.datasets:
            try:
                (job, *_) = make_jobs(config.model_copy(update={"datasets": [name]}))
            except ConfigError:
                continue
            own, names = shlex.quote(job.exam.benchmark), ",".join(config.reader or ())
            command = f"keju score {command_name(run.folder)} --datasets {own} --reader {names}"
            raise ConfigError("score_one_exam", problem=error, command=command) from None
        raise


def current_results(run: Run, data_dir: str | None = None) -> Results:
    """What ``results.json`` holds, or the run scored anew where it grew after that, or has none."""
    if run.results_are_current:
        return from_document(read_json(run.folder / RESULTS))
    return score_run(run, data_dir=data_dir)


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
    disagreements: dict[int, list[Disagreement]] = {}
    joint: list[Joint] = []

    def see(unit: int, sample: Sample, graded: Sequence[Reading]) -> None:
        disagreements[unit] = list(_disagreement(sample, graded))
        joint.append(Joint(sample.target, graded))

    read = read_predictions(
        dataset,
        predictions,
        protocol=protocol,
        readers=readers,
        data_dir=data_dir,
        dataset_args=dataset_args,
        gold=gold,
        seed=seed,
        see=see,
    )
    flags = f"--datasets {dataset} --predictions {shlex.quote(str(predictions))}"
    entries = [
        entry.told_of(flags, is_file=True)
        for entry in entries_of(read.job, beside=not read.several)
    ]
    entries = [read.golds.annotate(e) for e in _with_joint_metrics(read.job, entries, joint)]
    if read.missing:
        notice = Notice("missing_predictions", {"missing": read.missing, "whole": read.whole})
        entries = [entry.with_notices([notice]) for entry in entries]
    return Results(
        schema=SCHEMA,
        run=predictions.name,
        model=predictions.name,
        benchmarks=tuple(entries),
        disagreements=_weightiest_first(
            row for unit in sorted(disagreements) for row in disagreements[unit]
        )
        if read.several
        else None,
    )


def _disagreement(sample: Sample, readings: Sequence[Reading]) -> Iterator[Disagreement]:
    """The row, if its outcome depends on the reader."""
    if len({reading.score.outcome for reading in readings}) > 1:
        yield Disagreement(
            sample.id,
            sample.subset,
            sample.target,
            {reading.reader: reading.answer.value for reading in readings},
            {reading.reader: reading.score.outcome for reading in readings},
            {reading.reader: reading.score.value for reading in readings},
        )


def _weightiest_first(rows: Iterable[Disagreement]) -> tuple[Disagreement, ...]:
    """Those first whose score depends on the reader, each in the order of the exam."""
    return tuple(sorted(rows, key=lambda row: not row.decides))


class Joint(NamedTuple):
    """What several readers made of one reply, for metrics that need all of them."""

    target: str
    readings: Sequence[Reading]


def _with_joint_metrics(job: Job, entries: Sequence[Entry], rows: Sequence[Joint]) -> list[Entry]:
    """`entries` with the exam's joint metrics; `rows` are in the order of the file or run."""
    answers: dict[str, list[str | None]] = {}
    for reading in (reading for row in rows for reading in row.readings):
        answers.setdefault(reading.reader, []).append(reading.answer.value)
    metrics = job.exam.joint_metrics(answers, [row.target for row in rows]) if rows else {}
    own = (job.exam.benchmark, job.arm)
    return [
        entry.with_metrics(metrics.get(entry.reader, {}) if (entry.name, entry.arm) == own else {})
        for entry in entries
    ]
