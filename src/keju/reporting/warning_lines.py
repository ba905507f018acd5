"""Warnings as single lines, the one that may cost most points first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from keju.errors import Notice
from keju.messages.wrapping import cells
from keju.reporting.brief import BriefScreen, fit_text
from keju.reporting.format import Labels

SHOWN = 3
"""The number of warnings that a short answer prints."""
_POINT_FIELDS = ("points", "robust")
_DOUBTS = frozenset(
    {
        "data_changed", "data_edited", "data_edited_more", "golds_edited", "not_published_rows",
        "not_published_rows_more", "other_model", "prompt_tokens_capped", "reader_finds_nothing",
        "replies_missing",
        "replies_shifted", "same_reply", "shots_are_questions", "nothing_graded",
    }
)  # fmt: skip
"""Warnings that put the whole score in doubt; they come before all others."""


class WarningLine(NamedTuple):
    """A warning on one line."""

    text: str
    command: str
    """The command that shows more; may be empty."""
    points: float
    """How many points it may cost; infinite if it puts the whole score in doubt."""


def points_at_stake(notice: Notice) -> float:
    """Return how many points of the score a warning may concern."""
    if notice.code in _DOUBTS:
        return float("inf")
    values = notice.values
    amounts = [abs(values[name]) for name in _POINT_FIELDS if _is_number(values.get(name))]
    if amounts:
        return float(max(amounts))
    if _is_number(values.get("share")):
        return 100 * float(values["share"])
    part, total = values.get("part"), values.get("whole")
    if _is_number(part) and _is_number(total) and total:
        return 100 * float(part) / float(total)  # type: ignore[arg-type]
    return 0.0


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def warning_line(notice: Notice, command: str, labels: Labels, subject: str = "") -> WarningLine:
    """Return a warning as one line; `subject` names its exam or run if there are several."""
    if isinstance(doubt := notice.values.get("notice"), Notice):  # about one of several runs
        run = str(notice.values.get("run", ""))
        return warning_line(doubt, command, labels, subject or run)
    template = f"brief.{notice.code}"
    text = labels.get(template, "")
    if text:
        text = labels(template, **_shown_values(notice.values))
    else:
        text = _first_clause(notice.text(labels.language))
    if subject:
        text = labels("named", name=subject, text=text)
    return WarningLine(text, command, points_at_stake(notice))


# The end of a clause: `…, which is odd: check`, `a; b`, `甲：乙`; not `12:30`.
_CLAUSE = re.compile(r"[:;] |[：；]")
_LONGEST = 72
"""The number of cells of a sentence that is printed as it is."""


def _first_clause(text: str) -> str:
    """Return a sentence that has no short form, without its later clauses if it is long."""
    if cells(text) <= _LONGEST:
        return text
    return next((part for part in _CLAUSE.split(text) if part), text)


def _shown_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a notice as they are printed in a line: numbers with separators.

    A limit (`most`) may be a fraction; other fractions are formatted by the sentence.
    """
    texts = dict(values)
    for name, value in values.items():
        if _is_number(value) and (isinstance(value, int) or name == "most"):
            texts[name] = f"{value:,}" if isinstance(value, int) else f"{value:,g}"
    return texts


def print_warnings(
    screen: BriefScreen, lines: Iterable[WarningLine], command: str, *, most: int = SHOWN
) -> None:
    """Print the first `most` warnings by points, and how many more there are."""
    ordered = sorted(dict.fromkeys(lines), key=lambda line: -line.points)
    if ordered:
        screen.put()
    for line in ordered[:most]:
        screen.hinted(f"! {fit_text(line.text, screen.room - 2)}", line.command, "yellow")
    if len(ordered) > most:
        text = screen.labels("brief.more_warnings", n=len(ordered) - most)
        screen.hinted(f"  {text}", command, "yellow")
