"""Rounds of ``make soak PARTS=scale``, and that its ledger sees what must not happen."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from perf.soak.ledger import Calm, Entries, digest_in, given_twice, problems
from perf.soak.rounds import Place
from perf.soak.scale import opened, play
from perf.soak.witness import FAULTY, answer

from keju.config import TaskConfig
from keju.runs.journal import Journal, Records
from keju.task import FinishedTask, run_exams
from keju.types import Fault, Record
from tests.support.endpoint import FaultyEndpoint
from tests.support.replies import Plan

pytestmark = pytest.mark.slow

SIZE = 120


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    with opened(None) as place:
        yield place


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "seed"), [("pool", "1"), ("pool", "2"), ("parts", "1"), ("served", "2")]
)
def test_no_fault_loses_doubles_or_scores_anything(kind: str, seed: str, place: Place) -> None:
    report = play(place, kind, seed, size=SIZE, real=False)
    assert report.violations == []
    assert report.questions == SIZE
    assert report.signals.total() > 0
    assert report.faults.total() > 0
    assert report.records == SIZE + report.errors


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> FinishedTask:
    """A small run that nobody disturbed."""
    with FaultyEndpoint(Plan(answers=lambda asked: answer(asked.key))) as endpoint:
        settings: dict[str, Any] = {
            "model": "m",
            "api_url": endpoint.url,
            "datasets": ["demo"],
            "dataset_args": {"demo": {"size": 2}},
            "work_dir": str(tmp_path_factory.mktemp("calm")),
            "run_id": "r",
        }
        return run_exams(TaskConfig(**settings), report=False)


Change = Callable[[list[Record]], list[Record]]


def swapped(records: list[Record]) -> list[Record]:
    first, second, *rest = records
    return [replace(first, reply=second.reply), replace(second, reply=first.reply), *rest]


def failed(records: list[Record], *, scored: bool) -> list[Record]:
    """The first question failed before it was answered."""
    reply = replace(records[0].reply, text="", error=Fault("server", "injected"))
    readings = tuple(
        each if scored else replace(each, score=replace(each.score, outcome="error"))
        for each in records[0].readings
    )
    return [replace(records[0], reply=reply, readings=readings), *records]


def scored_otherwise(records: list[Record]) -> list[Record]:
    readings = tuple(
        replace(each, score=replace(each.score, value=0.5)) for each in records[0].readings
    )
    return [replace(records[0], readings=readings), *records[1:]]


def with_text(records: list[Record], text: str) -> list[Record]:
    return [replace(records[0], reply=replace(records[0].reply, text=text)), *records[1:]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "seen"),
    [
        (lambda records: records, []),
        (lambda records: records[1:], ["1 lost"]),
        (lambda records: [*records, records[0]], ["1 doubled"]),
        (swapped, ["2 with the answer to another question"]),
        (
            lambda records: with_text(records, FAULTY),
            ["1 with a text that its endpoint never gave"],
        ),
        (lambda records: with_text(records, ""), ["1 with a text that its endpoint never gave"]),
        (scored_otherwise, ["1 scored otherwise than in a calm run"]),
        (lambda records: failed(records, scored=False), []),
        (lambda records: failed(records, scored=True), ["1 scored without a reply"]),
    ],
    ids=["calm", "lost", "doubled", "swapped", "fault", "empty", "score", "error", "scored error"],
)
def test_the_ledger_sees_it(
    change: Change, seen: list[str], finished: FinishedTask, tmp_path: Path
) -> None:
    records = list(Records(finished.folder))
    ledger = tmp_path / "ledger"
    given = [
        {"did": "gave", "key": digest_in(record.reply.text), "text": record.reply.text}
        for record in records
    ]
    ledger.write_text("".join(json.dumps(line) + "\n" for line in given))
    (tmp_path / "r").mkdir()
    with Journal(tmp_path / "r") as journal:
        journal.append(change(records))
    calm, entries = Calm.of(finished.folder, finished.document), Entries(ledger)
    found = problems(tmp_path / "r", calm, {"": entries}, finished.document)
    assert [line.partition(":")[0] for line in found] == seen
    if seen == ["1 lost"]:
        assert given_twice([tmp_path / "r"], [entries]) == 1


@pytest.mark.slow
def test_the_ledger_sees_other_numbers(finished: FinishedTask, tmp_path: Path) -> None:
    calm = Calm.of(finished.folder, finished.document)
    (entry,) = finished.document["benchmarks"]
    other = {"benchmarks": [entry | {"n": entry["n"] - 1}]}
    told = list(problems(finished.folder, calm, {"": Entries(tmp_path / "none")}, other))
    assert "the results are not those of a calm run" in told
