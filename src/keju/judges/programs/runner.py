"""Runs programs against their tests: two sandboxes for each program, joined by a pipe.

The sandbox of the program holds the program alone. The sandbox of the tests holds the tests and the
expected values, calls the program through the pipe and writes the verdict. Only that verdict
reaches Keju. A program that runs out of time is run once more when no other program runs.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import msgspec

from keju.config.arms import SandboxSettings
from keju.solvers.sandbox.backends import choose_owner
from keju.solvers.sandbox.sandbox import Sandbox
from keju.solvers.sandbox.supervisor import DEVNULL, PIPE, SupervisedProcess, Supervisor

CALL_SECONDS: Final = 1.0
"""CPU seconds of a call without another limit: EvalPlus's shortest limit."""
LOAD_SECONDS: Final = 3.0
"""CPU seconds until the program's functions exist."""
TOTAL_SECONDS: Final = 61
"""CPU seconds of all calls of a program, as in EvalPlus."""
WALL: Final = 10
"""Seconds of the clock for each second of CPU time."""
MEMORY: Final = 1 << 30
LIMITS: Final = {
    "processes": 32, "open_files": 256, "max_file_bytes": 1 << 24, "scratch_bytes": 1 << 26,
    "cpu_seconds": TOTAL_SECONDS,
}  # fmt: skip
"""The limits of the sandboxes in place of those of episodes."""
JOB: Final = "job.json"
OUT_OF_TIME: Final = {128 + signal.SIGPROF, 128 + signal.SIGXCPU, -signal.SIGPROF, -signal.SIGXCPU}
"""Exit codes of a process that used its CPU time."""
STARTED: Final = b"\n"
"""The line that the side of the tests writes before the program starts."""
KILLED: Final = {128 + signal.SIGKILL, -signal.SIGKILL}
# `from keju.… import (…)`, `from typing import Any`: lines that the texts of sandboxes do not need,
# because annotations are not evaluated. Importing `typing` would double the time of a start.
_IMPORTS = re.compile(
    r"^from (?:keju\.[a-z.]+|__future__|typing|types|collections\.abc) import "
    r"(?:\([^)]*\)|[^\n(]*)\n",
    re.MULTILINE,
)


class ProgramJob(NamedTuple):
    """A program and its tests."""

    program: str
    entry_point: str
    tests: str
    prelude: str
    data: Any
    parts: dict[str, str]
    """The code of each result, by its name; without code the function ``check`` of the tests."""
    call_seconds: float = CALL_SECONDS


class ProgramVerdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of a program."""

    results: dict[str, bool]
    """Whether it passed each part of its tests."""
    outcome: str
    """``passed``, ``wrong``, ``exception``, ``syntax``, ``missing``, ``timeout``, ``memory``,
    ``output``, ``exit``, ``ended``, ``killed``, ``protocol``, or ``tests_broken``."""
    text: str = ""
    """A fact about the outcome, such as the exception."""
    attempts: int = 1


class ProgramRunner:
    """The sandboxes of programs.

    >>> async with ProgramRunner(settings, jobs=4) as runner:
    ...     async for place, verdict in runner.run(program_jobs):
    """

    def __init__(self, settings: SandboxSettings, jobs: int | None = None) -> None:
        limited = settings.model_copy(update=LIMITS | {"memory": settings.memory or MEMORY})
        self.jobs = jobs or len(os.sched_getaffinity(0))
        self._supervisor = Supervisor()
        self._sandbox = Sandbox(limited, self._supervisor, concurrency=2 * self.jobs, kernels=False)
        self._paths = _site_folders(settings.venv)
        self._ending: set[asyncio.Task[None]] = set()
        """Sandboxes that have given their verdict and are being removed."""

    async def __aenter__(self) -> Self:
        try:
            await self._sandbox.open()
        except BaseException:
            await self._supervisor.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._finish_ending()
        await self._supervisor.close()

    async def _finish_ending(self) -> None:
        """Wait until all sandboxes with a verdict are gone."""
        await asyncio.gather(*self._ending, return_exceptions=True)

    async def run(self, jobs: Sequence[ProgramJob]) -> AsyncIterator[tuple[int, ProgramVerdict]]:
        """Yield the place and the verdict of each job, in the order in which they end."""
        late: list[int] = []
        async for place, verdict in self._run_together(jobs, range(len(jobs))):
            if verdict.outcome == "timeout":
                late.append(place)
            else:
                yield place, verdict
        for place in late:
            await self._finish_ending()
            verdict = await self.run_once(jobs[place])
            yield place, msgspec.structs.replace(verdict, attempts=2)

    async def _run_together(
        self, jobs: Sequence[ProgramJob], places: Iterable[int]
    ) -> AsyncIterator[tuple[int, ProgramVerdict]]:
        waiting, running = iter(places), set[asyncio.Task[tuple[int, ProgramVerdict]]]()

        async def run_at(place: int) -> tuple[int, ProgramVerdict]:
            return place, await self.run_once(jobs[place])

        try:
            while True:
                while len(running) < self.jobs and (place := next(waiting, None)) is not None:
                    running.add(asyncio.create_task(run_at(place)))
                if not running:
                    return
                ended, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                for task in ended:
                    yield task.result()
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def run_once(self, job: ProgramJob) -> ProgramVerdict:
        """Run one program in two sandboxes and return its verdict."""
        to_program, from_tests = os.pipe()
        to_tests, from_program = os.pipe()
        ends = [to_program, from_tests, to_tests, from_program]
        processes: list[SupervisedProcess] = []
        try:
            starts = (
                self._start("program", None, to_program, from_program, DEVNULL),
                self._start("tests", job, to_tests, from_tests, PIPE),
            )
            started = await asyncio.gather(*starts, return_exceptions=True)
            processes += [process for process in started if not isinstance(process, BaseException)]
            for problem in started:
                if isinstance(problem, BaseException):
                    raise problem
            while ends:
                os.close(ends.pop())
            program, tests = processes
            return await self._read_verdict(job, program, tests)
        finally:
            for end in ends:
                os.close(end)
            self._end_later(processes)
            if len(self._ending) > self.jobs:
                await asyncio.wait(self._ending, return_when=asyncio.FIRST_COMPLETED)

    def _end_later(self, processes: Sequence[SupervisedProcess]) -> None:
        """End sandboxes while the next programs start."""

        async def end() -> None:
            await asyncio.gather(*(process.end() for process in processes))

        task = asyncio.create_task(end())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _read_verdict(
        self, job: ProgramJob, program: SupervisedProcess, tests: SupervisedProcess
    ) -> ProgramVerdict:
        assert tests.stderr is not None
        lines: list[bytes] = []
        with suppress(TimeoutError):
            async with asyncio.timeout(WALL * TOTAL_SECONDS):
                lines.append(await tests.stderr.readline())
                if lines[0] == STARTED:
                    lines.append(await tests.stderr.readline())
        line = lines[-1] if lines else b""
        if len(line) < 2 or not line.endswith(b"\n"):
            is_started = bool(lines) and lines[0] == STARTED
            if lines and not line.endswith(b"\n"):  # the tests closed the pipe, so they are ending
                await _wait_for_end(tests)
            return await _classify_tests(dict.fromkeys(job.parts, False), tests, is_started)
        results, outcome, text = json.loads(line)
        if outcome == "ended":
            outcome, text = await _classify_end(program)
        return ProgramVerdict(results, outcome, text)

    async def _start(
        self, kind: str, job: ProgramJob | None, source: int, target: int, report: int
    ) -> SupervisedProcess:
        """Start one side; only the side of the tests gets the job."""
        work = self._supervisor.folder("work")
        owner = choose_owner() if self._sandbox.backend.name != "none" else None
        room = self._sandbox.room(work, owner)
        backend = self._sandbox.backend
        arguments: list[str] = []
        if job is not None:
            order = job._asdict() | {"load_seconds": LOAD_SECONDS, "paths": self._paths}
            (work / JOB).write_text(json.dumps(order), "utf-8")
            arguments = [f"{backend.inside(room)[0]}/{JOB}"]
            if owner is not None:
                os.chown(work / JOB, owner, owner)
        if owner is not None:
            os.chown(work, owner, owner)
        # The order of sets of texts depends on the seed of hashes.
        python = ["/usr/bin/env", "PYTHONHASHSEED=0", backend.python, "-s", "-S", "-B", "-c"]
        launch = backend.launch(room, [*python, _text_of(kind), *arguments])
        return await self._supervisor.start(
            launch.argv,
            env=launch.env,
            cwd=launch.cwd,
            stdin=source,
            stdout=target,
            stderr=report,
            memory=room.memory,
            after=launch.after,
            remove=[room.run, work],
        )


async def _wait_for_end(process: SupervisedProcess) -> None:
    """Wait until a process has ended by itself, so that its exit code is its own."""
    with suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), WALL)


async def _classify_tests(
    results: dict[str, bool], tests: SupervisedProcess, is_started: bool
) -> ProgramVerdict:
    """Return the verdict if the tests gave none.

    Once the program has started, it is to blame: its results can make tests use any time and
    memory. Otherwise a program could escape its grade.
    """
    code = await tests.end()
    reason = f"no verdict, exit code {code}, {tests.reason or 'ended'}"
    if not is_started or tests.reason == "host_memory":
        outcome = "tests_broken"
    elif tests.reason == "memory":
        outcome = "memory"
    else:
        outcome = "timeout" if code in OUT_OF_TIME | KILLED else "protocol"
    return ProgramVerdict(results, outcome, reason)


async def _classify_end(program: SupervisedProcess) -> tuple[str, str]:
    """Return the outcome of a program whose process ended during a call."""
    try:
        code = await asyncio.wait_for(program.wait(), WALL)
    except TimeoutError:
        code = await program.end()
        return "protocol", "the program closed the pipe"
    if program.reason in ("memory", "host_memory"):
        return "memory", "the limit of memory"
    if code in OUT_OF_TIME:
        return "timeout", "the limit of CPU time"
    if code in KILLED:
        return "killed", "killed by a signal"
    return "ended", f"the process ended with exit code {code}"


@cache
def _text_of(kind: str) -> str:
    """Return the text of one side: the file with the pipe and its own file."""
    folder = Path(__file__).with_name("inside")
    texts = [(folder / f"{name}.py").read_text("utf-8") for name in ("values", kind)]
    return "from __future__ import annotations\n" + "\n".join(_IMPORTS.sub("", t) for t in texts)


def _site_folders(venv: str | None) -> list[str]:
    """Return the folders of packages in the environment that the settings name, if any.

    Verdicts must not depend on the packages that are installed next to Keju.
    """
    if venv is None:
        return []
    return [str(path) for path in sorted(Path(venv).glob("lib/python3*/site-packages"))]
