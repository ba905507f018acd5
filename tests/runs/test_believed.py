"""Which stored numbers are believed: scores with a checksum, results that are not too old."""

from __future__ import annotations

import json
import os
from pathlib import Path

from keju.runs.run import Run
from tests.cli.conftest import Keju, keju

__all__ = ["keju"]

EVAL = ("eval", "-m", "scripted", "--datasets", "demo", "--run-id", "r", "--no-report", "-q")


def outcomes(keju: Keju) -> list[str]:
    """The outcome of each reply, as exported."""
    lines = keju("export", "r", "--format", "jsonl").out.splitlines()
    return [json.loads(line)["outcome"] for line in lines]


def test_scores_of_lines_without_a_checksum_are_read_again(keju: Keju) -> None:
    assert keju(*EVAL).code == 0
    before = outcomes(keju)
    assert "incorrect" in before
    journal = Path("runs", "r", "records.jsonl")
    lines = journal.read_text("utf-8").splitlines()
    bare = [line.rpartition(',"crc":')[0] + "}" for line in lines]
    forged = [line.replace('"outcome":"incorrect"', '"outcome":"correct"') for line in bare]
    assert forged != bare
    journal.write_text("".join(f"{line}\n" for line in forged), "utf-8")
    assert outcomes(keju) == before


def test_results_that_are_older_than_the_journal_are_not_current(keju: Keju) -> None:
    assert keju(*EVAL).code == 0
    folder = Path("runs", "r")
    results = json.loads((folder / "results.json").read_text("utf-8"))
    metric = results["benchmarks"][0]["metrics"]["accuracy"]
    metric["value"] = 0.987654
    (folder / "results.json").write_text(json.dumps(results), "utf-8")
    assert Run(folder).results_are_current
    time = (folder / "results.json").stat().st_mtime_ns
    os.utime(folder / "records.jsonl", ns=(time + 10**9, time + 10**9))
    assert not Run(folder).results_are_current
    ran = keju("report", "r", "-o", "page.html")
    assert ran.code == 0, ran.err
    assert "98.8" not in Path("page.html").read_text("utf-8")
