"""Which solver each job of a run gets: the channel alone, or tools in a loop."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from keju.config import TaskConfig
from keju.engine.job import Job
from keju.errors import Notice


def give_solvers(config: TaskConfig, jobs: Sequence[Job], folder: Path | None) -> list[Notice]:
    """Give every job that acts the tools of its arm and of its exam; return what is to be told.

    `folder` is the run's, for what episodes leave behind; they leave nothing where there is none.
    Nothing is started here, and what tools need is imported only where there are any.
    """
    if not any(arm.acts for arm in config.arms) and not any(job.exam.notebook for job in jobs):
        return []
    from keju.solvers.workshop import equip

    return equip(config, jobs, folder)
