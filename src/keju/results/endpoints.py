"""Report the use of each endpoint of a run, with notices about endpoints that were left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from keju.errors import Notice
from keju.results.schema import EndpointUse
from keju.runs.manifest import Manifest, StoredEndpoint

ADDED = (
    "requests", "replies", "moved", "outages", "down_seconds", "input_tokens", "cached_tokens",
    "output_tokens",
)  # fmt: skip
"""The counts that are added up over the sessions of a run."""


def endpoints_of(manifest: Manifest) -> tuple[EndpointUse, ...]:
    """Return the use of each endpoint over all sessions, including sessions with one endpoint."""
    return tuple(
        _sum_sessions(address, sessions)
        for address, sessions in _group_by_address(manifest).items()
    )


def _group_by_address(manifest: Manifest) -> dict[str, list[StoredEndpoint]]:
    sessions_by_address: dict[str, list[StoredEndpoint]] = {}
    for session in manifest.sessions:
        for endpoint in session.endpoints or ():
            sessions_by_address.setdefault(endpoint.address, []).append(endpoint)
    return sessions_by_address


def _sum_sessions(address: str, sessions: list[StoredEndpoint]) -> EndpointUse:
    counts = {name: sum(getattr(session, name) for session in sessions) for name in ADDED}
    seconds = sum(session.seconds for session in sessions)
    other_models = sum((Counter(session.other_models) for session in sessions), Counter[str]())
    return EndpointUse(
        address=address,
        mean_seconds=round(seconds / counts["replies"], 4) if counts["replies"] else None,
        cached_share=counts["cached_tokens"] / counts["input_tokens"]
        if counts["input_tokens"]
        else None,
        other_models=dict(other_models) or _list_reported_names(sessions),
        odd_wait=next((session.odd_wait for session in reversed(sessions) if session.odd_wait), ""),
        lost=sessions[-1].lost,
        **counts,
    )


def _list_reported_names(sessions: list[StoredEndpoint]) -> dict[str, int]:
    """Return the model names that were reported before any question was asked."""
    return {name: 0 for session in sessions for name in session.other_models}


def endpoint_notices(uses: tuple[EndpointUse, ...]) -> Iterator[Notice]:
    """Yield notices about endpoints with problems.

    An endpoint was given up, served another model, or sent a Retry-After that Keju did not follow.
    """
    for use in uses:
        if use.odd_wait:
            yield Notice("endpoint_odd_wait", {"url": use.address, "wait": use.odd_wait})
        if use.other_models:
            names = ", ".join(use.other_models)
            discarded = sum(use.other_models.values())
            values = {"url": use.address, "names": names, "thrown": discarded, "used": use.replies}
            yield Notice("endpoint_other_model", values)
        if use.lost is not None:
            values = {"url": use.address, "problem": use.lost, "used": use.replies}
            yield Notice("endpoint_given_up", values)
