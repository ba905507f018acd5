"""Sets up the tools of a session: a supervisor, servers, sandboxes, and the solvers that use
them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keju.benchmarks.expectations import expected_tools, is_tool
from keju.benchmarks.metadata import NotebookTask
from keju.config import Arm, TaskConfig
from keju.config.arms import WORKDIR, SandboxSettings, ServerSettings
from keju.engine.job import Job
from keju.errors import ConfigError, Notice, did_you_mean
from keju.solvers.loop import ToolLoop
from keju.solvers.mcp import server_tools
from keju.solvers.mcp.launch import refuse_missing_script
from keju.solvers.notebook.episode import PYTHON, NotebookSource, PythonSource
from keju.solvers.notebook.workspaces import Workspaces
from keju.solvers.sandbox.sandbox import Sandbox
from keju.solvers.sandbox.supervisor import Supervisor
from keju.solvers.toolbox import CombinedTools, StubTools, ToolSource
from keju.types import Tool

if TYPE_CHECKING:
    from keju.solvers.state_checks import StateChecker

EPISODES = "episodes"
"""The folder below a run's folder with the notebooks of its episodes."""


class ToolSetup:
    """The shared resources of all solvers with tools in a session; the last user closes them."""

    def __init__(self, config: TaskConfig, at_once: int) -> None:
        """`at_once` is the largest number of concurrent episodes over all solvers."""
        self.config, self.at_once = config, at_once
        self.supervisor = Supervisor()
        self.users = 0
        self.notices: list[Notice] = []
        self.expected: dict[str, tuple[str, str]] = {}
        """The tools that assertions of questions name, with the exam and the place."""
        self.closed_arms = 0
        """Solvers whose tools are not listed yet."""
        self._offered: set[str] = set()

    def workspaces(self, settings: SandboxSettings) -> Workspaces:
        """Return places to run code in."""
        run_id = self.config.run_id or ""
        sandbox = Sandbox(settings, self.supervisor, concurrency=self.at_once, run_id=run_id)
        self.notices += sandbox.notices
        return Workspaces(sandbox)

    def state_checker(self, job: Job, arm: Arm) -> StateChecker | None:
        """Return what checks the state after episodes of a job, if its questions ask for that.

        Raise ConfigError if the arm has no folder, or more than one, that only one episode changes.
        """
        folder = job.exam.state_checks
        if folder is None or arm.stub_tools:
            return None
        places = [server.name for server in arm.servers if _has_own_folder(server)] + [*arm.tools]
        if not places and self.config.sweep is not None:
            return None  # the tool that has the folder is left out, so the state is never right
        if len(places) != 1:
            code = "verify_two_folders" if places else "verify_without_folder"
            values = {"exam": job.exam.benchmark, "arm": arm.name, "names": places}
            raise ConfigError(code, **values)
        from keju.solvers.state_checks import StateChecker

        sandbox = self.config.sandbox
        return StateChecker(folder, job.exam.samples, sandbox, self.supervisor, self.at_once)

    def note_offered(self, tools: Sequence[Tool]) -> None:
        """Note the tools of an arm. After the last arm, raise ConfigError for an expected tool
        that no arm has."""
        self._offered.update(tool.name for tool in tools)
        self.closed_arms -= 1
        if self.closed_arms:
            return
        for tool, (exam, place) in self.expected.items():
            if not any(is_tool(name, tool) for name in self._offered):
                names = sorted(name.rpartition("__")[2] for name in self._offered)
                values = {"exam": exam, "place": place, "tool": tool}
                raise ConfigError("expect_unknown_tool", hint=did_you_mean(tool, names), **values)

    async def leave(self) -> None:
        """Count one user less; close the supervisor after the last one."""
        self.users -= 1
        if not self.users:
            await self.supervisor.close()


class ArmTools(CombinedTools):
    """The tools of one solver."""

    def __init__(self, sources: Iterator[ToolSource], tool_setup: ToolSetup) -> None:
        super().__init__(list(sources))
        self._tool_setup = tool_setup

    async def open(self) -> None:
        """Start all sources."""
        self._tool_setup.users += 1
        await super().open()
        self._tool_setup.note_offered(self.tools)

    async def close(self) -> None:
        """Stop all sources, and the shared resources if this is the last user."""
        try:
            await super().close()
        finally:
            await self._tool_setup.leave()


