"""What each endpoint of a run was asked and told, and what must be known of those left out."""

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
"""What is added up over the sessions of a run."""


def endpoints_of(manifest: Manifest) -> tuple[EndpointUse, ...]:
    """The endpoints of a run over all its sessions, those with one endpoint too."""
    return tuple(_use(address, own) for address, own in _by_address(manifest).items())


def _by_address(manifest: Manifest) -> dict[str, list[StoredEndpoint]]:
    found: dict[str, list[StoredEndpoint]] = {}
    for session in manifest.sessions:
        for endpoint in session.endpoints or ():
            found.setdefault(endpoint.address, []).append(endpoint)
    return found


def _use(address: str, sessions: list[StoredEndpoint]) -> EndpointUse:
    counts = {name: sum(getattr(each, name) for each in sessions) for name in ADDED}
    seconds = sum(each.seconds for each in sessions)
    others = sum((Counter(each.other_models) for each in sessions), Counter[str]())
    return EndpointUse(
        address=address,
        mean_seconds=round(seconds / counts["replies"], 4) if counts["replies"] else None,
        cached_share=counts["cached_tokens"] / counts["input_tokens"]
        if counts["input_tokens"]
        else None,
        other_models=dict(others) or _names(sessions),
        odd_wait=next((each.odd_wait for each in reversed(sessions) if each.odd_wait), ""),
        lost=sessions[-1].lost,
        **counts,
    )


def _names(sessions: list[StoredEndpoint]) -> dict[str, int]:
    """Names that were reported before any question was asked."""
    return {name: 0 for each in sessions for name in each.other_models}


def endpoint_notices(uses: tuple[EndpointUse, ...]) -> Iterator[Notice]:
    """What readers of results must know: endpoints that were not used, or of another model, or
    that asked for waits that were not kept."""
    for use in uses:
        if use.odd_wait:
            yield Notice("endpoint_odd_wait", {"url": use.address, "wait": use.odd_wait})
        if use.other_models:
            names = ", ".join(use.other_models)
            thrown = sum(use.other_models.values())
            values = {"url": use.address, "names": names, "thrown": thrown, "used": use.replies}
            yield Notice("endpoint_other_model", values)
        if use.lost is not None:
            values = {"url": use.address, "problem": use.lost, "used": use.replies}
            yield Notice("endpoint_given_up", values)
