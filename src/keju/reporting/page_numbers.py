"""Numbers and sentences on pages: one decimal, and blanks at which no line breaks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from keju.reporting import format as fmt
from keju.reporting.format import Labels
from keju.results.schema import Metric

NO_BREAK = "\N{NO-BREAK SPACE}"


def page_percent(value: float | None) -> str:
    """Format a share for pages, with one decimal and a blank that does not break: ``63.6 %``."""
    return fmt.percent(value, 1).replace(" ", NO_BREAK)


def page_interval(bounds: Sequence[float] | None) -> str:
    """Format an interval of shares for pages: ``60.5–66.6``."""
    return fmt.interval(bounds, 1)


def page_share(value: float | None, bounds: Sequence[float] | None = None) -> str:
    """Format a share for pages, or its range if it has no value."""
    return (
        f"{page_interval(bounds)}{NO_BREAK}%" if value is None and bounds else page_percent(value)
    )


def page_figure(metric: Metric) -> str:
    """Format the value of a metric in its unit for pages."""
    return fmt.metric_figure(metric, 1).replace(" ", NO_BREAK)


def join_sentences(sentences: Iterable[str], labels: Labels) -> str:
    """Join sentences; Chinese has no blank between them."""
    return ("" if labels.language == "zh" else " ").join(sentences)
