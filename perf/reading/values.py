"""Answers as values that can be compared, whoever read them and however they were written."""

from __future__ import annotations

import re

from keju.benchmarks.bbh.metadata import SUBSETS
from keju.types import Sample

AMBIGUOUS = "ambiguous"
"""The label of a reply in which two different answers stand undecided."""

_VERDICTS = {
    "bool": ("true", "false"),
    "yes_no": ("yes", "no"),
    "valid": ("valid", "invalid"),
}
# `(B)`, `[B]`, `B`, `b.`: a label alone.
_LABEL = re.compile(r"[(\[（]?([A-Za-z])[)\]）]?\.?")
# `-1,024`, `24.0`.
_INTEGER = re.compile(r"([-−+]?\d[\d,]*)(?:\.0*)?\.?")


def kind_of(sample: Sample) -> str:
    """What kind of answer a question wants: ``choice`` where it has options."""
    if sample.choices:
        return "choice"
    return SUBSETS[sample.subset].kind if sample.subset in SUBSETS else "text"


def value_of(written: str | None, kind: str, sample: Sample) -> str | None:
    """`written` in one spelling; None where it can be no answer of this kind to this question.

    For example ``(b).`` is B where the question has an option B, ``So it is`` is none. A word list
    must hold exactly the words of the question.
    """
    if written is None:
        return None
    text = written.strip().strip("*\"'`$").strip()
    if kind == "choice":
        label = _LABEL.fullmatch(text)
        return label[1].upper() if label and label[1].upper() in sample.labels else None
    if kind in _VERDICTS:
        word = text.rstrip(".").lower()
        return word if word in _VERDICTS[kind] else None
    if kind == "integer":
        number = _INTEGER.fullmatch(text)
        return str(int(number[1].replace(",", "").replace("−", "-"))) if number else None
    if kind == "brackets":
        brackets = re.sub(r"[\s,\"'`]", "", text.removesuffix("."))
        return brackets if brackets and set(brackets) <= set("()[]{}<>") else None
    if kind == "words":
        words = text.removesuffix(".").replace(",", " ").lower().split()
        list_words = sample.text.rpartition("List: ")[2].lower().split()
        return " ".join(words) if sorted(words) == sorted(list_words) else None
    return " ".join(text.removesuffix(".").casefold().split()) or None
