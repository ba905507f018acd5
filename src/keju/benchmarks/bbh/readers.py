"""The published readers of BBH, faults included: their scores are the published protocols'."""

from __future__ import annotations

import re

from keju.answers.markers import last_line
from keju.answers.runon import cut_run_on
from keju.benchmarks.base import Reader
from keju.benchmarks.bbh.facts import CHOICE_SUBSETS
from keju.types import Answer, Sample

MARKER = "So the answer is "
"""The words that the worked examples end with."""
QUESTION_STARTS = ("Q: ",)
"""How a line begins where a model runs on into a new question."""

_BRACKETED_LETTER = re.compile(r"\(([A-Z])\)")
_LONE_LETTER = re.compile(r"\b([A-Z])\b")


def _line_after(text: str, position: int) -> str:
    """The rest of the line at `position`, stripped, without one final full stop."""
    end = text.find("\n", position)
    line = (text[position:] if end < 0 else text[position:end]).strip()
    return line[:-1] if line.endswith(".") else line


class PaperReader(Reader):
    """Suzgun et al. 2022, chain of thought: what stands after the marker, compared exactly."""

    name = "paper"

    def read(self, text: str, sample: Sample) -> Answer:
        text, cut = cut_run_on(text, QUESTION_STARTS)
        last = text.rfind(MARKER)
        if last < 0:
            return Answer(reason="no_marker", cut=cut)
        value = _line_after(text, last + len(MARKER))
        if not value:
            return Answer(reason="empty", cut=cut)
        first_at = text.find(MARKER)
        first = _line_after(text, first_at + len(MARKER)) if first_at != last else value
        return Answer(value, "strict", first=first if first != value else None, cut=cut)

    def matches(self, value: str, sample: Sample) -> bool:
        return value == sample.target


class AnswerOnlyReader(Reader):
    """Suzgun et al. 2022, answer only: the whole output, compared exactly."""

    name = "answer-only"

    def read(self, text: str, sample: Sample) -> Answer:
        text, cut = cut_run_on(text, QUESTION_STARTS)
        value = text.strip()
        if not value:
            return Answer(reason="empty", cut=cut)
        return Answer(value, "strict", cut=cut)

    def matches(self, value: str, sample: Sample) -> bool:
        return value == sample.target


class EvalScopeReader(Reader):
    """EvalScope 1.14: the line after the last marker, or the first line of a reply without one.

    In multiple-choice subsets the first bracketed, else the first lone capital of that line is the
    answer, which takes the pronoun in ``I think`` for a label. Letter case does not count.
    """

    name = "evalscope"

    def read(self, text: str, sample: Sample) -> Answer:
        text, cut = cut_run_on(text, QUESTION_STARTS)
        last = text.rfind(MARKER)
        choice = sample.subset in CHOICE_SUBSETS
        if last < 0:
            value = _evalscope_value(_line_after(text, 0), choice)
            if not value:
                return Answer(reason="no_marker", cut=cut)
            return Answer(value, "fallback", cut=cut)
        value = _evalscope_value(_line_after(text, last + len(MARKER)), choice)
        if not value:
            return Answer(reason="empty", cut=cut)
        first = None
        first_at = text.find(MARKER)
        if first_at != last:
            first = _evalscope_value(_line_after(text, first_at + len(MARKER)), choice)
        return Answer(value, "strict", first=first if first != value else None, cut=cut)

    def matches(self, value: str, sample: Sample) -> bool:
        return value.strip().lower() == evalscope_target(sample).lower()


def evalscope_target(sample: Sample) -> str:
    """The target as EvalScope shows and compares it: a letter without its brackets."""
    target = sample.target.strip()
    if sample.subset in CHOICE_SUBSETS:
        return target.replace("(", "").replace(")", "")
    return target


def _evalscope_value(line: str, choice: bool) -> str:
    if choice:
        letter = _BRACKETED_LETTER.search(line) or _LONE_LETTER.search(line)
        return letter[1] if letter else line
    opening = line.find("**")
    closing = line.find("**", opening + 2) if opening >= 0 else -1
    return line[opening + 2 : closing] if closing >= 0 else line


class McpbrReader(Reader):
    """mcpbr 0.14: the last non-empty line, letter case aside; brackets and full stops count."""

    name = "mcpbr"

    def read(self, text: str, sample: Sample) -> Answer:
        value = last_line(text).lower()
        return Answer(value, "strict") if value else Answer(reason="empty")

    def matches(self, value: str, sample: Sample) -> bool:
        return value == sample.target.strip().lower()
