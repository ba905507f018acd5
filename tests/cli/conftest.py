"""Running commands in this process, in an empty folder and an empty environment."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import pytest

from keju.cli import main
from keju.config.arms import SandboxSettings as Settings
from keju.models.scripted import ScriptedModel
from keju.solvers.sandbox.sandbox import Sandbox
from keju.types import Request
from tests.support.compared_runs import LOGS, SUBSETS, Evaluate


class Ran(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one document on stdout."""
        return json.loads(self.out)


Keju = Callable[..., Ran]


@pytest.fixture
def keju(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Keju:
    """Run ``keju ARGV...`` in an empty folder, without the settings of whoever runs the tests."""
    for name in list(os.environ):
        if name.startswith(("KEJU_", "OPENAI_", "ANTHROPIC_", "LC_", "LANG")):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)

    def run(*argv: str) -> Ran:
        code = main(argv)
        out, err = capfd.readouterr()
        return Ran(code, out, err)

    return run


async def _works() -> None:
    async with Sandbox(Settings()):
        pass


@pytest.fixture(scope="session")
def _a_sandbox() -> None:
    """Skip tests that run code of a model where no sandbox works."""
    try:
        asyncio.run(_works())
    except Exception as error:
        pytest.skip(f"no sandbox works here: {error}")


@pytest.fixture
def evaluate_run(keju: Keju, monkeypatch: pytest.MonkeyPatch) -> Evaluate:
    """Evaluate the built-in exam, or two subsets of another; `salt` decides the answers."""

    def run(
        name: str,
        salt: str = "",
        *flags: str,
        form: str = "So the answer is ({})",
        exams: tuple[str, ...] = ("demo",),
    ) -> None:
        def answer(request: Request) -> str:
            letter = "ABCD"[crc32(f"{salt}{request.prompt.tail}".encode()) % 4]
            return form.format(letter)

        monkeypatch.setattr("keju.task.make_model", lambda _: ScriptedModel(script=answer))
        ran = keju(
            "eval", "-m", "scripted", "--datasets", *exams, "-q", "--no-report", "--run-id", name,
            "--data-dir", str(LOGS / "data"), *(SUBSETS if "bbh" in exams else ()), *flags,
        )  # fmt: skip
        assert ran.code == 0, ran.err

    return run
