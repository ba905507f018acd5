"""The n of every table counts graded questions; those without a grade are shown next to it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from keju.reporting.format import Labels
from keju.viewer.run_index import RunIndex
from keju.viewer.summary import run_summaries
from tests.cli.conftest import Keju
from tests.support.endpoint import FaultyEndpoint
from tests.support.replies import Plan

ROWS = """\
question,answer,subset
Capital of France?,Paris,europe
Capital of Spain?,,europe
Capital of Chile?,,europe
"""
SHOWN = "1 (+2 ungraded)"


@pytest.fixture
def stored(keju: Keju, tmp_path: Path) -> Path:
    """A run in which one of three questions has a grade."""
    (tmp_path / "cap").mkdir()
    (tmp_path / "cap" / "q.csv").write_text(ROWS)
    with FaultyEndpoint(Plan(answers="Paris")) as served:
        flags = ("--datasets", "./cap", "--run-id", "r", "-m", "m", "--api-url", served.url)
        ran = keju("eval", *flags)
    assert ran.code == 0, ran.err
    assert f"n {SHOWN}" in ran.out + ran.err
    return tmp_path / "runs" / "r"


def test_n_is_what_was_graded_in_results_tables_and_pages(keju: Keju, stored: Path) -> None:
    (entry,) = json.loads((stored / "results.json").read_bytes())["benchmarks"]
    accuracy = entry["metrics"]["accuracy"]
    assert (accuracy["value"], accuracy["n"]) == (1.0, 1)
    for row in (entry, *entry["subsets"]):
        assert (row["n"], row["ungraded"]) == (1, 2)
    output = keju("score", "r").out
    assert not re.search(r"100\.00 %.*\b3\b", output), output
    assert f"n {SHOWN}" in output
    assert SHOWN in keju("export", "r", "--format", "markdown").out.replace("\\", "")
    assert SHOWN in (stored / "report.html").read_text("utf-8")
    run_index = RunIndex(stored.parent)
    run_index.refresh()
    (run_summary,) = run_summaries(next(iter(run_index)), Labels())
    assert (run_summary.row.n, run_summary.row.ungraded) == (1, 2)
