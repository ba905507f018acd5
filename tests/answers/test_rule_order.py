"""Which rule of the reader counts where two of them could: short cuts, corrections, replays."""

from __future__ import annotations

import pytest

from keju.answers.kinds import Choice
from keju.answers.robust import RobustReader
from keju.answers.wordings import ANSWER_IS
from keju.types import Answer, Sample

NAMES = ("nucleus", "ribosome", "vacuole", "cell wall", "membrane", "plastid")
SAMPLE = Sample(
    id="x", subset="s", index=0, text="Which part makes proteins?", target="B", choices=NAMES
)
QUICK = RobustReader(Choice(), strict=ANSWER_IS)


def read(reply: str) -> Answer:
    return QUICK.read(reply, SAMPLE)


class LongWay(RobustReader):
    """The same reader without the short cut for the usual ending."""

    def _plain_ending(self, text: str, sample: Sample) -> Answer | None:
        return None


LONG = LongWay(Choice(), strict=ANSWER_IS)


@pytest.mark.parametrize(
    "before",
    [
        "It makes proteins. The ",
        "The answer is (A) or the ",
        "My answer: (C). The ",
        "FINAL ANSWER: (C). Or the ",
        "ANSWER: (C), and the ",
        "The correct option is (A). The ",
        "It is \\boxed{C}. The ",
        "I do not think that the ",
        "答案是C。The ",
        "<think>The answer is (C).</think>The ",
        "A: The answer is (C). Or the ",
    ],
)
def test_the_short_cut_reads_what_the_long_way_reads(before: str) -> None:
    reply = f"{before}answer is (B)."
    quick, long = read(reply), LONG.read(reply, SAMPLE)
    assert (quick.value, quick.tier, quick.other, quick.signs) == (
        long.value,
        long.tier,
        long.other,
        long.signs,
    )


def test_two_announced_answers_are_never_read_by_the_short_cut() -> None:
    assert read("The answer is (A) or the answer is (B).").value is None
    assert read("The correct option is (A). The answer is (B).").value is None


@pytest.mark.parametrize(
    ("reply", "label", "rule"),
    [
        ("All books say it. The answer is (B).\nWait, no, it's C.", "C", "correction"),
        ("All books say it. The answer is (B). Correction: (C).", "C", "correction"),
        ("All books say it. The answer is (B).\nSo it is B.", "B", "marker"),
        # nothing is taken back: what follows does not count
        ("All books say it. The answer is (B).\nThe option after it is C.", "B", "marker"),
        ("All books say it. The answer is (B).\n\nC", "B", "marker"),
        ("All books say it. The answer is (B).\n\nOne more remark: so it is C.", "B", "marker"),
    ],
)
def test_what_follows_an_answer_counts_only_after_a_correction(
    reply: str, label: str, rule: str
) -> None:
    answer = read(reply)
    assert (answer.value, answer.rule) == (label, rule)


@pytest.mark.parametrize(
    ("reply", "label"),
    [
        ("B. ribosome. It is known for this work.", "B"),
        ("B. ribosome. It is known for this work. So option (B) is right.", "B"),
        # the first sentence and the conclusion differ
        ("B. ribosome. It is known for this work. So option (C) is right.", None),
    ],
)
def test_a_first_sentence_and_another_conclusion_leave_the_answer_open(
    reply: str, label: str | None
) -> None:
    answer = read(reply)
    assert answer.value == label
    assert label or answer.reason == "ambiguous"


SHOWN = ("A", "C", "D", "E", "F")
WHY = "The part that the question asks for is well known from all books about cells. "


def replay(answers: str) -> Answer:
    """What is read in a reply with these answers, each after a reason."""
    examples = "\n\n".join(f"Q: A question?\nA: So the answer is ({label})." for label in SHOWN)
    reply = "\n\n".join(f"{WHY}The answer is ({label})." for label in answers)
    return QUICK.facing(lambda _: examples).read(reply, SAMPLE)


@pytest.mark.parametrize("answers", ["ACDEFB", "ACDEBB", "BCDEFB"])
def test_the_answer_after_the_worked_examples_counts(answers: str) -> None:
    answer = replay(answers)
    assert answer.value == "B"
    assert "replayed_examples" in answer.signs


@pytest.mark.parametrize("answers", ["ACDBBB", "BBBEFC", "FEDCAB", "ACDEF"])
def test_other_answers_are_no_worked_examples(answers: str) -> None:
    assert "replayed_examples" not in replay(answers).signs


def test_the_number_of_an_item_that_never_came_is_no_answer() -> None:
    sample = Sample(id="x", subset="s", index=0, text="?", target="", choices=("3", "4", "20"))
    assert QUICK.read("1. One\n2. Two\n3", sample).value is None
    assert QUICK.read("1. One\n2. Two\n\n4", sample).value == "B"


def test_the_wrong_answer_is_none_even_where_the_wrong_statement_is_asked_for() -> None:
    text = "下列说法错误的是____"
    sample = Sample(id="x", subset="s", index=0, text=text, target="", choices=NAMES)
    assert QUICK.read("错误答案是C", sample).value is None
    assert QUICK.read("错误的说法是C。", sample).value == "C"


@pytest.mark.parametrize(
    ("reply", "label"),
    [
        ("It is unclear whether the answer is (B).", None),
        ("The wrong answer is (B).", None),
        ("I do not think that the answer is (B), so it must be (C).", "C"),
        ("It makes proteins, so it must be (C). Suppose the answer is (B).", "C"),
    ],
)
def test_what_a_sentence_takes_back_is_read_by_no_rule(reply: str, label: str | None) -> None:
    assert read(reply).value == label
