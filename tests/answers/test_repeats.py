"""Answers among what small models repeat: lists of options, loops, the question's own words."""

from __future__ import annotations

import pytest

from keju.answers.kinds import Choice
from keju.answers.robust import RobustReader
from keju.answers.wordings import ANSWER_COLON
from keju.benchmarks.bbh.kinds import VALID, YES_NO
from keju.types import Sample

COLOURS = ("red", "green", "blue", "grey")
ROBUST = RobustReader(Choice(), strict=ANSWER_COLON)
LISTED = "A. red\nB. green\nC. blue\nD. grey"


def read(reply: str, text: str = "?", choices: tuple[str, ...] = COLOURS) -> str | None:
    sample = Sample(id="x", subset="s", index=0, text=text, target="C", choices=choices)
    return ROBUST.read(reply, sample).value


@pytest.mark.parametrize(
    ("reply", "label"),
    [
        (f"A. red\n\n{LISTED}", "A"),
        # an option after a list of them counts only in a conclusion
        (f"{LISTED}\n\nSo it is B. green.", "B"),
        (f"{LISTED}\n\nB. green\n\nB. green is what it is", None),
        # lists alone, in whatever order
        (LISTED, None),
        (f"{LISTED}\n\n{LISTED}", None),
        ("A. red\n\nA. red\n\nB. green\n\nC. blue\n\nD. grey", None),
        ("C. blue\nD. grey\nA. red\nB. green", None),
        (f"选项：\n{LISTED}", None),
        (f"{LISTED}\n\n选项：\nD. grey\n\n选项：\nC. blue\nD. grey", None),
        (f"{LISTED}\n\nB. green\n\nC. blue\n\nB. green\n\nC. blue", None),
        (f"{LISTED}\n\nA. r", None),
        (f"{LISTED}\n\n选择：\n{LISTED}", None),
    ],
)
def test_an_option_that_stands_apart_from_the_list_is_the_answer(
    reply: str, label: str | None
) -> None:
    assert read(reply) == label


@pytest.mark.parametrize(
    ("reply", "label"),
    [
        ("选择：C. blue\n\n选择：C. blue\n\n选择：D. grey\n\n选择：A. red\n", "C"),
        ("D: gray\n\n选择D: gray\n\n选择C: blue\n\n选择A: red\n", "D"),
        ("D. grey\n\nThe answer is D.\n\nThe answer is A.", "D"),
        (f"{LISTED}\n\n选择：D. grey\n\n选择：C. blue\nD. grey\n", "D"),
        ("所以选择B. green是最安全的。\n\n选择C. blue", "B"),
        # none of them more than the others
        ("选择：C. blue\n\n选择：D. grey\n\n选择：A. red\n", None),
        ("选择：C. blue\n\n选择：C. blue\n\n选择：D. grey\n\n选择：C. blue\n\n选择：D. grey", None),
        ("选D: grey\n\n选C: blue\n\n选B: green", None),
        ("The answer is (A).\n\nThe answer is (B).", None),
    ],
)
def test_a_loop_leaves_the_answer_that_was_given_twice_before(
    reply: str, label: str | None
) -> None:
    assert read(reply) == label


def test_a_new_conclusion_at_the_end_counts() -> None:
    why = "The sky is not green on a clear day, and grass is no part of it. " * 4
    first_answer = "The correct answer is (B)\n\n"
    assert read(f"{first_answer}{why}\n\nThe answer is: (C)") == "C"
    assert read(f"{first_answer}{why}\n\nThe answer is: (C)\n\nThe sea is like it.") == "B"
    assert read(f"{first_answer}{why}\nWhat is the sea like?\n\nThe answer is: (C)") == "B"


@pytest.mark.parametrize(
    ("reply", "label"),
    [
        ("The colour of the sky on a clear day is called blue by all.", "C"),
        ("The colour of the sky on a clear day is called [D] here.", "D"),
        ("The colour of the sky on a clear day is called\nA. red\nB. green", None),
        ("The colour of the sky on a clear day is called pink by all.", None),
    ],
)
def test_an_option_may_complete_the_question(reply: str, label: str | None) -> None:
    assert read(reply, "The colour of the sky on a clear day is called____") == label


@pytest.mark.parametrize(
    ("reply", "choices", "label"),
    [
        ("The answer is 'C' (red).", COLOURS, "C"),
        ("The answer is 1.", ("zero", "one", "two"), "B"),
        ("The answer is 8/3/1997.", ("08/04/1997", "08/03/1997"), "B"),
        ("D) green\n\nThe answer is:", COLOURS, "D"),
        ("Let us see. The last line should be of the following format: 'red'", COLOURS, None),
    ],
)  # fmt: skip
def test_labels_and_texts_in_odd_forms(
    reply: str, choices: tuple[str, ...], label: str | None
) -> None:
    assert read(reply, choices=choices) == label


def test_verdicts_in_odd_forms() -> None:
    sample = Sample(id="x", subset="s", index=0, text="?", target="No")
    yes_no = RobustReader(YES_NO, strict="So the answer is ")
    assert yes_no.read("No, you don't return to the starting point.", sample).value == "No"
    assert yes_no.read("Final answer:\n\n1. Yes\n\nThat is all.", sample).value == "Yes"
    valid = RobustReader(VALID, strict="So the answer is ")
    assert valid.read("The argument is valid, as it follows ex ex ex", sample).value == "valid"
