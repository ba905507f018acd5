"""Recorded replies get the published verdicts, row by row, and the four numbers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from keju.benchmarks.ifeval.exam import InstructionVerdicts
from keju.benchmarks.prepare import prepare_exam
from keju.files import read_json, read_rows
from tests.cli.conftest import Keju, keju

__all__ = ["keju"]

RECORDED = "recorded/ifeval/gpt-4"


def test_every_published_verdict_is_given(data_dir: Path) -> None:
    exam, _ = prepare_exam("ifeval", data_dir=str(data_dir))
    samples = {sample.id: sample for sample in exam.samples}
    golden = read_json(data_dir / f"{RECORDED}_golden.json")["rows"]
    passed_strictly = passed_loosely = 0
    for _, row in read_rows(data_dir / f"{RECORDED}_predictions.jsonl.gz"):
        verdicts = InstructionVerdicts(row["output"], samples[exam.locate(row)])
        if golden[str(row["key"])] is not None:
            assert [verdicts.strict, verdicts.loose] == golden[str(row["key"])], row["key"]
            passed_strictly += all(verdicts.strict)
            passed_loosely += all(verdicts.loose)
    assert (passed_strictly, passed_loosely) == (416, 430)


def test_score_gives_four_numbers(data_dir: Path, keju: Keju) -> None:
    predictions = str(data_dir / f"{RECORDED}_predictions.jsonl.gz")
    flags = ("--datasets", "ifeval", "--predictions", predictions, "--data-dir", str(data_dir))
    result = keju("score", *flags, "--json")
    (entry,) = result.json["benchmarks"]
    values = {name: metric["value"] for name, metric in entry["metrics"].items()}
    assert entry["headline"] == "prompt_strict"
    assert values["prompt_strict"] == pytest.approx(417 / 540)
    assert values["prompt_loose"] == pytest.approx(431 / 540)
    assert entry["metrics"]["instruction_strict"]["n"] == 832
    assert values["instruction_strict"] == pytest.approx(697 / 832)
    assert values["instruction_loose"] == pytest.approx(713 / 832)
    assert entry["metrics"]["instruction_strict"]["ci95"][0] < 697 / 832


def test_files_of_hubs_list_arguments_without_values(tmp_path: Path, keju: Keju) -> None:
    folder = tmp_path / "data" / "ifeval"
    folder.mkdir(parents=True)
    arguments = {"num_words": 2, "relation": "at least", "keywords": None}
    row = {
        "key": 7,
        "prompt": "Say it.",
        "instruction_id_list": ["length_constraints:number_words"],
        "kwargs": [arguments],
    }
    (folder / "train.jsonl").write_text(json.dumps(row))
    (tmp_path / "replies.jsonl").write_text(json.dumps({"key": 7, "output": "two words"}))
    flags = ("--data-dir", str(tmp_path / "data"), "--json")
    replies = str(tmp_path / "replies.jsonl")
    result = keju("score", "--datasets", "ifeval", "--predictions", replies, *flags)
    (entry,) = result.json["benchmarks"]
    assert entry["metrics"]["prompt_strict"]["value"] == 1.0
