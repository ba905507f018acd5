"""A recorded run, laid out in the folder in which `keju` is called."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import keju
from tests.runs01.cases import RUNS as RUNS_0_1
from tests.runs10.cases import RUNS as RUNS_1_0
from tests.support import recorded_checks as checks
from tests.support.recorded_runs import LaidRun

__all__ = ["keju"]


@pytest.fixture
def laid(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LaidRun]:
    """The recorded run that the test's parameter names by version and name."""
    version, _, name = request.param.partition("/")
    recordings = RUNS_0_1 if version == "0.1" else RUNS_1_0
    with checks.laid_out(recordings, name, tmp_path) as run:
        yield run
