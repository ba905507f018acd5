"""Labels of options: what counts as one, and what never does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keju.answers.labels import LabelReading, option_by_text, read_bare_label, read_label

LABELS = "ABCDE"
CHOICES = ("6pm to 9pm", "7am to 11am", "Bernoulli", "The owl", "$20")


@pytest.mark.parametrize(
    ("segment", "label"),
    [
        ("(B)", "B"),
        ("(B).", "B"),
        ("[B]", "B"),
        ("（B）", "B"),
        ("【B】", "B"),
        ("( B )", "B"),
        ("B)", "B"),
        ("B.", "B"),
        ("B:", "B"),
        ("B", "B"),
        ("Ｂ", "B"),
        ("**B**", "B"),
        ("(**B**)", "B"),
        ("**(B)** since", "B"),
        ("B because nothing else fits", "B"),
        ("B因为", "B"),
        ("A because nothing else fits", "A"),
        ("A, because nothing else fits", "A"),
        ("option B", "B"),
        ("Option (b)", "B"),
        ("Choice: B", "B"),
        ("选项B", "B"),
        ("(b)", "B"),
        ("b", "B"),
        ("b.", "B"),
        (r"\boxed{B}", "B"),
        (r"\boxed{b} is what I say", "B"),
        (r"$\boxed{\text{(B)}}$", "B"),
        (r"\text{B}", "B"),
        ("B, not C", "B"),
        ("B, B", "B"),
        ("B, I think", "B"),
        ("(B) 7am to 11am", "B"),
        ("A 6pm to 9pm", "A"),
        ("6PM to 9pm.", "A"),
        ("bernoulli", "C"),
        ("'The owl'", "D"),
        ("$20", "E"),
    ],
)
def test_a_label_is_read(segment: str, label: str) -> None:
    assert read_label(segment, LABELS, CHOICES) == LabelReading(label)


@pytest.mark.parametrize(
    "segment",
    ["(A) or (B)", "A/B", "A, B", "A and C", "A、B", "A & B", "both A and B", "either (A) or (B)",
     "(A) 6pm to 9pm or (B) 7am to 11am", r"\boxed{A} or \boxed{B}", "A, A or B", "A) or B)", "A. / B.", "**A** and **B**"],
)  # fmt: skip
def test_two_labels_are_ambiguous(segment: str) -> None:
    assert read_label(segment, LABELS, CHOICES) == LabelReading(None, "ambiguous")


@pytest.mark.parametrize("segment", ["(R)", "R", "F.", "(z)", "Z"])
def test_a_label_of_no_option_is_invalid(segment: str) -> None:
    reading = read_label(segment, LABELS, CHOICES)
    assert reading.value is None
    assert reading.reason in ("invalid_label", "no_label")


def test_an_upper_case_label_of_no_option_says_so() -> None:
    assert read_label("(R)", LABELS, CHOICES).reason == "invalid_label"


@pytest.mark.parametrize(
    "segment",
    ["", "A careful look", "I think it is B", "Because", "Bernoulli's law", "A's", "Let's", "DNA",
     "[ANSWER]", "[LETTER]", "not (B)", "b since", "a careful look", "A.D. 1200", "C-cell", "none",
     "(None of the above)", "clear", "the second one"],
)  # fmt: skip
def test_prose_is_no_label(segment: str) -> None:
    assert read_label(segment, "ABCDEFGHIJ", CHOICES) == LabelReading(None, "no_label")


def test_an_option_of_the_same_text_as_another_cannot_be_named_by_it() -> None:
    assert option_by_text("same", ("same", "Same", "other")) is None
    assert option_by_text("other.", ("same", "same", "other")) == "C"
    assert option_by_text("other", ()) is None
    assert option_by_text("", ("", "")) is None


def test_exact_text_goes_before_cleaned_text() -> None:
    assert option_by_text("$20", ("20", "$20")) == "B"
    assert option_by_text("20", ("20", "$20")) == "A"


@pytest.mark.parametrize(
    ("line", "label"),
    [
        ("B", "B"),
        ("(b)", "B"),
        ("**B.**", "B"),
        ("Ｂ", "B"),
        ("(B) 7am to 11am", "B"),
        ("B. 7am to 11am", "B"),
        ("7am to 11am", "B"),
        ("(B) 6pm to 9pm", None),
        ("B is right", None),
        ("A careful look", None),
        ("(R)", None),
        ("", None),
    ],
)
def test_a_bare_line_is_nothing_but_an_answer(line: str, label: str | None) -> None:
    assert read_bare_label(line, LABELS, CHOICES) == label


@given(st.text(max_size=80))
def test_never_a_label_outside_the_row(segment: str) -> None:
    for value in (
        read_label(segment, "ABC", CHOICES[:3]).value,
        read_bare_label(segment, "ABC", CHOICES[:3]),
    ):
        assert value is None or value in "ABC"


@pytest.mark.parametrize("unit", ["A, ", "(A) and ", "\\boxed{", "(", "A. ", "*_`", "'"])
def test_a_looping_segment_is_read(unit: str) -> None:
    assert read_label(unit * 20_000, LABELS, CHOICES).value in (None, "A")
