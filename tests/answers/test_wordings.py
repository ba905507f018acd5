"""Which wordings announce an answer."""

from __future__ import annotations

import pytest

from keju.answers.wordings import TOLERANT, find_announcements


@pytest.mark.parametrize(
    ("text", "remainder"),
    [
        ("The answer is B", " B"),
        ("the ANSWER IS: B", " B"),
        ("**Final Answer**: B", " B"),
        ("Correct answer：B", "B"),
        ("The correct option is B", " B"),
        ("the correct response would be B", " B"),
        ("The best answer choice is B", " B"),
        ("The answer is most likely B", " B"),
        ("所以答案应该是B", "B"),
        ("<answer>B</answer>", "B</answer>"),
        ("Answer - B", "B"),
        ("**Answer** — B", " B"),
        ("### Final Answer\nB", "\nB"),
        ("Answer\n\nB", "\n\nB"),
        ("final answer = B", " B"),
    ],
)
def test_announcements(text: str, remainder: str) -> None:
    match = TOLERANT.search(text)
    assert match is not None
    assert text[match.end() :] == remainder


@pytest.mark.parametrize(
    "text",
    [
        "answers: B",
        "my answer B",
        "answer issues",
        "unanswer is B",
        "The incorrect answer is B",
        "THE WRONG ANSWER IS B",
        "no answer: B",
        "if the answer is B",
        "incorrect option is B",
        "非答案是B",
        "to find the answer - A is five",
        "now give the answer\n(A) one",
        "</answer>",
    ],
)
def test_no_announcements(text: str) -> None:
    assert TOLERANT.search(text) is None


@pytest.mark.parametrize(
    ("text", "starts"),
    [
        (r"So \boxed{A}", [3]),
        (r"The answer is \boxed{A}", [4]),
        (r"The answer is $\boxed{A}$ or $\boxed{B}$", [4]),
        (r"\boxed{A}, \boxed{B} and \boxed{C}", [0]),
        (r"\boxed{A}. No: \boxed{B}", [0, 15]),
        ("\\boxed{A}\nor\n\\boxed{B}", [0, 13]),
    ],
)
def test_boxes_announce_themselves_unless_they_are_joined(text: str, starts: list[int]) -> None:
    assert [start for start, _ in find_announcements(text)] == starts
