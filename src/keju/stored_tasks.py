"""Tasks on stored runs: grade the answers of a run again, and merge parts of a run.

No question is asked again.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from keju.config import JudgeConfig, TaskConfig
from keju.config.load import load, load_run_config, merge
from keju.engine.job import make_jobs
from keju.engine.resume import recall
from keju.errors import ConfigError, KejuError, Notice, UsageError
from keju.files import atomic_folder, read_json, write_json
from keju.interop.watchers import watch_runs
from keju.judges import make_judge_stage
from keju.models.registry import settings_without_effect
from keju.progress.display import Display
from keju.reporting.html import write_outputs
from keju.results.schema import Results, from_document
from keju.results.summarise import build_results
from keju.runs.journal import FILE, Journal
from keju.runs.manifest import MANIFEST, Manifest, ManifestFile
from keju.runs.merge import join, lock_parts, merge_manifests, part_notices
from keju.runs.run import GRADES, RESULTS, Run, command_name, damage_notices, write_grades
from keju.scores.exam_scores import ExamScores
from keju.scores.exams import describe_exams, make_scores
from keju.scores.stored_replies import ExamRequests, iter_stored_replies, reread_replies
from keju.task import (
    FinishedTask,
    count_missing,
    find_shortfall,
    notify_watcher,
    resume_command,
    run_stage,
)


def judge_run(
    config: TaskConfig, folder: Path, *, display: Display | None = None, report: bool = True
) -> FinishedTask:
    """Grade the answers of the run in `folder` with ``config.judge`` and write its results again.

    A judge whose endpoint is not ready raises EndpointError and changes nothing. If the run had
    complete grades, they stay valid until the new ones are complete. A grading that stops early
    stores only its verdicts.
    """
    display = display or Display()
    with watch_runs(config, display):
        return notify_watcher(_judge_run(config, folder, display, report=report))


def _judge_run(config: TaskConfig, folder: Path, display: Display, *, report: bool) -> FinishedTask:
    from keju.runs.resume_compat import find_differences, refuse_other_run

    jobs = make_jobs(config)
    stage = make_judge_stage(config, jobs)
    if stage is None and config.judge is None:
        raise ConfigError("judge_not_named")
    if stage is not None:
        stage.check()
    with Journal(folder):
        judge_settings = Manifest.read(folder).config.get("judge")
        task = config.model_copy(
            update={"judge": JudgeConfig(**judge_settings) if judge_settings else None}
        )
        facts = describe_exams(jobs)
        file = ManifestFile(folder, task, facts, graded_by=config.judge)
        assert file.before is not None
        refuse_other_run(folder.name, find_differences(file.before, file.manifest), 0)
        description = msgspec.structs.replace(file.manifest)
        earlier = _load_complete_results(folder, file.before)
        if earlier is not None and file.before is not None:
            _describe_results(file.manifest, file.before)
        run, requests = Run(folder), ExamRequests(jobs)
        for reply, readings in reread_replies(iter_stored_replies(run, requests), jobs):
            reply.enter(readings)
        for job in jobs:
            job.stopping = (file.manifest.stopped or {}).get(job.title)
        notices = damage_notices(run.damaged, count_missing(jobs))
        for notice in notices:
            display.note(notice.message)
        stop = None
        if stage is not None:
            stop = run_stage(partial(stage.grade, folder, file, display=display, strict=True))
        if stop is not None and earlier is not None:
            return _keep_earlier_results(folder, earlier, stop, description.judge)
        _describe_results(file.manifest, description)
        results = build_results(jobs, file, stop, stage, notices)
        complete = stop is None and not count_missing(jobs)
        results = msgspec.structs.replace(results, complete=complete)

        def save() -> None:
            write_grades(folder, stage.grades if stage is not None else ())
            file.finish(complete=complete)
            write_outputs(run, results, requests, config.language, report=report)

        save_stop = run_stage(save)
        stop = stop or save_stop
    return FinishedTask(results, folder, f"keju judge {folder}", stop)


def judge_stored(
    run: Run,
    judge_settings: dict[str, Any] | None,
    flags: dict[str, Any],
    *,
    display: Display | None = None,
    report: bool = True,
) -> FinishedTask:
    """Grade a stored run as its judge did, overridden by `judge_settings` and then by `flags`."""
    from keju.judges.judge import complete_settings, fill_defaults

    file, settings = run.folder / MANIFEST, dict(flags)
    earlier = fill_defaults(run.manifest.graded_by or {})
    if earlier:
        settings["judge"] = earlier
    if judge_settings is not None:
        config = load(file, flags=settings, idle=settings_without_effect)
        settings["judge"] = merge(earlier, complete_settings(config, judge_settings))
    config = load(file, flags=settings, idle=settings_without_effect)
    return judge_run(config, run.folder, display=display, report=report)


def _describe_results(manifest: Manifest, source: Manifest) -> None:
    """Copy the description of the results from `source` to `manifest`."""
    manifest.complete, manifest.config = source.complete, source.config
    manifest.benchmarks, manifest.graded_by = source.benchmarks, source.graded_by


def _load_complete_results(folder: Path, before: Manifest | None) -> Results | None:
    """Return the results of a run that was graded completely, by rules or by a judge, or None."""
    if before is None or not before.complete or not (folder / RESULTS).is_file():
        return None
    results = from_document(read_json(folder / RESULTS))
    ungraded = any(entry.outcomes["ungraded"] for entry in results.benchmarks)
    return results if (folder / GRADES).is_file() or not ungraded else None


def _keep_earlier_results(
    folder: Path, results: Results, stop: KejuError, judge: dict[str, Any] | None
) -> FinishedTask:
    command = f"keju judge {command_name(folder)}"
    if judge:
        command += f" --judge {shlex.quote(json.dumps(judge))}"
    return FinishedTask(results, folder, command, type(stop)("earlier_results_stay", problem=stop))


def merge_runs(
    parts: Sequence[Run], folder: Path, *, data_dir: str | None = None, report: bool = True
) -> FinishedTask:
    """Merge parts of a run into a new folder. The parts stay unchanged.

    The folder appears when everything is written, so a command that was killed can be repeated.
    Raise UsageError if they are not parts of one run, or if some of their replies would not count.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError("merge_exists", folder=folder)
    with lock_parts(parts):
        manifest = merge_manifests(parts)
        folder_settings = {"run_id": folder.name, "work_dir": str(folder.parent)}
        config = load_run_config(manifest.config | folder_settings, data_dir)
        judge = JudgeConfig(**manifest.judge) if manifest.judge else None
        judged_config = config.model_copy(update={"judge": judge})
        jobs = make_scores(judged_config)
        exams = describe_exams(jobs)
        trusted_starts = [part.manifest.find_trusted_start(exams) for part in parts]
        with atomic_folder(folder) as new_folder:
            joined = join(parts, new_folder)
            with Journal(new_folder) as journal:
                manifest.benchmarks = exams
                manifest.read_anew = journal.size if any(trusted_starts) else 0
                write_json(new_folder / MANIFEST, manifest)
                grader = judge if manifest.graded_by else None
                file = ManifestFile(new_folder, config, exams, graded_by=grader, home=folder)
                notices = part_notices(parts, joined.duplicates)
                stage_arguments = judged_config, jobs, file, joined.damaged, notices
                results, stop = _summarise_merged(*stage_arguments, report=report)
    # The command is different before the folder exists.
    return FinishedTask(results, folder, resume_command(judged_config, folder, stop), stop)


def _summarise_merged(
    config: TaskConfig,
    jobs: Sequence[ExamScores],
    file: ManifestFile,
    damaged: int,
    notices: Sequence[Notice],
    *,
    report: bool,
) -> tuple[Results, KejuError | None]:
    """Write the results of the merged run. Return them, and the error for missing replies."""
    folder = file.path.parent
    requests = ExamRequests(jobs)
    stage = make_judge_stage(config, jobs)
    recalled = recall(
        requests,
        folder / FILE,
        trusted_from=file.trusted_from,
        find_unused=True,
        enter_errors=True,
    )
    if recalled.unused:
        raise UsageError("merge_would_lose", replies=recalled.unused)
    if stage is not None:
        stage.grade(folder, None)
    stop = find_shortfall(jobs, config.error_limit)
    all_notices = [*damage_notices(damaged, count_missing(jobs)), *notices]
    results = build_results(jobs, file, stop, stage, all_notices)
    write_grades(folder, stage.grades if stage is not None else ())
    file.finish(complete=stop is None)
    write_outputs(Run(folder), results, requests, config.language, report=report)
    return results, stop
