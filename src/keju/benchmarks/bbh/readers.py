"""The readers of BBH: the published ones, including their faults, and Keju's reader.

The published protocols report the scores of the published readers.
"""

from __future__ import annotations

import re

from keju.answers.reader import Reader
from keju.answers.robust import RobustReader
from keju.answers.segments import last_line
from keju.benchmarks.bbh.kinds import KIND_OF
from keju.benchmarks.bbh.metadata import CHOICE_SUBSETS
from keju.types import Answer, Sample

MARKER = "So the answer is "
"""The words before the answer in the worked examples."""


# --- published ---------------------------------------------------------------------------------


class MarkedLineReader(Reader):
    """Reads the rest of the line after the last marker, without one final full stop.

    It uses the last marker of the reply, as published: if the model continues with another
    question, that text is not cut off.
    """

    version = 2
    marker = MARKER
    full_stops: tuple[str, ...] = (".",)

    def read(self, text: str, sample: Sample) -> Answer:
        marker = self.marker
        last_position = text.rfind(marker)
        if last_position < 0:
            return self.unmarked(text, sample)
        value = self.value_at(text, last_position + len(marker), sample)
        if not value:
            return Answer(reason="empty")
        first_position = text.find(marker)
        first_value = value
        if first_position != last_position:
            first_value = self.value_at(text, first_position + len(marker), sample)
        return Answer(value, "strict", first=first_value if first_value != value else None)

    def value_at(self, text: str, position: int, sample: Sample) -> str:
        """Return the answer that begins at `position`."""
        end = text.find("\n", position)
        line = (text[position:] if end < 0 else text[position:end]).strip()
        return line[:-1] if line.endswith(self.full_stops) else line

    def unmarked(self, text: str, sample: Sample) -> Answer:
        """Return the answer of a reply without a marker."""
        return Answer(reason="no_marker")


class PaperReader(MarkedLineReader):
    """Suzgun et al. 2022, chain of thought: the text after the marker, compared exactly."""

    name = "paper"
    about = "bbh.about_reader_paper"


class AnswerOnlyReader(Reader):
    """Suzgun et al. 2022, answer only: the full output, compared exactly."""

    name = "answer-only"
    about = "bbh.about_reader_answer_only"
    version = 2
    marked = False

    def read(self, text: str, sample: Sample) -> Answer:
        value = text.strip()
        return Answer(value, "strict") if value else Answer(reason="empty")


# `(B)`: EvalScope takes this letter first, else a single capital letter, including `I`.
_BRACKETED_LETTER = re.compile(r"\(([A-Z])\)")
_LONE_LETTER = re.compile(r"\b([A-Z])\b")


class EvalScopeReader(MarkedLineReader):
    """EvalScope 1.14: the line after the last marker, or the first line of a reply without one.

    In multiple-choice subsets the answer is the first bracketed letter of that line, else its first
    single capital letter. So the pronoun in ``I think`` counts as a label. Letter case is ignored.
    """

    name = "evalscope"
    about = "bbh.about_reader_evalscope"

    def value_at(self, text: str, position: int, sample: Sample) -> str:
        line = super().value_at(text, position, sample)
        if sample.subset in CHOICE_SUBSETS:
            letter = _BRACKETED_LETTER.search(line) or _LONE_LETTER.search(line)
            return letter[1] if letter else line
        opening = line.find("**")
        closing = line.find("**", opening + 2) if opening >= 0 else -1
        return line[opening + 2 : closing] if closing >= 0 else line

    def unmarked(self, text: str, sample: Sample) -> Answer:
        value = self.value_at(text, 0, sample)
        return Answer(value, "fallback") if value else super().unmarked(text, sample)

    def matches(self, value: str, sample: Sample) -> bool:
        return value.strip().lower() == evalscope_target(sample).lower()


def evalscope_target(sample: Sample) -> str:
    """Return the target as EvalScope displays and compares it: a letter without its brackets."""
    target = sample.target.strip()
    if sample.subset in CHOICE_SUBSETS:
        return target.replace("(", "").replace(")", "")
    return target


class McpbrReader(Reader):
    """mcpbr 0.14: the last non-empty line, ignoring letter case; brackets and full stops count."""

    name = "mcpbr"
    about = "bbh.about_reader_mcpbr"
    marked = False

    def read(self, text: str, sample: Sample) -> Answer:
        value = last_line(text).lower()
        return Answer(value, "strict") if value else Answer(reason="empty")

    def matches(self, value: str, sample: Sample) -> bool:
        return value == sample.target.strip().lower()


READERS: dict[str, Reader] = {
    reader.name: reader
    for reader in (
        EvalScopeReader(),
        PaperReader(),
        AnswerOnlyReader(),
        McpbrReader(),
        RobustReader(lambda sample: KIND_OF[sample.subset], strict=MARKER, explains=True),
    )
}
