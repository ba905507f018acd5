"""The scoreboard: a unit counts once, however often it is entered."""

from __future__ import annotations

import pytest

from keju.scores.tally import AnswerTable, Tally
from keju.scores.usage import UnitTokens
from keju.types import Answer, Reading, Score, Usage


def test_a_retried_error_is_counted_once() -> None:
    tally = Tally(2, keep_answers=True)
    tally.add(0, Reading("r", Answer(reason="server"), Score(0.0, "error")))
    tally.add(1, Reading("r", Answer("B", "strict"), Score(0.5, "correct")))
    tally.add(0, Reading("r", Answer("A", "strict"), Score(1.0, "correct")))
    counts = {name: count for name, count in tally.outcome_counts().items() if count}
    assert counts == {"correct": 2}
    assert (tally.done, tally.graded, tally.total) == (2, 2, 1.5)
    assert list(tally.answers or ()) == ["A", "B"]


def test_many_different_answers_are_kept_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keju.scores.tally.KEPT_ANSWERS", 4)
    read = [None, "A", "B", "A", "twelve", "été", "B", "another", "twelve", None]
    answers = AnswerTable(len(read))
    assert list(answers) == [None] * len(read)
    for unit, answer in enumerate(read):
        answers[unit] = answer
    assert list(answers) == read
    answers[0], answers[5] = "later", None
    assert (answers[0], answers[4:6]) == ("later", ["twelve", None])


def test_tokens_of_a_unit_may_be_more_than_a_small_number_holds() -> None:
    ledger = UnitTokens(3)
    ledger.enter(0, Usage(7, 2))
    ledger.enter(1, Usage(1 << 40, 1))
    assert [ledger.tokens(unit) for unit in range(3)] == [9, (1 << 40) + 1, 0]
    assert ledger.count_of(0, "cached") == 0
