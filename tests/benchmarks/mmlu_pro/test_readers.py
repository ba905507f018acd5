"""The authors' two readers: the published meaning, in linear time."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from keju.benchmarks.base import Reader
from keju.benchmarks.mmlu_pro.protocols import PROTOCOLS
from keju.benchmarks.mmlu_pro.readers import make_readers
from keju.types import Sample

ROW = Sample(
    id="x", subset="math", index=0, text="?", target="C", choices=tuple(map(str, range(10, 15)))
)
L1, L2 = make_readers("official")["l1"], make_readers("official")["l2"]


def published_l1(text: str) -> str | None:
    match = re.search(r"answer is \(?([A-J])\)?", text)
    return match[1] if match else None


def published_l2(text: str) -> str | None:
    if letter := published_l1(text):
        return letter
    if match := re.search(r".*[aA]nswer:\s*([A-J])", text):
        return match[1]
    last_letter = re.search(r"\b[A-J]\b(?!.*\b[A-J]\b)", text, re.DOTALL)
    return last_letter[0] if last_letter else None


PIECES = st.sampled_from([
    "answer is ", "answer is (", "Answer:", "answer:", "Answer: ", "A", "B", "J", "K", "I'm", "DNA",
    "(", ")", " ", "\n", "\t", "_", ".", "é", "x", "\r",
])  # fmt: skip


@given(st.lists(PIECES, max_size=12).map("".join) | st.text("aAnswer:is BJK\n(", max_size=30))
@example("answer:Answer: B")
@example("Answer: A Answer: B\nAnswer: C")
@example("Answer:\n\nB")
@example("x\nAnswer:\nA Answer: B\nanswer: C")
@example("Answer: K\nAnswer: D, E")
def test_both_levels_are_the_published_patterns(text: str) -> None:
    assert L1.read(text, ROW).value == published_l1(text)
    assert L2.read(text, ROW).value == published_l2(text)


@pytest.mark.parametrize(
    ("reply", "level1", "level2"),
    [
        ("The answer is (C). No, the answer is (D).", "C", "C"),
        ("The answer is C", "C", "C"),
        ("answer is Bernoulli", "B", "B"),
        ("The answer is (J)", "J", "J"),
        ("The Answer: C or Answer: D\nAnswer: E", None, "D"),
        ("I chose set B.", None, "B"),
        ("No idea.", None, None),
        ("**The answer is** (C)", None, "C"),
    ],
)
def test_levels_by_example(reply: str, level1: str | None, level2: str | None) -> None:
    assert L1.read(reply, ROW).value == level1
    assert L2.read(reply, ROW).value == level2


def test_tiers_tell_how_far_level_2_had_to_go() -> None:
    replies = ("answer is C", "Answer: C", "C", "?")
    assert [L2.read(reply, ROW).tier for reply in replies] == ["strict", "tolerant", "fallback", ""]
    assert L2.read("?", ROW).reason == "no_marker"


def test_bold_is_ignored_in_replies_of_apis_only() -> None:
    reply = "The answer is **(C)**, I say"
    assert make_readers("official-api")["l1"].read(reply, ROW).value == "C"
    assert L1.read(reply, ROW).value is None
    assert make_readers("official-api")["l2"].read(reply, ROW).tier == "strict"
    assert L2.read(reply, ROW).tier == "fallback"


@pytest.mark.parametrize(
    ("loop", "stray"),
    [
        ("Answer: ", "A"),
        ("answer: ", None),
        ("answer is ", None),
        ("answer:\n", None),
        ("A nswer:", "A"),
        ("x B ", "B"),
    ],
)
def test_looping_replies(loop: str, stray: str | None) -> None:
    """100 kB; the published patterns take seconds on these."""
    reply = loop * (100_000 // len(loop))
    assert L1.read(reply, ROW).value is None
    assert L2.read(reply, ROW).value == stray
    assert L1.read(reply + "answer is (D", ROW).value == "D"
    assert L2.read(reply + "answer is (D", ROW).value == "D"


def test_every_protocol_has_every_reader() -> None:
    for name, protocol in PROTOCOLS.items():
        readers = make_readers(name)
        assert [*readers] == ["l1", "l2", "evalscope", "inspect", "robust"]
        assert protocol.reader in readers
        assert all(reader.name == key for key, reader in readers.items())


def test_the_strict_tier_is_the_protocols_own_marker() -> None:
    def tier(protocol: str, reply: str) -> str:
        return make_readers(protocol)["robust"].read(reply, ROW).tier

    for protocol in ("official", "official-api"):
        assert tier(protocol, "The answer is (C).") == "strict"
        assert tier(protocol, "ANSWER: C") == "tolerant"
    assert tier("evalscope", "ANSWER: C") == "strict"
    assert tier("evalscope", "The answer is (C).") == "tolerant"


def test_robust_cuts_where_the_next_question_begins() -> None:
    reply = "The answer is (C).\n\nQuestion:\nNext?\nThe answer is (D)."
    for protocol in PROTOCOLS:
        answer = make_readers(protocol)["robust"].read(reply, ROW)
        assert (answer.value, answer.cut) == ("C", True)


@given(st.text(max_size=80) | st.lists(PIECES, max_size=12).map("".join))
def test_no_reader_crashes_or_invents_labels(reply: str) -> None:
    for name, reader in make_readers("official-api").items():
        value = reader.read(reply, ROW).value
        assert value is None or value in ("ABCDEFGHIJ" if name in ("l1", "l2") else ROW.labels)


def test_matching_is_equality_of_labels() -> None:
    reader: Reader
    for reader in make_readers("evalscope").values():
        assert reader.matches("C", ROW)
        assert not reader.matches("D", ROW)
