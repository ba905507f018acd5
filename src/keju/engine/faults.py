"""What a failed attempt means for its question and for the endpoint."""

from __future__ import annotations

from keju.types import Fault, FaultKind

FINAL: frozenset[FaultKind] = frozenset({"bad_request", "context_length", "content_filter"})
"""Faults that another attempt cannot mend: the outcome of that sample."""
REFUSALS: frozenset[FaultKind] = frozenset({"auth", "not_found"})
"""Faults that stop the run when they repeat: no sample is to blame for them."""
RATE_LIMIT: FaultKind = "rate_limit"
"""The fault of a request that came too early: 429, 503 with Retry-After, overload."""
OVERLOADS: frozenset[FaultKind] = frozenset({"timeout"})
"""Faults of an endpoint that has more requests than it can answer."""
FAILURES: frozenset[FaultKind] = frozenset({"server", "timeout", "malformed"})
"""Faults that take an endpoint out when they repeat, where there are others."""


def is_attempt(fault: Fault) -> bool:
    """Whether a fault uses up an attempt: the endpoint saw the request, and had time for it."""
    return fault.sent and fault.kind != RATE_LIMIT


def is_sent(fault: Fault) -> bool:
    """Whether the endpoint saw the request."""
    return fault.sent
