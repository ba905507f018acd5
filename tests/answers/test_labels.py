"""Labels of options: what counts as one, and what never does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keju.answers.labels import bare_label, read_label
from keju.answers.options import flatten_options, option_by_text
from keju.answers.segments import AMBIGUOUS, NO_LABEL, AnswerStatement

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
        ("B不是C", "B"),
        ("B，不选(C)", "B"),
        ("B✓", "B"),
        ("B, B", "B"),
        ("B, I think", "B"),
        ("(B) 7am to 11am", "B"),
        ("A 6pm to 9pm", "A"),
        ("6PM to 9pm.", "A"),
        ("bernoulli", "C"),
        ("'The owl'", "D"),
        ("$20", "E"),
        ("[(B)]", "B"),
        ("(  B  )", "B"),
        ("{B}", "B"),
        ("- (B)", "B"),
        ("definitely B", "B"),
        ("indeed, clearly (B)", "B"),
        ("the option (B)", "B"),
        ("that option B is correct", "B"),
        ("the correct choice B", "B"),
        ("B rather than C", "B"),
        ("(B) instead of (C)", "B"),
        ("A rather than B", "A"),
        ("(B), and not (A)", "B"),
        ("(B). (A) is too early.", "B"),
        ("B. Option A is wrong.", "B"),
        ("B, (A) is wrong", "B"),
        ("B since (A) and (C) are worse, or rather because (D) is", "B"),
        ("(B), unlike (A)", "B"),
        ("B; C is too small", "B"),
        ("B - 7am to 11am", "B"),
        ("(B) 7am to 11am, not (A) 6pm to 9pm", "B"),
    ],
)
def test_a_label_is_read(segment: str, label: str) -> None:
    assert read_label(segment, LABELS, CHOICES) == AnswerStatement(label)


@pytest.mark.parametrize(
    "segment",
    ["(A) or (B)", "A/B", "A, B", "A and C", "A、B", "A & B", "both A and B", "either (A) or (B)",
     "(A) 6pm to 9pm or (B) 7am to 11am", r"\boxed{A} or \boxed{B}", "A, A or B", "A) or B)", "A. / B.", "**A** and **B**",
     "(B) or maybe (A)", "B or even A", "B; A", "(B) | (A)", "(B) vs (A)", "(B) vs. (A)", "B + A", "B+A", "A与C", "A及C", "B A", "(B)(A)",
     "(B) if it rains, otherwise (A)", "B, in which case option A", "B unless it rains, in which case option A",
     "(B) in one case and (A) in the other", "(B), but (A) is also possible", "B (or A)", "B to D", "B as well as C",
     "(A, C)", "[A / B]", "(A or B)", "(A, C) are right", "B. A.", "B, C and D", "B 或者 A", "B还是A",
     "(B) 6pm to 9pm", "B. Bernoulli.", "B: the owl, since it is", "- A\n- B"],
)  # fmt: skip
def test_two_labels_are_ambiguous(segment: str) -> None:
    assert read_label(segment, LABELS, CHOICES) == AMBIGUOUS


@pytest.mark.parametrize("segment", ["(B) 6pm to 9pm", "B. Bernoulli.", "B: the owl, since it is"])
def test_the_letter_counts_where_the_caller_says_so(segment: str) -> None:
    assert read_label(segment, LABELS, CHOICES, letter_counts=True) == AnswerStatement("B")


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
     "(None of the above)", "clear", "the second one", "definitely not (B)", "the B side", "(B)?",
     "H₂O", "C°", "C++", "C+", "C#", "B²", "C_2", "C^2", "B不是正确答案", "B is wrong", "(B) is not correct", "neither B nor C", "anything but B"],
)  # fmt: skip
def test_prose_is_no_label(segment: str) -> None:
    assert read_label(segment, "ABCDEFGHIJ", CHOICES) == NO_LABEL


def test_an_option_of_the_same_text_as_another_cannot_be_named_by_it() -> None:
    assert option_by_text("same", ("same", " same", "other")) is None
    assert option_by_text("SAME", ("same", "Same", "other")) is None
    assert option_by_text("Same", ("same", "Same", "other")) == "B"
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
        ("[(B)]", "B"),
        ("- B", None),
        ("1. B", None),
    ],
)
def test_a_bare_line_is_nothing_but_an_answer(line: str, label: str | None) -> None:
    assert bare_label(line, LABELS, CHOICES) == label


@given(st.text(max_size=80))
def test_never_a_label_outside_the_row(segment: str) -> None:
    for value in (
        read_label(segment, "ABC", CHOICES[:3]).value,
        bare_label(segment, "ABC", CHOICES[:3]),
    ):
        assert value is None or value in "ABC"


@pytest.mark.parametrize(
    "unit",
    [
        "A because ",
        "(A) not (B) ",
        "clearly ",
        "(A) is wrong ",
        "A, ",
        "(A) and ",
        "\\boxed{",
        "(",
        "A. ",
        "*_`",
        "'",
    ],
)
def test_a_looping_segment_is_read(unit: str) -> None:
    assert read_label(unit * 20_000, LABELS, CHOICES).value in (None, "A")


SHOWN = ("BB", "Bb", "ends. ", "twice", "twice", "so on...")


@pytest.mark.parametrize(
    ("segment", "label"),
    [
        ("Bb", "B"),
        (" BB. ", "A"),
        ("ends.", "C"),
        ("ends..", "C"),
        ("so on...", "F"),
        ("so on....", "F"),
        ("bb", None),
        ("ends", "C"),
        ("twice", None),
        ("", None),
    ],
)
def test_the_text_letter_for_letter(segment: str, label: str | None) -> None:
    assert option_by_text(segment, SHOWN, "ABCDEF") == label


def test_options_of_several_lines_are_flattened_in_both() -> None:
    text, choices = flatten_options("It is x\n  y then.\nz", ("x\n  y\n", "z"))
    assert text == "It is x y then.\nz"
    assert choices == ("x y", "z")
