"""A Jupyter kernel that runs shut in: cells with a time limit, restarts, deaths with a name."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from keju.solvers.sandbox.backends import Bubblewrap, Room, owner
from keju.solvers.sandbox.folders import deleted_bytes, give_away, size_of
from keju.solvers.sandbox.output import CellResult, Output, plain
from keju.solvers.sandbox.supervise import below, table
from keju.solvers.sandbox.supervisor import Process
from keju.solvers.sandbox.wire import Channel

if TYPE_CHECKING:
    from keju.solvers.sandbox.sandbox import Sandbox

Language = Literal["python", "r"]
Death = Literal[
    "exit", "killed", "signal", "memory", "host_memory", "cpu", "work_size", "output", "start"
]
"""Why a kernel died: it ended itself, was killed from inside or by another signal, took too much
memory, processor time, disk or output, or never started; ``host_memory``: the host ran out."""

GRACE: Final = 5.0
"""Seconds in which an interrupted cell may end."""
LATE: Final = 30.0
"""Seconds that the last output may come after the reply: a sound kernel sends it at once, but on a
host without a free core it may stand still between the two."""
SETTLING: Final = 0.05
"""Seconds for what child processes wrote: the kernel reads it beside the cell's own output."""
MOST_OUTPUT: Final = 256 * 2**20
"""Bytes that a kernel may send from the start of one cell to the start of the next."""


class KernelDied(Exception):
    """The kernel is gone and is not started again; `reason` says why by name."""

    def __init__(
        self, reason: Death, message: str, text: str = "", *, by_code: bool, ran: bool = True
    ) -> None:
        super().__init__(message)
        self.reason: Death = reason
        self.by_code = by_code
        """Whether code of a model had run in this episode. It could have caused any death, so it
        is to blame: otherwise a model could choose not to be graded."""
        self.ran = ran
        """Whether the last cell was begun."""
        self.text = text
        """What the last cell had written."""


class Cell:
    """A cell that is being run."""

    def __init__(self, most: int) -> None:
        self.id = ""
        self.output = Output(most)
        self.idle = asyncio.Event()
        self.replied = asyncio.Event()

    async def done(self) -> None:
        """Wait for the cell's end: all output is there, or the reply came and the rest did not."""
        await self.replied.wait()
        with suppress(TimeoutError):
            await asyncio.wait_for(self.idle.wait(), LATE)
            await asyncio.sleep(SETTLING)


