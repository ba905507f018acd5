"""What may stand before an answer."""

from __future__ import annotations

import pytest

from keju.answers.lead import without_emphasis, without_lead


@pytest.mark.parametrize(
    ("segment", "rest"),
    [
        ("clearly Yes", "Yes"),
        ("therefore, definitely True", "True"),
        ("- Yes", "Yes"),
        ("• **Yes**", "Yes**"),
        ("no doubt Yes", "Yes"),
        ("without a doubt No", "No"),
        ("justice", "justice"),
        ("Yes", "Yes"),
        ("", ""),
        ("-5", "-5"),
    ],
)
def test_lead(segment: str, rest: str) -> None:
    assert without_lead(segment) == rest


def test_numbers_keep_their_minus() -> None:
    assert without_emphasis("exactly - 5") == "- 5"
    assert without_emphasis("- 5") == "- 5"


def test_a_long_lead_ends_somewhere() -> None:
    assert without_lead("clearly " * 50_000).startswith("clearly")
