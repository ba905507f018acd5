"""Runs that version 1.0 recorded: scored, exported, reported, resumed, judged, compared and gated.

What 1.0 said about them is in `tests/runs10`, a folder for each run. A later version may say more,
and nothing else; `tests/runs10/changes.py` declares what changed. Only the command line and the
files of a run are used here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import keju
from tests.runs10.cases import HERE, RUNS
from tests.support import recorded_checks as checks
from tests.support.recorded_runs import Keju, LaidRun

pytestmark = pytest.mark.slow

__all__ = ["keju"]

SIZE_LIMIT = 2_000_000
"""Bytes that all recorded files may take."""


@pytest.fixture
def laid(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LaidRun]:
    """The recorded run that the test's parameter names, copied to where `keju` is called."""
    with checks.laid_out(RUNS, request.param, tmp_path) as run:
        yield run


@checks.of(RUNS.names(RUNS.is_scored))
def test_a_run_of_1_0_is_scored_and_exported_the_same(laid: LaidRun, keju: Keju) -> None:
    checks.check_score(laid, keju)
    checks.check_export(laid, keju)


@checks.of(RUNS.names())
def test_reports_and_audits_of_a_run_of_1_0_end_as_before(laid: LaidRun, keju: Keju) -> None:
    assert laid.differences(_codes(laid), laid.codes(keju)) == []
    assert laid.served.requests == []


def _codes(laid: LaidRun) -> object:
    return json.loads((HERE / laid.case.name / "codes.json").read_bytes())


@checks.of(RUNS.names(lambda case: case.resumes))
def test_resuming_a_run_of_1_0_asks_only_what_is_missing(laid: LaidRun, keju: Keju) -> None:
    checks.check_resume(laid, keju)


@checks.of(RUNS.names(lambda case: case.judged))
def test_a_judged_run_of_1_0_keeps_its_verdicts(laid: LaidRun, keju: Keju) -> None:
    checks.check_judge(laid, keju)


@checks.of(RUNS.names(lambda case: case.baseline))
def test_two_runs_of_1_0_are_compared_and_gated_the_same(laid: LaidRun, keju: Keju) -> None:
    assert laid.differences(laid.recorded("compare"), laid.compare(keju)) == []
    assert laid.differences(laid.recorded("gate"), laid.gate(keju)) == []
    assert laid.served.requests == []


@checks.of(["bbh", "custom", "repeated", "killed"])
def test_replies_of_1_0_are_reused_by_another_run(laid: LaidRun, keju: Keju) -> None:
    checks.check_reuse(laid, keju)


def test_the_runs_of_1_0_are_listed(tmp_path: Path, keju: Keju) -> None:
    checks.check_list(RUNS, keju, tmp_path)


def test_every_recorded_folder_is_tested() -> None:
    folders = {path.name for path in HERE.iterdir() if (path / "run").is_dir()}
    assert folders == set(RUNS.names())


def test_the_recorded_files_are_small_and_name_no_folder_of_a_machine() -> None:
    assert sum(path.stat().st_size for path in HERE.rglob("*") if path.is_file()) < SIZE_LIMIT
    checks.check_paths(HERE)
