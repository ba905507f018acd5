"""A server that Keju starts for a run: start, wait, watch, restart once, end.

The supervisor starts it, so it ends whenever Keju ends, even by kill -9. It has a separate process
session, so Ctrl-C in the terminal does not reach it and requests in flight can finish.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from keju.config import TaskConfig
from keju.config.arms import expand, find_references
from keju.config.serving import HIDDEN, PORT, find_keys, redact_command, split_command
from keju.errors import ConfigError, EndpointError, KejuError, Notice, RunIncomplete
from keju.files import open_for_writing
from keju.messages import printable
from keju.models.base import Model, Redactor
from keju.models.registry import make_model
from keju.progress.display import NotePrinter
from keju.solvers.sandbox.supervisor import DEVNULL, SupervisedProcess, Supervisor

LOG: Final = "server.log"
"""The file with the server's output, in the folder of its run."""
HOST: Final = "127.0.0.1"
LOOK_EVERY = 0.25
"""Seconds between two checks of a server that does not answer yet."""
GRACE = 15.0
"""Seconds in which a server may end by itself."""
TAIL_LINES, TAIL_BYTES = 30, 20_000
RESTARTS = 1
MISSING = (404, 405, 501)
"""Statuses of a server without the route."""


def served_model(config: TaskConfig, notes: NotePrinter) -> Model:
    """Return the model of a task whose server starts with the session; raise ConfigError if
    impossible."""
    server = LocalServer(config, notes)
    url = f"http://{HOST}:{server.port}/v1"
    model = make_model(config.model_copy(update={"api_url": url, "serve": None}))
    model.server = server
    return model


class LocalServer:
    """A program that serves a model at a port of this machine."""

    def __init__(self, config: TaskConfig, notes: NotePrinter) -> None:
        assert config.serve is not None
        words = split_command(config.serve)
        if any(HIDDEN in word for word in words):
            raise ConfigError("serve_hidden", command=config.serve)
        program = shutil.which(expand(words[0], os.environ))
        if program is None:
            raise ConfigError("serve_program_missing", program=words[0])
        self.port = _free_port()
        arguments = [expand(word, os.environ).replace(PORT, str(self.port)) for word in words[1:]]
        self._argv = [str(Path(program).absolute()), *arguments]
        self._shown = redact_command(config.serve)
        keys = [os.environ.get(name, "") for name in find_references(config.serve)]
        self._hide = Redactor([*keys, *find_keys(words)], keys)
        self._patience = config.give_up_after
        self._notes = notes
        self.folder = Path()
        self._supervisor = Supervisor()
        self._process: SupervisedProcess | None = None
        self._watching: asyncio.Task[None] | None = None
        self._answered = False
        self._starts = 0

    @property
    def _log(self) -> Path:
        return self.folder / LOG

    def facts(self) -> dict[str, Any]:
        """Return the command and the number of starts, never a secret."""
        return {"command": self._shown, "starts": self._starts, "log": LOG}

    async def start(
        self, on_down: Callable[[Any], None], on_lost: Callable[[KejuError], None]
    ) -> None:
        """Start it and wait until it answers; raise EndpointError if it does not.

        Later `on_down` is called when it has ended, and `on_lost` when it will not be started
        again.
        """
        self._notes.note(Notice("serve_starts", {"command": self._shown, "log": self._log}).message)
        await self._start_process()
        problem = await self._wait_until_ready()
        if problem is not None:
            raise EndpointError(problem.code, **problem.values)
        self._answered = True
        self._notes.note(Notice("serve_answers", {"port": self.port}).message)
        self._watching = asyncio.get_running_loop().create_task(self._watch(on_down, on_lost))

    async def close(self) -> None:
        """End it with everything that it started."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
        if self._process is not None:
            await self._process.end(GRACE)
        await self._supervisor.close()
        if not self._answered:  # a failed start leaves no log
            self._log.unlink(missing_ok=True)

    async def _start_process(self) -> None:
        self._starts += 1
        try:
            fd = open_for_writing(self._log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            with os.fdopen(fd, "ab") as log:
                self._process = await self._supervisor.start(
                    self._argv,
                    env=dict(os.environ),
                    cwd=Path.cwd(),
                    stdin=DEVNULL,
                    stdout=log.fileno(),
                    stderr=log.fileno(),
                )
        except OSError as error:
            problem = error.strerror or str(error)
            raise EndpointError("serve_not_started", problem=problem) from None

    async def _wait_until_ready(self) -> Notice | None:
        """Wait until it answers; return the problem if it ends before or takes too long."""
        process = self._process
        assert process is not None
        with suppress(TimeoutError):
            async with asyncio.timeout(self._patience):
                while process.code is None:
                    if await self._is_ready():
                        return None
                    await asyncio.sleep(LOOK_EVERY)
        self._show_log_tail()
        if process.code is None:
            return Notice("serve_silent", {"seconds": self._patience})
        return Notice("serve_ended", {"code": process.code})

    async def _is_ready(self) -> bool:
        """Whether its model is loaded. Servers listen before that and report it at ``/health``."""
        status = await self._fetch_status("/health")
        if status in MISSING:
            status = await self._fetch_status("/v1/models")
        return status is not None and status < 500  # a server that asks for a key is ready

    async def _fetch_status(self, path: str) -> int | None:
        """Return the status of a route; None if there is no answer."""
        with suppress(OSError, ValueError, IndexError, TimeoutError):
            async with asyncio.timeout(10):
                reader, writer = await asyncio.open_connection(HOST, self.port)
                try:
                    host = f"{HOST}:{self.port}"
                    lines = f"GET {path} HTTP/1.1", f"Host: {host}", "Connection: close", "", ""
                    writer.write("\r\n".join(lines).encode())
                    return int((await reader.readline()).split()[1])  # ``HTTP/1.1 200 OK``
                finally:
                    writer.close()
        return None

    async def _watch(
        self, on_down: Callable[[Any], None], on_lost: Callable[[KejuError], None]
    ) -> None:
        """Restart it once after it has ended."""
        while True:
            assert self._process is not None
            exit_code = await self._process.wait()
            end_notice = Notice("serve_ended", {"code": exit_code})
            self._show_log_tail()
            if self._starts > RESTARTS:
                on_lost(RunIncomplete("serve_ended_again", code=exit_code))
                return
            self._notes.warn(Notice("serve_again", {"code": exit_code}).message)
            on_down(end_notice)
            try:
                await self._start_process()
                problem = await self._wait_until_ready()
            except EndpointError as error:
                problem = error.notice
            if problem is not None:
                on_lost(RunIncomplete(problem.code, **problem.values))
                return

    def _show_log_tail(self) -> None:
        """Show the end of its output."""
        with suppress(OSError):
            with self._log.open("rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - TAIL_BYTES))
                lines = log.read().decode("utf-8", "replace").splitlines()[-TAIL_LINES:]
            for line in lines:
                self._notes.warn(f"  | {self._hide(printable(line, one_line=True))}")


def _free_port() -> int:
    """Return an unused port of this machine."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
