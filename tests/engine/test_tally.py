"""The scoreboard: a unit counts once, however often it is entered."""

from __future__ import annotations

from keju.engine.tally import Tally
from keju.types import Answer, Reading, Score


def test_a_retried_error_is_counted_once() -> None:
    tally = Tally(2, keep_answers=True)
    tally.add(0, Reading("r", Answer(reason="server"), Score(0.0, "error")))
    tally.add(1, Reading("r", Answer("B", "strict"), Score(0.5, "correct")))
    tally.add(0, Reading("r", Answer("A", "strict"), Score(1.0, "correct")))
    counts = {name: count for name, count in tally.outcome_counts().items() if count}
    assert counts == {"correct": 2}
    assert (tally.done, tally.graded, tally.total) == (2, 2, 1.5)
    assert tally.answers == ["A", "B"]
