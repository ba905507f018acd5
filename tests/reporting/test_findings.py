"""Warnings and names as pages show them."""

from __future__ import annotations

import pytest

from keju.errors import Notice
from keju.reporting.findings import finding_of
from keju.reporting.format import Labels
from keju.reporting.pages import breakable


@pytest.mark.parametrize(
    ("second_only", "first_only", "sentence"),
    [
        (4, 2, "finds 4 right answers that do not count here, and misses 2 that do."),
        (4, 0, "finds 4 right answers that do not count here."),
        (0, 27, "does not count 27 of the right answers."),
    ],
)
def test_readers_that_differ_are_one_sentence_without_zeros(
    second_only: int, first_only: int, sentence: str
) -> None:
    values = {"other": "robust", "second_only": second_only, "first_only": first_only}
    finding = finding_of(Notice("readers_apart", values), "", Labels())
    assert finding.text == f"Another reader, robust, {sentence}"


@pytest.mark.parametrize(
    ("name", "html"),
    [
        ("bbh_word_sorting_3", "bbh_<wbr>word_<wbr>sorting_3"),
        ("logical_deduction", "logical_<wbr>deduction"),
        ("demo", "demo"),
        ("<b>_x", "&lt;b&gt;_<wbr>x"),
    ],
)
def test_a_name_breaks_between_words_and_not_before_its_number(name: str, html: str) -> None:
    assert breakable(name) == html
