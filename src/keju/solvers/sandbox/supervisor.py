"""Keju's side of the supervisor: starts programs, talks to them over pipes, ends their process
trees."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal, Self

from keju.solvers.sandbox import supervisor_process
from keju.solvers.sandbox.folders import open_folder, remove

PREFIX: Final = "keju-"
"""Prefix of the session folders; the process id of their Keju follows."""
LONGEST_PLACE: Final = 60
"""Longest temporary folder in bytes that leaves room for a socket's path, which has at most 107."""
PIPE: Final = subprocess.PIPE
DEVNULL: Final = subprocess.DEVNULL
Reason = Literal["killed", "memory", "host_memory", "keju_gone", "keeper_lost", "supervisor_lost"]
"""Why a tree was ended; None if the program ended by itself."""


class SupervisedProcess:
    """A program that the supervisor has started, with its process tree."""

    def __init__(self, supervisor: Supervisor, number: int) -> None:
        self._supervisor, self._number = supervisor, number
        loop = asyncio.get_running_loop()
        self._started: asyncio.Future[int] = loop.create_future()
        self._ended: asyncio.Future[int] = loop.create_future()
        self.pid = 0
        self.stdin: asyncio.StreamWriter | None = None
        self.stdout: asyncio.StreamReader | None = None
        self.stderr: asyncio.StreamReader | None = None
        self.reason: Reason | None = None
        self.peak = 0
        """The peak of the measured memory in bytes; 0 without a limit."""
        self._pipes: list[asyncio.BaseTransport] = []

    @property
    def code(self) -> int | None:
        """The exit code after the whole tree is gone, -9 for SIGKILL; None before."""
        return self._ended.result() if self._ended.done() else None

    async def wait(self) -> int:
        """Wait until the whole tree is gone and the cleanup is done."""
        return await asyncio.shield(self._ended)

    def signal(self, number: int) -> None:
        """Send a signal to the program and its process group."""
        self._supervisor._send_order({"id": self._number, "do": "signal", "number": int(number)})

    def kill(self) -> None:
        """End the whole tree at once."""
        self._supervisor._send_order({"id": self._number, "do": "kill"})

    async def end(self, grace: float = 0.0) -> int:
        """Close the program's input, then send SIGTERM, then end the tree; wait `grace` seconds
        each."""
        with suppress(TimeoutError):
            if grace and self.code is None:
                if self.stdin is not None:
                    self.stdin.close()
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self.wait(), grace)
                self.signal(signal.SIGTERM)
                await asyncio.wait_for(self.wait(), grace)
        self.kill()
        code = await self.wait()
        self.close()
        return code

    def close(self) -> None:
        """Close the pipes."""
        for pipe in self._pipes:
            pipe.close()

    def _handle_event(self, event: dict[str, Any]) -> None:
        match event["event"]:
            case "started":
                self.pid = event["pid"]
                if not self._started.done():
                    self._started.set_result(self.pid)
            case "failed" if not self._started.done():
                number = event["number"]
                problem = os.strerror(number) if number else event["problem"]
                self._started.set_exception(OSError(number, problem))
            case "ended":
                self.reason, self.peak = event.get("reason"), event.get("peak", 0)
                if not self._started.done():
                    self._started.set_exception(OSError(0, f"not started: {self.reason}"))
                if not self._ended.done():
                    self._ended.set_result(event.get("code") or 0)

    async def _connect(self, name: str, file: int, buffer: int) -> None:
        """Make a stream of Keju's end of a pipe."""
        loop = asyncio.get_running_loop()
        # uvloop closes the descriptor itself, and the file object would close it a second time:
        # that could be a file which another thread has opened in between.
        is_closed_by_file = isinstance(loop, asyncio.BaseEventLoop)
        mode = "wb" if name == "stdin" else "rb"
        pipe = os.fdopen(file, mode, buffering=0, closefd=is_closed_by_file)
        if name == "stdin":
            flow, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, pipe)
            self.stdin = asyncio.StreamWriter(flow, protocol, None, loop)
            self._pipes.append(flow)
            return
        reader = asyncio.StreamReader(limit=buffer)
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), pipe
        )
        setattr(self, name, reader)
        self._pipes.append(transport)


