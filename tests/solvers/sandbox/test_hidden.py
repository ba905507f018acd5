"""Memory and disk that code takes in places where no process and no folder shows them."""

from __future__ import annotations

from pathlib import Path

import pytest

from keju.solvers.notebook.workspaces import Workspaces
from keju.solvers.sandbox.kernel import Kernel
from keju.solvers.sandbox.output import CellResult
from tests.solvers.sandbox.rooms import SMALL, in_kernel, opened, run

SHARED = """
import mmap, time
kept = []
for _ in range(14):
    kept.append(mmap.mmap(-1, 64 * 2**20))
    for start in range(0, 64 * 2**20, 4096):
        kept[-1][start] = 1
    kept[-1].madvise(mmap.MADV_DONTNEED)
time.sleep(60)
"""
CONNECTIONS = """
import socket, time
server, kept = socket.create_server(("127.0.0.1", 0)), []
for _ in range(100):
    a = socket.create_connection(server.getsockname())
    b, _ = server.accept()
    for end in (a, b):
        end.setblocking(False)
        try:
            while True: end.send(b"x" * 2**20)
        except OSError: pass
    kept += [a, b]
time.sleep(60)
"""
DELETED = """
import os, time
kept = []
for _ in range(4):
    kept.append(open("gone", "wb")); os.unlink("gone")
    kept[-1].write(b"x" * (30 * 2**20)); kept[-1].flush()
time.sleep(60)
"""
MAPPED = """
import mmap, os, time
kept = []
for _ in range(4):
    with open("gone", "wb+") as file:
        os.unlink("gone")
        file.write(b"x" * (30 * 2**20)); file.flush()
        kept.append(mmap.mmap(file.fileno(), 30 * 2**20))
time.sleep(60)
"""
PASSED_ON = """
import os, socket, time
kept = []
for _ in range(20):
    file = os.open("gone", os.O_RDWR | os.O_CREAT); os.unlink("gone")
    os.write(file, b"x" * 2**20)
    ends = socket.socketpair()
    socket.send_fds(ends[0], [b"x"], [file]); os.close(file)
    kept += ends
time.sleep(60)
"""
EMPTY = """
import os, time
os.mkdir("/tmp/d")
for n in range(600_000):
    os.symlink("x", f"/tmp/d/{n}")
time.sleep(60)
"""


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (SHARED, "memory"),
        (EMPTY, "memory"),
        (CONNECTIONS, "memory"),
        (DELETED, "work_size"),
        (MAPPED, "work_size"),
        (PASSED_ON, "work_size"),
    ],
    ids=["shared", "empty", "connections", "deleted", "mapped", "passed_on"],
)
def test_what_no_process_and_no_folder_shows_is_bounded(
    tmp_path: Path, code: str, reason: str
) -> None:
    results: list[CellResult] = []

    async def episode() -> None:
        workspaces = Workspaces(await opened(SMALL.model_copy(update={"open_files": 512})))
        await workspaces.open()
        try:
            async with workspaces.episode() as bench:
                results.append(await bench.run(code))
        finally:
            await workspaces.close()

    run(episode())
    assert results[0].died == reason


REFUSED = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
try: print(os.memfd_create("x"))
except OSError as error: print(error.strerror)
print(libc.shmget(0, ctypes.c_size_t(4096), 0o1600), libc.msgget(0, 0o1600))
try: open("/proc/sys/kernel/shmmax", "w").close(); print("writable")
except OSError as error: print(error.strerror)
"""


def test_memory_that_belongs_to_no_process_cannot_be_made(tmp_path: Path) -> None:
    async def body(kernel: Kernel) -> None:
        lines = (await kernel.run(REFUSED)).text.splitlines()
        assert lines[:2] == ["Function not implemented", "-1 -1"]
        assert lines[2] != "writable"

    in_kernel(SMALL, tmp_path, body)
