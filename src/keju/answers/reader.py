"""The contract of every reader, and the published readers that several exams share: EvalScope's and
Inspect's readers of labels, and simple rules that know no wording.
"""

from __future__ import annotations

import copy
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping

from keju.answers.segments import last_line
from keju.types import Answer, Sample

RAW = "@raw"
"""The end of the name of a reader that reads think blocks too."""


class Reader(ABC):
    """Reads an answer out of a reply's text and compares it with the target.

    Reading is separable from prompting: any reader of a benchmark can be applied to any stored
    run. A reader never guesses and never runs in more than linear time. `keju.reader` and
    `keju.grader` make one out of a function.
    """

    name: str
    version: int = 1
    marked: bool = True
    """Whether its strict tier means that the protocol's own marker stood before the answer; not
    where the whole reply, or its last line, is the answer."""
    scores_cut: bool = True
    """Whether what it reads in a reply that was cut off keeps its score: published readers know
    nothing of cuts."""
    raw: bool = False
    """Whether it reads a reply with its ``<think>`` block, as the authors' script does."""
    about: str = ""
    """What it takes for the answer, in one line for ``keju list readers``: the code of a sentence,
    or the sentence itself."""

    @abstractmethod
    def read(self, text: str, sample: Sample) -> Answer:
        """Return what `text` (think blocks already removed unless `raw`) answers."""

    def with_thinking(self) -> Reader:
        """This reader, applied to replies as they came, with their think blocks: ``l1@raw``."""
        reader = copy.copy(self)
        reader.name, reader.raw = f"{self.name}{RAW}", True
        return reader

    def facing(self, shown: Callable[[str], str]) -> Reader:
        """This reader, told what the prompts of a subset show before their question.

        Only a reader that has to know it returns another one.
        """
        return self

    def matches(self, value: str, sample: Sample) -> bool:
        """Say whether an answer that was read is the target's; by default the very same text."""
        return value == sample.target

    def worth(self, value: str, sample: Sample) -> float | Mapping[str, float] | None:
        """What an answer is worth, in [0, 1]: one number, or several by name, the score first.

        None says that it cannot be graded.
        """
        return float(self.matches(value, sample))


class WholeReplyReader(Reader):
    """The whole reply is the answer."""

    name = "whole-reply"
    about = "about_reader_whole_reply"
    marked = False

    def __init__(self, target_reader: Reader) -> None:
        self._other = target_reader

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
    about = "about_reader_last_line"

    def part(self, text: str) -> str:
        return last_line(text)


ENGLISH = re.compile(r"ANSWER\s*+:\s*+\**+\s*+", re.IGNORECASE)
"""``ANSWER : **``, in any case."""
CHINESE = re.compile(r"答案\s*+[:：]\s*+\**+\s*+")
"""``答案：``."""

# `$\boxed{\text{`: what may stand between a marker and its labels.
_TYPESETTING = re.compile(r"(?:(?:\$+|\\\(|\\(?:boxed|fbox|text|textbf|mathbf|mathrm)\s*\{)\s*)*+")
# `(B)`, `【A、C】`; the labels are group 1.
_BRACKETED = re.compile(r"[(\[（【]\s*+([A-Za-z\d](?:\s*[,，/、]\s*[A-Za-z\d])*+)\s*+[)\]）】]")
# `A, C and more`: a run whose leading labels count.
_RUN = re.compile(r"([A-Za-z\d][A-Za-z\d ,，/、]*+)")
# `A`, `AC`, `and`.
_WORD = re.compile(r"[A-Za-z\d]+")


