"""A sandbox for the tests, and programs that a test runs in it."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import keju
from keju.config.arms import SandboxSettings as Settings
from keju.solvers.sandbox.folders import remove
from keju.solvers.sandbox.kernel import Kernel
from keju.solvers.sandbox.sandbox import BackendProbe, Sandbox
from keju.solvers.sandbox.supervisor import PREFIX
from keju.solvers.sandbox.supervisor_process import descendants, read_processes

SIZES = {
    **{"memory": "400MiB", "max_file_bytes": "40MiB", "max_work_bytes": "60MiB"},
    **{"scratch_bytes": "20MiB", "processes": 64, "open_files": 256},
}
SMALL = Settings.model_validate(SIZES)
_probes: dict[str, BackendProbe] = {}


def run(work: Awaitable[None], limit: float = 600) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(work, limit)

    asyncio.run(bounded())


async def opened(settings: Settings, **values: Any) -> Sandbox:
    """A sandbox whose backend works; the test is skipped where it does not."""
    sandbox = Sandbox(settings, **values)
    sandbox.probed = _probes.get(str(settings))
    probe = _probes[str(settings)] = await sandbox.probe()
    if not probe.ok:
        await sandbox.close()
        pytest.skip(f"{probe.backend} does not work here: {probe.problem and probe.problem.text()}")
    sandbox.backend.runtime = probe.runtime
    return sandbox


def in_kernel(
    settings: Settings, work: Path, body: Callable[[Kernel], Awaitable[None]], limit: float = 600
) -> Kernel:
    """Run a test's body with a kernel; returns the kernel, closed."""
    kernels: list[Kernel] = []

    async def with_kernel() -> None:
        sandbox = await opened(settings)
        try:
            async with sandbox.kernel(work) as kernel:
                kernels.append(kernel)
                await body(kernel)
        finally:
            await sandbox.close()

    run(with_kernel(), limit)
    return kernels[0]


class PlainUser(NamedTuple):
    """A user without rights, with a Python that can import Keju and these tests."""

    folder: Path
    number: int
    python: str

    def run(self, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run Python code as the user, in its folder; skip the test where no sandbox works."""
        numbers = f"--reuid={self.number}", f"--regid={self.number}", "--clear-groups"
        argv = ["setpriv", *numbers, "--", self.python, "-c", code, *arguments]
        env = {"PATH": "/usr/bin:/bin", "HOME": str(self.folder), "TMPDIR": str(self.folder)}
        ran = subprocess.run(
            argv, cwd=self.folder, env=env, capture_output=True, text=True, check=False
        )
        if "does not work" in ran.stderr:
            pytest.skip(ran.stderr.splitlines()[-1])
        return ran


@contextmanager
def plain_user() -> Iterator[PlainUser]:
    """Make a user; the test is skipped where the system has no Python that everybody may run."""
    system = shutil.which("python3", path="/usr/bin") or "false"
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    has = [system, "-c", f"import sys, venv; assert sys.version.startswith('{version}.')"]
    if subprocess.run(has, capture_output=True, check=False).returncode:
        pytest.skip(f"the system has no Python {version} that every user may run")
    place = Path(tempfile.mkdtemp(dir="/tmp"))
    try:
        subprocess.run([system, "-m", "venv", "--without-pip", place / "venv"], check=True)
        packages, source = Path(pytest.__file__).parents[1], Path(keju.__file__).parents[1]
        paths = f"{packages}\n{source}\n{Path(__file__).parents[3]}\n"
        (place / "venv" / "lib" / f"python{version}" / "site-packages" / "x.pth").write_text(paths)
        os.chown(place, 12345, 12345)
        yield PlainUser(place, 12345, str(place / "venv" / "bin" / "python"))
    finally:
        remove(place)


# A Keju with two kernels that run cells, one of which has left a daemon behind.
KEJU = """
import asyncio, os, sys
from pathlib import Path
from keju.config.arms import SandboxSettings as Settings
from keju.solvers.sandbox.sandbox import Sandbox

DAEMON = "import os, time\\nif os.fork() == 0:\\n    os.setsid()\\n    time.sleep(600)\\n"

async def work(sandbox, folder):
    folder.mkdir()
    async with sandbox.kernel(folder) as kernel:
        await kernel.run(DAEMON)
        print(kernel._user, flush=True)
        await kernel.run("while True: pass")

async def main():
    settings = Settings.model_validate_json(sys.argv[1])
    async with Sandbox(settings, concurrency=2) as sandbox:
        await asyncio.gather(*(work(sandbox, Path(sys.argv[2]) / str(n)) for n in range(2)))

asyncio.run(main())
"""


def kill_with_kernels(settings: Settings, folder: Path) -> int:
    """kill -9 a Keju in the middle of two cells; its id, when all that it started is gone."""
    argv = [sys.executable, "-c", KEJU, settings.model_dump_json(), str(folder)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as keju:
        assert keju.stdout is not None
        users = [keju.stdout.readline().strip() for _ in range(2)]
        tree = descendants(keju.pid, read_processes())
        keju.kill()
    assert all(users)
    assert len(tree) > 6
    limit = time.monotonic() + 300
    folders = f"{PREFIX}{keju.pid}-*"
    while time.monotonic() < limit:
        alive_pids = {
            pid for pid, process in read_processes().items() if process.state != "Z"
        } & set(tree)
        if not alive_pids and not list(Path(tempfile.gettempdir()).glob(folders)):
            return keju.pid
        time.sleep(0.05)
    raise AssertionError(f"left behind: {alive_pids}, {folders}")
