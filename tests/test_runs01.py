"""Runs that version 0.1 recorded: read, scored, reported, exported, judged and gone on with.

What 0.1 said about them stands in `tests/runs01`, a folder for each run. A later version may say
more, and nothing else. Only the command line and the files of a run are used here.
"""

from __future__ import annotations

import csv
import html
import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import keju
from tests.runs01 import cases
from tests.runs01.cases import BY_NAME, CASES, HERE, Case, Keju, Served

__all__ = ["keju"]

NAMES = [case.name for case in CASES]
FINISHED = [case.name for case in CASES if (HERE / case.name / "run" / "results.json").exists()]
RESUMED = [case.name for case in CASES if case.resumes]
NOT_COMPLETE = {"killed": 80, "errors": 36}
"""Runs with something left to ask, and how many questions they have."""


@dataclass
class Laid:
    """A copy of a recorded run, and the endpoint that its manifest names."""

    case: Case
    folder: Path
    served: Served

    def recorded(self, what: str) -> Any:
        """What 0.1 said, with the results."""
        said = json.loads((HERE / self.case.name / f"{what}.json").read_bytes())
        return {"results": cases.results(self.case)} | said


@pytest.fixture
def laid(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Laid]:
    """The recorded run that the test's parameter names, copied to where `keju` is called."""
    case = BY_NAME[request.param]
    served = Served(case)
    with served.endpoint as endpoint:
        yield Laid(case, cases.lay(case, tmp_path, endpoint.url), served)


def of(names: list[str]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("laid", names, indirect=True)


@of(NAMES)
def test_a_run_of_0_1_scores_the_same(laid: Laid, keju: Keju) -> None:
    assert cases.lost(laid.case.name, laid.recorded("score"), cases.score(laid.case, keju)) == []
    assert laid.served.asked == []


@of(NAMES)
def test_a_run_of_0_1_is_exported_the_same(laid: Laid, keju: Keju) -> None:
    recorded = (HERE / laid.case.name / "export.csv").read_text("utf-8")
    before = list(csv.DictReader(io.StringIO(recorded)))
    now = list(csv.DictReader(io.StringIO(cases.export(laid.case, keju, "csv"))))
    assert before
    assert cases.lost(laid.case.name, before, now) == []
    lines = [json.loads(line) for line in cases.export(laid.case, keju, "jsonl").splitlines()]
    for name in ("id", "subset", "epoch", "answer", "outcome", "target", "finish", "error"):
        told = ["" if line[name] is None else str(line[name]) for line in lines]
        assert told == [row[name] for row in before], name


@pytest.mark.parametrize(
    ("laid", "language"),
    [*((name, "en") for name in FINISHED), ("bbh-paper", "zh"), ("bixbench-judged", "zh")],
    indirect=["laid"],
)
def test_a_run_of_0_1_is_reported_with_its_numbers(laid: Laid, keju: Keju, language: str) -> None:
    argv = ("report", f"runs/{laid.case.name}", "-o", "report.html", "--language", language)
    assert keju(*argv).code == 0
    text = plain(Path("report.html").read_text("utf-8"))
    for entry in cases.results(laid.case)["benchmarks"]:
        for fact in facts(entry, language):
            assert fact in text


def plain(page: str) -> str:
    """The words of a page, without its styles."""
    page = re.sub(r"<(style|script)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page)).split())


def facts(entry: dict[str, Any], language: str) -> Iterator[str]:
    """What must be in the report about one benchmark of the results."""
    metric = entry["metrics"][entry["headline"]]
    yield f"{entry['protocol']}@{entry['protocol_version']}"
    yield f"{100 * metric['value']:.2f} %"
    if metric.get("ci95"):
        low, high = (100 * max(0.0, min(1.0, bound)) for bound in metric["ci95"])
        yield f"{low:.2f}–{high:.2f}"
    if language == "en":
        for outcome, count in entry["outcomes"].items():
            if count:
                yield f"{count} {'in error' if outcome == 'error' else outcome}"
        yield from entry["warnings"]


@of(RESUMED)
def test_going_on_with_a_run_of_0_1_asks_only_what_is_missing(laid: Laid, keju: Keju) -> None:
    recorded = laid.recorded("resume")
    answered = {json.dumps(key) for key in answered_by(laid.folder)}
    said = cases.resume(laid.case, keju, laid.served)
    assert cases.lost(laid.case.name, recorded, said) == []
    missing = NOT_COMPLETE.get(laid.case.name, len(answered)) - len(answered)
    assert said["questions"] == missing
    assert bool(said["knocks"]) == bool(missing)
    written = json.loads((laid.folder / "results.json").read_bytes())
    assert cases.lost(laid.case.name, recorded["results"], written) == []


def answered_by(folder: Path) -> Iterator[tuple[str, str, int]]:
    """The units that the whole lines of a journal settle: answered, or with an error for good."""
    for line in (folder / "records.jsonl").read_bytes().splitlines(keepends=True):
        if line.endswith(b"\n"):
            record = json.loads(line)
            error = record["reply"].get("error")
            if error is None or error["kind"] == "context_length":
                yield record["bench"], record["id"], record.get("epoch", 0)


@of([case.name for case in CASES if case.judged])
def test_a_judged_run_of_0_1_keeps_its_verdicts(laid: Laid, keju: Keju) -> None:
    recorded = laid.recorded("judge")
    assert cases.lost(laid.case.name, recorded, cases.judge(laid.case, keju, laid.served)) == []
    assert laid.served.asked == []
    (laid.folder / "verdicts.jsonl").unlink()
    again = cases.judge(laid.case, keju, laid.served)
    assert cases.lost(laid.case.name, recorded["results"], again["results"]) == []
    verdicts = (HERE / laid.case.name / "run" / "verdicts.jsonl").read_bytes()
    assert again["questions"] == verdicts.count(b"\n")


@of(["bbh", "custom", "repeated", "killed"])
def test_replies_of_0_1_are_reused_by_another_run(laid: Laid, keju: Keju) -> None:
    name = laid.case.name
    settings = ("--config", f"runs/{name}/manifest.json", "--run-id", "copy", "--use-cache", name)
    ran = keju("eval", *settings, "--json", "-q", "--no-report")
    recorded = laid.recorded("resume")
    assert ran.code == 0
    assert laid.served.counts["questions"] == recorded["questions"]
    (entry,) = recorded["results"]["benchmarks"]
    (now,) = json.loads(ran.out)["benchmarks"]
    for key in ("n", "metrics", "outcomes", "subsets"):
        assert cases.lost(laid.case.name, entry[key], now[key], key) == []


def test_the_runs_of_0_1_are_listed(tmp_path: Path, keju: Keju) -> None:
    for case in CASES:
        cases.lay(case, tmp_path / case.name, "http://127.0.0.1:9/v1")
        ran = keju("list", "runs", "--work-dir", f"{case.name}/runs", "--json")
        assert ran.code == 0
        assert case.name in ran.out


def test_no_recorded_file_names_a_folder_of_a_machine() -> None:
    for path in HERE.rglob("*"):
        if path.suffix in (".json", ".jsonl", ".csv", ".txt", ".yaml"):
            found = re.search(rb'"(?:/[\w.-]+){2,}', path.read_bytes())
            assert found is None, (path, found)
