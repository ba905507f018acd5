"""The replies that were written for the readers: the form of the file, not how readers do on it."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest


def rows_of(name: str) -> list[dict[str, Any]]:
    lines = (Path(__file__).parent / name).read_bytes().splitlines()
    return [msgspec.json.decode(line) for line in lines]


SPLIT = rows_of("written.jsonl")
"""All of them for tuning."""
REPORTED = rows_of("written_reported.jsonl")
"""Written later, for the report alone."""
ROWS = SPLIT + REPORTED

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


@pytest.mark.parametrize("rows", [SPLIT, REPORTED], ids=["split", "reported"])
def test_there_are_enough_rows_in_both_languages(rows: list[dict[str, Any]]) -> None:
    chinese = sum(map(is_chinese, rows))
    assert len(rows) >= 300
    assert 0.4 <= chinese / len(rows) <= 0.6
    assert {row["benchmark"] for row in rows} == BENCHMARKS


def test_no_row_stands_twice() -> None:
    for named in (("id",), ("tag",), ("question", "output")):
        counts = Counter(tuple(row[name] for name in named) for row in ROWS)
        assert [value for value, count in counts.items() if count > 1] == []


def test_the_half_is_that_of_the_file() -> None:
    """Readers were tuned on all of the first file, so that only the other one is reported."""
    assert {row["half"] for row in SPLIT} == {"tuning"}
    assert {row["half"] for row in REPORTED} == {"reported"}


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


def test_many_state_no_single_answer() -> None:
    """An exam of readers that rewards only finding answers would reward guessing."""
    for rows, least, most in ((SPLIT, 0.2, 0.3), (REPORTED, 0.15, 0.3)):
        open_ended = sum(row["label"] in (None, "ambiguous") for row in rows)
        assert least <= open_ended / len(rows) <= most
