"""A model in this process: what its user is told while it is made ready."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Keju
from tests.support.local_model import real_weights

SITTING = ("eval", "--datasets", "demo", "--limit", "1", "--no-report", "--model")


def test_that_weights_are_loaded_is_said_before_it(keju: Keju) -> None:
    real_weights()
    ran = keju(*SITTING, "embedded", "--generation-config", "max_tokens=1")
    lines = ran.err.splitlines()
    assert lines[1] == "loading the model embedded; Ctrl-C is heard when it is loaded", ran.err
    assert sum("loading" in line for line in lines) == 1


@pytest.mark.parametrize("flag", ["--json", "--quiet"])
def test_a_model_that_is_ready_at_once_is_not_announced(keju: Keju, flag: str) -> None:
    assert "loading" not in keju(*SITTING, "scripted", flag).err
