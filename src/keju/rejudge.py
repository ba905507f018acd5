"""Grading a stored run with a judge, the first time or again; the candidate is not asked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from keju.config import TaskConfig
from keju.engine.resume import stored_replies
from keju.errors import ConfigError
from keju.grades import write_grades
from keju.journal import Journal
from keju.judging import Judging
from keju.manifest import Manifest
from keju.outputs import build_results, write_outputs
from keju.task import Finished, make_jobs

if TYPE_CHECKING:
    from keju.report.display import Display


def judge_run(
    config: TaskConfig, folder: Path, *, display: Display | None = None, report: bool = True
) -> Finished:
    """Grade the answers of the run in `folder` as ``config.judge`` says; write its results anew.

    A judge whose endpoint is not ready raises EndpointError and changes nothing.
    """
    jobs = make_jobs(config)
    judging = Judging.of(config, jobs)
    if judging is None and config.judge is None:
        raise ConfigError("no judge is named: give --model NAME, or --judge with its settings")
    if judging is not None:
        judging.check()
    with Journal(folder):
        manifest = Manifest(folder, config, jobs)
        manifest.keep_endpoint()
        for job, unit, record in stored_replies(jobs, folder):
            readings = job.grade(unit // job.epochs, record.reply, record.order)
            job.enter_readings(unit, record.reply, record.faults, readings)
        judgement = None
        if judging is not None:
            judgement = judging.grade(folder, manifest, display=display, strict=True)
        write_grades(folder, judgement.grades if judgement is not None else ())
        stop = judgement.stop if judgement is not None else None
        results = build_results(jobs, manifest, stop, judgement)
        finished = all(job.tallies[0].done == job.units for job in jobs)
        results["complete"] = manifest.document["complete"] = stop is None and finished
        manifest.write()
        write_outputs(folder, results, jobs, manifest.document, config.language, report=report)
    code, message = (stop.exit_code, str(stop)) if stop is not None else (0, "")
    return Finished(results, folder, code, message, f"keju judge {folder}", stop)