def attach_tools(config: TaskConfig, jobs: Sequence[Job], folder: Path | None) -> list[Notice]:
    """Give every job with tools its solver; return notices for the user.

    Exams of one arm share its tools. An exam that uses notebooks also has its own tools. `folder`
    is the run's folder for files of episodes; without it they leave no files. Nothing is started
    here.
    """
    # at most one episode at a time per unit of work
    acting = sum(job.units for job in jobs if job.acts)
    tool_setup = ToolSetup(config, max(1, min(config.at_once, acting)))
    arms = {arm.name: arm for arm in config.arms if arm.acts}
    for arm in arms.values():
        for server in arm.servers:
            refuse_missing_script(arm.name, server)
    shared: dict[str, ToolLoop] = {}
    for job in jobs:
        if job.exam.asserted:
            for sample in job.exam.samples:
                for tool, place in expected_tools(sample).items():
                    tool_setup.expected.setdefault(tool, (job.exam.benchmark, place))
    for job in jobs:
        job_arm, task = arms.get(job.arm), job.exam.notebook
        if task is not None:
            notebook_folder = folder and folder / EPISODES / job.arm
            tools = ArmTools(
                notebook_sources(job, task, job_arm, tool_setup, notebook_folder), tool_setup
            )
            agent = config.agent
            if "max_iterations" not in agent.model_fields_set:
                agent = agent.model_copy(update={"max_iterations": task.max_turns})
            job.solver = ToolLoop(tools, agent, config.price)
        elif job_arm is not None:
            checker = tool_setup.state_checker(job, job_arm)
            if job_arm.name in shared and checker is None:
                job.solver = shared[job_arm.name]
                continue
            tools = ArmTools(arm_sources(job_arm, tool_setup), tool_setup)
            job.solver = ToolLoop(tools, config.agent, config.price, checker)
            if checker is None:
                shared[job_arm.name] = job.solver
    tool_setup.closed_arms = len(
        {id(job.solver) for job in jobs if isinstance(job.solver, ToolLoop)}
    )
    return tool_setup.notices


def _has_own_folder(server: ServerSettings) -> bool:
    """Whether each question gets a new process of a server, with a new folder."""
    texts = [*server.args, server.cwd or "", server.setup_command or "", *server.env.values()]
    is_local = server.command is not None and server.scope == "sample"
    return is_local and any(WORKDIR in (text or "") for text in texts)


def arm_sources(arm: Arm, tool_setup: ToolSetup) -> Iterator[ToolSource]:
    """Yield the sources of an arm's tools, not yet started."""
    for server in arm.servers:
        yield server_tools(server, tool_setup.supervisor, os.environ, listed_only=arm.stub_tools)
    if "python" in arm.tools:
        sandbox = tool_setup.config.sandbox
        yield (
            StubTools((PYTHON,)) if arm.stub_tools else PythonSource(tool_setup.workspaces(sandbox))
        )


def notebook_sources(
    job: Job,
    task: NotebookTask,
    arm: Arm | None,
    tool_setup: ToolSetup,
    notebook_folder: Path | None,
) -> Iterator[ToolSource]:
    """Yield the notebook of an exam, and then an arm's tools."""
    workspaces = tool_setup.workspaces(sandbox_settings_for(task, tool_setup.config.sandbox))
    yield NotebookSource(task, job.exam.samples, workspaces, notebook_folder)
    if arm is not None:
        yield from arm_sources(arm, tool_setup)


def sandbox_settings_for(task: NotebookTask, settings: SandboxSettings) -> SandboxSettings:
    """Return the sandbox's settings, overridden by the exam's settings for its notebooks.

    Raises ConfigError if the two contradict each other, so that no setting is ignored.
    """
    exam_settings: dict[str, Any] = {}
    if task.cell_timeout is not None:
        exam_settings["cell_timeout"] = task.cell_timeout
    if task.image:
        if settings.unsafe or settings.backend not in ("auto", "docker", "podman"):
            raise ConfigError("notebook_not_contained", backend=settings.active_backend)
        if task.image_named and settings.image not in (None, task.image):
            raise ConfigError("notebook_two_images", first=task.image, second=settings.image)
        exam_settings["backend"] = (
            _default_engine() if settings.backend == "auto" else settings.backend
        )
        exam_settings["image"] = settings.image or task.image
    return settings.model_copy(update=exam_settings)


def _default_engine() -> str:
    """Return the default container engine: Docker, unless it does not answer and Podman is
    installed."""
    docker_answers = os.environ.get("DOCKER_HOST") or Path("/var/run/docker.sock").exists()
    return "podman" if shutil.which("podman") and not docker_answers else "docker"
