"""Whatever ends Keju or a program: nothing of the program's tree is left."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Coroutine
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Any

import pytest

from keju.solvers.sandbox.supervisor import DEVNULL, PIPE, SupervisedProcess, Supervisor
from keju.solvers.sandbox.supervisor_process import descendants, read_processes

pytestmark = pytest.mark.slow

ENV = {"PATH": os.environ["PATH"]}
MIB = 2**20

# A grandchild that has left the session, ignores what can be ignored, and whose parent is gone.
DAEMON = """
import os, signal, sys, time
if os.fork():
    {parent}
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
own = {path!r} + str(os.getpid())  # others may write the same
open(own, "w").write(str(os.getpid()))
os.rename(own, {path!r})
time.sleep(600)
"""
STAYS = "time.sleep(600)"


def daemon_code(path: Path, parent: str = STAYS) -> str:
    """A program whose daemon writes its number to a file; what the program itself does then."""
    return DAEMON.format(parent=parent, path=str(path))


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 600))


def python(code: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", code]


def alive(pid: int) -> bool:
    process = read_processes().get(pid)
    return process is not None and process.state != "Z"


def wait_for(condition: Any) -> Any:
    limit = time.monotonic() + 300
    while time.monotonic() < limit:
        with suppress(OSError, ValueError):
            if result := condition():
                return result
        time.sleep(0.01)
    raise AssertionError("it did not happen")


async def soon(condition: Any) -> Any:
    return await asyncio.to_thread(wait_for, condition)


def number_in(path: Path) -> int:
    return int(path.read_text())


def test_a_program_talks_over_ordinary_pipes() -> None:
    async def work() -> None:
        async with Supervisor() as supervisor:
            process = await supervisor.start(["cat"], env=ENV)
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(b"one\n" + b"x" * 300_000 + b"\n")
            await process.stdin.drain()
            assert await process.stdout.readline() == b"one\n"
            assert len(await process.stdout.readline()) == 300_001
            process.stdin.close()
            assert await process.wait() == 0
            assert process.reason is None
            assert await process.stdout.read() == b""

    run(work())


def test_a_program_has_its_three_streams_and_no_other_open_file() -> None:
    code = """
