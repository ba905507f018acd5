"""Attempts of code to get out, to do harm and to stay; each is one cell and has one result.

``docs/reference-sandbox.md`` holds the result of each, and the tests compare what happens with it.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from keju.config.arms import SandboxSettings as Settings
from keju.solvers.sandbox.kernel import Kernel, KernelDied
from keju.solvers.sandbox.output import CellResult
from keju.solvers.sandbox.sandbox import Sandbox
from keju.solvers.sandbox.supervisor_process import read_processes

SECRET = "host-secret-71c9"
NOT_TRIED = "not tried"
DOCUMENT = Path(__file__).parents[3] / "docs" / "reference-sandbox.md"

# What the cells say of themselves: one line ``-> not there``.
PRELUDE = """
import ctypes, errno, os, resource, signal, socket, subprocess, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
WORDS = {
    "ENOENT": "not there", "ENOTDIR": "not there", "EROFS": "read-only", "EPERM": "not permitted",
    "EACCES": "not permitted", "ENETUNREACH": "no network", "ECONNREFUSED": "nobody listens",
    "ENOMEM": "no memory", "EAGAIN": "no more processes", "EMFILE": "no more open files",
    "EFBIG": "file too large", "ENOSPC": "no space", "ESRCH": "no such process",
    "EXDEV": "not on the same disk", "EAFNOSUPPORT": "no network", "ENOSYS": "no such call", "EINVAL": "no such user", "ENOTTY": "no terminal", "ENXIO": "no terminal",
}
def checked(value):
    if value < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return value
NUMBERS = {
    "x86_64": dict(keyctl=250, add_key=248, request_key=249, socketpair=53, clone=56, setns=308, bpf=321,
        perf_event_open=298, userfaultfd=323, open_by_handle_at=304, syslog=103, fanotify_init=300),
    "aarch64": dict(keyctl=219, add_key=217, request_key=218, socketpair=199, clone=220, setns=268, bpf=280,
        perf_event_open=241, userfaultfd=282, open_by_handle_at=265, syslog=116, fanotify_init=262),
}.get(os.uname().machine, {}) | dict(io_uring_setup=425, open_tree=428, clone3=435, memfd_secret=447)
def call(name, *arguments):
    whole = [ctypes.c_long(n) if isinstance(n, int) else n for n in arguments]
    return checked(libc.syscall(ctypes.c_long(NUMBERS[name]), *whole)) and None
def attempt(action):
    try:
        word = action() or "it worked"
    except MemoryError:
        word = "no memory"
    except socket.gaierror:
        word = "no network"
    except OSError as error:
        name = errno.errorcode.get(error.errno, str(error))
        word = WORDS.get(name, name)
    except ValueError:
        word = "not permitted"
    except Exception as error:
        word = type(error).__name__
    print(f"\\n-> {word}", flush=True)
def look(paths, wanted):
    found = []
    for path in paths:
        try:
            if wanted in open(path, "rb").read(10**6):
                found.append(path)
        except OSError:
            pass
    return f"found in {found}" if found else "nothing found"
