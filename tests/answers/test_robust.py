"""The readers that all exams with labelled options share."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keju.answers.kinds import Choice, Number
from keju.answers.reader import CHINESE, EvalScopeChoiceReader
from keju.answers.robust import RobustReader
from keju.answers.wordings import ANSWER_COLON, ANSWER_IS
from keju.types import Sample

OPTIONS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "A decrease in mass",
    "Both A and B",
)  # fmt: skip


def question(n: int = 10, choices: tuple[str, ...] = OPTIONS) -> Sample:
    return Sample(id="x", subset="s", index=0, text="?", target="C", choices=choices[:n])


EVALSCOPE = EvalScopeChoiceReader()
ROBUST = RobustReader(Choice(), strict=ANSWER_COLON)
ROBUST_IS = RobustReader(Choice(), strict=ANSWER_IS)


@pytest.mark.parametrize(
    ("reply", "label"),
    [
        ("Thoughts.\nANSWER: C", "C"),
        ("**ANSWER: C**", "C"),
        ("ANSWER: **C**", "C"),
        ("answer : (C)", "C"),
        ("ANSWER: 【C】", "C"),
        ("ANSWER: $\\boxed{\\text{C}}$", "C"),
        ("ANSWER: \\(C\\)", "C"),
        ("ANSWER: B, not C", "B"),
        ("ANSWER: B\nNo, ANSWER: C", "C"),
        ("ANSWER: C\nThe form is ANSWER: [LETTER]", "C"),
        ("ANSWER: A or B", None),
        ("ANSWER: AB", None),
        ("ANSWER: (A, C)", None),
        ("ANSWER: b", None),
        ("ANSWER: K", None),
        ("nothing here", None),
    ],
)
def test_evalscope_reads_markers_from_the_last_to_the_first(reply: str, label: str | None) -> None:
    assert EVALSCOPE.read(reply, question()).value == label


@pytest.mark.parametrize(
    ("reply", "label"),
    [
        ("the final answer is $\\boxed{B}$. I hope it is correct.", "I"),
        ("The correct choice is B because of DNA.", "A"),
        ("No idea, sorry. USA", "A"),
        ("Therefore I choose option 3", "I"),
    ],
)
def test_evalscope_keeps_its_published_faults(reply: str, label: str) -> None:
    answer = EVALSCOPE.read(reply, question())
    assert (answer.value, answer.tier) == (label, "fallback")


def test_evalscope_reads_the_chinese_marker() -> None:
    reader = EvalScopeChoiceReader(CHINESE)
    row = question(4)
    for reply in ("答案: B", "**答案：B**", "答案：(B)", "正确答案为 B 选项。"):
        assert reader.read(reply, row).value == "B"
    for reply in ("答案：b", "答案：Ｂ", "答案：A、B"):
        assert reader.read(reply, row).value is None


@pytest.mark.parametrize(
    "reply",
    [
        "**ANSWER: C**",
        "ANSWER: (C)",
        "ANSWER: [C]",
        "Answer：C",
        "answer: c",
        "ANSWER: C. Because…",
        "The answer is $\\boxed{C}$.",
        "ANSWER: **C**",
        "**Answer:** C",
        "**Answer**: **C**",
        "Final answer: 'C'",
        "The correct option is C",
        "The correct answer is option C, I think.",
        "Correct choice: (c)",
        "The answer is therefore C",
        "Answer:\n\nC",
        "So \\[\\boxed{\\text{C}}\\]",
        "\\boxed{c}",
        "The answer is two",
        "The answer is Two.",
        "ANSWER: C two",
        "ANSWER: C, not D",
        "答案：C",
        "Thoughts.\nC",
        "Thoughts.\n**(C)**",
        "Thoughts.\nC) two",
        "two",
        "Thoughts.\ntwo.",
        "At first the answer is A.\nBut no: the answer is C.",
        "The answer is C. I hope that the answer is correct.",
        "The answer is C.\nThe form was ANSWER: [LETTER]",
        "The answer is [(C)].",
        "The answer is clearly (  C  )",
        "The answer is the option (C)",
        "Answer - C",
        "Answer — C",
        "### Answer\n(C)\n\nThat is all.",
        "**Final Answer**\n\nC",
        "<answer>C</answer>",
        "<answer>\nC. two\n</answer>",
        "The answer is:\n```\n(C)\n```\nDone.",
        "Thoughts.\n```\nC\n```",
        "The answer is C rather than D.",
        "The answer is (C), since (D) is too large.",
        "The answer is C. D is wrong.",
        "I do not think that the answer is D. The answer is C.",
        "It is not D, so the answer is C.",
        "There is no doubt that the answer is C.",
    ],
)
def test_robust_reads(reply: str) -> None:
    assert ROBUST.read(reply, question()).value == "C"
    assert ROBUST_IS.read(reply, question()).value == "C"


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("ANSWER: [LETTER]", "no_marker"),
        ("A: Let's think step by step", "no_marker"),
        ("answer is Bernoulli", "no_marker"),
        ("I think so", "no_marker"),
        ("ANSWER: A or B", "ambiguous"),
        ("The answer is (A) and (B).", "ambiguous"),
        ("The answer is (A, C).", "ambiguous"),
        ("ANSWER: B or even A", "ambiguous"),
        ("The answer is (B) vs (A)", "ambiguous"),
        ("The answer is \\boxed{A} or \\boxed{B}", "ambiguous"),
        ("\\boxed{A} or \\boxed{B}", "ambiguous"),
        ("Answer: $\\boxed{A}$, $\\boxed{B}$", "ambiguous"),
        ("The answer is C if it rains, otherwise D.", "ambiguous"),
        ("If it rains the answer is C; otherwise the answer is D.", "ambiguous"),
        ("The answer is C or the answer is D.", "ambiguous"),
        ("答案：B 或者 A", "ambiguous"),
        ("答案不是B", "no_marker"),
        ("It is not the case that the answer is (B)", "no_marker"),
        ("I don't think the answer is (B)", "no_marker"),
        ("The answer is definitely not (B)", "no_marker"),
        ("ANSWER: B is wrong", "no_marker"),
        ("ANSWER: H₂O", "no_marker"),
        ("ANSWER: C°", "no_marker"),
        ("ANSWER: C++", "no_marker"),
        ("The answer is C#.", "no_marker"),
        ("ANSWER: C+D", "ambiguous"),
        ("Is it so that the answer is (C)?", "no_marker"),
        ("ANSWER: C? Or is it D?", "no_marker"),
        ("ANSWER: K", "invalid_label"),
        ("The answer is A good guess", "no_marker"),
        ("The answer is A's", "no_marker"),
        ("The answer is not B", "no_marker"),
        ("The wrong answer is B", "no_marker"),
        ("If the answer is B, then", "no_marker"),
        ("No idea, sorry. USA", "no_marker"),
        ("Therefore I choose option 3", "no_marker"),
        ("Thoughts.\nC) three", "no_marker"),
        (" \n", "empty"),
    ],
)
def test_robust_does_not_read(reply: str, reason: str) -> None:
    answer = ROBUST.read(reply, question())
    assert (answer.value, answer.reason) == (None, reason)


def test_a_question_mark_is_no_doubt_in_the_form_that_was_asked_for() -> None:
    for reply in ("ANSWER: C?", "Thoughts.\nANSWER: (C)?"):
        answer = ROBUST.read(reply, question())
        assert (answer.value, answer.tier) == ("C", "strict")
    assert ROBUST_IS.read("So the answer is (C)?", question()).value is None


def test_an_option_may_end_with_a_symbol() -> None:
    row = question(3, ("Java", "C", "C++"))
    assert ROBUST.read("ANSWER: C++", row).value == "C"
    assert ROBUST.read("The answer is C. C++", row).value == "C"


def test_robust_tiers() -> None:
    tiers = {
        "ANSWER: C": "strict",
        "**ANSWER: (C)**": "strict",
        "ANSWER: $\\boxed{C}$": "tolerant",
        "Answer: C": "tolerant",
        "C": "fallback",
    }
    assert {reply: ROBUST.read(reply, question()).tier for reply in tiers} == tiers
    assert ROBUST_IS.read("The answer is (C).", question()).tier == "strict"


def test_a_strict_marker_counts_more_than_a_later_tolerant_one() -> None:
    assert ROBUST.read("ANSWER: C\nElsewhere the answer is B.", question()).value == "C"


def test_evalscope_keeps_the_first_statement_where_it_differs() -> None:
    answer = EVALSCOPE.read("ANSWER: B\nWait.\nANSWER: D\nANSWER: C", question())
    assert (answer.value, answer.first) == ("C", "B")
    assert EVALSCOPE.read("ANSWER: C\nANSWER: C", question()).first is None


def test_a_run_on_is_cut() -> None:
    answer = ROBUST.read("The answer is C.\n\nQuestion:\nWhat?\nThe answer is D.", question())
    assert (answer.value, answer.cut) == ("C", True)
    assert not ROBUST.read("Question: which?\nThe answer is C.", question()).cut


def test_an_exam_may_prepare_the_text_in_its_own_way() -> None:
    class Prepared(RobustReader):
        def prepare(self, text: str, sample: Sample) -> tuple[str, Sample, bool]:
            first_paragraph, blank, _ = text.replace("Ｃ", "C").partition("\n\n")
            return first_paragraph, sample, bool(blank)

    reader = Prepared(Choice(), strict=ANSWER_COLON)
    answer = reader.read("ANSWER: Ｃ\n\nANSWER: D", question())
    assert (answer.value, answer.cut) == ("C", True)


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("She sells 9 * 10 = 90 eggs.\n#### 90", "90"),
        ("#### 1,234.5", "1,234.5"),
        ("#### $-5\n", "-5"),
        ("#### 18 eggs\n\nThat is all.", "18"),
        ("The answer is 42, since a week has 7 days.", "42"),
        ("That makes 42 apples.", "42"),
        ("The answer is 5 or 7", None),
        ("The answer is 3½", None),
        ("It is not 7.\nThe answer is 5²", None),
        ("#### none", None),
        ("#5", None),
        ("x != 5", None),
    ],
)
def test_numbers_anywhere(reply: str, value: str | None) -> None:
    reader = RobustReader(Number(anywhere=True), strict=ANSWER_COLON)
    assert reader.read(reply, question(0)).value == value


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("#### 90", "90"),
        ("#### 1,234.50", "1234.5"),
        ("The answer is minus three.", "-3"),
        ("So it is x = 7", "7"),
        ("Total: 8", "8"),
        ("That makes 42 apples.", "42"),
        ("First, there are 42 apples. Then we", None),
        ("The answer is 5%", None),
    ],
)
def test_plain_numbers(reply: str, value: str | None) -> None:
    assert RobustReader(Number(), strict=ANSWER_COLON).read(reply, question(0)).value == value


def test_option_texts_that_look_like_labels_or_prose() -> None:
    row = question()
    assert ROBUST.read("The answer is A decrease in mass.", row).value == "I"
    assert ROBUST.read("The answer is Both A and B.", row).value == "J"
    letters = question(4, ("b", "C", "x", "y"))
    assert ROBUST.read("ANSWER: C", letters).value == "C"
    assert ROBUST.read("ANSWER: b", letters).reason == "ambiguous"
    cases = question(3, ("BB", "Bb", "bb"))
    assert ROBUST.read("The answer is Bb", cases).value == "B"
    lines = question(3, ("x\n y", "z", "w"))
    assert ROBUST.read("The answer is x\n y", lines).value == "A"


def test_labels_come_from_the_row() -> None:
    for reader in (EVALSCOPE, ROBUST):
        assert reader.read("ANSWER: D", question(4)).value == "D"
        assert reader.read("ANSWER: D", question(3)).value is None


PIECES = st.sampled_from([
    "ANSWER: ", "Answer:", "answer is ", "答案：", "final ", "correct option ", "\\boxed{", "}", "(",
    ")", "[", "A", "B", "b", "K", "I", ", ", " or ", "/", "not ", "two", "Question:", "\n", "**",
    "$", ".", "'", "think", "DNA", "Ａ", "é",
])  # fmt: skip


@given(st.lists(PIECES, max_size=14).map("".join), st.integers(2, 10))
def test_no_reader_crashes_or_leaves_the_row(reply: str, n: int) -> None:
    row = question(n)
    for reader in (EVALSCOPE, EvalScopeChoiceReader(CHINESE), ROBUST, ROBUST_IS):
        answer = reader.read(reply, row)
        assert answer.value is None or answer.value in row.labels
        assert answer.reason if answer.value is None else answer.tier


@given(st.text(max_size=60))
def test_no_text_crashes_a_reader(reply: str) -> None:
    for reader in (EVALSCOPE, ROBUST, ROBUST_IS):
        answer = reader.read(reply, question())
        assert answer.value is None or answer.value in question().labels


LOOPS = [
    "Answer: ", "answer is ", "ANSWER: foo ", "\\boxed{", "answer is \\boxed{\\text{ ", "ANSWER: (",
    "correct option ", "ANSWER: $", "(A,", "Question: ", "**", "A ", "ANSWER ", "\n", "答案 ",
]  # fmt: skip


@pytest.mark.parametrize("loop", LOOPS)
def test_looping_replies_are_read_to_their_end(loop: str) -> None:
    """100 kB; a reader that is not linear would not come back."""
    reply = loop * (100_000 // len(loop)) + "\nANSWER: C"
    assert ROBUST.read(reply, question()).value == "C"
    assert EVALSCOPE.read(reply, question()).value == "C"


@pytest.mark.parametrize("loop", ['{"answer": ', '{"answer": "A"}\n'])
def test_a_megabyte_of_json_fields_is_read_to_its_end(loop: str) -> None:
    """A reader whose time grows with the square of the fields would take minutes."""
    reply = loop * (1_000_000 // len(loop)) + "\nANSWER: C"
    assert ROBUST.read(reply, question()).reason != "empty"


@pytest.mark.parametrize(
    "word", ["answer", "ANSWER", "correct", "correct option", "答案", "ANSWER:"]
)
def test_long_white_space_after_a_marker(word: str) -> None:
    reply = word + " " * 100_000
    assert ROBUST.read(reply, question()).value is None
    assert EVALSCOPE.read(reply + "x", question()).value is None
    assert EVALSCOPE.read(f"{reply}\nANSWER: C", question()).value == "C"


def test_the_strict_marker_is_the_exact_wording() -> None:
    assert re.fullmatch(ANSWER_COLON, "ANSWER:")
    assert not re.fullmatch(ANSWER_COLON, "Answer:")
    assert not ANSWER_IS.match("Answer is")


@pytest.mark.parametrize(
    ("word", "value"),
    [("zero", "0"), ("One", "1"), ("eleven", "11"), ("nineteen", "19"), ("twenty", "20")],
)
def test_numbers_up_to_twenty_may_be_words(word: str, value: str) -> None:
    reply = f"We count them.\nANSWER: {word}"
    assert RobustReader(Number(), strict=ANSWER_COLON).read(reply, question(0)).value == value
