"""Inspect's reader of labels, as published with its solver of multiple-choice questions."""

from __future__ import annotations

import re

from keju.answers.reader import Reader
from keju.types import Answer, Sample

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

    def read(self, text: str, sample: Sample) -> Answer:
        text = _BLANKS.sub(lambda blanks: blanks[0][:32] + blanks[0][-32:], text)
        for pattern, inside in _WRAPPED:
            text = pattern.sub(inside, text)
        found = _LINE.findall(text) or _ANYWHERE.findall(text)
        if not found:
            return Answer(reason="no_marker")
        named = [label for label in found[-1].strip().upper().split(",") if label]
        if len(named) == 1 and named[0] in tuple(sample.labels):
            return Answer(named[0], "strict")
        return Answer(reason="invalid_label")
