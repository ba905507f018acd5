"""The submission holds every question of the test split, or says what it lacks."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from keju.benchmarks.base import Exam
from keju.benchmarks.ceval.exam import make_submission
from keju.errors import ConfigError, DataError

Evaluate = Callable[..., Exam]


def test_the_whole_test_split_is_complete(real: Evaluate) -> None:
    exam = real(split="test", few_shot_num=0)
    answers = {sample.id: "ABCD"[i % 4] for i, sample in enumerate(exam.samples)}
    document, missing = make_submission(exam, answers)
    assert missing == []
    assert len(document) == 52
    assert sum(len(rows) for rows in document.values()) == 12342
    for subset in exam.subsets:
        assert list(document[subset.name]) == [str(i) for i in range(len(subset))]
    for sample in exam.samples:
        assert document[sample.subset][str(sample.index)] == answers[sample.id]


def test_rows_without_a_letter_are_listed_and_filled_only_on_request(evaluate: Evaluate) -> None:
    exam = evaluate(split="test")
    answers = {"ceval_logic_test_0": "B", "ceval_logic_test_1": None, "ceval_law_test_0": "X"}
    document, missing = make_submission(exam, answers, partial=True)
    assert document == {"logic": {"0": "B", "1": ""}, "law": {"0": ""}}
    assert missing == ["ceval_logic_test_1", "ceval_law_test_0"]
    filled, still_missing = make_submission(exam, answers, "A", partial=True)
    assert filled == {"logic": {"0": "B", "1": "A"}, "law": {"0": "A"}}
    assert still_missing == missing


def test_letters_of_shuffled_options_are_turned_back(evaluate: Evaluate) -> None:
    exam = evaluate(split="test", shuffle_choices=True)
    letters = {}
    for sample in exam.samples:
        letters[sample.id] = sample.labels[sample.order.index(3)]
    document, _ = make_submission(exam, letters, partial=True)
    assert document == {"logic": {"0": "D", "1": "D"}, "law": {"0": "D"}}


def test_an_incomplete_submission_is_refused_unless_asked_for(
    evaluate: Evaluate, real: Evaluate
) -> None:
    with pytest.raises(DataError, match="all 52 subjects: 'computer_network' has 0 of 171"):
        make_submission(evaluate(split="test"), {})
    exam = real(split="test", few_shot_num=0)
    answers: dict[str, str | None] = {sample.id: "A" for sample in exam.samples}
    del answers["ceval_law_test_7"]
    with pytest.raises(DataError, match=r"12341 of 12342 .*ceval_law_test_7"):
        make_submission(exam, answers)
    assert make_submission(exam, answers, partial=True).missing == ["ceval_law_test_7"]


def test_only_the_test_split_can_be_submitted(evaluate: Evaluate) -> None:
    with pytest.raises(ConfigError, match="made of the test split"):
        make_submission(evaluate(), {})
    with pytest.raises(ConfigError, match="fill 'E'"):
        make_submission(evaluate(split="test"), {}, "E")
