"""Recorded letters of a real model give the recorded scores."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from keju.benchmarks.base import Exam
from keju.scores.tally import Tally
from keju.types import Reply
from tests.results.fake_exam import entry_of

Evaluate = Callable[..., Exam]


def summary(exam: Exam, replies: dict[str, Reply]) -> dict[str, Any]:
    reader = exam.readers[exam.protocol.reader]
    tally = Tally(len(exam.samples))
    for unit, sample in enumerate(exam.samples):
        if sample.id in replies:
            tally.add(unit, exam.grade(replies[sample.id], sample, reader))
    return entry_of(exam, tally, reader=reader.name)


def percent(metric: dict[str, Any]) -> float:
    return round(100 * float(metric["value"]), 2)


def recorded(data_dir: Path, exam: Exam) -> dict[str, str]:
    path = data_dir / "golden" / "ceval" / "minimind_val_predictions.jsonl.gz"
    rows = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    return {exam.locate(row): row["pred"] for row in rows}


@pytest.mark.parametrize("decode", ["labels", "generate"])
def test_recorded_letters_give_the_recorded_scores(
    real: Evaluate, data_dir: Path, decode: str
) -> None:
    exam = real(protocol="tutorial", few_shot_num=0, decode=decode)
    letters = recorded(data_dir, exam)
    if decode == "labels":
        replies = {
            key: Reply(label_logprobs={"A": -9.0, "B": -9.0, "C": -9.0, "D": -9.0} | {letter: -1.0})
            for key, letter in letters.items()
        }
    else:
        replies = {key: Reply(text=f"答案：{letter}") for key, letter in letters.items()}
    entry = summary(exam, replies)
    assert entry["outcomes"]["correct"] == 330
    assert entry["outcomes"]["incorrect"] == 1346 - 330
    metrics = entry["metrics"]
    assert percent(metrics["accuracy"]) == 24.52
    assert percent(metrics["average"]) == 24.67
    assert percent(metrics["macro_accuracy"]) == 24.67
    assert percent(metrics["STEM"]) == 24.89
    assert percent(metrics["Social Science"]) == 22.76
    assert percent(metrics["Humanities"]) == 25.20
    assert percent(metrics["Other"]) == 25.50
    assert percent(metrics["hard"]) == 24.84
    hard = next(group for group in entry["groups"] if group["name"] == "hard")
    assert (hard["n"], hard["outcomes"]["correct"]) == (152, 38)
    assert metrics["chance"]["value"] == 0.25


def test_a_selection_gives_a_partial_average(real: Evaluate) -> None:
    exam = real(protocol="tutorial", subset_list=["logic", "law"], decode="generate")
    entry = summary(exam, {sample.id: Reply(text="答案：A") for sample in exam.samples})
    assert entry["metrics"]["average"]["partial"] is True
    assert "STEM" not in entry["metrics"]


def test_always_answering_d_is_a_quarter(real: Evaluate) -> None:
    exam = real(few_shot_num=0)
    entry = summary(exam, {sample.id: Reply(text="答案：D") for sample in exam.samples})
    assert round(100 * entry["metrics"]["accuracy"]["value"], 1) == 26.3


def test_without_labels_there_is_no_score_and_not_zero(evaluate: Evaluate) -> None:
    exam = evaluate(split="test", protocol="tutorial")
    entry = summary(exam, {sample.id: Reply(text="答案：A") for sample in exam.samples})
    assert (entry["outcomes"]["unlabelled"], entry["outcomes"]["ungraded"]) == (3, 0)
    assert entry["metrics"]["accuracy"]["value"] is None
