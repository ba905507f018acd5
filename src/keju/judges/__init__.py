"""Grading with a model: what it is shown, how its verdict is read, how far it can be trusted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from keju.config import TaskConfig
    from keju.engine.job import Job
    from keju.judges.stage import Judging


def judging_of(config: TaskConfig, jobs: Sequence[Job]) -> Judging | None:
    """The judges of a run; None, and nothing imported, where nobody is to be asked."""
    if config.judge is None and all(job.exam.judge is None for job in jobs):
        return None
    from keju.judges.stage import Judging

    return Judging.of(config, jobs)
