"""lm-eval's reader of minerva_math500: the text between two fixed sentences.

lm-eval normalises both answers as the paper does (Lewkowycz et al. 2022, appendix D) and compares
them with sympy. Keju compares the normalised texts, and then by `is_equivalent`.
"""

from __future__ import annotations

import re

from keju.answers.mathematics.equivalence import is_equivalent
from keju.answers.reader import Reader
from keju.types import Answer, Sample

MINERVA_MARKER = "The final answer is"
_END = " I hope it is correct."
_BEGINNING = "Final Answer: The final answer is"
_TEXT = re.compile(r"\\(?:text|textbf|overline)\{([^{}]*)\}")
_FORMULA = re.compile(r"[^$]*\$([^$]*)\$.*")
_REMOVED = (
    "square", "ways", "integers", "dollars", "mph", "inches", "ft", "hours", "km", "units", "sue",
    "points", "feet", "minutes", "digits", "cents", "degrees", "cm", "gm", "pounds", "meters",
    "meals", "edges", "students", "childrentickets", "multiples",
)  # fmt: skip
_WORD = re.compile(rf"(?<!\\)\b(?:{'|'.join(_REMOVED)})\b")


def normalise(answer: str) -> str:
    """Return an answer without names, units and marks of text."""
    answer = _WORD.sub("", answer.split("=")[-1])
    match = _FORMULA.fullmatch(answer)
    answer = match[1] if match else answer
    return _TEXT.sub(r"\1", answer).replace("{,}", "").strip().removesuffix(".")


class MinervaReader(Reader):
    """lm-eval: the text after ``Final Answer: The final answer is``."""

    name = "lm-eval"
    about = "math_500.about_reader_lm_eval"

    def read(self, text: str, sample: Sample) -> Answer:
        start = text.find(_BEGINNING)
        if start < 0:
            return Answer(reason="no_marker")
        start += len(_BEGINNING)
        end = f"{text}I hope it is correct.".find(_END, start)
        if end < 0 or "\n" in text[start:end]:
            return Answer(reason="no_marker")
        value = text[start : max(start, end - 1)].strip()
        return Answer(value, "strict") if value else Answer(reason="no_marker")

    def matches(self, value: str, sample: Sample) -> bool:
        normal, target = normalise(value), normalise(sample.target)
        return normal == target or is_equivalent(normal, target)
