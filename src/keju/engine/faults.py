"""The meaning of a failed attempt for its question and for the endpoint."""

from __future__ import annotations

from keju.types import Fault, FaultKind

FINAL: frozenset[FaultKind] = frozenset({"bad_request", "context_length", "content_filter"})
"""Faults that another attempt cannot fix. They are the outcome of the sample."""
REFUSALS: frozenset[FaultKind] = frozenset({"auth", "not_found"})
"""Faults that stop the run when they repeat, because they do not depend on the sample."""
RATE_LIMIT: FaultKind = "rate_limit"
"""The fault of a request that came too early: 429, 503 with Retry-After, overload."""
OVERLOADS: frozenset[FaultKind] = frozenset({"timeout"})
"""Faults of an endpoint that has more requests than it can answer."""
FAILURES: frozenset[FaultKind] = frozenset({"server", "timeout", "malformed"})
"""Faults that take an endpoint out of service when they repeat, where there are others."""


def is_attempt(fault: Fault) -> bool:
    """Whether a fault uses up an attempt: the endpoint received the request and had time for it."""
    return fault.sent and fault.kind != RATE_LIMIT


def is_sent(fault: Fault) -> bool:
    """Whether the endpoint received the request."""
    return fault.sent
