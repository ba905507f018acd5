"""The published reader of simple-evals: the text after ``Answer:``.

The published code asks a model whether two answers are equal. That is a judge in Keju. Without one
`is_equivalent` decides, which ignores units as the published instruction does.
"""

from __future__ import annotations

import re

from keju.answers.mathematics.equivalence import is_equivalent
from keju.answers.mathematics.kind import find_boxes, formulas
from keju.answers.reader import Reader
from keju.types import Answer, Sample

# `Answer: $42$`, in any case; the text is the rest of the line, or the next line.
ANSWER = re.compile(r"Answer\s*+:\s*+([^\n]+)", re.IGNORECASE)


class SimpleEvalsReader(Reader):
    """simple-evals: the text after the first ``Answer:``."""

    name = "simple-evals"
    about = "about_reader_simple_evals"
    is_model_rule = True

    def read(self, text: str, sample: Sample) -> Answer:
        match = ANSWER.search(text)
        value = match[1].strip() if match else ""
        return Answer(value, "strict") if value else Answer(reason="no_marker")

    def matches(self, value: str, sample: Sample) -> bool:
        return any(is_equivalent(form, sample.target) for form in _forms(value))


def _forms(value: str) -> list[str]:
    """Return an answer as it is written, without bold marks, and its only formula or box."""
    bare = value.strip(" *_`.")
    contents = find_boxes(bare) or [content for content, _, _ in formulas(bare)]
    return [bare, *contents] if len(contents) == 1 else [bare]
