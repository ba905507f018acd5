"""Segments after markers, what ends a reply, run-on, and what dresses an answer."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keju.answers.segments import (
    LONGEST,
    clean_segment,
    find_segments,
    last_block,
    last_line,
    last_paragraph,
    read_segment,
    remove_lead,
    split_stretches,
    unwrap_latex,
)

ANSWER = re.compile(r"Answer:")


def _texts(text: str, *, paragraph: bool = False) -> list[str]:
    return [segment.text for segment in find_segments(text, ANSWER, paragraph=paragraph)]


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
    (segment,) = find_segments(text, ANSWER)
    assert text[segment.start : segment.end] == "Answer:"
    assert read_segment(text, [(2, 9)], 0) == segment


def test_all_segments_together_are_no_longer_than_the_text() -> None:
    text = "Answer: A " * 10_000
    segments = find_segments(text, ANSWER)
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


@pytest.mark.parametrize(
    ("segment", "bare"),
    [
        ("True", "True"),
        (" True. ", "True"),
        ("True.**", "True"),
        ("**True**.", "True"),
        ('"True."', "True"),
        ('"True".', "True"),
        ("“True”", "True"),
        ("`True`", "True"),
        ("__True__", "True"),
        ("True。", "True"),
        (r"\boxed{24}", "24"),
        (r"\boxed{24}.", "24"),
        (r"$\boxed{24}$.", "24"),
        (r"\(\boxed{\text{24}}\)", "24"),
        (r"$\mathrm{B}$", "B"),
        (r"\textbf{(B)} it is", "(B) it is"),
        (r"\[ 24 \]", "24"),
        (r"1\,024", "1024"),
        (r"\frac{1}{2}", r"\frac{1}{2}"),
        (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"\boxed{24", "24"),
        (r"\{ a \}", "{ a }"),
        ("two stops..", "two stops."),
        ("it's", "it's"),
        ("...", ".."),
        ("", ""),
    ],
)
def test_clean_segment(segment: str, bare: str) -> None:
    assert clean_segment(segment) == bare


def test_nesting_costs_nothing() -> None:
    depth = 14_000
    assert unwrap_latex(r"\boxed{" * depth + "B" + "}" * depth) == "B"


@given(st.text(max_size=60))
def test_cleaning_adds_nothing(text: str) -> None:
    remaining = iter(text)
    assert all(character in remaining for character in clean_segment(text))


@pytest.mark.parametrize(
    ("segment", "remainder"),
    [
        ("clearly Yes", "Yes"),
        ("therefore, definitely True", "True"),
        ("- Yes", "Yes"),
        ("• **Yes**", "Yes**"),
        ("no doubt Yes", "Yes"),
        ("without a doubt No", "No"),
        ("justice", "justice"),
        ("Yes", "Yes"),
        ("", ""),
        ("-5", "-5"),
    ],
)
def test_lead(segment: str, remainder: str) -> None:
    assert remove_lead(segment) == remainder


def test_numbers_keep_their_minus() -> None:
    assert remove_lead("exactly - 5", bullet=False) == "- 5"
    assert remove_lead("- 5", bullet=False) == "- 5"


def test_a_long_lead_ends_somewhere() -> None:
    assert remove_lead("clearly " * 50_000).startswith("clearly")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("B.\n\nQ: Next?\nA: C", ["B.\n", "\nQ: Next?\nA: C"]),
        ("B.\nQ: Next?\n\nQ: And?", ["B.", "\nQ: Next?\n", "\nQ: And?"]),
        ("B. Q: not at the start of a line", ["B. Q: not at the start of a line"]),
        ("Q: repeated question\nA: B", ["Q: repeated question\nA: B"]),
        ("\n\nQ: repeated question\nA: B", ["\n\nQ: repeated question\nA: B"]),
        ("Q: repeated\nA: B\nQ: next", ["Q: repeated\nA: B", "\nQ: next"]),
        ("B\n### Question 2\nWhich?", ["B", "\n### Question 2\nWhich?"]),
        ("B\n**Question:** Which?", ["B", "\n**Question:** Which?"]),
        ("B\nHuman: Next", ["B", "\nHuman: Next"]),
        ("B\n问题：x\n第2题 y", ["B", "\n问题：x", "\n第2题 y"]),
        ("B\nQuestions remain.", ["B\nQuestions remain."]),
        ("", [""]),
    ],
)
def test_a_reply_is_taken_apart_where_a_question_begins(text: str, parts: list[str]) -> None:
    stretches = split_stretches(text)
    assert [text[stretch.start : stretch.end] for stretch in stretches] == parts
    assert (stretches[0].question >= 0) == text.lstrip().startswith("Q:")
