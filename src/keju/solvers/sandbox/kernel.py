"""A sandboxed Jupyter kernel: cells with a time limit, restarts, and named reasons for deaths."""

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

from keju.solvers.sandbox.backends import Bubblewrap, ProgramLocation, choose_owner
from keju.solvers.sandbox.folders import change_owner, count_deleted_bytes, size_of
from keju.solvers.sandbox.output import CellOutput, CellResult, strip_terminal_codes
from keju.solvers.sandbox.supervisor import SupervisedProcess
from keju.solvers.sandbox.supervisor_process import descendants, read_processes
from keju.solvers.sandbox.wire import KernelSocket

if TYPE_CHECKING:
    from keju.solvers.sandbox.sandbox import Sandbox

Language = Literal["python", "r"]
Death = Literal[
    "exit", "killed", "signal", "memory", "host_memory", "cpu", "work_size", "output", "start"
]
"""Why a kernel died: it exited, was killed from inside or by another signal, used too much memory,
processor time, disk or output, or never started; ``host_memory``: the host ran out of memory."""

GRACE: Final = 5.0
"""Seconds in which an interrupted cell may end."""
LATE: Final = 30.0
"""Seconds between the reply and the last output. A working kernel sends it at once, but on a host
without a free core it may pause between the two."""
SETTLING: Final = 0.05
"""Seconds to wait for output of child processes, which the kernel reads separately from the cell's
output."""
MOST_OUTPUT: Final = 256 * 2**20
"""Bytes that a kernel may send from the start of one cell to the start of the next."""


class KernelDied(Exception):
    """The kernel is gone and is not started again; `reason` names the cause."""

    def __init__(
        self, reason: Death, message: str, text: str = "", *, by_code: bool, ran: bool = True
    ) -> None:
        super().__init__(message)
        self.reason: Death = reason
        self.by_code = by_code
        """Whether code of a model had run in this episode. It could have caused any death, so it
        counts as the cause. Otherwise a model could choose not to be graded."""
        self.ran = ran
        """Whether the last cell was started."""
        self.text = text
        """The output of the last cell."""


class RunningCell:
    """A cell that is being run."""

    def __init__(self, max_chars: int) -> None:
        self.id = ""
        self.output = CellOutput(max_chars)
        self.idle = asyncio.Event()
        self.replied = asyncio.Event()

    async def wait_done(self) -> None:
        """Wait for the cell's end: all output has arrived, or only the reply after a timeout."""
        await self.replied.wait()
        with suppress(TimeoutError):
            await asyncio.wait_for(self.idle.wait(), LATE)
            await asyncio.sleep(SETTLING)


