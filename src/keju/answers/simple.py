"""Readers that know no wording, for exams with few readers of their own: other tools' simple rules.

They compare as another reader of the exam does.
"""

from __future__ import annotations

from keju.answers.reader import Reader
from keju.answers.segments import last_line
from keju.types import Answer, Sample


class WholeReplyReader(Reader):
    """The whole reply is the answer."""

    name = "whole-reply"
    marked = False

    def __init__(self, other: Reader) -> None:
        self._other = other

    def part(self, text: str) -> str:
        """What counts of a reply."""
        return text.strip()

    def read(self, text: str, sample: Sample) -> Answer:
        value = self.part(text)
        return Answer(value, "strict") if value else Answer(reason="empty")

    def matches(self, value: str, sample: Sample) -> bool:
        return self._other.matches(value, sample)


class LastLineReader(WholeReplyReader):
    """The last line that is not blank is the answer."""

    name = "last-line"

    def part(self, text: str) -> str:
        return last_line(text)
