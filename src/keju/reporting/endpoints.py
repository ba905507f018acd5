"""Describe the endpoints of a run for the terminal and the page."""

from __future__ import annotations

from keju.reporting.arms import TitledTable
from keju.reporting.format import Labels, count, percent
from keju.results.schema import Results


def endpoint_table(results: Results, labels: Labels) -> TitledTable:
    """Return a row for each endpoint: its replies, speed and failures."""
    names = ("address", "replies", "requests", "latency", "cached", "moved", "outages", "down")
    rows = [
        [
            use.address,
            count(use.replies),
            count(use.requests),
            labels.duration(use.mean_seconds),
            percent(use.cached_share, 1),
            count(use.moved),
            count(use.outages),
            labels.duration(use.down_seconds),
        ]
        for use in results.endpoints
    ]
    return TitledTable([labels(f"endpoints.{name}") for name in names], rows)
