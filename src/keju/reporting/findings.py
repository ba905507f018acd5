"""Warnings as short sentences for pages, each with the replies that it is about."""

from __future__ import annotations

from typing import Any, NamedTuple

from keju.errors import Notice
from keju.reporting.format import Labels, count
from keju.reporting.page_numbers import page_percent
from keju.results.schema import ResultEntry

READERS_DIFFER = "differ"
"""The filter of replies that the readers score differently; other filters are outcomes."""
_FILTERS = {
    "cut_replies": "truncated",
    "unread_replies": "unparsed",
    "ungraded_replies": "ungraded",
    "readers_apart": READERS_DIFFER,
    "compare_unread": "unparsed",
}
"""The replies that a warning is about, by the beginning of its code."""


class Finding(NamedTuple):
    """A warning in one sentence."""

    text: str
    reply_filter: str
    """The outcome of the replies that it is about, or `READERS_DIFFER`; may be empty."""
    href: str = ""
    """The address of these replies; the page sets it."""
    advice: str = ""
    """The whole warning with its commands, if the sentence leaves them out."""


def findings(entry: ResultEntry, labels: Labels) -> list[Finding]:
    """Return the warnings of an entry as sentences, in the order of the results."""
    if not entry.notices:
        return [Finding(text, "") for text in labels.warnings(entry)]
    return [
        finding_of(notice, warning, labels)
        for notice, warning in zip(entry.notices, labels.warnings(entry), strict=True)
    ]


def finding_of(notice: Notice, warning: str, labels: Labels) -> Finding:
    """Return a warning as a short sentence; `warning` is its whole text."""
    prefix = next((code for code in _FILTERS if notice.code.startswith(code)), "")
    key = f"finding.{prefix}"
    if not notice.values.get("first_only", 1):
        key += "_more"
    elif not notice.values.get("second_only", 1):
        key += "_fewer"
    if not prefix or not labels.get(key, ""):
        return Finding(capitalised(warning), "")
    values = {name: _page_value(name, value) for name, value in notice.values.items()}
    return Finding(labels(key, **values), _FILTERS[prefix], "", warning)


def _page_value(name: str, value: Any) -> Any:
    """Return a value of a notice as a page shows it."""
    if name == "share":
        return page_percent(value)
    return count(value) if isinstance(value, int) else value


def capitalised(text: str) -> str:
    """Return a sentence that begins with a capital letter."""
    return text[:1].upper() + text[1:]
