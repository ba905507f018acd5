"""Think blocks never reach a reader."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keju.answers.segments import SplitReply, split_thinking


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("The answer is B.", SplitReply("", "The answer is B.", False)),
        ("<think>A?</think>\n\nB", SplitReply("A?", "B", False)),
        ("<think>A?</think>B<think>C?</think>", SplitReply("A?\nC?", "B", False)),
        ("no beginning</think>B", SplitReply("no beginning", "B", False)),
        ("one</think>two</think>B", SplitReply("one\ntwo", "B", False)),
        ("B <think>or C", SplitReply("or C", "B", True)),
        ("<think>never ends", SplitReply("never ends", "", True)),
        ("<think>a<think>b</think>c</think>D", SplitReply("c\na<think>b", "D", False)),
        ("late</think> B <think>more", SplitReply("late\nmore", "B", True)),
        ("<think></think>B", SplitReply("", "B", False)),
        ("I think> so", SplitReply("", "I think> so", False)),
        ("", SplitReply("", "", False)),
    ],
)
def test_reasoning_is_split_off(reply: str, expected: SplitReply) -> None:
    assert split_thinking(reply) == expected


def test_text_without_tags_stays_as_it_is() -> None:
    assert split_thinking("  B \n").text == "  B \n"


@given(st.lists(st.sampled_from(["<think>", "</think>", "A", " ", "\n", "think>"]), max_size=30))
def test_no_tag_and_no_reasoning_survive(parts: list[str]) -> None:
    thought = split_thinking("".join(parts))
    assert "<think>" not in thought.text
    assert "</think>" not in thought.text
    assert split_thinking(thought.text).text.strip() == thought.text.strip()


@pytest.mark.parametrize("unit", ["<think>", "</think>", "<think></think>", "<think>a"])
def test_a_looping_reply_is_read(unit: str) -> None:
    assert split_thinking(unit * 20_000 + "</think>B").text == "B"
