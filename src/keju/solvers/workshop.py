"""What models that act work with: a supervisor, servers, sandboxes, and the solvers over them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from keju.benchmarks.facts import NotebookTask
from keju.config import Arm, TaskConfig
from keju.config.arms import Sandbox as SandboxSettings
from keju.engine.job import Job
from keju.errors import ConfigError, Notice
from keju.solvers.loop import ToolLoop
from keju.solvers.mcp import server_tools
from keju.solvers.mcp.launch import refuse_missing_script
from keju.solvers.notebook.episode import PYTHON, NotebookSource, PythonSource
from keju.solvers.notebook.workplaces import Workplaces
from keju.solvers.sandbox.sandbox import Sandbox
from keju.solvers.sandbox.supervisor import Supervisor
from keju.solvers.toolbox import Joined, Stub, ToolSource

EPISODES = "episodes"
"""Below a run's folder: the notebooks of its episodes."""


class Workshop:
    """What all that acts in a session shares; the last one that leaves closes it."""

    def __init__(self, config: TaskConfig, at_once: int) -> None:
        """`at_once`: how many episodes there can be at a time, over all that acts."""
        self.config, self.at_once = config, at_once
        self.supervisor = Supervisor()
        self.users = 0
        self.notices: list[Notice] = []

    def workplaces(self, settings: SandboxSettings) -> Workplaces:
        """Places to run code in."""
        run_id = self.config.run_id or ""
        sandbox = Sandbox(settings, self.supervisor, concurrency=self.at_once, run_id=run_id)
        self.notices += sandbox.notices
        return Workplaces(sandbox)

    async def leave(self) -> None:
        """One user less."""
        self.users -= 1
        if not self.users:
            await self.supervisor.close()


class ArmTools(Joined):
    """The tools of one solver."""

    def __init__(self, sources: Iterator[ToolSource], workshop: Workshop) -> None:
        super().__init__(list(sources))
        self._workshop = workshop

    async def open(self) -> None:
        """Start all of them."""
        self._workshop.users += 1
        await super().open()

    async def close(self) -> None:
        """Stop all of them, and what they share with others if this is the last one."""
        try:
            await super().close()
        finally:
            await self._workshop.leave()


def equip(config: TaskConfig, jobs: Sequence[Job], folder: Path | None) -> list[Notice]:
    """Give every job that acts its solver; return what the user has to know.

    Exams of one arm share its tools; an exam that works in notebooks has its own beside them.
    `folder` is the run's, for what episodes leave behind; they leave nothing where there is none.
    Nothing is started here.
    """
    acting = sum(job.units for job in jobs if job.acts)  # no more episodes at once than there are
    workshop = Workshop(config, max(1, min(config.at_once, acting)))
    arms = {arm.name: arm for arm in config.arms if arm.acts}
    for arm in arms.values():
        for server in arm.servers:
            refuse_missing_script(arm.name, server)
    shared: dict[str, ToolLoop] = {}
    for job in jobs:
        own, task = arms.get(job.arm), job.exam.notebook
        if task is not None:
            place = folder and folder / EPISODES / job.arm
            tools = ArmTools(notebook_sources(job, task, own, workshop, place), workshop)
            agent = config.agent
            if "max_iterations" not in agent.model_fields_set:
                agent = agent.model_copy(update={"max_iterations": task.max_turns})
            job.solver = ToolLoop(tools, agent, config.price)
        elif own is not None:
            if own.name not in shared:
                tools = ArmTools(sources_of(own, workshop), workshop)
                shared[own.name] = ToolLoop(tools, config.agent, config.price)
            job.solver = shared[own.name]
    return workshop.notices


def sources_of(arm: Arm, workshop: Workshop) -> Iterator[ToolSource]:
    """The sources of an arm's tools, not yet started."""
    for server in arm.servers:
        yield server_tools(server, workshop.supervisor, os.environ, listed_only=arm.stub_tools)
    if "python" in arm.tools:
        sandbox = workshop.config.sandbox
        yield Stub((PYTHON,)) if arm.stub_tools else PythonSource(workshop.workplaces(sandbox))


def notebook_sources(
    job: Job, task: NotebookTask, arm: Arm | None, workshop: Workshop, place: Path | None
) -> Iterator[ToolSource]:
    """The notebook of an exam, and an arm's tools beside it."""
    workplaces = workshop.workplaces(sandbox_for(task, workshop.config.sandbox))
    yield NotebookSource(task, job.exam.samples, workplaces, place)
    if arm is not None:
        yield from sources_of(arm, workshop)


def sandbox_for(task: NotebookTask, settings: SandboxSettings) -> SandboxSettings:
    """The sandbox's settings with those that the exam itself has for its notebooks.

    ConfigError where the two contradict each other: none of them is to go without effect.
    """
    own: dict[str, Any] = {}
    if task.cell_timeout is not None:
        own["cell_timeout"] = task.cell_timeout
    if task.image:
        if settings.unsafe or settings.backend not in ("auto", "docker", "podman"):
            raise ConfigError("notebook_not_contained", backend=settings.active_backend)
        if task.image_named and settings.image not in (None, task.image):
            raise ConfigError("notebook_two_images", first=task.image, second=settings.image)
        own["backend"] = _engine() if settings.backend == "auto" else settings.backend
        own["image"] = settings.image or task.image
    return settings.model_copy(update=own)


def _engine() -> str:
    """The container engine that is meant where none is named: Docker, unless it cannot answer."""
    answers = os.environ.get("DOCKER_HOST") or Path("/var/run/docker.sock").exists()
    return "podman" if shutil.which("podman") and not answers else "docker"