"""


class Attempt(NamedTuple):
    group: str
    action: str
    code: str
    timeout: float = 20.0
    ends_episode: bool = False
    """Whether it costs the episode: it gets a kernel of its own."""


def _attempts() -> Iterator[Attempt]:
    """``=== files | read something | 60 s | alone`` and the code below it."""
    text = (Path(__file__).parent / "attempts.txt").read_text("utf-8")
    for part in text.split("=== ")[1:]:
        head, _, code = part.partition("\n")
        group, action, *options = head.split(" | ")
        time_limits = [float(word.removesuffix(" s")) for word in options if word != "alone"]
        yield Attempt(
            group, action, code, time_limits[0] if time_limits else 20.0, "alone" in options
        )


ATTEMPTS = tuple(_attempts())


class Host:
    """What the attempts are aimed at."""

    def __init__(self, folder: Path) -> None:
        self.secret = folder / "secret.txt"
        self.secret.write_text(SECRET)
        self.reached = 0
        self.servers = [socket.create_server(("127.0.0.1", 0))]
        names = str(folder / "socket"), f"\0keju-test-{secrets.token_hex(8)}"
        for name in names:
            server = socket.socket(socket.AF_UNIX)
            server.bind(name)
            server.listen()
            self.servers.append(server)
        values = {
            **{"SECRET_FILE": str(self.secret), "HOME": str(Path.home()), "KEJU": os.getpid()},
            **{"PORT": self.servers[0].getsockname()[1]},
            **{"SOCKET_FILE": names[0], "ABSTRACT": names[1]},
        }
        assignments = "".join(f"{name} = {value!r}\n" for name, value in values.items())
        # The secret itself stands in no code: a traceback would show it.
        self.settings = f"{assignments}SECRET = bytes({list(SECRET.encode())})\n"
        for server in self.servers:
            threading.Thread(target=self.serve, args=(server,), daemon=True).start()

    def serve(self, server: socket.socket) -> None:
        with suppress(OSError):
            while True:
                server.accept()[0].close()
                self.reached += 1

    def unharmed(self) -> bool:
        return self.secret.read_text() == SECRET and self.reached == 0


@contextmanager
def host(folder: Path) -> Iterator[Host]:
    """A host with a secret and servers that nobody must reach."""
    new_host = Host(folder)
    os.environ["KEJU_TEST_SECRET"] = SECRET
    try:
        yield new_host
    finally:
        del os.environ["KEJU_TEST_SECRET"]
        for server in new_host.servers:
            server.shutdown(socket.SHUT_RDWR)
            server.close()


def word(result: CellResult) -> str:
    """The result of an attempt in words."""
    if result.died:
        return f"kernel ended: {result.died}"
    if result.timed_out:
        return "new kernel" if result.restarted else "interrupted"
    printed_words = re.findall(r"^-> (.+)$", result.text, re.MULTILINE)
    return printed_words[-1] if printed_words else f"unexpected: {result.text[-300:]}"


async def try_all(
    settings: Settings, sandbox: Sandbox, folder: Path, target: Host
) -> dict[str, str]:
    """The result of each attempt by what was tried; the kernel answers after each."""
    results = {}
    patient = settings.model_copy(update={"max_kernel_restarts": 99})
    sandbox.settings = sandbox.backend.settings = patient
    work = folder / "work"
    work.mkdir()
    users = []
    async with sandbox.kernel(work) as kernel:
        for attempt in ATTEMPTS:
            if not attempt.ends_episode:
                result = await kernel.run(PRELUDE + target.settings + attempt.code, attempt.timeout)
                results[attempt.action] = word(result)
                assert "\x1b" not in result.text
                assert SECRET not in result.text
                assert len(result.text) < 30_000
                assert target.unharmed(), attempt.action
                lives = await kernel.run("1 + 1")
                assert lives.text.endswith("2\n"), (attempt.action, lives)
        users.append(kernel._user)
    assert kernel.exit == "closed"
    for attempt in ATTEMPTS:
        if attempt.ends_episode:
            results[attempt.action] = await try_in_new_kernel(
                sandbox, folder / attempt.action[:20], target, attempt
            )
            assert target.unharmed(), attempt.action
    assert not await asyncio.to_thread(processes_of, users)
    return results


async def try_in_new_kernel(sandbox: Sandbox, work: Path, target: Host, attempt: Attempt) -> str:
    work.mkdir()
    used_kernel: Kernel | None = None
    try:
        async with sandbox.kernel(work) as kernel:
            used_kernel = kernel
            result = await kernel.run(PRELUDE + target.settings + attempt.code, attempt.timeout)
            return word(result)
    except KernelDied as death:
        is_same_reason = used_kernel is not None and used_kernel.exit == death.reason
        return f"episode ended: {death.reason if is_same_reason else death}"


def processes_of(users: list[int | None]) -> list[int]:
    """Processes of users that no longer have any; empty where Keju is not root."""
    pids = []
    for pid in read_processes():
        with suppress(OSError):
            if Path(f"/proc/{pid}").stat().st_uid in users:
                pids.append(pid)
    return pids


def documented(backend: str) -> dict[str, str]:
    """The results that docs/reference-sandbox.md gives for a backend, except for what was not tried."""
    rows = [line.strip("| ").split(" | ") for line in DOCUMENT.read_text("utf-8").splitlines()]
    (head,) = [row for row in rows if row[:2] == ["group", "tried by code in a cell"]]
    column = head.index(backend)
    groups = {attempt.group for attempt in ATTEMPTS}
    matching_rows = [row for row in rows if row[0] in groups and len(row) == len(head)]
    return {row[1]: row[column] for row in matching_rows if row[column] != NOT_TRIED}