class Supervisor:
    """One process that starts all others; it is started with the first of them.

        >>> async with Supervisor() as supervisor:
        ...     process = await supervisor.start(["cat"], env={})

    Any end of Keju, even by kill -9, ends every tree.
    """

    def __init__(self) -> None:
        self._link: socket.socket | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._buffer = b""
        self._processes: dict[int, SupervisedProcess] = {}
        self._number = 0
        self._gone: asyncio.Future[None] | None = None
        self._roots: list[Path] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def pid(self) -> int | None:
        """The supervisor's own process id, while it runs."""
        return self._child.pid if self._child is not None else None

    def folder(self, kind: str, *, short: bool = False) -> Path:
        """Return a new empty folder. It is removed with the supervisor at the latest, however Keju
        ends.

        Sockets need a `short` path.
        """
        self._begin()
        return Path(tempfile.mkdtemp(prefix=f"{kind}-", dir=self._roots[short]))

    async def start(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str | Path | None = None,
        stdin: int = PIPE,
        stdout: int = PIPE,
        stderr: int = DEVNULL,
        limits: Mapping[str, int] | None = None,
        memory: int | None = None,
        nice: int = 0,
        after: Sequence[Sequence[str]] = (),
        remove: Sequence[str | Path] = (),
        buffer: int = 2**20,
    ) -> SupervisedProcess:
        """Start a program in a new process session; raise OSError if it cannot be started.

        `stdin`, `stdout` and `stderr` are PIPE, DEVNULL or an open file's number, which stays open
        here. `env` is the program's whole environment. `limits` are resource limits by name
        (``{"nofile": 1024}``), and `memory` limits the bytes of the whole tree. The commands in
        `after` run, and the folders in `remove` are removed, when the tree is gone, even if Keju is
        gone by then. `buffer` is the number of bytes of an output that are read ahead.
        """
        self._begin()
        self._number += 1
        process = self._processes[self._number] = SupervisedProcess(self, self._number)
        child_ends: dict[int, int] = {}
        own_ends: dict[str, int] = {}
        created: list[int] = []
        for number, (name, target) in enumerate(
            {"stdin": stdin, "stdout": stdout, "stderr": stderr}.items()
        ):
            if target == PIPE:
                ends = os.pipe()
                child_ends[number], own_ends[name] = ends if name == "stdin" else ends[::-1]
                created.append(child_ends[number])
            elif target != DEVNULL:
                child_ends[number] = target
        order = {
            **{"id": self._number, "do": "start", "argv": list(argv), "env": dict(env)},
            **{"cwd": str(cwd) if cwd is not None else None, "fds": list(child_ends)},
            **{"limits": dict(limits or {}), "memory": memory, "nice": nice},
            **{
                "after": [list(command) for command in after],
                "remove": [str(folder) for folder in remove],
            },
        }
        self._send_order(order, list(child_ends.values()))
        for file in created:
            os.close(file)
        try:
            await process._started
            for name in list(own_ends):
                await process._connect(name, own_ends.pop(name), buffer)
        except BaseException:  # also if an episode is cancelled while its program starts
            for file in own_ends.values():
                os.close(file)
            await process.end()
            raise
        return process

    async def close(self) -> None:
        """End all trees, then the supervisor; return when nothing is left of them."""
        if self._link is not None and self._gone is not None:
            self._link.shutdown(socket.SHUT_WR)
            await self._gone
            for process in self._processes.values():
                process.close()
        await asyncio.to_thread(remove, *self._roots)  # if the supervisor was killed

    def _begin(self) -> None:
        if self._link is not None:
            return
        link, child_link = socket.socketpair()
        roots = self._roots = self._roots or _make_roots()
        with child_link:
            program = [sys.executable, "-I", "-S", str(Path(supervisor_process.__file__))]
            self._child = subprocess.Popen(
                [*program, str(child_link.fileno()), str(os.getpid()), *map(str, roots)],
                pass_fds=[child_link.fileno()],
                env={},
                cwd="/",
                start_new_session=True,
                stdin=DEVNULL,
                stdout=DEVNULL,
                stderr=DEVNULL,
            )
        loop = asyncio.get_running_loop()
        self._link, self._gone, self._buffer = link, loop.create_future(), b""
        loop.add_reader(link, self._receive_events)
        for root in dict.fromkeys(roots):  # only now, when the supervisor can remove them
            _make_root(root)

    def _send_order(self, order: dict[str, Any], files: Sequence[int] = ()) -> None:
        """Send an order; orders to a supervisor that is gone are lost."""
        if self._link is not None:
            data = json.dumps(order).encode() + b"\n"
            with suppress(ConnectionError):
                sent_bytes = socket.send_fds(self._link, [data], files)
                self._link.sendall(data[sent_bytes:])

    def _receive_events(self) -> None:
        assert self._link is not None
        data = b""
        with suppress(ConnectionError):
            data = self._link.recv(65536, socket.MSG_DONTWAIT)
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for event in map(json.loads, lines):
            process = self._processes[event["id"]]
            process._handle_event(event)
            if event["event"] == "ended":
                del self._processes[event["id"]]
        if not data:
            self._handle_loss()

    def _handle_loss(self) -> None:
        """Handle the supervisor's end, after which the keepers end all trees."""
        assert self._link is not None
        assert self._child is not None
        assert self._gone is not None
        asyncio.get_running_loop().remove_reader(self._link)
        self._link.close()
        self._child.wait()
        event = {"event": "ended", "code": -signal.SIGKILL, "reason": "supervisor_lost"}
        for process in self._processes.values():
            process._handle_event(event)
            process.close()
        self._processes.clear()
        self._gone.set_result(None)
        self._link = self._child = None


def _make_root(root: Path) -> None:
    """Make a session folder; raise OSError if another user has created something at its place.

    Other users may only enter it if Keju is root, because kernels then run as other users.
    """
    mode = 0o711 if os.getuid() == 0 else 0o700
    try:
        root.mkdir(mode)
    except FileExistsError:
        status = root.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
            raise
    with open_folder(root) as folder:
        os.fchmod(folder, mode)


def _make_roots() -> list[Path]:
    """Return the folders of a session: for large files, and for sockets; usually the same."""
    name, parent = f"{PREFIX}{os.getpid()}-{secrets.token_hex(4)}", tempfile.gettempdir()
    short = parent if len(os.fsencode(parent)) <= LONGEST_PLACE else "/tmp"
    return [Path(parent, name), Path(short, name)]
