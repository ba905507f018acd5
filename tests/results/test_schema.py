"""The structs of results.json: what goes in comes out, key for key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from keju.errors import DataError, Notice
from keju.results.schema import ResultEntry, from_document, to_document

RECORDED = sorted((Path(__file__).parents[1] / "runs01").glob("*/run/results.json"))


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.parts[-3])
def test_results_of_0_1_come_back_as_they_were_and_with_notices(path: Path) -> None:
    document: dict[str, Any] = json.loads(path.read_bytes())
    round_trip = to_document(from_document(document))
    for entry in round_trip["benchmarks"]:
        plain = [{"code": sentence} for sentence in entry["warnings"]]
        assert entry.pop("notices") == plain
    assert round_trip == document


def test_recorded_results_are_there() -> None:
    assert len(RECORDED) > 5


def recorded_document(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(next(p for p in RECORDED if name in str(p)).read_bytes())
    return document


def test_what_only_one_metric_has_stands_beside_its_value() -> None:
    document = recorded_document("bbh")
    accuracy = document["benchmarks"][0]["metrics"]["accuracy"]
    accuracy["own"] = {"a": [1, None]}
    results = from_document(document)
    assert results.benchmarks[0].metrics["accuracy"].details == {"own": {"a": [1, None]}}
    assert to_document(results)["benchmarks"][0]["metrics"]["accuracy"] == accuracy


def test_notices_and_metrics_are_added_to_a_new_entry() -> None:
    entry = from_document(recorded_document("bbh")).benchmarks[0]
    notice = Notice("few_clusters", {"clusters": 3})
    extended: ResultEntry = entry.with_notices([notice]).with_metrics(
        {"x": entry.metrics["accuracy"]}
    )
    assert extended.notices == (*entry.notices, notice)
    assert extended.warnings[-1] == "only 3 clusters: the interval is itself unsure"
    assert list(extended.metrics) == [*entry.metrics, "x"]
    assert "x" not in entry.metrics


@pytest.mark.parametrize(
    ("document", "english", "chinese"),
    [
        ({}, "the key 'benchmarks' is missing", "缺少键“benchmarks”"),
        ({"benchmarks": [1]}, "unexpected structure", "结构不同"),
        (
            {"benchmarks": [], "schema": "x"},
            "a whole number is expected at schema, not a text",
            "应为整数，而不是文本（在 schema 处）",
        ),
        ({"benchmarks": []}, "the key 'schema' is missing", "缺少键“schema”"),
    ],
)
def test_what_is_no_results_document_is_refused_in_plain_words(
    document: dict[str, Any], english: str, chinese: str
) -> None:
    with pytest.raises(DataError) as caught:
        from_document(document)
    assert str(caught.value) == f"not a results document: {english}"
    assert caught.value.text("zh") == f"不是结果文件：{chinese}"
