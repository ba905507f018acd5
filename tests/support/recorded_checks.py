"""What must hold for the recorded runs of every version: they say the same as before, or more."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.recorded_runs import Keju, LaidRun, Recordings, Served

EXPORTED = ("id", "subset", "epoch", "answer", "outcome", "target", "finish", "error")


def of(names: list[str]) -> pytest.MarkDecorator:
    """Run a test on the recorded runs of these names, which its fixture `laid` lays out."""
    return pytest.mark.parametrize("laid", names, indirect=True)


@contextmanager
def laid_out(recordings: Recordings, name: str, root: Path) -> Iterator[LaidRun]:
    """A recorded run, copied to `root`, with its endpoint."""
    case = recordings[name]
    served = Served(case, recordings.answers)
    with served.endpoint as endpoint:
        recordings.lay(case, root, endpoint.url)
        yield LaidRun(recordings, case, root, served)


def check_score(laid: LaidRun, keju: Keju) -> None:
    assert laid.differences(laid.recorded("score"), laid.score(keju)) == []
    assert laid.served.requests == []


def check_export(laid: LaidRun, keju: Keju) -> None:
    recorded = (laid.recordings.folder / laid.case.name / "export.csv").read_text("utf-8")
    before = list(csv.DictReader(io.StringIO(recorded)))
    rows = list(csv.DictReader(io.StringIO(laid.export(keju, "csv"))))
    assert before
    assert laid.differences(before, rows) == []
    lines = [json.loads(line) for line in laid.export(keju, "jsonl").splitlines()]
    for name in EXPORTED:
        values = ["" if line[name] is None else str(line[name]) for line in lines]
        assert values == [row[name] for row in before], name


def check_report(laid: LaidRun, keju: Keju, language: str) -> None:
    argv = ("report", f"runs/{laid.case.name}", "-o", "report.html", "--language", language)
    assert keju(*argv).code == 0
    text = _plain((laid.root / "report.html").read_text("utf-8"))
    for entry in laid.recordings.results(laid.case)["benchmarks"]:
        for fact in _facts(entry, language):
            assert fact in text


def _plain(page: str) -> str:
    """The words of a page, without its styles."""
    # `<style>p {}</style>`, `<script src="x"></script>`
    page = re.sub(r"<(style|script)\b.*?</\1>", " ", page, flags=re.DOTALL)
    # `<td class="n">`
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page)).split())


def _facts(entry: dict[str, Any], language: str) -> Iterator[str]:
    """What must be in the report about one benchmark of the results."""
    metric = entry["metrics"][entry["headline"]]
    yield f"{entry['protocol']}@{entry['protocol_version']}"
    yield f"{100 * metric['value']:.1f} %"
    if metric.get("ci95"):
        low, high = (100 * max(0.0, min(1.0, bound)) for bound in metric["ci95"])
        yield f"{low:.1f}–{high:.1f}"
    if language == "en":
        for outcome, count in entry["outcomes"].items():
            if count:
                yield f"{count} {'in error' if outcome == 'error' else outcome}"
        yield from entry["warnings"]


def check_resume(laid: LaidRun, keju: Keju) -> None:
    recorded = laid.recorded("resume")
    if recorded["questions"]:
        recorded = _without_times(recorded)
    answered = {json.dumps(key) for key in _answered(laid)}
    resumed = laid.resume(keju)
    assert laid.differences(recorded, resumed) == []
    if laid.case.total is not None:
        missing = laid.case.total - len(answered)
        assert resumed["questions"] == missing
        assert bool(resumed["knocks"]) == bool(missing)
    assert laid.differences(recorded["results"], laid.written()) == []


def _without_times(document: Any) -> Any:
    """A copy without measured times, which the replies of this machine change.

    They are `seconds`, `seconds_p95` and their like, and `queued`: the seconds that calls of tools
    waited.
    """
    if isinstance(document, list):
        return [_without_times(value) for value in document]
    if not isinstance(document, dict):
        return document
    return {
        key: _without_times(value)
        for key, value in document.items()
        if not key.startswith("seconds") and key != "queued"
    }


def _answered(laid: LaidRun) -> Iterator[tuple[str, str, int]]:
    """The units that the whole lines of a journal settle: answered, or with an error for good."""
    journal = laid.folder / "records.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True) if journal.exists() else []
    for line in lines:
        if line.endswith(b"\n"):
            record = json.loads(line)
            error = record["reply"].get("error")
            if error is None or error["kind"] == "context_length":
                yield record["bench"], record["id"], record.get("epoch", 0)


def check_judge(laid: LaidRun, keju: Keju) -> None:
    recorded = laid.recorded("judge")
    assert laid.differences(recorded, laid.judge(keju)) == []
    assert laid.served.requests == []
    verdicts = (laid.folder / "verdicts.jsonl").read_bytes().count(b"\n")
    (laid.folder / "verdicts.jsonl").unlink()
    second_results = laid.judge(keju)
    assert laid.differences(recorded["results"], second_results["results"]) == []
    assert second_results["questions"] == verdicts


def check_reuse(laid: LaidRun, keju: Keju) -> None:
    name = laid.case.name
    settings = ("--config", f"runs/{name}/manifest.json", "--run-id", "copy", "--use-cache", name)
    ran = keju("eval", *settings, "--json", "-q", "--no-report")
    recorded = laid.recorded("resume")
    assert ran.code == 0
    assert laid.served.counts["questions"] == recorded["questions"]
    (entry,) = recorded["results"]["benchmarks"]
    (current_entry,) = json.loads(ran.out)["benchmarks"]
    for key in ("n", "metrics", "outcomes", "subsets"):
        assert laid.differences(entry[key], current_entry[key], key) == []


def check_list(recordings: Recordings, keju: Keju, root: Path) -> None:
    for case in recordings.cases:
        if recordings.is_scored(case):
            recordings.lay(case, root / case.name, "http://127.0.0.1:9/v1")
            ran = keju("list", "runs", "--work-dir", f"{case.name}/runs", "--json")
            assert ran.code == 0
            assert case.name in ran.out


def check_paths(folder: Path) -> None:
    """No recorded file names a folder of a machine."""
    for path in folder.rglob("*"):
        if path.suffix in (".json", ".jsonl", ".csv", ".txt", ".yaml", ".ipynb"):
            # `"/home/me`, `"/tmp/x/data`
            match = re.search(rb'"(?:/[\w.-]+){2,}', path.read_bytes())
            assert match is None, (path, match)
