"""What joins two answers, and what only mentions a second one."""

from __future__ import annotations

import pytest

from keju.answers.links import (
    LINK,
    NEGATIVE,
    Strength,
    counts_as_second,
    explains,
    is_offered,
    is_rejected,
    sentence_end,
    strength_of,
)


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
def test_links(between: str, strength: Strength) -> None:
    assert LINK.fullmatch(between)
    assert strength_of(between) == strength


@pytest.mark.parametrize(
    "between", [", not ", " rather than ", " because ", " for ", " (", "order"]
)
def test_no_links(between: str) -> None:
    assert not LINK.fullmatch(between)


@pytest.mark.parametrize(
    "rest", [" is wrong", " is also incorrect", " isn't right", " cannot be", " is too early",
             "选项错误", "也不对", " does not fit", " fails"],
)  # fmt: skip
def test_what_calls_an_answer_wrong(rest: str) -> None:
    assert NEGATIVE.match(rest)
    assert not counts_as_second(f"B, C{rest}", ", ", 4, 4)
    assert counts_as_second(f"B or C{rest}", " or ", 6, 6)


@pytest.mark.parametrize("rest", [" is right", " is correct", "", " is also possible", "都正确"])
def test_what_does_not(rest: str) -> None:
    assert not NEGATIVE.match(rest)
    assert counts_as_second(f"B, C{rest}", ", ", 4, 4)


def test_a_remark_may_begin_with_another_answer() -> None:
    assert not counts_as_second("B. C comes later", ". ", 4, 4)
    assert counts_as_second("B. C.", ". ", 4, 4)


@pytest.mark.parametrize("between", [", not ", " rather than option ", " instead of (", "，而不是"])
def test_rejection(between: str) -> None:
    assert is_rejected(between)


@pytest.mark.parametrize("between", [" if it rains, otherwise ", " or maybe (", ", in which case "])
def test_offers(between: str) -> None:
    assert is_offered(between)
    assert not is_rejected(between)


def test_reasons() -> None:
    assert explains(" because of ")
    assert explains(", since both ")
    assert not explains(" as well as ")
    assert not explains(" if it is hot and ")


@pytest.mark.parametrize(
    ("text", "end"),
    [("B vs. A. Yes", 7), ("B. A", 1), ("B", 1), ("B; A", 1), ("3.5 B. A", 5), ("甲。乙", 1)],
)
def test_sentences(text: str, end: int) -> None:
    assert sentence_end(text, 0) == end
