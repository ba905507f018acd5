"""The sentence that states the result of one gate."""

from __future__ import annotations

from typing import Any

import pytest

from keju.results.gate_rows import AT_LEAST
from tests.results.fake_exam import make_row


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"n": 0}, "gate_nothing"),
        ({"left_out": 90}, "gate_selection"),
        ({"verdict": "pass"}, "gate_worse_pass"),
        ({"verdict": "fail", "gate": AT_LEAST}, "gate_least_fail"),
        ({}, "gate_worse_open"),
        ({"needed": 300}, "gate_worse_inconclusive"),
        ({"needed": 500}, "gate_worse_beyond"),
        ({"needed": 500, "whole": 0}, "gate_worse_inconclusive"),
    ],
)
def test_the_code_follows_from_the_verdict_and_the_number_of_questions(
    changes: dict[str, Any], code: str
) -> None:
    assert make_row(**changes).conclusion.code == code


def test_the_sentence_is_in_points_and_names_the_arm() -> None:
    text = make_row(verdict="pass", arm="tools", value=0.031, low=0.011).conclusion.text()
    assert "demo · tools" in text
    assert "1.1" in text


@pytest.mark.parametrize(("left_out", "selected"), [(5, False), (6, True)])
def test_a_selection_begins_above_the_share_that_results_allow(
    left_out: int, selected: bool
) -> None:
    from keju.stats.estimate import MOST_UNGRADED

    n = round((1 - MOST_UNGRADED) * 100)
    left = 100 - n + (left_out - 5)
    assert make_row(n=n, left_out=left).selected is selected
