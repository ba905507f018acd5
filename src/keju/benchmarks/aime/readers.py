r"""The readers of AIME: the last box, lm-eval's rule, and Keju's.

Both published rules take the last ``\boxed{…}``. They differ where a reply has none: `boxed` then
reads nothing, and lm-eval takes the text between the first and the last dollar sign, or everything.
"""

from __future__ import annotations

import re

from keju.answers.mathematics.kind import BOXED, find_boxes, make_math_reader
from keju.answers.reader import Reader
from keju.benchmarks.base import by_name
from keju.types import Answer, Sample

# `073`, `$73$`, `73.`: a whole number with at most its marks.
_INTEGER = re.compile(r"[\s$.]*(\d{1,9})[\s$.]*")


class BoxedReader(Reader):
    """The last box; it must be a whole number."""

    name = "boxed"
    about = "aime.about_reader_boxed"

    def read(self, text: str, sample: Sample) -> Answer:
        boxes = find_boxes(text)
        if not boxes:
            return Answer(reason="no_marker")
        match = _INTEGER.fullmatch(boxes[-1])
        return Answer(str(int(match[1])), "strict") if match else Answer(reason="no_number")

    def matches(self, value: str, sample: Sample) -> bool:
        return value == sample.target


# `\text{ cm}` and all text after it: a unit.
_UNIT = "\\text{ "
_LAYOUT = (
    ("\n", ""), ("\\!", ""), ("\\\\", "\\"), ("tfrac", "frac"), ("dfrac", "frac"), ("\\left", ""),
    ("\\right", ""), ("^{\\circ}", ""), ("^\\circ", ""), ("\\$", ""),
)  # fmt: skip


def normalise(answer: str) -> str:
    """Return an answer without layout and units, as lm-eval compares it."""
    for before, after in _LAYOUT:
        answer = answer.replace(before, after)
    answer = answer.split(_UNIT)[0].replace("\\%", "").replace(" .", " 0.").replace("{.", "{0.")
    answer = f"0{answer}" if answer.startswith(".") else answer
    sides = answer.split("=")
    return (sides[1] if len(sides) == 2 and len(sides[0]) <= 2 else answer).replace(" ", "")


class LmEvalReader(BoxedReader):
    """lm-eval: the last box, else the text between dollar signs, else the whole reply."""

    name = "lm-eval"
    about = "aime.about_reader_lm_eval"
    marked = False

    def read(self, text: str, sample: Sample) -> Answer:
        start, end = text.find("$"), text.rfind("$")
        value = text[start + 1 : end] if start < end else text
        if "\\boxed " in text:
            value = text.rsplit("\\boxed ", 1)[1].split("$")[0]
        elif boxes := find_boxes(text):
            value = boxes[-1]
        return Answer(value, "strict") if value.strip() else Answer(reason="empty")

    def matches(self, value: str, sample: Sample) -> bool:
        return normalise(value) == normalise(sample.target)


def make_readers() -> dict[str, Reader]:
    """Return all readers."""
    return by_name(BoxedReader(), LmEvalReader(), make_math_reader(BOXED))
