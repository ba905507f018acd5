"""lm-eval's two readers of GPQA. They compare without case and punctuation: ``(B).`` equals B."""

from __future__ import annotations

import re
import string
import sys
import unicodedata
from functools import cache

from keju.answers.lazy_patterns import lazy_pattern
from keju.answers.reader import Reader
from keju.types import Answer, Sample

# `The answer is (B).`: the rest of the line without its last character.
_STRICT = lazy_pattern(r"(?<=The answer is )(.*)(?=.)")
# `(B)`.
_BRACKETED = lazy_pattern(r"\([A-Z]\)")
_ASCII_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalise(text: str) -> str:
    """Return a text as lm-eval compares it: ``(B)`` becomes ``b``."""
    return text.lower().translate(_ASCII_PUNCTUATION)


@cache
def _punctuation() -> dict[int, None]:
    """Return a table that removes the punctuation of all alphabets."""
    characters = range(sys.maxunicode)
    return dict.fromkeys(n for n in characters if unicodedata.category(chr(n)).startswith("P"))


class StrictReader(Reader):
    """lm-eval ``strict-match``: the text after the first ``The answer is``, to the end of its line
    without the last character."""

    name = "lm-eval"
    about = "gpqa.about_reader_lm_eval"

    def read(self, text: str, sample: Sample) -> Answer:
        match = _STRICT.search(text)
        return Answer(match[1].strip(), "strict") if match else Answer(reason="no_marker")

    def matches(self, value: str, sample: Sample) -> bool:
        return normalise(value) == normalise(sample.target)


class FlexibleReader(StrictReader):
    """lm-eval ``flexible-extract``: the last ``(X)``, else the last text of an option, else the
    last letter after a colon."""

    name = "lm-eval-flexible"
    about = "gpqa.about_reader_lm_eval_flexible"
    marked = False

    def read(self, text: str, sample: Sample) -> Answer:
        if bracketed := _BRACKETED.findall(text):
            return Answer(bracketed[-1], "tolerant")
        if label := find_last_option(text, sample):
            return Answer(label, "fallback")
        # `: B`: the letters of the options only.
        letters = re.findall(rf":\s*+([{sample.labels}])", text)
        return Answer(letters[-1], "fallback") if letters else Answer(reason="no_marker")


def find_last_option(text: str, sample: Sample) -> str | None:
    """Return the label of the option whose text occurs last, without case and punctuation."""
    plain = text.lower().translate(_punctuation())
    labels = {
        choice.strip().lower().translate(_punctuation()): label
        for choice, label in zip(sample.choices, sample.labels, strict=True)
    }
    # Longer options first: an option may begin another one.
    choices = sorted(labels, key=len, reverse=True)
    occurrences = re.findall("|".join(map(re.escape, choices)), plain)
    last_choice = occurrences[-1].strip() if occurrences else ""
    return labels.get(last_choice)
