"""The oracle test: a reply that holds the right answer is right in every style, a wrong one never.

All 6,511 rows in every style; at least 99.9 % of the right answers must be recognised.
"""

from __future__ import annotations

import pytest

from keju.answers.segments import split_thinking
from keju.benchmarks.base import Exam
from keju.benchmarks.bbh.metadata import SUBSETS, Kind
from keju.types import Sample
from tests.benchmarks.bbh.rows import CHOICE, wrong_answers, wrong_label
from tests.benchmarks.bbh.styles import (
    DENIALS,
    MORE_THAN_A_NUMBER,
    PLAIN_STYLES,
    REASONING,
    STATEMENTS,
    TWO_ANSWERS,
    lettered,
)

SHARE = 0.999
SOME = 11
"""Every so many rows are enough where the reply does not depend on the row."""
NO_ANSWERS = ("", "unclear", "[ANSWER]", "[LETTER]", "none of these", "?")


def _right(exam: Exam, reply: str, sample: Sample) -> bool:
    reader = exam.readers["robust"]
    answer = reader.read(reply, sample)
    return answer.value is not None and reader.matches(answer.value, sample)


@pytest.mark.parametrize("style", PLAIN_STYLES)
def test_right_answers_are_recognised(exam: Exam, style: str) -> None:
    say = PLAIN_STYLES[style]
    missed = [s.id for s in exam.samples if not _right(exam, say(s.target), s)]
    assert len(missed) <= (1 - SHARE) * len(exam.samples), missed[:10]


@pytest.mark.parametrize("style", PLAIN_STYLES)
def test_wrong_answers_are_never_right(exam: Exam, style: str) -> None:
    say = PLAIN_STYLES[style]
    accepted = [
        (sample.id, wrong)
        for sample in exam.samples
        for wrong in wrong_answers(sample)
        if _right(exam, say(wrong), sample)
    ]
    assert accepted == []


@pytest.mark.parametrize("style", PLAIN_STYLES)
def test_no_answer_is_never_right(exam: Exam, style: str) -> None:
    say = PLAIN_STYLES[style]
    replies = [say(empty_answer) for empty_answer in NO_ANSWERS]
    accepted = [
        (sample.id, reply)
        for sample in exam.samples[::SOME]
        for reply in replies
        if _right(exam, reply, sample)
    ]
    assert accepted == []


@pytest.mark.parametrize("style", lettered(CHOICE, "B"))
def test_options_may_be_named_in_many_ways(exam: Exam, style: str) -> None:
    rows = [s for s in exam.samples if s.choices and len(s.target) == 3]
    assert len(rows) == 4071
    # `(i)` is the number of a part, not option I
    read = [s for s in rows if style != "lower case in brackets" or s.target != "(I)"]
    missed = [s.id for s in read if not _right(exam, lettered(s, s.target[1])[style], s)]
    assert len(missed) <= (1 - SHARE) * len(rows), missed
    accepted = [
        s.id
        for s in rows
        if len(s.choices) > 1 and _right(exam, lettered(s, wrong_label(s))[style], s)
    ]
    assert accepted == []


@pytest.mark.parametrize(
    "think",
    [
        "<think>{other}So the answer is {wrong}.</think>\n\n",
        "{other}So the answer is {wrong}.\n</think>\n",
        "<think>{other}</think><think>Answer: {wrong}</think>",
    ],
)
def test_thoughts_are_not_answers(exam: Exam, think: str) -> None:
    missed, accepted = [], []
    for sample in exam.samples:
        wrong = wrong_answers(sample)[0]
        thought = think.format(other=REASONING, wrong=wrong)
        reply = split_thinking(f"{thought}So the answer is {sample.target}.").text
        if not _right(exam, reply, sample):
            missed.append(sample.id)
        thought = think.format(other=REASONING, wrong=sample.target)
        for ending in (f"So the answer is {wrong}.", "", "I cannot say."):
            if _right(exam, split_thinking(thought + ending).text, sample):
                accepted.append(sample.id)
    assert len(missed) <= (1 - SHARE) * len(exam.samples)
    assert accepted == []


def test_a_denied_answer_is_never_right(exam: Exam) -> None:
    accepted = [
        sample.id
        for sample in exam.samples
        if SUBSETS[sample.subset].kind != "valid"
        and _right(exam, f"So the answer is not {sample.target}.", sample)
    ]
    assert accepted == []


def test_both_truth_values_are_no_answer(exam: Exam) -> None:
    for reply in ("Yes or No", "yes/no", "True or False", "valid or invalid", "(A) or (B)"):
        reply_text = f"So the answer is {reply}."
        assert not [s.id for s in exam.samples if _right(exam, reply_text, s)]


@pytest.mark.parametrize("kind", STATEMENTS)
def test_answers_may_be_stated_without_a_marker(exam: Exam, kind: Kind) -> None:
    rows = [s for s in exam.samples if SUBSETS[s.subset].kind == kind]
    for say in STATEMENTS[kind]:
        missed = [s.id for s in rows if not _right(exam, say(s.target), s)]
        assert len(missed) <= (1 - SHARE) * len(rows), (say("T"), missed[:5])
        wrong = [
            s.id for s in rows for w in wrong_answers(s) if s.target and _right(exam, say(w), s)
        ]
        assert wrong == [], say("T")


@pytest.mark.parametrize("number", range(len(TWO_ANSWERS)))
def test_two_answers_are_never_right(exam: Exam, number: int) -> None:
    say = TWO_ANSWERS[number]
    accepted = []
    for sample in exam.samples:
        kind = SUBSETS[sample.subset].kind
        if kind in ("brackets", "words") or (kind == "choice" and len(sample.choices) < 2):
            continue
        wrong = wrong_answers(sample)[0]
        pairs = [(sample.target, wrong), (wrong, sample.target)]
        if len(sample.target) == 3 and kind == "choice":
            pairs.append((sample.target[1], wrong[1]))
        accepted += [(sample.id, a, b) for a, b in pairs if _right(exam, say(a, b), sample)]
    assert accepted == []


@pytest.mark.parametrize("denial", DENIALS)
def test_what_is_only_named_is_never_right(exam: Exam, denial: str) -> None:
    accepted = [s.id for s in exam.samples if _right(exam, denial.format(s.target), s)]
    assert accepted == []


def test_a_label_counts_whatever_text_stands_beside_it(exam: Exam) -> None:
    missed, reply_count = [], 0
    for sample in exam.samples:
        if not sample.choices or len(sample.target) != 3 or len(sample.choices) < 2:
            continue
        target_text = sample.choices[sample.labels.index(sample.target[1])]
        text = sample.choices[sample.labels.index(wrong_label(sample))]
        if text.strip() and text.casefold() != target_text.casefold():
            for reply in (f"So the answer is {sample.target} {text}.", f"{sample.target} {text}"):
                reply_count += 1
                missed += [] if _right(exam, reply, sample) else [sample.id]
    assert len(missed) <= 0.005 * reply_count  # a text of two sentences may be an answer of its own


@pytest.mark.parametrize("form", MORE_THAN_A_NUMBER)
def test_a_number_is_not_read_out_of_another(exam: Exam, form: str) -> None:
    rows = [s for s in exam.samples if SUBSETS[s.subset].kind == "integer" and s.target != "0"]
    for say in ("So the answer is {}.", "Total: {}", "2 + 3 = {}", "{}"):
        accepted = [s.id for s in rows if _right(exam, say.format(form.format(s.target)), s)]
        assert accepted == [], say