class Kernel:
    """One kernel of one episode; `Sandbox.kernel` makes it."""

    def __init__(self, sandbox: Sandbox, work: Path, language: Language) -> None:
        self._sandbox, self.work, self.language = sandbox, work, language
        self._settings = sandbox.settings
        self._user = choose_owner()
        self._cell: RunningCell | None = None
        self._late = CellOutput(self._settings.max_cell_chars)
        """Output of earlier cells after their end."""
        self._process: SupervisedProcess | None = None
        self._channels: list[KernelSocket] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._stop_reason: Death | None = None
        self._errors = b""
        self._error_bytes = self._bytes_before = 0
        """Bytes that the process wrote outside of its cells, and bytes sent when the cell began."""
        self.code_ran = False
        """Whether any cell was sent to a kernel of this episode."""
        self._started = time.time()
        self.cells = self.timeouts = self.restarts = self.deaths = 0
        self.peak_work = self.peak_memory = 0
        self.exit: str | None = None
        change_owner(work, self._user)

    async def start(self) -> None:
        """Start the process and wait until it answers; raise KernelDied if it does not."""
        key = secrets.token_hex(32)
        self._stop_reason, self._errors, self._error_bytes, self._bytes_before = None, b"", 0, 0
        try:
            room = self._sandbox.room(self.work, self._user)
            launch = self._sandbox.backend.launch(room, self._command(room, key))
            self._process = await self._sandbox.start(launch, room)
        except OSError as error:
            raise self._start_error(str(error.strerror)) from None
        watched = self._read_errors(), self._watch_folders(room.run), self._watch_output()
        self._tasks = [asyncio.create_task(watcher) for watcher in watched]
        try:
            async with asyncio.timeout(self._settings.start_timeout):
                await self._connect(room.run, key.encode())
        except (TimeoutError, OSError, EOFError):
            problem = await self._explain_silence(self._process)
            await self._end("start")
            raise self._start_error(problem) from None

    def _command(self, room: ProgramLocation, key: str) -> list[str]:
        """Write the connection file and return the command that starts a kernel with it."""
        backend = self._sandbox.backend
        _, run = backend.inside(room)
        ports = {f"{name}_port": number for number, name in enumerate(SOCKETS, 1)}
        connection = {**ports, "transport": "ipc", "ip": f"{run}/k", "key": key}
        file = room.run / "kernel.json"
        file.write_text(json.dumps(connection | {"signature_scheme": "hmac-sha256"}))
        change_owner(room.run, self._user)
        commands: dict[Language, list[str]] = {
            "python": [backend.python, *PYTHON_KERNEL, f"{run}/{file.name}"],
            "r": [*R_KERNEL, f"{run}/{file.name}"],
        }
        return commands[self.language]

    def _start_error(self, problem: str) -> KernelDied:
        message = f"the kernel did not start: {problem}"
        return KernelDied("start", message, by_code=self.code_ran)

    async def stop(self) -> None:
        """End the kernel and all its processes."""
        await self._end("closed")

    async def run(self, code: str, timeout: float | None = None) -> CellResult:
        """Run a cell and return its result; raise KernelDied only if no restart is left."""
        started = time.monotonic()
        limit = timeout or self._settings.cell_timeout
        process, cell = self._process, RunningCell(self._settings.max_cell_chars)
        if process is None:
            raise KernelDied("start", "the kernel is closed", by_code=self.code_ran)
        shell, _, control = self._channels
        if process.code is not None:
            return await self._handle_death(cell, started, ran=False)
        self.cells += 1
        if late_output := self._late.text:
            cell.output.write(f"[output of earlier cells]\n{late_output}\n[output of this cell]\n")
            self._late = CellOutput(self._settings.max_cell_chars)
        content = {"code": code, "allow_stdin": False, "stop_on_error": False}
        options = {"silent": False, "store_history": True, "user_expressions": {}}
        self._bytes_before, self._cell, self.code_ran = self._count_bytes(), cell, True
        cell.id = shell.send("execute_request", content | options)
        try:
            end = await self._wait_for_end(cell, process, limit)
            if end == "time":
                self.timeouts += 1
                cell.output.write(f"\n[the cell ran for {limit:g} s and was interrupted]\n")
                self._interrupt(control, process)
                end = await self._wait_for_end(cell, process, GRACE)
                if end == "time":
                    return await self._handle_hang(cell, started)
                if end == "done":
                    return self._result(cell, started, timed_out=True)
        finally:
            self._cell = None
        if end == "death":
            return await self._handle_death(cell, started)
        return self._result(cell, started)

    def facts(self) -> dict[str, Any]:
        """Return the facts of the episode; the limits are recorded with the session."""
        probe = self._sandbox.probed
        return {
            **{"backend": self._sandbox.settings.active_backend, "language": self.language},
            **{"version": probe.version if probe else "", "unsafe": self._settings.unsafe},
            **{"network": self._settings.network, "memory": self._sandbox.memory},
            **{"started": self._started, "cells": self.cells, "timeouts": self.timeouts},
            **{"restarts": self.restarts, "deaths": self.deaths, "peak_work": self.peak_work},
            **{"peak_memory": self.peak_memory, "exit": self.exit},
        }

    def _result(self, cell: RunningCell, started: float, **values: Any) -> CellResult:
        output, seconds = cell.output, time.monotonic() - started
        images = tuple(output.images)
        return CellResult(output.text, images, output.error, seconds=seconds, **values)

    async def _wait_for_end(
        self, cell: RunningCell, process: SupervisedProcess, limit: float
    ) -> str:
        """Return what happens first: the cell is ``done``, the kernel's ``death``, or its ``time``
        is up."""
        cell_done = asyncio.create_task(cell.wait_done())
        death = asyncio.create_task(process.wait())
        tasks = {cell_done, death}
        try:
            await asyncio.wait(tasks, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
            return "done" if cell_done.done() else "death" if death.done() else "time"
        finally:
            for task in tasks:
                task.cancel()

    async def _handle_hang(self, cell: RunningCell, started: float) -> CellResult:
        """End the kernel of a cell that cannot be interrupted, and start another one."""
        await self._end("cell_timeout")
        await self._restart(cell)
        cell.output.write(f"{NEW_KERNEL}\n")
        return self._result(cell, started, timed_out=True, restarted=True)

    async def _handle_death(
        self, cell: RunningCell, started: float, *, ran: bool = True
    ) -> CellResult:
        """Start a dead kernel again, as often as the settings allow."""
        self.deaths += 1
        reason = self._find_reason()
        await self._end(reason)
        when = "while it ran this cell" if ran else "before this cell, which was not run"
        message = f"the kernel died {when} ({DEATHS[reason]})"
        if reason == "work_size" or self.deaths > self._settings.max_kernel_restarts:
            text = cell.output.text
            raise KernelDied(reason, message, text, by_code=self.code_ran, ran=ran)
        await self._restart(cell)
        cell.output.write(f"\n[{message}]\n{NEW_KERNEL}\n")
        return self._result(cell, started, restarted=True, died=reason, ran=ran)

    async def _restart(self, cell: RunningCell) -> None:
        """Start a new kernel; a KernelDied keeps the cell's output."""
        self.restarts += 1
        try:
            await self.start()
        except KernelDied as death:
            death.text = cell.output.text
            raise

    async def _explain_silence(self, process: SupervisedProcess) -> str:
        """Return why a kernel does not answer: its last line of errors, or the reason of its
        end."""
        if process.code is None:
            return "no answer in time"
        await asyncio.wait(self._tasks[:1], timeout=LATE)  # until all its errors have been read
        lines = strip_terminal_codes(self._errors.decode("utf-8", "replace")).strip().splitlines()
        return lines[-1][:300] if lines else DEATHS[self._find_reason()]

    def _find_reason(self) -> Death:
        """Return why the process is gone, from the supervisor's report and its exit code."""
        process = self._process
        assert process is not None
        if self._stop_reason is not None:
            return self._stop_reason
        if process.reason in ("memory", "host_memory"):
            return process.reason
        code = process.code or 0
        number = -code if code < 0 else code - 128 if code > 128 else 0
        if number == signal.SIGXCPU:
            return "cpu"
        if number == signal.SIGKILL:
            return "memory" if process.peak > 0.9 * self._sandbox.memory else "killed"
        return "signal" if number else "exit"

    def _interrupt(self, control: KernelSocket, process: SupervisedProcess) -> None:
        if self.language == "python":
            control.send("interrupt_request", {})
        elif isinstance(self._sandbox.backend, Bubblewrap):
            # IRkernel ignores the message, so every process except bubblewrap gets a signal.
            for pid in descendants(process.pid, read_processes()):
                with suppress(OSError):
                    if Path(f"/proc/{pid}/comm").read_text().strip() != "bwrap":
                        os.kill(pid, signal.SIGINT)

    async def _connect(self, run: Path, key: bytes) -> None:
        """Connect as soon as the kernel listens, and wait for a message on each channel."""
        kinds: tuple[tuple[int, Literal["DEALER", "SUB"]], ...]
        kinds = (1, "DEALER"), (2, "SUB"), (4, "DEALER")
        for number, kind in kinds:
            while True:
                self._check_alive()
                try:
                    channel = await KernelSocket.connect(run / f"k-{number}", kind, key)
                except (FileNotFoundError, ConnectionRefusedError, BlockingIOError):
                    await asyncio.sleep(0.02)
                else:
                    self._channels.append(channel)
                    break
        shell, iopub, _ = self._channels
        self._cell = cell = RunningCell(0)
        self._tasks += [asyncio.create_task(self._listen(channel)) for channel in (shell, iopub)]
        while not cell.idle.is_set():
            self._check_alive()
            cell.id = shell.send("kernel_info_request", {})
            with suppress(TimeoutError):
                await asyncio.wait_for(cell.idle.wait(), 0.5)
        self._cell = None

    def _check_alive(self) -> None:
        if self._process is None or self._process.code is not None:
            raise EOFError

    async def _listen(self, channel: KernelSocket) -> None:
        """Pass the kernel's messages to the cell that they belong to; skip the others."""
        with suppress(OSError, EOFError):
            while True:
                message = await channel.receive()
                cell = self._cell
                if cell is None or message.parent != cell.id:
                    if message.kind == "stream":
                        self._late.add(message)
                    continue
                if message.kind.endswith("_reply"):
                    cell.replied.set()
                elif message.kind == "status":
                    if message.content.get("execution_state") == "idle":
                        cell.idle.set()
                else:
                    cell.output.add(message)

    def _count_bytes(self) -> int:
        """Return how many bytes the process has sent to Keju so far, over all channels."""
        return self._error_bytes + sum(channel.heard for channel in self._channels)

    async def _watch_output(self) -> None:
        """End a kernel that sends endlessly, in a cell or after it."""
        while self._count_bytes() - self._bytes_before < MOST_OUTPUT:
            await asyncio.sleep(0.25)
        self._kill_for("output")

    def _kill_for(self, reason: Death) -> None:
        self._stop_reason = reason
        if self._process is not None:
            self._process.kill()

    async def _read_errors(self) -> None:
        """Keep the end of what the process writes outside of its cells."""
        assert self._process is not None
        assert self._process.stderr is not None
        while data := await self._process.stderr.read(2**16):
            self._errors = (self._errors + data)[-4096:]
            self._error_bytes += len(data)

    async def _watch_folders(self, run: Path) -> None:
        """Measure the folders repeatedly, and end the kernel if they are too large."""
        while True:
            started = time.monotonic()
            if await self._measure(self.work, run) > self._settings.max_work_bytes:
                self._kill_for("work_size")
            await asyncio.sleep(min(5.0, max(1.0, 10 * (time.monotonic() - started))))

    async def _measure(self, *folders: Path) -> int:
        """Return the bytes in folders, and in deleted files that are still open.

        0 if the host cannot measure it at the moment.
        """
        size = 0
        with suppress(OSError):
            size = await asyncio.to_thread(size_of, folders, self._settings.max_work_bytes)
        if self._process is not None:
            with suppress(OSError):
                tree = descendants(self._process.pid, read_processes())
                size += await asyncio.to_thread(count_deleted_bytes, tree, self.work)
        self.peak_work = max(self.peak_work, size)
        return size

    async def _end(self, reason: str) -> None:
        """Stop the process, and close all channels and tasks."""
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
# As the first process of a container a kernel could be neither interrupted nor killed, so it
# becomes the second one. Without its debugger it starts in three quarters of the time. The output
# of child processes is flushed ten times more often than by default, so that it belongs to its
# cell. No module is imported from the work folder before the kernel is ready, and no file there can
# replace a module that the kernel imports later: the folder comes last in the path.
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