import os, time
os.write(1, b" ".join(n.encode() for n in sorted(os.listdir("/proc/self/fd"), key=int)) + b"\\n")
os.close(1)
time.sleep(600)
"""

    async def work() -> None:
        async with Supervisor() as supervisor:
            process = await supervisor.start(python(code), env=ENV, stderr=PIPE)
            assert process.stdout is not None
            # The fourth is the look at the folder itself.
            assert await process.stdout.readline() == b"0 1 2 3\n"
            assert await process.stdout.read() == b""  # seen while the program lives
            assert process.code is None
            await process.end()

    run(work())


def test_streams_may_be_files_and_the_environment_is_all_that_is_given(tmp_path: Path) -> None:
    async def work() -> None:
        async with Supervisor() as supervisor:
            with (tmp_path / "errors").open("wb") as errors:
                code = "import os, sys; print(dict(os.environ), os.getcwd(), file=sys.stderr)"
                process = await supervisor.start(
                    python(code), env={"A": "ü"}, cwd=tmp_path, stderr=errors.fileno()
                )
                assert await process.wait() == 0
            errors_text = (tmp_path / "errors").read_text("utf-8")
            assert "'A': 'ü'" in errors_text
            assert "PATH" not in errors_text
            assert str(tmp_path) in errors_text

    run(work())


@pytest.mark.parametrize("argv", [["/no/such/program"], ["/etc/passwd"]])
def test_a_program_that_cannot_start_is_an_error_of_the_system(
    argv: list[str], tmp_path: Path
) -> None:
    async def work() -> None:
        async with Supervisor() as supervisor:
            (tmp_path / "scratch").mkdir()
            with pytest.raises((FileNotFoundError, PermissionError)):
                await supervisor.start(argv, env=ENV, remove=[tmp_path / "scratch"])
            await soon(lambda: not (tmp_path / "scratch").exists())
            process = await supervisor.start(["true"], env=ENV, stdin=DEVNULL, stdout=DEVNULL)
            assert await process.wait() == 0

    run(work())


def test_exit_codes_signals_and_limits() -> None:
    async def work() -> None:
        async with Supervisor() as supervisor:
            process = await supervisor.start(python("import os; os._exit(7)"), env=ENV)
            assert await process.wait() == 7
            process = await supervisor.start(["sleep", "600"], env=ENV)
            process.signal(signal.SIGTERM)
            assert await process.wait() == -signal.SIGTERM
            code = "import resource as r; print(r.getrlimit(r.RLIMIT_NOFILE), r.getrlimit(r.RLIMIT_CORE))"
            limits = {"nofile": 99, "core": 0}
            process = await supervisor.start(python(code), env=ENV, limits=limits)
            assert process.stdout is not None
            assert await process.stdout.read() == b"(99, 99) (0, 0)\n"

    run(work())


def test_a_killed_tree_takes_its_daemons_along_and_no_other_tree(tmp_path: Path) -> None:
    async def work() -> None:
        async with Supervisor() as supervisor:
            other_process = await supervisor.start(["sleep", "600"], env=ENV)
            path = tmp_path / "pid"
            process = await supervisor.start(python(daemon_code(path)), env=ENV)
            daemon = await soon(lambda: number_in(path))
            process.kill()
            assert await process.wait() == -signal.SIGKILL
            assert process.reason == "killed"
            assert not alive(daemon)
            assert not alive(process.pid)
            assert alive(other_process.pid)

    run(work())


def test_a_program_that_ends_leaves_no_daemon(tmp_path: Path) -> None:
    async def work() -> None:
        async with Supervisor() as supervisor:
            path = tmp_path / "pid"
            code = daemon_code(path, f"while not os.path.exists({str(path)!r}): time.sleep(0.01)")
            process = await supervisor.start(python(code), env=ENV)
            assert await process.wait() == 0
            assert not alive(number_in(path))

    run(work())


def test_a_program_is_asked_before_it_is_killed(tmp_path: Path) -> None:
    async def work() -> None:
        async with Supervisor() as supervisor:
            process = await supervisor.start(["cat"], env=ENV)
            assert await process.end(grace=10) == 0
            process = await supervisor.start(["sleep", "600"], env=ENV, stdin=DEVNULL)
            assert await process.end(grace=10) == -signal.SIGTERM
            code = "import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True); time.sleep(600)"
            process = await supervisor.start(python(code), env=ENV, stdin=DEVNULL)
            assert process.stdout is not None
            await process.stdout.readline()
            assert await process.end(grace=0.1) == -signal.SIGKILL

    run(work())


def test_the_memory_of_a_whole_tree_is_bounded() -> None:
    async def hog(supervisor: Supervisor, code: str) -> SupervisedProcess:
        process = await supervisor.start(python(code), env=ENV, memory=200 * MIB)
        await process.wait()
        return process

    # Each of four children stays below the bound; together they do not.
    forking = "import os, time\nfor _ in range(4): os.fork() or (globals().update(x=bytearray(90 << 20)), time.sleep(600))\ntime.sleep(600)"
    # Memory that no process has mapped.
    unseen = "import os, time\nf = os.memfd_create('x')\nfor _ in range(300): os.write(f, bytes(1 << 20))\ntime.sleep(600)"
    # Shared pages count once.
    shared = "import os, time\nx = bytearray(90 << 20)\np = [os.fork() or (time.sleep(4), os._exit(0)) for _ in range(4)]\nfor _ in p: os.wait()"

    async def work() -> None:
        async with Supervisor() as supervisor:
            forking_process, unseen_process, third = await asyncio.gather(
                hog(supervisor, forking), hog(supervisor, unseen), hog(supervisor, shared)
            )
            assert (forking_process.reason, forking_process.code) == ("memory", -9)
            assert forking_process.peak > 200 * MIB
            assert (unseen_process.reason, unseen_process.code) == ("memory", -9)
            assert (third.reason, third.code) == (None, 0)
            assert third.peak > 80 * MIB

    run(work())


def test_what_belongs_to_a_program_is_cleared_up_after_it(tmp_path: Path) -> None:
    async def work() -> None:
        async with Supervisor() as supervisor:
            (tmp_path / "scratch" / "deep").mkdir(parents=True)
            process = await supervisor.start(
                ["sleep", "600"],
                env=ENV,
                after=[["touch", str(tmp_path / "cleared")], ["/no/such/program"]],
                remove=[tmp_path / "scratch"],
            )
            process.kill()
            await process.wait()
            assert (tmp_path / "cleared").exists()
            assert not (tmp_path / "scratch").exists()

    run(work())


def test_closing_ends_everything(tmp_path: Path) -> None:
    async def work() -> None:
        async with Supervisor() as supervisor:
            path = tmp_path / "pid"
            process = await supervisor.start(python(daemon_code(path)), env=ENV)
            pids = [await soon(lambda: number_in(path)), process.pid, supervisor.pid or 0]
        assert process.reason == "keju_gone"
        assert not any(map(alive, pids))

    run(work())


@pytest.mark.parametrize("victim", ["supervisor", "keeper"])
def test_the_death_of_its_guards_ends_a_tree(victim: str, tmp_path: Path) -> None:
    async def work() -> None:
        async with Supervisor() as supervisor:
            path = tmp_path / "pid"
            process = await supervisor.start(python(daemon_code(path)), env=ENV)
            daemon = await soon(lambda: number_in(path))
            guards = {
                "supervisor": supervisor.pid or 0,
                "keeper": read_processes()[process.pid].parent,
            }
            os.kill(guards[victim], signal.SIGKILL)
            assert await process.wait() == -signal.SIGKILL
            assert process.reason == f"{victim}_lost"
            await soon(lambda: not alive(daemon) and not alive(process.pid))
            next_process = await supervisor.start(["true"], env=ENV)
            assert await next_process.wait() == 0

    run(work())


# Starts programs one after the other, and says where one of them was killed.
BUSY = """
import subprocess, sys
codes = {subprocess.call(["true"]) for _ in range(400)}
sys.exit(codes != {0})
"""


def test_a_lost_keeper_costs_no_other_program(tmp_path: Path) -> None:
    async def work() -> None:
        async with Supervisor() as supervisor:
            busy = [await supervisor.start(python(BUSY), env=ENV) for _ in range(2)]
            for number in range(12):
                scratch = tmp_path / f"scratch-{number}"
                scratch.mkdir()
                path = tmp_path / f"pid-{number}"
                start = supervisor.start(python(daemon_code(path)), env=ENV, remove=[scratch])
                lost_process = await start
                await soon(lambda path=path: number_in(path))
                os.kill(read_processes()[lost_process.pid].parent, signal.SIGKILL)
                assert await lost_process.wait() == -signal.SIGKILL
                assert lost_process.reason == "keeper_lost"
                assert not scratch.exists()
            assert [await process.wait() for process in busy] == [0, 0]

    run(work())


def test_a_start_that_is_cancelled_leaves_nothing(tmp_path: Path) -> None:
    async def work() -> None:
        async with Supervisor() as supervisor:
            busy = await supervisor.start(python(BUSY), env=ENV)
            for number in range(60):
                scratch = tmp_path / f"scratch-{number}"
                scratch.mkdir()
                start = supervisor.start(["sleep", "600"], env=ENV, remove=[scratch])
                task = asyncio.create_task(start)
                await asyncio.sleep(number % 6 * 0.0005)
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await (await task).end()
                assert not scratch.exists()
            assert await busy.wait() == 0
            await soon(
                lambda: not any(map(alive, descendants(supervisor.pid or 0, read_processes())))
            )

    run(work())


KEJU = """
import asyncio, os, signal, sys, time
from pathlib import Path
from keju.solvers.sandbox.supervisor import Supervisor
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests run with "&"
async def main():
    async with Supervisor() as supervisor:
        for _ in range(3):
            await supervisor.start([sys.executable, "-c", {daemon!r}], env={{}}, remove=[{scratch!r}])
        if os.fork() == 0:
            time.sleep(5)  # A forked child holds the socket open.
            os._exit(0)
        Path({ready!r}).write_text(str(supervisor.pid))
        await asyncio.sleep(600)
