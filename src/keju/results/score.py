"""Score stored runs and files of predictions. No model is called."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from keju.config import TaskConfig
from keju.errors import ConfigError, DataError, Notice
from keju.files import read_json
from keju.judges import make_judge_stage
from keju.results.doubts import declared_names
from keju.results.predictions import Gold, ProgramSettings, read_predictions
from keju.results.schema import SCHEMA, Disagreement, ResultEntry, Results, from_document
from keju.results.scored_exam import config_of_exam
from keju.results.summarise import entries_of, results_of, tools_of
from keju.runs.resume_compat import find_changed_files, version_notices
from keju.runs.run import RESULTS, Run, command_name, damage_notices
from keju.scores.exam_scores import ExamScores
from keju.scores.exams import describe_exams, make_scores
from keju.scores.stored_replies import ExamRequests, iter_stored_replies, reread_replies
from keju.types import Reading, Sample


def score_run(
    run: Run,
    *,
    readers: list[str] | None = None,
    data_dir: str | None = None,
    exam: str | None = None,
    programs: ProgramSettings | None = None,
) -> Results:
    """Read a stored run again, with the requested readers or with the readers of the run.

    Programs without a stored verdict are run as `programs` says, by default as in the run.

    If the run has several exams, `exam` can select one of them. Verdicts of a judge are kept; the
    judge is not asked again.
    """
    config = config_of_exam(run, exam, data_dir)
    if readers:
        config = _with_readers(config, readers)
    if programs is not None:
        config = programs.apply(config)
    jobs = _make_jobs_with_readers(config, run)
    stage = make_judge_stage(config, jobs)
    facts = describe_exams(jobs)
    changed = find_changed_files(run.manifest, facts)
    several = bool(readers and len(readers) > 1)
    reread = _reread_run(run, jobs, several=several, match_keys=not changed)
    if stage is not None:
        display = programs.display if programs is not None else None
        stage.grade(run.folder, None, display=display, runs_programs=True)
    for job in jobs:
        job.stopping = (run.manifest.stopped or {}).get(job.title)
    entries = [
        entry
        for job in jobs
        for entry in entries_of(
            job,
            secondary_as_metric=not several,
            stage=stage,
            price=run.manifest.price,
            tools=tools_of(run.manifest, job),
            declared=declared_names(run.manifest),
            asked_by_keju=run.manifest.imported is not True,
        )
    ]
    if changed and not any(job.tallies[0].done for job in jobs):
        raise DataError("score_data_changed", file=changed[0])
    missing = sum(job.missing for job in jobs)
    notices = [
        *version_notices(run.manifest, facts),
        *(Notice("data_changed", {"file": file}) for file in changed[:1]),
        *damage_notices(run.damaged, missing),
    ]
    name = command_name(run.folder)
    is_only_exam = len(run.manifest.benchmarks) == 1
    entries = [entry.with_notices(notices).with_run(name, alone=is_only_exam) for entry in entries]
    for job, rows in zip(jobs, reread.joint_readings, strict=True):
        entries = _add_joint_metrics(job, entries, [rows[unit] for unit in sorted(rows)])
    return results_of(
        run.manifest,
        run.folder,
        jobs,
        entries,
        complete=_is_complete(run, missing, data_changed=bool(changed)),
        disagreements=_sort_by_weight(reread.disagreements) if several else None,
    )


def _with_readers(config: TaskConfig, readers: list[str]) -> TaskConfig:
    """Return `config` with these readers for all exams, even if it names others for one of them."""
    dataset_args = {
        name: {key: value for key, value in args.items() if key != "reader"}
        for name, args in config.dataset_args.items()
    }
    return config.model_copy(update={"reader": readers, "dataset_args": dataset_args})


class _RereadRun(NamedTuple):
    """The readings of a run by several readers."""

    disagreements: list[Disagreement]
    joint_readings: list[dict[int, JointReading]]
    """The readings of each reply of a job, by its unit."""


def _reread_run(
    run: Run, jobs: Sequence[ExamScores], *, several: bool, match_keys: bool
) -> _RereadRun:
    """Read the stored replies and enter them. Compare the readers if there are `several`."""
    reread = _RereadRun([], [{} for _ in jobs])
    replies = iter_stored_replies(run, ExamRequests(jobs), match_keys=match_keys)
    for reply, readings in reread_replies(replies, jobs):
        reply.enter(readings)
        if several:
            sample = reply.sample
            reread.disagreements.extend(_find_disagreement(sample, readings))
            joint_reading = JointReading(sample.target, readings)
            reread.joint_readings[jobs.index(reply.job)][reply.unit] = joint_reading
    return reread


def _is_complete(run: Run, missing: int, *, data_changed: bool) -> bool | None:
    """Whether the run answered all its questions; None if the log of another tool was imported.

    If the data has changed, questions without a reply were added later, so the manifest decides.
    """
    if run.manifest.imported is True:
        return None
    return bool(run.manifest.complete) if data_changed else not missing


def _make_jobs_with_readers(config: TaskConfig, run: Run) -> list[ExamScores]:
    """Return the jobs of a run.

    If its exams do not share the requested readers, the error suggests an exam that has them.
    """
    try:
        return make_scores(config)
    except ConfigError as error:
        if error.code != "prepare_no_reader" or len(config.datasets) < 2:
            raise
        for name in config.datasets:
            try:
                (job, *_) = make_scores(config.model_copy(update={"datasets": [name]}))
            except ConfigError:
                continue
            exam_name, names = shlex.quote(job.exam.benchmark), ",".join(config.reader or ())
            command = (
                f"keju score {command_name(run.folder)} --datasets {exam_name} --reader {names}"
            )
            raise ConfigError("score_one_exam", problem=error, command=command) from None
        raise


def current_results(run: Run, data_dir: str | None = None) -> Results:
    """Return the contents of ``results.json``; score the run if the file is out of date."""
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
    programs: ProgramSettings | None = None,
) -> Results:
    """Score a file of recorded outputs as if they were replies to this exam.

    `gold` says which target counts if a row has its own target. By default, the recorded target
    counts if the row also has its own choices; otherwise the current one counts.
    """
    disagreements: dict[int, list[Disagreement]] = {}
    joint_readings: list[JointReading] = []

    def collect_row(unit: int, sample: Sample, graded: Sequence[Reading]) -> None:
        if len(graded) == 1:
            return
        disagreements[unit] = list(_find_disagreement(sample, graded))
        joint_readings.append(JointReading(sample.target, graded))

    recorded = read_predictions(
        dataset,
        predictions,
        protocol=protocol,
        readers=readers,
        data_dir=data_dir,
        dataset_args=dataset_args,
        gold=gold,
        seed=seed,
        on_row=collect_row,
        programs=programs,
    )
    flags = f"--datasets {dataset} --predictions {shlex.quote(str(predictions))}"
    entries = [
        entry.with_run(flags, is_file=True)
        for entry in entries_of(recorded.job, secondary_as_metric=not recorded.several)
    ]
    entries = [
        recorded.golds.annotate(entry)
        for entry in _add_joint_metrics(recorded.job, entries, joint_readings)
    ]
    if recorded.missing:
        notice = Notice(
            "missing_predictions", {"missing": recorded.missing, "whole": recorded.exam_size}
        )
        entries = [entry.with_notices([notice]) for entry in entries]
    return Results(
        schema=SCHEMA,
        run=predictions.name,
        model=predictions.name,
        benchmarks=tuple(entries),
        disagreements=_sort_by_weight(
            row for unit in sorted(disagreements) for row in disagreements[unit]
        )
        if recorded.several
        else None,
    )


def _find_disagreement(sample: Sample, readings: Sequence[Reading]) -> Iterator[Disagreement]:
    """Yield a row if its outcome depends on the reader."""
    if len({reading.score.outcome for reading in readings}) > 1:
        yield Disagreement(
            sample.id,
            sample.subset,
            sample.target,
            {reading.reader: reading.answer.value for reading in readings},
            {reading.reader: reading.score.outcome for reading in readings},
            {reading.reader: reading.score.value for reading in readings},
        )


def _sort_by_weight(rows: Iterable[Disagreement]) -> tuple[Disagreement, ...]:
    """Return the rows sorted: those whose score depends on the reader come first."""
    return tuple(sorted(rows, key=lambda row: not row.decides))


class JointReading(NamedTuple):
    """The readings of one reply by several readers, for metrics that need all of them."""

    target: str
    readings: Sequence[Reading]


def _add_joint_metrics(
    job: ExamScores, entries: Sequence[ResultEntry], rows: Sequence[JointReading]
) -> list[ResultEntry]:
    """Return `entries` with the exam's joint metrics; `rows` are in the order of the run."""
    answers: dict[str, list[str | None]] = {}
    for reading in (reading for row in rows for reading in row.readings):
        answers.setdefault(reading.reader, []).append(reading.answer.value)
    metrics = job.exam.joint_metrics(answers, [row.target for row in rows]) if rows else {}
    job_key = (job.exam.benchmark, job.arm)
    return [
        entry.with_metrics(
            metrics.get(entry.reader, {}) if (entry.name, entry.arm) == job_key else {}
        )
        for entry in entries
    ]
