"""The passage that was read is marked inside the reply."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from keju.reporting.gallery import excerpt
from keju.reporting.passages import mark_reply
from keju.types import Answer, Reading, Score
from tests.reporting.documents import record

TEXT = "First it is (A), I think.\nSo the answer is (B). Thank you."


def reading(value: str | None, passage: str = "", reader: str = "paper") -> Reading:
    answer = Answer(value, "strict" if value else "", passage=passage)
    return Reading(reader, answer, Score(0.0, "incorrect"))


def marked(text: str, *readings: Reading) -> list[str]:
    """The marked pieces of a reply."""
    reply = mark_reply(excerpt(text), replace(record(1, text=text), readings=readings))
    return [piece.text for piece in (*reply.head, *reply.tail) if piece.is_marked]


@pytest.mark.parametrize(
    ("readings", "passages"),
    [
        ([reading("(B)", "think.\nSo the answer is (B).")], ["So the answer is (B)."]),
        ([reading("B"), reading("(B)", "ink.\nSo the answer is (B).", "robust")],
         ["So the answer is (B)."]),
        ([reading("B"), reading("(A)", "First it is (A)", "robust")], ["B"]),
        ([reading("(C)")], []),
        ([reading(None)], []),
        ([], []),
    ],
)  # fmt: skip
def test_the_passage_of_the_answer_is_marked(readings: list[Reading], passages: list[str]) -> None:
    assert marked(TEXT, *readings) == passages


def test_an_answer_that_a_reply_has_twice_is_not_guessed_at() -> None:
    assert marked("Either B or A. It is B.", reading("B")) == []


def test_the_last_occurrence_is_marked_and_no_character_is_lost() -> None:
    text = "So the answer is (B). Wait. So the answer is (B)."
    reply = mark_reply(
        excerpt(text),
        replace(record(1), readings=(reading("(B)", "So the answer is (B)."),)),
    )
    assert [piece.is_marked for piece in reply.head] == [False, True]
    assert "".join(piece.text for piece in reply.head) == text


def test_a_passage_at_the_end_of_a_long_reply_is_marked_there() -> None:
    text = "x" * 9_000 + " So the answer is (B)."
    reply = mark_reply(
        excerpt(text),
        replace(record(1), readings=(reading("(B)", "So the answer is (B)."),)),
    )
    assert reply.left_out
    assert [piece.text for piece in reply.tail if piece.is_marked] == ["So the answer is (B)."]
