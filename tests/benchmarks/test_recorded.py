"""What a row of a predictions file may say about its question."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from keju.benchmarks.choices import as_recorded
from keju.errors import DataError
from tests.results.fake_exam import make_sample

pytestmark = pytest.mark.slow

SAMPLE = make_sample("a", 0, choices=3)
OPTIONS = list(SAMPLE.choices)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"choices": "xy"}, "'choices' should be a list of texts"),
        ({"choices": ["x", 1]}, "'choices' should be a list of texts"),
        ({"choices": ["x"]}, "'choices': 1 option;"),
        ({"answer": "Q"}, "'answer' is 'Q', which is not one of the labels ABC"),
        ({"answer": 1}, "'answer' is 1, which is not one of the labels ABC"),
        ({"target": "AB"}, "'target' is 'AB'"),
        (
            {"choices": ["x", "y"], "answer": "C"},
            "'answer' is 'C', which is not one of the labels AB",
        ),
    ],
)
def test_what_cannot_have_been_is_refused(row: dict[str, Any], message: str) -> None:
    for gold in (True, False):
        with pytest.raises(DataError, match=message):
            as_recorded(SAMPLE, row, gold=gold)


def test_the_recorded_gold_counts_if_it_is_asked_for() -> None:
    row = {"choices": ["x", "y", "z"], "answer": "C"}
    assert as_recorded(SAMPLE, row, gold=True).target == "C"
    assert as_recorded(SAMPLE, row, gold=False).target == "A"
    assert as_recorded(SAMPLE, {"choices": None}, gold=True) == SAMPLE


def test_the_current_gold_moves_with_its_option() -> None:
    row = {"choices": [OPTIONS[1], OPTIONS[2], OPTIONS[0]]}
    assert as_recorded(SAMPLE, row, gold=False).target == "C"
    bracketed = msgspec.structs.replace(SAMPLE, target="(A)")
    assert as_recorded(bracketed, row, gold=False).target == "(C)"
    assert as_recorded(bracketed, {"target": "(B)"}, gold=True).target == "(B)"


def test_free_answers_are_taken_as_they_are() -> None:
    free = msgspec.structs.replace(SAMPLE, choices=(), target="24")
    assert as_recorded(free, {"answer": 25}, gold=True).target == "25"
