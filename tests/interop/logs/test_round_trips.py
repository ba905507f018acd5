"""A recorded run that goes out as the log of another tool comes back with the same outcomes."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Keju, keju
from tests.runs01.cases import RUNS as RUNS_0_1
from tests.runs10.cases import RUNS as RUNS_1_0
from tests.support import recorded_checks as checks
from tests.support.recorded_runs import LaidRun

__all__ = ["keju"]

FORMS = ("eee", "inspect", "lm-eval")
VARIETIES = (
    "arms",
    "bixbench",
    "bixbench-judged",
    "ceval-labels",
    "custom",
    "errors",
    "imported",
    "judged-arms",
    "killed-arms",
    "limits",
    "mmlu_pro-rotated",
    "notebook",
    "repeated",
    "several",
    "stopped",
)
"""Runs with arms, judges, log-probabilities, own exams, errors, imports, limits, permuted options,
notebooks, repeats, several exams and early stopping."""
CASES = [("1.0", name) for name in VARIETIES] + [("0.1", "repeated")]
SEEN = ("run", "faults", "attempts")
"""Columns that may differ: the run has another name."""


@pytest.fixture
def laid(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LaidRun]:
    """The recorded run that the test's parameter names, copied to where `keju` is called."""
    version, name = request.param
    recordings = RUNS_0_1 if version == "0.1" else RUNS_1_0
    with checks.laid_out(recordings, name, tmp_path) as run:
        yield run


def rows(keju: Keju, run: str) -> list[dict[str, str]]:
    """Return the answers of a run with the outcomes of all readers, texts and episodes."""
    ran = keju("export", f"runs/{run}", "--format", "csv", "--full-text")
    assert ran.code == 0, ran.err
    lines = csv.DictReader(io.StringIO(ran.out))
    return [{name: cell for name, cell in row.items() if name not in SEEN} for row in lines]


def scores(keju: Keju, run: str) -> Any:
    ran = keju("score", f"runs/{run}", "--json")
    assert ran.code in (0, 3), ran.err
    document = json.loads(ran.out)
    for entry in document["benchmarks"]:
        entry.pop("timing", None)
        entry.pop("warnings", None)
        entry.pop("notices", None)
    return document["benchmarks"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("laid", CASES, ids=["-".join(case) for case in CASES], indirect=True)
def test_a_run_comes_back_with_every_outcome(laid: LaidRun, form: str, keju: Keju) -> None:
    name = laid.case.name
    exported = keju("export", f"runs/{name}", "--format", form, "-o", "out", "--json")
    assert exported.code == 0, exported.err
    imported = keju("import", "out", "--run-id", "back", "--json")
    assert imported.code == 0, imported.err
    document = json.loads(imported.out)
    before, after = rows(keju, name), rows(keju, "back")
    assert after == before
    assert json.loads(exported.out)["rows"] == len(before)
    assert scores(keju, "back") == scores(keju, name)
    assert [exam["differences"] for exam in document["benchmarks"]] == [[]] * len(
        document["benchmarks"]
    )
    assert not any(exam["unmatched"] for exam in document["benchmarks"])
    assert laid.served.requests == []
