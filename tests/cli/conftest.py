"""Running commands in this process, in an empty folder and an empty environment."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from keju.cli import main
from keju.config.arms import SandboxSettings as Settings
from keju.solvers.sandbox.sandbox import Sandbox


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
