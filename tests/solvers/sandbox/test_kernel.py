"""Cells of a kernel that is shut in by bubblewrap: state, limits, pictures, deaths, records."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from keju.config.arms import SandboxSettings as Settings
from keju.errors import ConfigError, UsageError
from keju.solvers.sandbox import memory
from keju.solvers.sandbox.backends import BACKENDS
from keju.solvers.sandbox.folders import remove
from keju.solvers.sandbox.kernel import Kernel, KernelDied
from keju.solvers.sandbox.sandbox import Sandbox
from tests.solvers.sandbox.rooms import (
    SMALL,
    in_kernel,
    kill_with_kernels,
    opened,
    plain_user,
    run,
)
from tests.support.notebooks import PIXEL

pytestmark = pytest.mark.slow


def test_cells_share_their_state_and_give_text_pictures_and_errors(tmp_path: Path) -> None:
    async def body(kernel: Kernel) -> None:
        assert (await kernel.run("x = 20")).text == ""
        assert (await kernel.run("print('twice:'); x * 2")).text == "twice:\n40\n"
        result = await kernel.run("1 / 0")
        assert result.error == "ZeroDivisionError: division by zero"
        assert "----> 1 1 / 0" in result.text
        assert "\x1b" not in result.text
        code = f"from IPython.display import Image; import base64\nImage(base64.b64decode('{PIXEL}'), format='png')"
        (picture,) = (await kernel.run(code)).images
        assert picture.startswith(b"\x89PNG")
        result = await kernel.run("input('name? ')")
        assert result.error is not None
        assert "does not support input" in result.error
        result = await kernel.run(
            "import sys, subprocess; subprocess.run(['echo', 'child']); print('err', file=sys.stderr)"
        )
        assert "err" in result.text
        output = result.text  # on a busy machine a child's output may come with a later cell
        while "child" not in output:
            output += (await kernel.run("")).text
        assert (await kernel.run("for n in range(3): print(n, end='\\r')")).text == "2"

    kernel = in_kernel(SMALL, tmp_path, body)
    facts = kernel.facts()
    assert (facts["backend"], facts["network"], facts["unsafe"]) == ("bwrap", "none", False)
    assert (facts["cells"], facts["timeouts"], facts["restarts"]) == (facts["cells"], 0, 0)
    assert (facts["exit"], facts["memory"]) == ("closed", 400 * 2**20)


def test_what_comes_after_the_end_of_a_cell_stands_before_the_next(tmp_path: Path) -> None:
    async def body(kernel: Kernel) -> None:
        code = "import os, threading, time\ndef later():\n    while not os.path.exists('go'): time.sleep(0.01)\n    print('late', flush=True)\nthreading.Thread(target=later).start()"
        assert (await kernel.run(code)).text == ""
        (tmp_path / "go").touch()
        while "\n" not in kernel._late.text:
            await asyncio.sleep(0.01)
        text = (await kernel.run("'now'")).text
        assert text == "[output of earlier cells]\nlate\n\n[output of this cell]\n'now'\n"

    in_kernel(SMALL, tmp_path, body)


def test_a_loop_is_interrupted_and_the_state_survives(tmp_path: Path) -> None:
    async def body(kernel: Kernel) -> None:
        await kernel.run("x = 1")
        for code in (
            "while True: pass",
            "import time; time.sleep(600)",
            "import subprocess; subprocess.run(['sleep', '600'])",
        ):
            result = await kernel.run(code, timeout=0.5)
            assert (result.timed_out, result.restarted) == (True, False), code
            assert "[the cell ran for 0.5 s and was interrupted]" in result.text
        assert (await kernel.run("x")).text == "1\n"

    assert in_kernel(SMALL, tmp_path, body).timeouts == 3


def test_r_kernels_where_r_is_present(tmp_path: Path) -> None:
    async def in_r() -> None:
        async with await opened(SMALL) as sandbox:
            if not await sandbox.can_run("r"):
                pytest.skip("no R with IRkernel here")
            async with sandbox.kernel(tmp_path, "r") as kernel:
                assert (await kernel.run("x <- 20; cat('hi\\n'); x * 2")).text == "hi\n[1] 40\n"
                result = await kernel.run("stop('bad')")
                assert result.error is not None
                assert result.error.endswith("bad")
                for code in ("repeat {}", "Sys.sleep(600)"):
                    result = await kernel.run(code, timeout=0.5)
                    assert (result.timed_out, result.restarted) == (True, False)
                assert (await kernel.run("x")).text == "[1] 20\n"
                assert (await kernel.run("file.exists('/etc/shadow')")).text == "[1] FALSE\n"
                result = await kernel.run("tools::pskill(Sys.getpid(), 9); Sys.sleep(9)")
                assert (result.died, result.restarted) == ("killed", True)
            assert kernel.facts()["language"] == "r"

    run(in_r())


def test_a_cell_that_cannot_be_interrupted_costs_its_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keju.solvers.sandbox.kernel.GRACE", 0.5)

    async def body(kernel: Kernel) -> None:
        await kernel.run("x = 1; open('kept', 'w').write('y')")
        code = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass"
        result = await kernel.run(code, timeout=2)  # by then it does ignore it
        assert (result.timed_out, result.restarted) == (True, True)
        assert "all variables and imports are gone" in result.text
        assert (await kernel.run("x")).error == "NameError: name 'x' is not defined"
        assert (await kernel.run("open('kept').read()")).text == "'y'\n"

    assert in_kernel(SMALL, tmp_path, body).restarts == 1


def test_a_death_has_a_name_and_is_forgiven_once(tmp_path: Path) -> None:
    async def body(kernel: Kernel) -> None:
        result = await kernel.run("print('bye', flush=True)\nimport os; os._exit(3)")
        assert (result.died, result.restarted) == ("exit", True)
        assert "[the kernel died while it ran this cell (it ended itself)]" in result.text
        assert (await kernel.run("1 + 1")).text == "2\n"
        with pytest.raises(KernelDied) as death:
            await kernel.run("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
        assert death.value.reason == "signal"

    kernel = in_kernel(SMALL, tmp_path, body)
    assert (kernel.exit, kernel.deaths, kernel.restarts) == ("signal", 2, 1)


def test_a_kernel_that_died_between_cells_is_noticed(tmp_path: Path) -> None:
    async def body(kernel: Kernel) -> None:
        code = "import os, threading, time\ndef end():\n    while not os.path.exists('go'): time.sleep(0.01)\n    os._exit(4)\nthreading.Thread(target=end).start()"
        assert (await kernel.run(code)).died is None
        (tmp_path / "go").touch()
        assert kernel._process is not None
        await kernel._process.wait()
        result = await kernel.run("1 + 1")
        assert (result.died, result.restarted) == ("exit", True)
        assert "before this cell, which was not run" in result.text

    in_kernel(SMALL, tmp_path, body)


def test_long_output_keeps_its_beginning_and_its_end(tmp_path: Path) -> None:
    async def body(kernel: Kernel) -> None:
        result = await kernel.run("for n in range(100_000): print(n)")
        assert result.text.startswith("0\n1\n")
        assert result.text.endswith("\n99999\n")
        assert "characters left out" in result.text
        assert len(result.text) < SMALL.max_cell_chars + 100

    in_kernel(SMALL, tmp_path, body)


def test_kernels_do_not_see_each_other_and_leave_nothing(tmp_path: Path) -> None:
    async def use_two_kernels() -> None:
        sandbox = await opened(SMALL, concurrency=2)
        works = [tmp_path / "a", tmp_path / "b"]
        for work in works:
            work.mkdir()
            (work / "given").write_text(work.name)
        async with (
            sandbox,
            sandbox.kernel(works[0]) as first_kernel,
            sandbox.kernel(works[1]) as second_kernel,
        ):
            for kernel in (first_kernel, second_kernel):
                assert (await kernel.run("open('given').read()")).text == f"'{kernel.work.name}'\n"
            await first_kernel.run(
                "open('secret', 'w').write('s'); open('/tmp/secret', 'w').write('s')"
            )
            code = "import os; sorted(os.listdir()), os.listdir('/tmp'), [p for p in os.listdir('/proc') if p.isdigit()]"
            listed = await second_kernel.run(code)
            assert "secret" not in listed.text
            assert len(listed.text.split("[")[-1].split(",")) <= 4

        assert sandbox.supervisor._roots
        assert not any(root.exists() for root in sandbox.supervisor._roots)

    run(use_two_kernels())
    assert (tmp_path / "a" / "secret").read_text() == "s"


def test_no_more_kernels_run_at_once_than_memory_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gib = 2**30
    assert memory.memory_shares(None, 1, 100 * gib) == (8 * gib, 1)
    assert memory.memory_shares(None, 4, 20 * gib) == (3 * gib, 4)
    assert memory.memory_shares(None, 16, 10 * gib) == (gib, 6)
    assert memory.memory_shares(None, 4, gib) == (int(0.6 * gib), 1)
    assert memory.memory_shares(gib // 4, 4, gib) == (gib // 4, 4)
    assert 0 < memory.available_memory() < 2**50
    monkeypatch.setattr(memory, "available_memory", lambda: 2 * gib)

    async def use_many_kernels() -> None:
        sandbox = Sandbox(Settings(), concurrency=8)
        assert sandbox.concurrency == 1
        (notice,) = sandbox.notices
        assert notice.code == "sandbox_fewer_at_once"
        assert notice.values == {"asked": 8, "episodes": 1}
        assert sandbox._slots._value == 1
        await sandbox.close()

    run(use_many_kernels())


def test_the_environment_is_cleared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret-key-1234")
    monkeypatch.setenv("JPY_PARENT_PID", str(os.getpid()))

    async def body(kernel: Kernel) -> None:
        environment = (await kernel.run("import os; dict(os.environ)")).text
        assert "secret-key" not in environment
        assert "'HOME': '/workspace'" in environment

    in_kernel(SMALL, tmp_path, body)


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"backend": "none"}, "unsafe-no-sandbox"),
        ({"backend": "bwrap", "unsafe": True}, "contradict"),
        ({"image": "x"}, "image has an effect only"),
        ({"memory": "much"}, "is not a size"),
        ({"memory": 0}, "greater than 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(values: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        Settings(**values)


@pytest.mark.parametrize(
    ("text", "size"),
    [("4GiB", 4 * 2**30), ("512m", 2**29), ("1.5 GB", 15 * 10**8), ("77000000", 77_000_000)],
)
def test_sizes(text: str, size: int) -> None:
    assert Settings.model_validate({"memory": text}).memory == size


@pytest.mark.parametrize("backend", ["bwrap", "docker", "podman"])
def test_a_backend_that_does_not_work_is_refused_in_one_line(
    backend: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # A client without an engine, a bubblewrap without user namespaces.
    for name in BACKENDS:
        (tmp_path / name).write_text("#!/bin/sh\necho 'no permissions' >&2\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    async def refused() -> None:
        values = {"backend": backend, "image": None if backend == "bwrap" else "i"}
        sandbox = Sandbox(Settings.model_validate(values))
        with pytest.raises(UsageError) as error:
            await sandbox.open()
        assert len(str(error.value).splitlines()) == 1
        assert ("no permissions" if backend == "bwrap" else "no engine") in str(error.value)
        await sandbox.close()

    run(refused())


def test_without_a_sandbox_only_where_it_was_asked_for(tmp_path: Path) -> None:
    async def body(kernel: Kernel) -> None:
        assert (await kernel.run("import os; os.getcwd()")).text == f"'{tmp_path}'\n"
        assert (await kernel.run("import os; os._exit(1)")).died == "exit"

    facts = in_kernel(Settings(unsafe=True), tmp_path, body).facts()
    assert (facts["backend"], facts["unsafe"]) == ("none", True)


def test_the_system_bounds_a_kernel_where_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A stand-in for systemd: it writes down what it was asked for and runs the command.
    fake, arguments_file = tmp_path / "bin" / "systemd-run", tmp_path / "asked"
    fake.parent.mkdir()
    fake.write_text(
        f'#!/bin/sh\necho "$*" >> {arguments_file}\nwhile [ "$1" != -- ]; do shift; done\nshift\nexec "$@"\n'
    )
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")

    async def bounded() -> None:
        async with Sandbox(SMALL) as sandbox:
            if not (await sandbox.probe()).ok:
                pytest.skip("bubblewrap does not work here")
            assert sandbox.facts()["memory_bound"] == "cgroup"
            (tmp_path / "work").mkdir()
            async with sandbox.kernel(tmp_path / "work") as kernel:
                assert (await kernel.run("1 + 1")).text == "2\n"

    run(bounded())
    assert f"MemoryMax={400 * 2**20} --property MemorySwapMax=0" in arguments_file.read_text()


def test_folders_nested_too_deep_for_python_are_removed(tmp_path: Path) -> None:
    code = "import os\nfor _ in range(1500): os.mkdir('deep'); os.chdir('deep')"
    (tmp_path / "work").mkdir()
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path / "work", check=True)
    remove(tmp_path / "work")
    assert not (tmp_path / "work").exists()


PLAIN_USER = """
import asyncio, os
from pathlib import Path
from keju.config.arms import SandboxSettings as Settings
from keju.solvers.sandbox.sandbox import Sandbox

