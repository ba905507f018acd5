"""What rule changes and several attempts are worth, counted on a few answers."""

from __future__ import annotations

import pytest

from keju.benchmarks.base import RuleChange
from keju.results.rule_changes import make_rule_table
from keju.scores.tally import AnswerTable
from keju.types import Answer, Reading, Reply, Score
from tests.results.fake_exam import FakeExam, make_job, make_scored


def accept_all(monkeypatch: pytest.MonkeyPatch, *changes: RuleChange) -> None:
    monkeypatch.setattr(FakeExam, "rule_changes", lambda _: changes, raising=False)


def test_without_changes_one_attempt_has_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    accept_all(monkeypatch)
    assert make_rule_table(make_job("10"), []) is None


def test_another_run_adds_questions_that_any_attempt_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    accept_all(monkeypatch)
    table = make_rule_table(make_job("1100"), [make_scored("0110", "r2")])
    assert table is not None
    (row,) = table.rows
    assert (table.attempts, table.questions, table.answers) == (2, 4, 4)
    assert (row.accuracy, row.right_in_any, row.any_accuracy) == (0.5, 3, 0.75)


def test_a_change_only_adds_answers_that_it_accepts(monkeypatch: pytest.MonkeyPatch) -> None:
    accept_all(monkeypatch, RuleChange("lenient", "", lambda value, _: value == "B"))
    job = make_job("1..")
    job.tallies[0].answers = AnswerTable(3)
    for unit, value in ((1, "B"), (2, "C")):
        reading = Reading("robust", Answer(value), Score(0.0, "incorrect"))
        job.enter_readings(unit, Reply(value), (), (reading,))
    table = make_rule_table(job, [])
    assert table is not None
    rules, lenient = table.rows
    assert (rules.right, lenient.right, lenient.added) == (1, 2, 1)
    assert lenient.points == pytest.approx(100 / 3)


def test_ungraded_answers_count_and_errors_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    accept_all(monkeypatch)
    table = make_rule_table(make_job("1ge"), [make_scored("000", "r2")])
    assert table is not None
    assert (table.answers, table.ungraded) == (2, 1)
