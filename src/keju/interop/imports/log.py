"""What the log of any tool comes down to: rows with a reply, and what the tool made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from keju.types import Reply


@dataclass(frozen=True, kw_only=True)
class LogRow:
    """One reply of a log, with all that can tell which question it answers."""

    where: str
    """File and place in it, for messages."""
    reply: Reply
    keys: Mapping[str, Any] = field(default_factory=dict)
    """The question's own ids, as a row of a predictions file carries them."""
    subset: str = ""
    """As the tool spells it; empty where it does not say."""
    index: int | None = None
    """Position inside the subset, from 0."""
    question: str = ""
    """The question alone, where the log keeps it apart from the prompt."""
    prompt: str = ""
    """The whole text that was sent."""
    choices: tuple[str, ...] = ()
    """The options in the order in which they were shown, where the log keeps them apart."""
    target: str = ""
    """The gold answer as the log has it."""
    answer: str | None = None
    """What the tool read out of the reply."""
    verdict: float | None = None
    """The tool's score of this row."""
    epoch: int = 0
    note: str = ""
    """Why the row is of no exam, where the reader of the log knows it."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """One exam of a log: its rows, the figure the tool reports, and how Keju reads the same."""

    benchmark: str
    """Keju's name of the exam; empty where the tool's task is none of them."""
    task: str
    """The tool's name of it."""
    rows: Sequence[LogRow]
    protocol: str = ""
    """The protocol whose reading is the tool's; the exam's own by default."""
    reader: str = ""
    """The equivalent reader where it is not the protocol's own."""
    args: Mapping[str, Any] = field(default_factory=dict)
    """Further settings of the exam, e.g. the number of worked examples."""
    reported: Mapping[str, float] = field(default_factory=dict)
    """The tool's figures by their names there, the headline first, in [0, 1]."""
    sampling: Mapping[str, Any] = field(default_factory=dict)
    """How the tool asked, as far as its log says so."""


@dataclass(frozen=True, kw_only=True)
class Log:
    """The log of one model, read."""

    tool: str
    version: str
    model: str
    parts: Sequence[Part]
    files: Mapping[str, str]
    """Relative path to SHA-256 of each file read."""
