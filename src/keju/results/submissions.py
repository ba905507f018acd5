"""The file that the C-Eval site takes, out of a stored run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from keju.benchmarks.ceval.submission import Submission, submission
from keju.engine.resume import JobRequests
from keju.errors import UsageError
from keju.results.export import exported_answers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from keju.engine.job import Job
    from keju.runs.run import Run

BENCHMARK = "ceval"


def submission_of(
    run: Run, jobs: Sequence[Job], *, fill: str | None = None, partial: bool = False
) -> Submission:
    """The answers of a run of C-Eval's test split, as the site takes them.

    UsageError for any other exam, and where a question has more than one answer. A question that
    ended in an error counts as not asked.
    """
    found = [job for job in jobs if job.exam.benchmark == BENCHMARK]
    if not found:
        sat = ", ".join(job.exam.benchmark for job in jobs)
        raise UsageError(f"only {BENCHMARK} has a submission format; this run sat {sat}")
    (job,) = found
    if job.epochs > 1 or "rotate_options" in job.exam.settings:
        raise UsageError("a submission has one answer a question; this run asked several times")
    answers = {
        record.id: record.readings[0].answer.value
        for _, record in exported_answers(run, JobRequests([job]))
        if record.reply.error is None
    }
    return submission(job.exam, answers, fill, partial=partial)
