"""The contract of every reader."""

from __future__ import annotations

from abc import ABC, abstractmethod

from keju.types import Answer, Sample


class Reader(ABC):
    """Reads an answer out of a reply's text and compares it with the target.

    Reading is separable from prompting: any reader of a benchmark can be applied to any stored
    run. A reader never guesses and never runs in more than linear time.
    """

    name: str
    version: int = 1

    @abstractmethod
    def read(self, text: str, sample: Sample) -> Answer:
        """Return what `text` (think blocks already removed) answers."""

    def matches(self, value: str, sample: Sample) -> bool:
        """Say whether an answer that was read is the target's; by default the very same text."""
        return value == sample.target
