"""The arms of a run: which solver each of its jobs gets, and which tools."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from keju.config import Arm, TaskConfig
from keju.engine.channel import Solver
from keju.engine.job import Job
from keju.solvers.loop import ToolLoop
from keju.solvers.mcp import server_tools
from keju.solvers.sandbox.supervisor import Supervisor
from keju.solvers.toolbox import Joined, ToolSource


class Workshop:
    """What the arms of a session share; the last one that leaves closes it."""

    def __init__(self) -> None:
        self.supervisor = Supervisor()
        self.users = 0

    async def leave(self) -> None:
        """One arm less."""
        self.users -= 1
        if not self.users:
            await self.supervisor.close()


class ArmTools(Joined):
    """The tools of one arm."""

    def __init__(self, arm: Arm, workshop: Workshop) -> None:
        super().__init__(list(sources_of(arm, workshop.supervisor)))
        self._workshop = workshop

    async def open(self) -> None:
        """Start all of them."""
        self._workshop.users += 1
        await super().open()

    async def close(self) -> None:
        """Stop all of them, and what they share with other arms if this is the last one."""
        try:
            await super().close()
        finally:
            await self._workshop.leave()


def give_solvers(config: TaskConfig, jobs: Sequence[Job]) -> None:
    """Give every job the solver of its arm; exams of one arm share its tools."""
    workshop = Workshop()
    solvers: dict[str, Solver] = {
        arm.name: ToolLoop(ArmTools(arm, workshop), config.agent, config.price)
        for arm in config.arms
        if arm.acts
    }
    for job in jobs:
        job.solver = solvers.get(job.arm, job.solver)


def sources_of(arm: Arm, supervisor: Supervisor) -> Iterator[ToolSource]:
    """The sources of an arm's tools, not yet started."""
    for server in arm.servers:
        yield server_tools(server, supervisor, os.environ, listed_only=arm.stub_tools)
