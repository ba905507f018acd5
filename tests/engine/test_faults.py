"""Which failed attempts count for their question."""

from __future__ import annotations

import pytest

from keju.engine.faults import FINAL, REFUSALS, is_attempt, is_sent
from keju.types import Fault


@pytest.mark.parametrize(
    ("fault", "attempt", "sent"),
    [
        (Fault("server", "500"), True, True),
        (Fault("rate_limit", "429"), False, True),
        (Fault("connection", "refused", sent=False), False, False),
    ],
)
def test_only_requests_that_the_endpoint_had_time_for_are_attempts(
    fault: Fault, attempt: bool, sent: bool
) -> None:
    assert (is_attempt(fault), is_sent(fault)) == (attempt, sent)


def test_no_fault_is_both_an_outcome_of_the_question_and_a_reason_to_stop() -> None:
    assert not FINAL & REFUSALS
