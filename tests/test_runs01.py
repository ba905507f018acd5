"""Runs that version 0.1 recorded: read, scored, reported, exported, judged and resumed.

What 0.1 said about them is in `tests/runs01`, a folder for each run. A later version may say
more, and nothing else. Only the command line and the files of a run are used here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import keju
from tests.runs01.cases import HERE, RUNS
from tests.support import recorded_checks as checks
from tests.support.recorded_runs import Keju, LaidRun

pytestmark = pytest.mark.slow

__all__ = ["keju"]


@pytest.fixture
def laid(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LaidRun]:
    """The recorded run that the test's parameter names, copied to where `keju` is called."""
    with checks.laid_out(RUNS, request.param, tmp_path) as run:
        yield run


@checks.of(RUNS.names())
def test_a_run_of_0_1_scores_the_same(laid: LaidRun, keju: Keju) -> None:
    checks.check_score(laid, keju)


@checks.of(RUNS.names())
def test_a_run_of_0_1_is_exported_the_same(laid: LaidRun, keju: Keju) -> None:
    checks.check_export(laid, keju)


@pytest.mark.parametrize(
    ("laid", "language"),
    [
        *((name, "en") for name in RUNS.names(RUNS.has_results)),
        ("bbh-paper", "zh"),
        ("bixbench-judged", "zh"),
    ],
    indirect=["laid"],
)
def test_a_run_of_0_1_is_reported_with_its_numbers(
    laid: LaidRun, keju: Keju, language: str
) -> None:
    checks.check_report(laid, keju, language)


@checks.of(RUNS.names(lambda case: case.resumes))
def test_going_on_with_a_run_of_0_1_asks_only_what_is_missing(laid: LaidRun, keju: Keju) -> None:
    checks.check_resume(laid, keju)


@checks.of(RUNS.names(lambda case: case.judged))
def test_a_judged_run_of_0_1_keeps_its_verdicts(laid: LaidRun, keju: Keju) -> None:
    checks.check_judge(laid, keju)


@checks.of(["bbh", "custom", "repeated", "killed"])
def test_replies_of_0_1_are_reused_by_another_run(laid: LaidRun, keju: Keju) -> None:
    checks.check_reuse(laid, keju)


def test_the_runs_of_0_1_are_listed(tmp_path: Path, keju: Keju) -> None:
    checks.check_list(RUNS, keju, tmp_path)


def test_no_recorded_file_names_a_folder_of_a_machine() -> None:
    checks.check_paths(HERE)
