"""Majorities, agreement, the judge's quality and the correction for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from keju.errors import DataError, UsageError
from keju.judges.exam import combine_votes, measure_agreement, measure_consistency, wants_judge
from keju.judges.quality import corrected_accuracy, describe_quality, load_labelled, measure
from keju.stats.agreement import JudgeQuality, rogan_gladen
from keju.types import Outcome, Sample, Score


@pytest.mark.parametrize(
    ("votes", "verdict"),
    [
        (["correct", "incorrect", "correct"], "correct"),
        (["incorrect", None, None], "incorrect"),
        (["incorrect", "correct"], "incorrect"),
        ([None, None], None),
        ([], None),
        (["0.2", "0.4", None], "0.3"),
    ],
)
def test_most_votes_decide(votes: list[str | None], verdict: str | None) -> None:
    assert combine_votes(votes) == verdict


def test_self_consistency_is_the_chance_that_two_verdicts_agree() -> None:
    answers: list[list[str | None]] = [
        ["correct"] * 3,
        ["correct", "incorrect", "correct"],
        ["correct", None, None],
    ]
    assert measure_consistency(answers) == pytest.approx((1 + 1 / 3) / 2)
    assert measure_consistency([["correct"]]) is None


def test_agreement_of_two_judges() -> None:
    # 40, 15 / 10, 35: observed .75, by chance .5, kappa .5
    first_verdicts = ["correct"] * 55 + ["incorrect"] * 45
    second_verdicts = ["correct"] * 40 + ["incorrect"] * 15 + ["correct"] * 10 + ["incorrect"] * 35
    agreement = measure_agreement(
        [*first_verdicts, None, "correct"], [*second_verdicts, "correct", None]
    )
    assert agreement == {
        "n": 100,
        "disagreements": 25,
        "observed": 0.75,
        "kappa": pytest.approx(0.5),
    }
    assert measure_agreement([None], ["correct"])["kappa"] is None


def test_a_corrected_accuracy_is_rogan_and_gladens() -> None:
    judge = JudgeQuality(0.92, 0.88, 60, 40)
    metric = corrected_accuracy((500, 310), (0, 0), judge)
    assert metric.value == pytest.approx(0.625)
    assert metric.se == pytest.approx(0.0454426, abs=1e-7)
    assert metric.ci95 == rogan_gladen(0.62, 500, judge).interval
    assert metric.ci95 == pytest.approx([0.5281102, 0.7211822], abs=1e-6)


def test_what_a_rule_decided_is_not_corrected() -> None:
    judge = JudgeQuality(0.92, 0.88, 60, 40)
    mixed = corrected_accuracy((500, 310), (500, 400), judge)
    assert mixed.value == pytest.approx((0.625 + 0.8) / 2)
    assert mixed.n == 1000
    perfect = corrected_accuracy((50, 31), (50, 40), JudgeQuality(1.0, 1.0, 9, 9))
    assert perfect.value == pytest.approx(0.71)
    assert perfect.se == pytest.approx((0.71 * 0.29 / 100) ** 0.5)


def test_a_judge_no_better_than_chance_corrects_nothing() -> None:
    with pytest.raises(UsageError, match="no better than chance"):
        corrected_accuracy((10, 5), (0, 0), JudgeQuality(0.5, 0.5, 4, 4))
    with pytest.raises(UsageError, match="both kinds"):
        corrected_accuracy((10, 5), (0, 0), measure([True], ["correct"]))


def test_quality_over_the_labelled_answers_that_have_a_verdict() -> None:
    truth = [True, True, True, False, False]
    quality = measure(truth, ["correct", "incorrect", None, "refused", "0.9"])
    assert quality == JudgeQuality(0.5, 0.5, 2, 2)
    assert describe_quality(quality, truth)["unjudged"] == 1


def question(sample_id: str) -> Sample | None:
    if sample_id != "q7":
        return None
    return Sample(id="q7", subset="s", index=7, text="How many?", target="42", choices=())


def test_labelled_answers_name_a_question_or_bring_their_own(tmp_path: Path) -> None:
    rows = [
        {"id": "q7", "answer": "42!", "correct": True},
        {"question": "Where?", "target": "here", "answer": "there", "correct": False},
    ]
    path = tmp_path / "labelled.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    labelled = load_labelled(path, question)
    assert labelled.correct == [True, False]
    assert [(s.text, s.target, s.metadata["answer"]) for s in labelled.samples] == [
        ("How many?", "42", "42!"),
        ("Where?", "here", "there"),
    ]
    assert len({s.id for s in labelled.samples}) == 2


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"id": "q8", "answer": "a", "correct": true}', "no exam of this run"),
        ('{"question": "x", "answer": "a", "correct": true}', "'question' and 'target'"),
        ('{"id": "q7", "correct": true}', "'answer'"),
        ('{"id": "q7", "answer": "a", "correct": "yes"}', "true or false"),
        ("[1]", "line 1"),
        ("", "holds no labelled answers"),
    ],
)
def test_a_labelled_row_that_cannot_be_used_is_named(tmp_path: Path, line: str, words: str) -> None:
    path = tmp_path / "labelled.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(DataError, match=words):
        load_labelled(path, question)
    with pytest.raises(DataError, match="cannot read"):
        load_labelled(tmp_path / "none.jsonl", question)


CLOSED: dict[Outcome, tuple[bool, bool]] = {
    "correct": (False, True),
    "incorrect": (True, True),
    "unparsed": (True, True),
    "truncated": (False, True),
    "refused": (False, False),
    "error": (False, False),
}


@pytest.mark.parametrize("outcome", CLOSED)
def test_which_outcomes_are_handed_in(outcome: Outcome) -> None:
    score = Score(0.0, outcome)
    assert not wants_judge(score, "rule", open_answers=False)
    recall, every = CLOSED[outcome]
    assert wants_judge(score, "llm_recall", open_answers=False) == recall
    assert wants_judge(score, "llm", open_answers=False) == every
    assert not wants_judge(score, "llm_recall", open_answers=True)
    decided = outcome in ("correct", "incorrect")
    assert wants_judge(score, "llm", open_answers=True) == (every and not decided)


def test_undecided_answers_are_handed_in_and_answers_without_gold_are_not() -> None:
    undecided, no_gold = Score(0.0, "ungraded", "undecided"), Score(0.0, "ungraded", "no_target")
    for strategy in ("llm", "llm_recall"):
        assert wants_judge(undecided, strategy, open_answers=True)
        assert not wants_judge(no_gold, strategy, open_answers=True)
    assert not wants_judge(undecided, "rule", open_answers=True)


def test_few_judged_answers_that_hang_together_are_corrected_too() -> None:
    judge = JudgeQuality(0.9, 0.8, 60, 40)
    independent = corrected_accuracy((2, 1), (0, 0), judge)
    together = corrected_accuracy((2, 1), (0, 0), judge, shrink=5.0)
    assert together.value == independent.value
    assert isinstance(together.se, float)
    assert isinstance(independent.se, float)
    assert together.se**2 - independent.se**2 == pytest.approx(4 * 0.25 / 2 / 0.7**2)
