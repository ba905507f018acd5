"""Which wordings announce an answer."""

from __future__ import annotations

import pytest

from keju.answers.choice_markers import TOLERANT


@pytest.mark.parametrize(
    ("text", "rest"),
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
    ],
)
def test_announcements(text: str, rest: str) -> None:
    match = TOLERANT.search(text)
    assert match is not None
    assert text[match.end() :] == rest


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
    ],
)
def test_no_announcements(text: str) -> None:
    assert TOLERANT.search(text) is None
