"""The replies that were written for the readers: the form of the file, not how readers do on it."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

ROWS: list[dict[str, Any]] = [
    msgspec.json.decode(line)
    for line in (Path(__file__).parent / "written.jsonl").read_bytes().splitlines()
]

BENCHMARKS = {"bbh", "mmlu_pro", "ceval", "bixbench"}

FREE = {
    "boolean_expressions": "true|false",
    "causal_judgement": "yes|no",
    "navigate": "yes|no",
    "sports_understanding": "yes|no",
    "web_of_lies": "yes|no",
    "formal_fallacies": "valid|invalid",
    "object_counting": r"-?\d+",
    "multistep_arithmetic_two": r"-?\d+",
    "dyck_languages": r"[\])}>]( [\])}>])*",
    "word_sorting": r"[a-z]+( [a-z]+)*",
}
"""The form of a label, by the subset of a question without options."""


def is_chinese(row: dict[str, Any]) -> bool:
    return re.search("[\u4e00-\u9fff]", row["question"] + row["output"]) is not None


def test_there_are_enough_rows_in_both_languages() -> None:
    chinese = sum(map(is_chinese, ROWS))
    assert len(ROWS) >= 300
    assert 0.4 <= chinese / len(ROWS) <= 0.6
    assert {row["benchmark"] for row in ROWS} == BENCHMARKS


def test_no_row_stands_twice() -> None:
    for named in (("id",), ("tag",), ("question", "output")):
        counts = Counter(tuple(row[name] for name in named) for row in ROWS)
        assert [value for value, count in counts.items() if count > 1] == []


def test_the_half_follows_from_the_id() -> None:
    for row in ROWS:
        odd = hashlib.sha256(row["id"].encode()).digest()[-1] % 2
        assert row["half"] == ("reported" if odd else "tuning"), row["id"]


def test_every_label_fits_its_question() -> None:
    for row in ROWS:
        form = "[A-Z]" if "choices" in row else FREE[row["subset"]]
        label = row["label"]
        assert label in (None, "ambiguous") or re.fullmatch(form, label), row["id"]


def test_questions_have_the_form_of_their_exam() -> None:
    for row in ROWS:
        if row["benchmark"] != "bbh":
            assert len(row["choices"]) >= 2, row["id"]
        for letter, choice in zip("ABCDEFGHIJ", row.get("choices", ()), strict=False):
            assert row["benchmark"] != "bbh" or f"\n({letter}) {choice}" in row["question"]
        if row["subset"] == "word_sorting":
            assert "List: " in row["question"], row["id"]


def test_about_a_quarter_states_no_single_answer() -> None:
    """An exam of readers that rewards only finding answers would reward guessing."""
    open_ended = sum(row["label"] in (None, "ambiguous") for row in ROWS)
    assert 0.2 <= open_ended / len(ROWS) <= 0.3