class Kernel:
    """One kernel of one episode; `Sandbox.kernel` makes it."""

    def __init__(self, sandbox: Sandbox, work: Path, language: Language) -> None:
        self._sandbox, self.work, self.language = sandbox, work, language
        self._settings = sandbox.settings
        self._user = owner()
        self._cell: Cell | None = None
        self._late = Output(self._settings.max_cell_chars)
        """What earlier cells have written after their end."""
        self._process: Process | None = None
        self._channels: list[Channel] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._trouble: Death | None = None
        self._errors = b""
        self._error_bytes = self._bytes_before = 0
        """What the process wrote outside of its cells; what it had sent when the cell began."""
        self.code_ran = False
        """Whether any cell was sent to a kernel of this episode."""
        self._started = time.time()
        self.cells = self.timeouts = self.restarts = self.deaths = 0
        self.peak_work = self.peak_memory = 0
        self.exit: str | None = None
        give_away(work, self._user)

    async def start(self) -> None:
        """Start the process and wait until it answers; KernelDied where it does not."""
        key = secrets.token_hex(32)
        self._trouble, self._errors, self._error_bytes, self._bytes_before = None, b"", 0, 0
        try:
            room = self._sandbox.room(self.work, self._user)
            launch = self._sandbox.backend.launch(room, self._command(room, key))
            self._process = await self._sandbox.start(launch, room)
        except OSError as error:
            raise self._not_started(str(error.strerror)) from None
        watched = self._keep_errors(), self._watch_folders(room.run), self._watch_output()
        self._tasks = [asyncio.create_task(each) for each in watched]
        try:
            async with asyncio.timeout(self._settings.start_timeout):
                await self._connect(room.run, key.encode())
        except (TimeoutError, OSError, EOFError):
            problem = await self._silence(self._process)
            await self._end("start")
            raise self._not_started(problem) from None

    def _command(self, room: Room, key: str) -> list[str]:
        """Write the connection file and return the command that starts a kernel with it."""
        backend = self._sandbox.backend
        _, run = backend.inside(room)
        ports = {f"{name}_port": number for number, name in enumerate(SOCKETS, 1)}
        known = {**ports, "transport": "ipc", "ip": f"{run}/k", "key": key}
        file = room.run / "kernel.json"
        file.write_text(json.dumps(known | {"signature_scheme": "hmac-sha256"}))
        give_away(room.run, self._user)
        commands: dict[Language, list[str]] = {
            "python": [backend.python, *PYTHON_KERNEL, f"{run}/{file.name}"],
            "r": [*R_KERNEL, f"{run}/{file.name}"],
        }
        return commands[self.language]

    def _not_started(self, problem: str) -> KernelDied:
        message = f"the kernel did not start: {problem}"
        return KernelDied("start", message, by_code=self.code_ran)

    async def stop(self) -> None:
        """End the kernel and all that came of it."""
        await self._end("closed")

    async def run(self, code: str, timeout: float | None = None) -> CellResult:
        """Run a cell; what it does is a result, only a death beyond all restarts is raised."""
        begun = time.monotonic()
        limit = timeout or self._settings.cell_timeout
        process, cell = self._process, Cell(self._settings.max_cell_chars)
        if process is None:
            raise KernelDied("start", "the kernel is closed", by_code=self.code_ran)
        shell, _, control = self._channels
        if process.code is not None:
            return await self._died(cell, begun, ran=False)
        self.cells += 1
        if late := self._late.text:
            cell.output.write(f"[output of earlier cells]\n{late}\n[output of this cell]\n")
            self._late = Output(self._settings.max_cell_chars)
        content = {"code": code, "allow_stdin": False, "stop_on_error": False}
        silent = {"silent": False, "store_history": True, "user_expressions": {}}
        self._bytes_before, self._cell, self.code_ran = self._bytes(), cell, True
        cell.id = shell.send("execute_request", content | silent)
        try:
            ended = await self._first(cell, process, limit)
            if ended == "time":
                self.timeouts += 1
                cell.output.write(f"\n[the cell ran for {limit:g} s and was interrupted]\n")
                self._interrupt(control, process)
                ended = await self._first(cell, process, GRACE)
                if ended == "time":
                    return await self._hung(cell, begun)
                if ended == "done":
                    return self._result(cell, begun, timed_out=True)
        finally:
            self._cell = None
        if ended == "death":
            return await self._died(cell, begun)
        return self._result(cell, begun)

    def facts(self) -> dict[str, Any]:
        """What is recorded of the episode; the limits stand with the session."""
        probe = self._sandbox.probed
        return {
            **{"backend": self._sandbox.settings.active_backend, "language": self.language},
            **{"version": probe.version if probe else "", "unsafe": self._settings.unsafe},
            **{"network": self._settings.network, "memory": self._sandbox.memory},
            **{"started": self._started, "cells": self.cells, "timeouts": self.timeouts},
            **{"restarts": self.restarts, "deaths": self.deaths, "peak_work": self.peak_work},
            **{"peak_memory": self.peak_memory, "exit": self.exit},
        }

    def _result(self, cell: Cell, begun: float, **values: Any) -> CellResult:
        output, seconds = cell.output, time.monotonic() - begun
        images = tuple(output.images)
        return CellResult(output.text, images, output.error, seconds=seconds, **values)

    async def _first(self, cell: Cell, process: Process, limit: float) -> str:
        """What comes first: the cell is ``done``, the kernel's ``death``, or its ``time`` is up."""
        done = asyncio.create_task(cell.done())
        death = asyncio.create_task(process.wait())
        wanted = {done, death}
        try:
            await asyncio.wait(wanted, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
            return "done" if done.done() else "death" if death.done() else "time"
        finally:
            for task in wanted:
                task.cancel()

    async def _hung(self, cell: Cell, begun: float) -> CellResult:
        """A cell that cannot be interrupted costs its kernel."""
        await self._end("cell_timeout")
        await self._restart(cell)
        cell.output.write(f"{NEW_KERNEL}\n")
        return self._result(cell, begun, timed_out=True, restarted=True)

    async def _died(self, cell: Cell, begun: float, *, ran: bool = True) -> CellResult:
        """A kernel that died is started again, as often as the settings allow."""
        self.deaths += 1
        reason = self._reason()
        await self._end(reason)
        when = "while it ran this cell" if ran else "before this cell, which was not run"
        message = f"the kernel died {when} ({DEATHS[reason]})"
        if reason == "work_size" or self.deaths > self._settings.max_kernel_restarts:
            text = cell.output.text
            raise KernelDied(reason, message, text, by_code=self.code_ran, ran=ran)
        await self._restart(cell)
        cell.output.write(f"\n[{message}]\n{NEW_KERNEL}\n")
        return self._result(cell, begun, restarted=True, died=reason, ran=ran)

    async def _restart(self, cell: Cell) -> None:
        """Start a new kernel; KernelDied keeps what the cell had written."""
        self.restarts += 1
        try:
            await self.start()
        except KernelDied as death:
            death.text = cell.output.text
            raise

    async def _silence(self, process: Process) -> str:
        """Why a kernel does not answer: its own last words, or what ended it."""
        if process.code is None:
            return "no answer in time"
        await asyncio.wait(self._tasks[:1], timeout=LATE)  # all that it said is read
        lines = plain(self._errors.decode("utf-8", "replace")).strip().splitlines()
        return lines[-1][:300] if lines else DEATHS[self._reason()]

    def _reason(self) -> Death:
        """Why the process is gone, from what the supervisor and its exit code say."""
        process = self._process
        assert process is not None
        if self._trouble is not None:
            return self._trouble
        if process.reason in ("memory", "host_memory"):
            return process.reason
        code = process.code or 0
        number = -code if code < 0 else code - 128 if code > 128 else 0
        if number == signal.SIGXCPU:
            return "cpu"
        if number == signal.SIGKILL:
            return "memory" if process.peak > 0.9 * self._sandbox.memory else "killed"
        return "signal" if number else "exit"

    def _interrupt(self, control: Channel, process: Process) -> None:
        if self.language == "python":
            control.send("interrupt_request", {})
        elif isinstance(self._sandbox.backend, Bubblewrap):
            # IRkernel does not listen for the message: a signal, to all but bubblewrap itself.
            for pid in below(process.pid, table()):
                with suppress(OSError):
                    if Path(f"/proc/{pid}/comm").read_text().strip() != "bwrap":
                        os.kill(pid, signal.SIGINT)

    async def _connect(self, run: Path, key: bytes) -> None:
        """Connect as soon as the kernel listens, and wait until it is heard on all channels."""
        kinds: tuple[tuple[int, Literal["DEALER", "SUB"]], ...]
        kinds = (1, "DEALER"), (2, "SUB"), (4, "DEALER")
        for number, kind in kinds:
            while True:
                self._check()
                try:
                    channel = await Channel.connect(run / f"k-{number}", kind, key)
                except (FileNotFoundError, ConnectionRefusedError, BlockingIOError):
                    await asyncio.sleep(0.02)
                else:
                    self._channels.append(channel)
                    break
        shell, iopub, _ = self._channels
        self._cell = cell = Cell(0)
        self._tasks += [asyncio.create_task(self._listen(each)) for each in (shell, iopub)]
        while not cell.idle.is_set():
            self._check()
            cell.id = shell.send("kernel_info_request", {})
            with suppress(TimeoutError):
                await asyncio.wait_for(cell.idle.wait(), 0.5)
        self._cell = None

    def _check(self) -> None:
        if self._process is None or self._process.code is not None:
            raise EOFError

    async def _listen(self, channel: Channel) -> None:
        """Give what the kernel says to the cell that it belongs to; read past the rest."""
        with suppress(OSError, EOFError):
            while True:
                message = await channel.receive()
                cell = self._cell
                if cell is None or message.parent != cell.id:
                    if message.kind == "stream":
                        self._late.take(message)
                    continue
                if message.kind.endswith("_reply"):
                    cell.replied.set()
                elif message.kind == "status":
                    if message.content.get("execution_state") == "idle":
                        cell.idle.set()
                else:
                    cell.output.take(message)

    def _bytes(self) -> int:
        """Return how many bytes the process has sent so far, over all ways to Keju."""
        return self._error_bytes + sum(channel.heard for channel in self._channels)

    async def _watch_output(self) -> None:
        """End a kernel that sends without end, in a cell or after it."""
        while self._bytes() - self._bytes_before < MOST_OUTPUT:
            await asyncio.sleep(0.25)
        self._stop_for("output")

    def _stop_for(self, reason: Death) -> None:
        self._trouble = reason
        if self._process is not None:
            self._process.kill()

    async def _keep_errors(self) -> None:
        """Keep the end of what the process says outside of its cells."""
        assert self._process is not None
        assert self._process.stderr is not None
        while data := await self._process.stderr.read(2**16):
            self._errors = (self._errors + data)[-4096:]
            self._error_bytes += len(data)

    async def _watch_folders(self, run: Path) -> None:
        """Look how large the folders are; too large ends the kernel."""
        while True:
            begun = time.monotonic()
            if await self._measure(self.work, run) > self._settings.max_work_bytes:
                self._stop_for("work_size")
            await asyncio.sleep(min(5.0, max(1.0, 10 * (time.monotonic() - begun))))

    async def _measure(self, *folders: Path) -> int:
        """Return the bytes in folders, and in files that were deleted from them and are still open.

        0 where the host cannot say it at this moment.
        """
        size = 0
        with suppress(OSError):
            size = await asyncio.to_thread(size_of, folders, self._settings.max_work_bytes)
        if self._process is not None:
            with suppress(OSError):
                tree = below(self._process.pid, table())
                size += await asyncio.to_thread(deleted_bytes, tree, self.work)
        self.peak_work = max(self.peak_work, size)
        return size

    async def _end(self, reason: str) -> None:
        """Let go of everything."""
        process, self._process = self._process, None
        if process is None:
            return
        self.exit = reason
        await process.end()
        self.peak_memory = max(self.peak_memory, process.peak)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for channel in self._channels:
            channel.close()
        self._tasks, self._channels = [], []
        await self._measure(self.work)


SOCKETS = ("shell", "iopub", "stdin", "control", "hb")
# As the first process of a container a kernel could be neither interrupted nor killed: it becomes
# the second. Without its debugger it starts in three quarters of the time. What child processes
# write is passed on ten times sooner than usual, so that it belongs to its cell.
#
# No module is imported from the work folder before the kernel is ready, and none of its files can
# take the place of a module that the kernel imports later: the folder comes last in the path.
LAUNCHER = """
import sys
sys.path[:] = [folder for folder in sys.path if folder not in ("", ".")]
import os
kernel = os.fork() if os.getpid() == 1 else 0
while kernel:
    pid, status = os.wait()
    if pid == kernel:
        code = os.waitstatus_to_exitcode(status)
        os._exit(code if code >= 0 else 128 - code)
sys.modules["debugpy"] = None
from ipykernel.iostream import OutStream
OutStream.flush_interval = 0.02
from ipykernel.kernelapp import IPKernelApp
start = IPKernelApp.start
def start_with_work_folder(app):
    if sys.prefix == sys.base_prefix:
        import site
        sys.path.append(site.getusersitepackages())
    sys.path.append("")
    return start(app)
IPKernelApp.start = start_with_work_folder
IPKernelApp.init_path = lambda app: None
IPKernelApp.launch_instance()
"""
PYTHON_KERNEL = ("-s", "-c", LAUNCHER, "--HistoryManager.enabled=False", "-f")
# Profiles, variables and saved objects in the work folder are not read at the start.
R_START = ("--no-init-file", "--no-environ", "--no-restore")
R_KERNEL = ("R", "--slave", *R_START, "-e", "IRkernel::main()", "--args")
NEW_KERNEL = "[a new kernel was started: all variables and imports are gone, files are still there]"
DEATHS: dict[Death, str] = {
    "exit": "it ended itself",
    "killed": "it was killed",
    "signal": "a signal ended it",
    "memory": "it took too much memory",
    "host_memory": "the host ran out of memory",
    "cpu": "it took too much processor time",
    "work_size": "the work folder grew too large",
    "output": "it wrote too much output",
    "start": "it did not start",
}
