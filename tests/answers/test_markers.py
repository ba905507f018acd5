"""Segments after markers."""

from __future__ import annotations

import re

import pytest

from keju.answers.markers import (
    LONGEST,
    last_block,
    last_line,
    last_paragraph,
    segments_after,
    segments_after_literal,
    segments_at,
)

ANSWER = re.compile(r"Answer:")


def _texts(text: str, *, paragraph: bool = False) -> list[str]:
    return [segment.text for segment in segments_after(text, ANSWER, paragraph=paragraph)]


@pytest.mark.parametrize(
    ("text", "segments"),
    [
        ("no marker", []),
        ("Answer: B", ["B"]),
        ("Answer: B\nmore", ["B"]),
        ("Answer:\n\n  B  \nmore", ["B"]),
        ("**Answer:**\nB", ["B"]),
        ("Answer:", [""]),
        ("Answer:\n\n", [""]),
        ("Answer: A. Answer: B", ["A.", "B"]),
        ("Answer:\nAnswer: B", ["", "B"]),
        ("Answer: A\n\nAnswer:\nB", ["A", "B"]),
        ("Answer:\n```\nB\n```\nmore", ["B"]),
        ("Answer: ```text\nB\n```", ["B"]),
        ("Answer:\n$$\nB\n$$", ["B"]),
        ("Answer: `B`", ["`B`"]),
        ("Answer: B</answer> more", ["B"]),
        ("Answer:\n- A\n- B\nmore", ["- A\n- B"]),
    ],
)
def test_rest_of_line_or_next_line(text: str, segments: list[str]) -> None:
    assert _texts(text) == segments


def test_a_paragraph_goes_on_to_the_next_blank_line() -> None:
    assert _texts("Answer:\n\n- a\n- b\n\nBye", paragraph=True) == ["- a\n- b"]
    assert _texts("Answer: a b\nBye", paragraph=True) == ["a b"]
    assert _texts("Answer:\n```\na\nb\n```\nBye", paragraph=True) == ["a\nb"]


def test_positions_are_those_of_the_marker() -> None:
    text = "x Answer: B"
    (segment,) = segments_after_literal(text, "Answer:")
    assert text[segment.start : segment.end] == "Answer:"
    assert segments_at(text, [(2, 9)]) == [segment]


def test_literal_and_pattern_agree() -> None:
    text = "Answer: A\nAnswer:\nB\nAnswer: C Answer: D"
    assert segments_after_literal(text, "Answer:") == segments_after(text, ANSWER)


def test_all_segments_together_are_no_longer_than_the_text() -> None:
    text = "Answer: A " * 10_000
    segments = segments_after(text, ANSWER)
    assert len(segments) == 10_000
    assert sum(len(segment.text) for segment in segments) <= len(text)


def test_an_endless_segment_is_cut() -> None:
    assert _texts("Answer: " + "x" * 100_000) == ["x" * (LONGEST - 1)]


@pytest.mark.parametrize(
    ("text", "line"), [("a\n b \n\n", "b"), ("a", "a"), ("", ""), (" \n ", ""), ("a\r\nb\r\n", "b")]
)
def test_last_line(text: str, line: str) -> None:
    assert last_line(text) == line


@pytest.mark.parametrize(
    ("text", "block"),
    [
        ("a\nb", "b"),
        ("a\n```\nb\nc\n```\n", "b\nc"),
        ("```text\nb\n```", "b"),
        ("a ```b```", "a ```b```"),
        ("```", "```"),
        ("", ""),
    ],
)
def test_last_block(text: str, block: str) -> None:
    assert last_block(text) == block


def test_last_paragraph() -> None:
    assert last_paragraph("x\n\nThe list:\n1. a\n2. b\n") == "1. a\n2. b"
    assert last_paragraph("a\nb") == "a\nb"
    assert last_paragraph("The list:") == "The list:"
