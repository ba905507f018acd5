"""What an exam declares of two modes that its runs can be compared in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple


class Modes(NamedTuple):
    """An exam that can be sat with and without a chain of thought, as ``keju modes`` compares it.

    The setting ``mode`` of a run says which one it was.
    """

    direct: str
    """The mode that answers at once."""
    reasoned: str
    """The mode with a chain of thought."""
    subjects: Mapping[str, str]
    """The subsets in published order, and their titles."""
    subject_of: Callable[[str], str | None]
    """The subset of a sample's id."""
    groups: Mapping[str, tuple[str, ...]]
    """Groups of subsets whose means are compared too."""
    titles: Mapping[str, str]
    """Titles of groups that are not called by their name."""
    differ: tuple[str, ...] = ("mode", "decode")
    """Settings in which the two runs may differ."""
