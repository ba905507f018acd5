"""A recorded run that goes out as the log of another tool comes back with the same outcomes."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Keju
from tests.support.recorded_runs import LaidRun

FORMS = ("eee", "inspect", "lm-eval")
VARIETIES = (
    "arms",
    "ceval-labels",
    "custom",
    "errors",
    "imported",
    "judged-arms",
    "limits",
    "mmlu_pro-rotated",
    "notebook",
    "repeated",
    "several",
    "stopped",
)
"""Runs with arms, judges, log-probabilities, own exams, errors, imports, limits, permuted options,
notebooks, repeats, several exams and early stopping."""
CASES = [f"1.0/{name}" for name in VARIETIES] + ["0.1/repeated"]


def rows(keju: Keju, run: str) -> list[dict[str, str]]:
    """Return the answers of a run with the outcomes of all readers, texts and episodes."""
    ran = keju("export", f"runs/{run}", "--format", "csv", "--full-text")
    assert ran.code == 0, ran.err
    return [row | {"run": ""} for row in csv.DictReader(io.StringIO(ran.out))]


def scores(keju: Keju, run: str, *flags: str) -> Any:
    """Return the results of a run without times and the commands that its warnings suggest."""
    ran = keju("score", f"runs/{run}", "--json", *flags)
    assert ran.code in (0, 3), ran.err
    volatile = ("timing", "warnings", "notices")
    entries = json.loads(ran.out)["benchmarks"]
    return [{key: value for key, value in e.items() if key not in volatile} for e in entries]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("laid", CASES, indirect=True)
def test_a_run_comes_back_with_every_outcome(laid: LaidRun, form: str, keju: Keju) -> None:
    name = laid.case.name
    exported = keju("export", f"runs/{name}", "--format", form, "-o", "out", "--json")
    assert exported.code == 0, exported.err
    imported = keju("import", "out", "--run-id", "back", "--json")
    assert imported.code == 0, imported.err
    before, after = rows(keju, name), rows(keju, "back")
    assert after == before
    assert json.loads(exported.out)["rows"] == len(before)
    assert scores(keju, "back") == scores(keju, name)
    for exam in json.loads(imported.out)["benchmarks"]:
        assert exam["differences"] == exam["unmatched"] == []
    assert laid.served.requests == []


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("laid", ["1.0/arms"], indirect=True)
def test_the_log_of_one_arm_becomes_a_run_of_that_arm(laid: LaidRun, form: str, keju: Keju) -> None:
    ran = keju("export", "runs/arms", "--format", form, "-o", "out", "--json")
    files = [Path(file) for file in json.loads(ran.out)["files"]]
    has_arm = re.compile(r'"arm\\*": ?\\*"calc')
    (log,) = [file for file in files if file.suffix == ".json" and has_arm.search(file.read_text())]
    assert keju("import", str(log), "--run-id", "calc").code == 0
    entries = scores(keju, "calc")
    assert entries == [entry for entry in scores(keju, "arms") if entry["arm"] == "calc"]


@pytest.mark.parametrize("laid", ["1.0/mmlu_pro"], indirect=True)
def test_a_log_is_scored_by_another_reader(laid: LaidRun, keju: Keju) -> None:
    keju("export", "runs/mmlu_pro", "--format", "inspect", "-o", "log.eval")
    ran = keju("import", "log.eval", "--reader", "l2", "--run-id", "back")
    assert ran.code == 0, ran.err
    assert scores(keju, "back") == scores(keju, "mmlu_pro", "--reader", "l2")


@pytest.mark.parametrize("laid", ["1.0/mmlu_pro"], indirect=True)
def test_a_log_is_compared_with_a_run(laid: LaidRun, keju: Keju) -> None:
    keju("export", "runs/mmlu_pro", "--format", "eee", "-o", "out")
    ran = keju("compare", "runs/mmlu_pro", "out", "--json")
    assert ran.code == 0, ran.err
    (pair,) = json.loads(ran.out)["comparisons"]
    assert (pair["n"], pair["difference"]) == (42, 0.0)


@pytest.mark.parametrize("laid", ["1.0/demo"], indirect=True)
def test_a_reply_that_was_changed_in_the_log_is_graded_anew(laid: LaidRun, keju: Keju) -> None:
    keju("export", "runs/demo", "--format", "lm-eval", "-o", "out")
    (path,) = Path("out").rglob("samples_*.jsonl")
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    right = next(line for line in lines if line["exact_match"] == 1)
    right["resps"] = [["I do not know."]]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    ran = keju("import", "out", "--json")
    (difference,) = json.loads(ran.out)["benchmarks"][0]["differences"]
    assert difference["id"] == right["doc"]["id"]
    assert (difference["tool"]["score"], difference["keju"]["outcome"]) == (1, "unparsed")
