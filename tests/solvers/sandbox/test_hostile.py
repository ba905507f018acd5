"""Code that breaks its kernel, steers the next one or works against Keju's own steps."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

import pytest

from keju.config.arms import SandboxSettings as Settings
from keju.solvers.notebook.workspaces import Workspace
from keju.solvers.sandbox.kernel import Kernel, KernelDied
from keju.solvers.sandbox.output import CellResult
from keju.solvers.sandbox.wire import KernelSocket
from keju.solvers.toolbox import ToolsLost
from tests.solvers.sandbox.rooms import SMALL, in_kernel, opened, run

SHADOWS = ("signal", "random", "asyncio", "tempfile", "zmq", "traitlets", "ipykernel", "IPython")
UNSAFE = Settings.model_validate({"unsafe": True})


@pytest.mark.parametrize("settings", [SMALL, UNSAFE], ids=["bwrap", "none"])
def test_files_named_like_modules_do_not_reach_the_start(
    settings: Settings, tmp_path: Path
) -> None:
    for name in SHADOWS:
        (tmp_path / f"{name}.py").write_text("raise SystemExit('not the module')\n")
    (tmp_path / "comm").mkdir()
    (tmp_path / "comm" / "__init__.py").write_text("raise SystemExit\n")
    (tmp_path / "helper.py").write_text("def twice(x): return 2 * x\n")

    async def body(kernel: Kernel) -> None:
        assert (await kernel.run("import helper; helper.twice(21)")).text == "42\n"
        assert (await kernel.run("import random; random.Random(1).randint(5, 5)")).text == "5\n"
        code = "open('made.py', 'w').write('x = 7')\nfrom made import x\nx"
        assert (await kernel.run(code)).text == "7\n"
        code = "import os; os.mkdir('below'); os.chdir('below'); open('deep.py', 'w').close(); import deep"
        assert (await kernel.run(code)).error is None
        assert (await kernel.run("import os; os._exit(1)")).restarted
        assert (await kernel.run("import helper; helper.twice(2)")).text == "4\n"

    in_kernel(settings, tmp_path, body)


LINKS = """
import os
for number in range(1, 6):
    os.symlink({target!r}, f"/run/kernel/k-{{number}}")
"""


def test_a_kernel_cannot_lead_keju_to_a_socket_of_the_host(tmp_path: Path) -> None:
    """A module in the work folder plants links where Keju looks for the next kernel's sockets."""
    reached: list[str] = []
    target = tmp_path / "host-socket"
    work = tmp_path / "work"
    work.mkdir()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reached.append("host-socket")
        writer.close()

    async def body() -> None:
        async with await asyncio.start_unix_server(answer, str(target)):
            async with await opened(SMALL) as sandbox, sandbox.kernel(work) as kernel:
                for name in ("signal", "random"):
                    (work / f"{name}.py").write_text(LINKS.format(target=str(target)))
                assert (await kernel.run("import os; os._exit(1)")).restarted
                assert (await kernel.run("1 + 1")).text == "2\n"
            link = tmp_path / "k-1"
            link.symlink_to(target)
            with pytest.raises(OSError, match="non-socket"):
                await KernelSocket.connect(link, "DEALER", b"key")
            (tmp_path / "k-2").write_text("no socket")
            with pytest.raises(OSError, match="non-socket"):
                await KernelSocket.connect(tmp_path / "k-2", "DEALER", b"key")

    run(body())
    assert reached == []


def test_a_socket_that_takes_no_more_connections_is_tried_again(tmp_path: Path) -> None:
    async def body() -> None:
        with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
            server.bind(str(tmp_path / "full"))
            server.listen(0)
            client.connect(str(tmp_path / "full"))
            with pytest.raises(BlockingIOError):
                await KernelSocket.connect(tmp_path / "full", "DEALER", b"key")

    run(body())


async def _bench_result(kernel: Kernel, code: str) -> CellResult:
    return await Workspace(kernel, kernel.work, {}).run(code)


def test_what_breaks_after_code_ran_counts_against_the_code(tmp_path: Path) -> None:
    """The work folder is locked, so that no other kernel can be started in it."""

    async def body(kernel: Kernel) -> None:
        bench = Workspace(kernel, tmp_path, {})
        result = await bench.run("import os; os.chmod('.', 0); os._exit(1)")
        assert (result.died, result.error) == ("start", "KernelDied")
        assert "No code can be run any more: give your answer." in result.text
        assert (await bench.run("1 + 1")).ran is False
        assert await bench.tree() == {}

    in_kernel(SMALL, tmp_path, body)
    tmp_path.chmod(0o700)


def test_errors_of_keju_itself_after_code_ran_end_the_code_not_the_question(
    tmp_path: Path,
) -> None:
    async def body(kernel: Kernel) -> None:
        bench = Workspace(kernel, tmp_path, {})
        await bench.run("x = 1")
        result = await bench.run("'\ud800'")  # cannot be sent
        assert (result.died, result.error) == ("lost", "KernelDied")

    in_kernel(SMALL, tmp_path, body)


def test_what_breaks_before_any_code_ran_is_an_error_of_the_host(tmp_path: Path) -> None:
    settings = SMALL.model_copy(update={"max_kernel_restarts": 0})

    async def body(kernel: Kernel) -> None:
        assert kernel._process is not None
        kernel._process.kill()
        await kernel._process.wait()
        with pytest.raises(ToolsLost):
            await _bench_result(kernel, "1 + 1")

    in_kernel(settings, tmp_path, body)


def test_output_without_end_between_cells_ends_the_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keju.solvers.sandbox.kernel.MOST_OUTPUT", 2**20)
    code = "import os, threading, time\ndef flood():\n    while not os.path.exists('go'): time.sleep(0.01)\n    while True: print('x' * 10_000)\nthreading.Thread(target=flood, daemon=True).start()"

    async def body(kernel: Kernel) -> None:
        assert (await kernel.run(code)).died is None
        (tmp_path / "go").touch()
        assert kernel._process is not None
        await kernel._process.wait()
        result = await kernel.run("1 + 1")
        assert (result.died, result.ran) == ("output", False)

    in_kernel(SMALL, tmp_path, body, 60)


def test_the_words_of_a_kernel_that_does_not_start_cannot_drive_a_terminal(
    tmp_path: Path,
) -> None:
    python = tmp_path / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\nprintf '\\033[2J\\033]0;owned\\007broken\\n' >&2\nexit 1\n")
    python.chmod(0o755)
    (tmp_path / "work").mkdir()

    async def body() -> None:
        async with await opened(SMALL) as sandbox:
            sandbox.backend.settings = SMALL.model_copy(update={"venv": str(tmp_path / "venv")})
            with pytest.raises(KernelDied) as death:
                async with sandbox.kernel(tmp_path / "work"):
                    pass
            assert str(death.value) == "the kernel did not start: broken"
            assert not death.value.by_code

    run(body())


def test_the_folders_of_a_session_are_closed_to_other_users(tmp_path: Path) -> None:
    async def body() -> None:
        async with await opened(SMALL) as sandbox:
            (root, *_) = {path.parent for path in [sandbox.supervisor.folder("work")]}
            assert root.stat().st_mode & 0o777 == (0o711 if os.getuid() == 0 else 0o700)

    run(body())
