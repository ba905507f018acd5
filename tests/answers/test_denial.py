"""Markers that announce nothing."""

from __future__ import annotations

import pytest

from keju.answers.denial import standing_of

MARKER = "answer is"


@pytest.mark.parametrize(
    "before",
    [
        "It is not the case that the ",
        "Steps. I do not think that the correct ",
        "I don’t believe the ",
        "I doubt that the ",
        "I am not sure that the final ",
        "It is unlikely that the ",
        "It is wrong to say that the ",
        "the wrong ",
        "If the ",
        "whether the best ",
        "Suppose that the ",
        "Assuming the ",
        "Nobody can say whether the ",
        "This is not necessarily the ",
        "There is no ",
        "我不认为",
        "并非说",
        "我们不应该",
        "这里不能",
    ],
)
def test_denied(before: str) -> None:
    assert standing_of(before + MARKER, len(before)) == "denied"


@pytest.mark.parametrize(
    "before",
    [
        "",
        "The ",
        "So, the ",
        "**Final ",
        "Since it is not A, the ",
        "It is not (A), so the ",
        "I am not sure, but the ",
        "The first claim is not true. The ",
        "As the premise is false the ",
        "There is no doubt that the ",
        "We conclude that the ",
        "If so, the ",
        "By assumption the ",
        "不是甲。",
        "不能确定，",
        "因此",
    ],
)
def test_stated(before: str) -> None:
    assert standing_of(before + MARKER, len(before)) == "stated"


@pytest.mark.parametrize(
    "before", ["B or the ", "Otherwise, the ", "it is B, or maybe the ", "; otherwise the "]
)
def test_one_branch_of_two(before: str) -> None:
    assert standing_of(before + MARKER, len(before)) == "alternative"
