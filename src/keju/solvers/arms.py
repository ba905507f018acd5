"""The arms of a run: which solver each of its jobs gets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from keju.config import Arm, TaskConfig
from keju.engine.channel import Solver
from keju.engine.job import Job
from keju.solvers.loop import ToolLoop
from keju.solvers.toolbox import ToolSource, joined

MAKERS: list[Callable[[Arm, TaskConfig], Iterable[ToolSource]]] = []
"""Who knows how to make tools: each gives those that an arm asks for, or none."""


def give_solvers(config: TaskConfig, jobs: Sequence[Job]) -> None:
    """Give every job the solver of its arm; exams of one arm share its tools."""
    solvers: dict[str, Solver] = {
        arm.name: ToolLoop(tools_of(arm, config), config.agent, config.price)
        for arm in config.arms
        if arm.acts
    }
    for job in jobs:
        job.solver = solvers.get(job.arm, job.solver)


def tools_of(arm: Arm, config: TaskConfig) -> ToolSource:
    """The tools of an arm, not yet started."""
    return joined([source for make in MAKERS for source in make(arm, config)])
