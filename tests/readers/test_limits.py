"""How often the robust reader may be wrong on replies that it was not tuned on."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from perf.exam import data_dir
from perf.reading.outside import BLIND, READERS, Tally, rows_of, tally_blind, tally_written

LIMITS = {
    "Llama-3.2-3B-Instruct": (0.01, 0.04, 0.01),
    "Yi-6b-Chat": (0.003, 0.01, 0.002),
    "Meta-Llama-3.1-8B-Instruct": (0.003, 0.01, 0.002),
    "Mistral-7B-v0.1": (0.003, 0.01, 0.002),
}
"""Shares that may be misread, missed and invented."""


@pytest.fixture(scope="module")
def data() -> Path:
    folder = data_dir()
    if folder is None:
        pytest.skip("needs the folder of real data")
    return folder


def shares(tally: Tally) -> tuple[float, ...]:
    return tuple(tally.errors[e] / tally.weight for e in ("misread", "missed", "invented"))


def test_half_of_the_questions_that_ask_for_the_wrong_statement_are_english() -> None:
    rows = rows_of(READERS / "polarity.jsonl")
    assert len(rows) == 40
    assert Counter(row["lang"] for row in rows)["en"] == 20


def test_the_statement_that_is_asked_for_is_never_taken_for_another(data: Path) -> None:
    misread, missed, invented = shares(tally_written(READERS / "polarity.jsonl", data))
    assert (misread, invented) == (0, 0)
    assert missed <= 0.2


def test_other_styles_are_never_misread(data: Path) -> None:
    misread, missed, invented = shares(tally_written(READERS / "styles.jsonl", data))
    assert (misread, invented) == (0, 0)
    assert missed <= 0.15


def test_the_replies_of_newer_models_imitate_many_and_have_one_key_each() -> None:
    rows = rows_of(READERS / "newer_models.jsonl")
    assert len({row["key"] for row in rows}) == len(rows) == 299
    assert len({row["style"] for row in rows}) >= 15
    assert {row["benchmark"] for row in rows} == {"bbh", "mmlu_pro", "ceval", "bixbench"}


def test_replies_as_newer_models_write_them_are_never_misread(data: Path) -> None:
    misread, missed, invented = shares(tally_written(READERS / "newer_models.jsonl", data))
    assert (misread, invented) == (0, 0)
    assert missed <= 0.08


def test_denials_and_corrections_are_never_misread(data: Path) -> None:
    misread, missed, invented = shares(tally_written(READERS / "denials.jsonl", data))
    assert (misread, invented) == (0, 0)
    assert missed <= 0.3


def test_further_styles_are_never_misread(data: Path) -> None:
    misread, missed, invented = shares(tally_written(READERS / "unseen.jsonl", data))
    assert misread == 0
    assert invented <= 0.015  # values on the way that are options too
    assert missed <= 0.28


def test_replies_that_were_labelled_first_are_read_within_the_limits(data: Path) -> None:
    tallies = tally_blind(data)
    if set(tallies) != set(LIMITS):
        pytest.skip("needs the recorded replies")
    assert sum(tally.weight for tally in tallies.values()) == sum(
        not row.get("contested") for row in rows_of(BLIND)
    )
    for model, limits in LIMITS.items():
        found = shares(tallies[model])
        assert all(map(float.__le__, found, limits)), (model, found)