asyncio.run(main())
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_when_keju_is_killed(number: int, tmp_path: Path) -> None:
    (tmp_path / "scratch").mkdir()
    daemon = daemon_code(tmp_path / "pid")
    ready, scratch = str(tmp_path / "ready"), str(tmp_path / "scratch")
    code = KEJU.format(daemon=daemon, ready=ready, scratch=scratch)
    keju = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    try:
        supervisor = wait_for(lambda: number_in(tmp_path / "ready"))
        wait_for(lambda: number_in(tmp_path / "pid"))
        wait_for(
            lambda: len(descendants(supervisor, read_processes())) == 12
        )  # keeper, program, zombie, daemon
        tree = descendants(supervisor, read_processes())
        keju.send_signal(number)
        keju.wait(300)
    finally:
        keju.kill()
        keju.wait()
    wait_for(lambda: not any(map(alive, [supervisor, *tree])))
    assert not (tmp_path / "scratch").exists()


FOLDERS = """
import asyncio, os, sys
from pathlib import Path
from keju.solvers.sandbox.supervisor import Supervisor
async def main():
    supervisor = Supervisor()
    for short in (False, True):
        print(supervisor.folder("kernel", short=short), flush=True)
    {then}
    os.kill(os.getpid(), 9)
asyncio.run(main())
"""


