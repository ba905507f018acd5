"""Count the points that changes of an exam's grading rules, and several attempts, add.

Published results often bend the rules of an exam, or count a question that any of several runs
answers correctly. This module counts both on the same stored answers, so that the figures can be
compared. Rule changes only accept answers, so a figure never falls.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from keju.benchmarks.base import RuleChange
from keju.benchmarks.grading import GRADED, PASS
from keju.errors import Notice
from keju.results.scored_exam import ScoredExam
from keju.scores.exam_scores import ExamScores
from keju.scores.tally import Tally
from keju.types import ALL_OUTCOMES

_UNGRADED = ALL_OUTCOMES.index("ungraded")


class RuleRow(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of one rule change on the stored answers."""

    rule: str
    """The rules of the headline's reader, the name of a rule change, or ``all``."""
    right: int
    """The number of right answers of the audited run."""
    accuracy: float
    """The mean over questions; each is the mean over the run's repeats."""
    added: int
    """The number of answers that only this change makes right."""
    points: float
    """By how many points it raises the accuracy."""
    right_in_any: int
    """The number of questions that at least one attempt of all runs answers correctly."""
    any_accuracy: float
    code: str = ""
    """The code of the message that says what the change accepts."""
    explanation: str = ""


class RuleTable(msgspec.Struct, frozen=True, kw_only=True):
    """The stored answers under the rules, and under each published change of them."""

    answers: int
    """The number of answers of the audited run. Errors are left out, ungraded answers are not."""
    ungraded: int
    """The number of these answers that neither a rule nor a judge has decided."""
    questions: int
    attempts: int
    """The number of attempts at each question: repeats, and other runs."""
    rows: tuple[RuleRow, ...]


class _Attempt(NamedTuple):
    """One pass of a run over an exam."""

    job: ExamScores
    tally: Tally
    epoch: int


def make_rule_table(job: ExamScores, other_exams: Sequence[ScoredExam]) -> RuleTable | None:
    """Return the effect of rule changes and of several attempts; None if there are neither.

    `other_exams` are other runs of the same exam. The first reader of each run counts.
    """
    changes = job.exam.rule_changes()
    own_attempts = [_Attempt(job, job.tallies[0], epoch) for epoch in range(job.epochs)]
    attempts = [*own_attempts, *_list_attempts(job, other_exams)]
    if not changes and len(attempts) < 2:
        return None
    strict = [_find_right(attempt) for attempt in attempts]
    rows: list[RuleRow] = []
    answered = _count_attempts(own_attempts)
    if not answered:
        return None
    for change in (None, *changes):
        rights = strict if change is None else _apply(change, attempts, strict)
        rows.append(_make_row(job, change, rights, answered, rows[0] if rows else None))
    tally = job.tallies[0]
    return RuleTable(
        answers=sum(answered.values()),
        ungraded=sum(code == _UNGRADED for code in tally.outcomes),
        questions=len(answered),
        attempts=len(attempts),
        rows=tuple(rows),
    )


def _list_attempts(job: ExamScores, others: Sequence[ScoredExam]) -> Iterator[_Attempt]:
    """Yield the attempts of other runs at the same exam and arm."""
    for scored_exam in others:
        other_job = scored_exam.job
        if (other_job.exam.benchmark, other_job.arm) == (job.exam.benchmark, job.arm):
            tally = other_job.tallies[scored_exam.place]
            yield from (_Attempt(other_job, tally, epoch) for epoch in range(other_job.epochs))


def _iter_units(attempt: _Attempt) -> Iterator[tuple[str, int]]:
    """Yield the sample id and the unit of each answer of an attempt."""
    for index, sample in enumerate(attempt.job.exam.samples):
        unit = index * attempt.job.epochs + attempt.epoch
        code = attempt.tally.outcomes[unit]
        if code in GRADED or code == _UNGRADED:
            yield sample.id, unit


def _count_attempts(attempts: Sequence[_Attempt]) -> dict[str, int]:
    """Return the number of answers to each question."""
    counts: dict[str, int] = {}
    for attempt in attempts:
        for name, _ in _iter_units(attempt):
            counts[name] = counts.get(name, 0) + 1
    return counts


def _find_right(attempt: _Attempt) -> set[str]:
    """Return the questions that an attempt answers correctly by the rules of the exam."""
    tally = attempt.tally
    return {
        name
        for name, unit in _iter_units(attempt)
        if tally.outcomes[unit] in GRADED and tally.values[unit] >= PASS
    }


def _apply(
    change: RuleChange, attempts: Sequence[_Attempt], strict: Sequence[set[str]]
) -> list[set[str]]:
    """Return the right questions of each attempt under a rule change."""
    rights = []
    for attempt, right in zip(attempts, strict, strict=True):
        samples, answers = attempt.job.exam.samples, attempt.tally.answers or ()
        rights.append(
            right
            | {
                name
                for name, unit in _iter_units(attempt)
                if name not in right
                and answers
                and (value := answers[unit]) is not None
                and change.accepts(value, samples[unit // attempt.job.epochs])
            }
        )
    return rights


def _make_row(
    job: ExamScores,
    change: RuleChange | None,
    rights: Sequence[set[str]],
    answered: dict[str, int],
    baseline: RuleRow | None,
) -> RuleRow:
    """Return the figures of a rule; the first sets of `rights` are those of the audited run."""
    own_rights = rights[: job.epochs]
    right_counts = [sum(name in right for right in own_rights) for name in answered]
    shares = zip(right_counts, answered.values(), strict=True)
    accuracy = sum(right / count for right, count in shares) / len(answered)
    in_any = sum(any(name in right for right in rights) for name in answered)
    right = sum(right_counts)
    return RuleRow(
        rule=job.exam.rules_of(job.readers[0]) if change is None else change.name,
        right=right,
        accuracy=accuracy,
        added=right - baseline.right if baseline else 0,
        points=round(100 * (accuracy - baseline.accuracy), 9) if baseline else 0.0,
        right_in_any=in_any,
        any_accuracy=in_any / len(answered),
        code=change.about if change else "",
        explanation=Notice(change.about).text() if change and change.about else "",
    )
