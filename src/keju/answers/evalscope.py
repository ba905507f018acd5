"""EvalScope's reader of labels, as published; exams that EvalScope puts share it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from keju.answers.reader import Reader
from keju.types import Answer, Sample

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

    def __init__(self, marker: re.Pattern[str] = ENGLISH) -> None:
        self.marker = marker

    def read(self, text: str, sample: Sample) -> Answer:
        labels = sample.labels
        ends = [match.end() for match in self.marker.finditer(text)]

        def first_usable(order: Iterable[int]) -> str:
            """The first run of labels that follows one of the markers."""
            return next((run for end in order if (run := _labels_at(text, end, labels))), "")

        last = first_usable(reversed(ends))
        if not last:
            capital = next((letter for letter in reversed(text) if letter.isupper()), "")
            if capital and capital in labels:
                return Answer(capital, "fallback")
            return Answer(reason="invalid_label" if capital else "no_marker")
        if last not in labels or len(last) != 1:
            return Answer(reason="ambiguous")
        first = first_usable(ends) if len(ends) > 1 else last
        return Answer(last, "strict", first=first if first != last and len(first) == 1 else None)


def _labels_at(text: str, position: int, labels: str) -> str:
    """The text at `position` as far as it is labels, with ``and`` and ``or`` only between two."""
    typesetting = _TYPESETTING.match(text, position)
    start = typesetting.end() if typesetting else position
    for pattern in (_BRACKETED, _RUN):
        match = pattern.match(text, start)
        run, end, connector = match[1] if match else "", 0, False
        for word in _WORD.finditer(run):
            if set(word[0]) <= set(labels):
                end, connector = word.end(), False
            elif end and not connector and word[0].lower() in ("and", "or"):
                connector = True
            else:
                break
        if end:
            return run[:end]
    return ""
