"""The file that the site of an exam's makers takes, out of a stored run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from keju.benchmarks import registry
from keju.benchmarks.submission import Submission
from keju.engine.resume import JobRequests
from keju.errors import UsageError
from keju.results.export import exported_answers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from keju.engine.job import Job
    from keju.runs.run import Run


def submission_of(
    run: Run, jobs: Sequence[Job], *, fill: str | None = None, partial: bool = False
) -> Submission:
    """The answers of a run, as the site of the exam's makers takes them.

    UsageError for an exam without such a site, and where a question has more than one answer. A
    question that ended in an error counts as not asked.
    """
    job = next((job for job in jobs if job.exam.submitted), None)
    submission = registry.get(job.exam.benchmark).submission if job else None
    if job is None or submission is None:
        able = [name for name in registry.names() if registry.get(name).submission]
        sat = ", ".join(job.exam.benchmark for job in jobs)
        raise UsageError(f"only {', '.join(able)} has a submission format; this run sat {sat}")
    if job.epochs > 1 or "rotate_options" in job.exam.settings:
        raise UsageError("a submission has one answer a question; this run asked several times")
    answers = {
        record.id: record.readings[0].answer.value
        for _, record in exported_answers(run, JobRequests([job]))
        if record.reply.error is None
    }
    return submission(job.exam, answers, fill, partial=partial)
