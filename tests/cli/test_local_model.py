"""A model in this process: what its user is told while it is made ready, and Ctrl-C meanwhile."""

from __future__ import annotations

import os
import signal
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from keju.models.weights import read_ahead
from tests.cli.conftest import Keju
from tests.support.local_model import real_weights, small_gguf

EVAL = ("eval", "--datasets", "demo", "--limit", "1", "--no-report", "--model")
LONG = 20.0


def test_that_weights_are_loaded_is_said_before_it(keju: Keju) -> None:
    real_weights()
    ran = keju(*EVAL, "embedded", "--generation-config", "max_tokens=1")
    lines = ran.err.splitlines()
    assert lines[1] == "loading the model embedded", ran.err
    assert sum("loading" in line for line in lines) == 1


@pytest.mark.parametrize("flag", ["--json", "--quiet"])
def test_a_model_that_is_ready_at_once_is_not_announced(keju: Keju, flag: str) -> None:
    assert "loading" not in keju(*EVAL, "scripted", flag).err


@pytest.mark.skipif(find_spec("xllamacpp") is None, reason="xllamacpp is not installed")
def test_ctrl_c_waits_for_no_weights_to_be_loaded(
    keju: Keju, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The file is a small one, whose loading is said all the same."""
    loaded, over = threading.Event(), threading.Event()

    def load(*_: object, **__: object) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        over.wait(LONG)
        loaded.set()
        raise RuntimeError("nobody hears of it")

    monkeypatch.setattr("keju.models.llama.model.LlamaServer", load)
    model = f"gguf:{small_gguf(tmp_path / 'small.gguf', template='x')}"
    ran = keju(*EVAL, model, "--run-id", "r")
    waited = loaded.is_set()
    over.set()
    assert ran.code == 130
    assert not waited, "the command ended before the loading did"
    assert f"loading the model {model}" in ran.err
    assert "keju: interrupted before the first question; resume with:" in ran.err


def test_a_file_that_nobody_wants_any_more_is_not_read_to_its_end(tmp_path: Path) -> None:
    checks = []

    def unwanted() -> bool:
        checks.append(True)
        return len(checks) > 1

    file = tmp_path / "weights"
    file.touch()
    os.truncate(file, 1 << 28)
    read_ahead(file, unwanted)
    assert len(checks) == 2
