"""Undressing answers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keju.answers.clean import clean_segment, unwrap_latex


@pytest.mark.parametrize(
    ("segment", "bare"),
    [
        ("True", "True"),
        (" True. ", "True"),
        ("True.**", "True"),
        ("**True**.", "True"),
        ('"True."', "True"),
        ('"True".', "True"),
        ("“True”", "True"),
        ("`True`", "True"),
        ("__True__", "True"),
        ("True。", "True"),
        (r"\boxed{24}", "24"),
        (r"\boxed{24}.", "24"),
        (r"$\boxed{24}$.", "24"),
        (r"\(\boxed{\text{24}}\)", "24"),
        (r"$\mathrm{B}$", "B"),
        (r"\textbf{(B)} it is", "(B) it is"),
        (r"\[ 24 \]", "24"),
        (r"1\,024", "1024"),
        (r"\frac{1}{2}", r"\frac{1}{2}"),
        (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"\boxed{24", "24"),
        (r"\{ a \}", "{ a }"),
        ("two stops..", "two stops."),
        ("it's", "it's"),
        ("...", ".."),
        ("", ""),
    ],
)
def test_clean_segment(segment: str, bare: str) -> None:
    assert clean_segment(segment) == bare


def test_nesting_costs_nothing() -> None:
    depth = 14_000
    assert unwrap_latex(r"\boxed{" * depth + "B" + "}" * depth) == "B"


@given(st.text(max_size=60))
def test_cleaning_adds_nothing(text: str) -> None:
    remaining = iter(text)
    assert all(character in remaining for character in clean_segment(text))
