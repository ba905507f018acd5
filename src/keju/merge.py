"""Parts of one run, sat in several jobs, as one run: ``keju merge``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from keju.config import JudgeConfig, TaskConfig
from keju.config.load import load_run_config
from keju.engine.job import Job, exams_of, make_jobs
from keju.engine.resume import JobRequests, recall
from keju.errors import KejuError, Notice, UsageError
from keju.files import whole_folder, write_json
from keju.judges import make_judge_stage
from keju.report.html import write_outputs
from keju.results.schema import Results
from keju.results.summarise import build_results
from keju.runs.journal import FILE, Journal
from keju.runs.manifest import MANIFEST, ManifestFile
from keju.runs.parts import at_rest, join, merged_manifest, part_notices
from keju.runs.run import Run, damage_notices, write_grades
from keju.task import Finished, missing, resume_command, shortfall


def merge_runs(
    parts: Sequence[Run], folder: Path, *, data_dir: str | None = None, report: bool = True
) -> Finished:
    """Make one run of its parts in a folder that is not there yet; the parts stay as they are.

    The folder is there when all is written: a command that was killed can be repeated.
    UsageError where they are not parts of one run, or where replies of theirs would not count.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError("merge_exists", folder=folder)
    with at_rest(parts):
        manifest = merged_manifest(parts)
        given = {"run_id": folder.name, "work_dir": str(folder.parent)}
        config = load_run_config(manifest.config | given, data_dir)
        judge = JudgeConfig(**manifest.judge) if manifest.judge else None
        graded = config.model_copy(update={"judge": judge})
        jobs = make_jobs(graded)
        exams = exams_of(jobs)
        believed = [part.manifest.believed_from(exams) for part in parts]
        with whole_folder(folder) as made:
            joined = join(parts, made)
            with Journal(made) as journal:
                manifest.benchmarks = exams
                manifest.read_anew = journal.size if any(believed) else 0
                write_json(made / MANIFEST, manifest)
                grader = judge if manifest.graded_by else None
                file = ManifestFile(made, config, exams, graded_by=grader, home=folder)
                notices = part_notices(parts, joined.doubled)
                made_of = graded, jobs, file, joined.damaged, notices
                results, stop = _finished(*made_of, report=report)
    # The command is one for a folder that is there.
    return Finished(results, folder, resume_command(graded, folder, stop), stop)


def _finished(
    config: TaskConfig,
    jobs: Sequence[Job],
    file: ManifestFile,
    damaged: int,
    notices: Sequence[Notice],
    *,
    report: bool,
) -> tuple[Results, KejuError | None]:
    """Write the results of the whole; return them, and what is missing."""
    folder = file.path.parent
    requests = JobRequests(jobs)
    stage = make_judge_stage(config, jobs)
    recalled = recall(
        requests,
        folder / FILE,
        believed_from=file.believed_from,
        find_unused=True,
        enter_errors=True,
    )
    if recalled.unused:
        raise UsageError("merge_would_lose", replies=recalled.unused)
    if stage is not None:
        stage.grade(folder, None)
    stop = shortfall(jobs, config.error_limit)
    told = [*damage_notices(damaged, missing(jobs)), *notices]
    results = build_results(jobs, file, stop, stage, told)
    write_grades(folder, stage.grades if stage is not None else ())
    file.finish(complete=stop is None)
    write_outputs(Run(folder), results, requests, config.language, report=report)
    return results, stop