@pytest.mark.parametrize("then", ["pass", "os.kill(supervisor.pid, 9); await supervisor.close()"])
def test_folders_are_gone_with_keju_whatever_is_killed_and_when(then: str, tmp_path: Path) -> None:
    """Nobody was told of a program yet that they belong to."""
    place = tmp_path / ("long" * 20)
    place.mkdir()
    argv = [sys.executable, "-c", FOLDERS.format(then=then)]
    env = {**os.environ, "TMPDIR": str(place)}
    ran = subprocess.run(argv, env=env, stdout=subprocess.PIPE, text=True, check=False)
    assert ran.returncode == -signal.SIGKILL
    usual, short = map(Path, ran.stdout.split())
    assert place in usual.parents
    assert len(str(short)) < 50
    wait_for(lambda: not usual.parent.exists() and not short.parent.exists())


def test_what_is_left_of_a_killed_supervisor_is_used_again() -> None:
    async def work() -> None:
        async with Supervisor() as supervisor:
            before = supervisor.folder("work")
            killed_pid = supervisor.pid
            assert killed_pid is not None
            os.kill(killed_pid, signal.SIGKILL)
            await soon(lambda: not alive(killed_pid))
            await asyncio.sleep(0)
            after = supervisor.folder("work")
            assert before.is_dir()
            assert before.parent == after.parent
        assert not after.parent.exists()

    run(work())


@pytest.mark.parametrize("kind", ["asyncio", "uvloop"])
def test_the_descriptors_of_pipes_are_closed_once(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second close could close a file that another thread has opened in between."""
    files: list[FileIO] = []
    open_descriptor = os.fdopen

    def remember(*args: Any, **settings: Any) -> Any:
        files.append(open_descriptor(*args, **settings))
        return files[-1]

    async def start_and_end() -> list[int]:
        async with Supervisor() as supervisor:
            process = await supervisor.start(["cat"], env=ENV)
            numbers = [file.fileno() for file in files]
            await process.end()
        return numbers

    monkeypatch.setattr(os, "fdopen", remember)
    loop = pytest.importorskip(kind).new_event_loop()
    try:
        numbers = loop.run_until_complete(start_and_end())
    finally:
        loop.close()
    assert [file.closefd for file in files] == [kind == "asyncio"] * 2
    for number in numbers:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(number)