class EvalScopeChoiceReader(Reader):
    """EvalScope 1.14: the last usable marker's label, else the last capital of the text.

    The fallback is kept because published numbers contain it; it takes ``DNA`` for A and the
    pronoun for I. `marker` is `ENGLISH` or `CHINESE`.
    """

    name = "evalscope"
    about = "about_reader_evalscope"

    def __init__(self, marker: re.Pattern[str] = ENGLISH) -> None:
        self.marker = marker

    def read(self, text: str, sample: Sample) -> Answer:
        labels = sample.labels
        ends = [match.end() for match in self.marker.finditer(text)]

        def first_usable(order: Iterable[int]) -> str:
            """The first run of labels that follows one of the markers."""
            return next((run for end in order if (run := _labels_at(text, end, labels))), "")

        last_run = first_usable(reversed(ends))
        if not last_run:
            capital = next((letter for letter in reversed(text) if letter.isupper()), "")
            if capital and capital in labels:
                return Answer(capital, "fallback")
            return Answer(reason="invalid_label" if capital else "no_marker")
        if last_run not in labels or len(last_run) != 1:
            return Answer(reason="ambiguous")
        first_run = first_usable(ends) if len(ends) > 1 else last_run
        return Answer(
            last_run,
            "strict",
            first=first_run if first_run != last_run and len(first_run) == 1 else None,
        )


def _labels_at(text: str, position: int, labels: str) -> str:
    """The text at `position` as far as it is labels, with ``and`` and ``or`` only between two."""
    typesetting = _TYPESETTING.match(text, position)
    start = typesetting.end() if typesetting else position
    for pattern in (_BRACKETED, _RUN):
        match = pattern.match(text, start)
        run, end, is_after_connector = match[1] if match else "", 0, False
        for word in _WORD.finditer(run):
            if set(word[0]) <= set(labels):
                end, is_after_connector = word.end(), False
            elif end and not is_after_connector and word[0].lower() in ("and", "or"):
                is_after_connector = True
            else:
                break
        if end:
            return run[:end]
    return ""


_BLANKS = re.compile(r"\s{65,}")
"""Runs of white space that are shortened, so that reading takes linear time."""
_WRAPPED = (
    (re.compile(r"\$\s*([A-Za-z\d][A-Za-z\d ,]*?)\s*\$"), r"\1"),  # `$B$`
    (re.compile(r"\*\*\s*([A-Za-z\d][A-Za-z\d ,]*?)\s*\*\*"), r"\1"),  # `**B**`
    # `ANSWER: (B)`: after a colon, a comma or nothing, and before the end of a line or sentence.
    (re.compile(r"(^|[:,])(\s*)\(([A-Za-z\d])\)(?=\s*(?:[,.\n]|\Z))"), r"\1\2\3"),
)
_LINE = re.compile(r"^ANSWER\s*:\s*([A-Za-z\d ,]+)\s*(?:$|\n|\.)", re.IGNORECASE | re.MULTILINE)
"""``ANSWER: B.`` at the start of a line, and nothing after it."""
_ANYWHERE = re.compile(r"ANSWER\s*:\s*([A-Za-z\d ,]+)(?:\W|$)", re.IGNORECASE)
"""``so ANSWER: B!``; it takes ``Answer: because`` for an answer."""


class InspectChoiceReader(Reader):
    """Inspect 0.3.285: the last line ``ANSWER: X``; without such a line the last ``ANSWER: X``.

    What follows the last marker must be one label of the question, in either case, or there is no
    answer; no other marker is tried.
    """

    name = "inspect"
    about = "about_reader_inspect"

    def read(self, text: str, sample: Sample) -> Answer:
        text = _BLANKS.sub(lambda blanks: blanks[0][:32] + blanks[0][-32:], text)
        for pattern, inside in _WRAPPED:
            text = pattern.sub(inside, text)
        matches = _LINE.findall(text) or _ANYWHERE.findall(text)
        if not matches:
            return Answer(reason="no_marker")
        matched_labels = [label for label in matches[-1].strip().upper().split(",") if label]
        if len(matched_labels) == 1 and matched_labels[0] in tuple(sample.labels):
            return Answer(matched_labels[0], "strict")
        return Answer(reason="invalid_label")