async def main():
    async with Sandbox(Settings(read_only=[{packages!r}])) as sandbox:
        async with sandbox.kernel(Path("work")) as kernel:
            print(os.getuid(), (await kernel.run("import os; os.getuid(), os.getcwd()")).text)
            print((await kernel.run("open('made', 'w').write('x')")).text)
            print((await kernel.run("os.kill({keju}, 9)")).error)

asyncio.run(main())
"""


@pytest.mark.skipif(os.getuid() != 0, reason="all other tests are of a plain user then")
def test_a_plain_user_needs_no_more() -> None:
    with plain_user() as user:
        (user.folder / "work").mkdir()
        os.chown(user.folder / "work", user.number, user.number)
        packages = str(Path(pytest.__file__).parents[1])
        ran = user.run(PLAIN_USER.format(packages=packages, keju=os.getpid()))
        assert "12345 (65534, '/workspace')" in ran.stdout, ran.stderr
        assert "ProcessLookupError" in ran.stdout
        assert (user.folder / "work" / "made").stat().st_uid == user.number


def test_a_cancelled_episode_leaves_nothing(tmp_path: Path) -> None:
    async def cancelled() -> None:
        async with await opened(SMALL) as sandbox:
            for delay in (0.0, 0.02, 0.1, 0.3, 1.5):

                async def episode() -> None:
                    async with sandbox.kernel(tmp_path) as kernel:
                        await kernel.run("import time; time.sleep(600)")

                task = asyncio.create_task(episode())
                await asyncio.sleep(delay)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            roots = sandbox.supervisor._roots
            assert [path for root in roots for path in root.iterdir()] == []

    run(cancelled())


def test_a_killed_keju_leaves_neither_processes_nor_folders(tmp_path: Path) -> None:
    async def works() -> None:
        await (await opened(SMALL)).close()

    run(works())
    kill_with_kernels(SMALL, tmp_path)
