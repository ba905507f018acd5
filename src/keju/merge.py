"""Merge the parts of one run, made by several jobs, into one run: ``keju merge``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from keju.config import JudgeConfig, TaskConfig
from keju.config.load import load_run_config
from keju.engine.resume import recall
from keju.errors import KejuError, Notice, UsageError
from keju.files import atomic_folder, write_json
from keju.judges import make_judge_stage
from keju.reporting.html import write_outputs
from keju.results.schema import Results
from keju.results.summarise import build_results
from keju.runs.journal import FILE, Journal
from keju.runs.manifest import MANIFEST, ManifestFile
from keju.runs.parts import join, lock_parts, merge_manifests, part_notices
from keju.runs.run import Run, damage_notices, write_grades
from keju.scores.exam_scores import ExamScores
from keju.scores.exams import describe_exams, make_scores
from keju.scores.stored_replies import ExamRequests
from keju.task import FinishedTask, count_missing, find_shortfall, resume_command


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
                results, stop = _finish(*stage_arguments, report=report)
    # The command is different before the folder exists.
    return FinishedTask(results, folder, resume_command(judged_config, folder, stop), stop)


def _finish(
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
