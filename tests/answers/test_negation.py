"""What takes an answer back, and what joins a second one to it."""

from __future__ import annotations

import pytest

from keju.answers.decision import (
    EXPLAINS,
    LINK,
    NEGATIVE,
    OFFERS,
    REJECTS,
    SENTENCE_END,
    LinkStrength,
    announcement_status,
    is_second_answer,
    link_strength,
)

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
    assert announcement_status(before + MARKER, len(before)) == "denied"


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
    assert announcement_status(before + MARKER, len(before)) == "stated"


@pytest.mark.parametrize(
    "before", ["B or the ", "Otherwise, the ", "it is B, or maybe the ", "; otherwise the "]
)
def test_one_branch_of_two(before: str) -> None:
    assert announcement_status(before + MARKER, len(before)) == "alternative"


@pytest.mark.parametrize(
    ("between", "strength"),
    [
        (" or ", "either"),
        (", or maybe ", "either"),
        (" vs. ", "either"),
        ("/", "either"),
        (" | ", "either"),
        (" 或者 ", "either"),
        ("还是", "either"),
        (" (or ", "either"),
        (" and ", "joined"),
        (", ", "joined"),
        (" + ", "joined"),
        (" as well as ", "joined"),
        (" to ", "joined"),
        ("和", "joined"),
        ("; ", "apart"),
        (". ", "apart"),
        (" - ", "apart"),
        ("", "apart"),
    ],
)
def test_links(between: str, strength: LinkStrength) -> None:
    assert LINK.fullmatch(between)
    assert link_strength(between) == strength


@pytest.mark.parametrize(
    "between", [", not ", " rather than ", " because ", " for ", " (", "order"]
)
def test_no_links(between: str) -> None:
    assert not LINK.fullmatch(between)


@pytest.mark.parametrize(
    "continuation", [" is wrong", " is also incorrect", " isn't right", " cannot be", " is too early",
             "选项错误", "也不对", " does not fit", " fails"],
)  # fmt: skip
def test_what_calls_an_answer_wrong(continuation: str) -> None:
    assert NEGATIVE.match(continuation)
    assert not is_second_answer(f"B, C{continuation}", ", ", 4, 4)
    assert is_second_answer(f"B or C{continuation}", " or ", 6, 6)


@pytest.mark.parametrize(
    "continuation", [" is right", " is correct", "", " is also possible", "都正确"]
)
def test_what_does_not(continuation: str) -> None:
    assert not NEGATIVE.match(continuation)
    assert is_second_answer(f"B, C{continuation}", ", ", 4, 4)


def test_a_remark_may_begin_with_another_answer() -> None:
    assert not is_second_answer("B. C comes later", ". ", 4, 4)
    assert is_second_answer("B. C.", ". ", 4, 4)


@pytest.mark.parametrize("between", [", not ", " rather than option ", " instead of (", "，而不是"])
def test_rejection(between: str) -> None:
    assert REJECTS.search(between)


@pytest.mark.parametrize("between", [" if it rains, otherwise ", " or maybe (", ", in which case "])
def test_offers(between: str) -> None:
    assert OFFERS.search(between)
    assert not REJECTS.search(between)


def test_reasons() -> None:
    assert EXPLAINS.search(" because of ")
    assert EXPLAINS.search(", since both ")
    assert not EXPLAINS.search(" as well as ")
    assert not EXPLAINS.search(" if it is hot and ")


@pytest.mark.parametrize(
    ("text", "end"),
    [("B vs. A. Yes", 7), ("B. A", 1), ("B", 1), ("B; A", 1), ("3.5 B. A", 5), ("甲。乙", 1)],
)
def test_sentences(text: str, end: int) -> None:
    match = SENTENCE_END.search(text)
    assert (match.start() if match else len(text)) == end
