"""What each tool reads in a reply: Keju's readers and the published rules of others.

A rule is a function of a reply and its question and gives the answer as the tool would compare it.
Rules that Keju has already, as published readers or for imported logs, are taken from there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from keju.benchmarks.base import Exam
from keju.interop.imports import opencompass
from keju.types import Sample
from perf.reading.values import kind_of

Rule = Callable[[str, Sample], "str | None"]

ROBUST = "keju robust"
"""The reader that the acceptance is about."""

_TITLES = {
    "bbh": {"evalscope": "evalscope", "paper": "authors", "mcpbr": "mcpbr"},
    "mmlu_pro": {"evalscope": "evalscope", "l1": "authors level 1", "l2": "authors level 2"},
    "ceval": {"evalscope": "evalscope", "official": "authors", "first-capital": "opencompass"},
    "bixbench": {"official": "authors", "environment": "verifiers"},
}
"""Whose rule a published reader of Keju's is."""


def rules_of(exam: Exam) -> Mapping[str, Rule]:
    """All rules for the replies of one exam by name; Keju's robust reader is the first."""
    readers = exam.readers
    rules: dict[str, Rule] = {ROBUST: _read_by(exam, "robust")}
    for reader, title in _TITLES.get(exam.benchmark, {}).items():
        if reader in readers:
            rules[title] = _read_by(exam, reader)
    return {**rules, **_OTHERS.get(exam.benchmark, {})}


def _read_by(exam: Exam, name: str) -> Rule:
    """A reader of the exam as a rule."""
    reader = exam.readers[name]
    return lambda text, sample: reader.read(text, sample).value


# --- lm-eval -----------------------------------------------------------------------------------

# `the answer is (B).`: up to the last character of the line but one, whatever that is.
_LM_EVAL_FEW_SHOT = re.compile(r"(?<=the answer is )(.*)(?=.)")
# `The answer: (B).` too: its rule for zero-shot replies.
_LM_EVAL_ZERO_SHOT = re.compile(
    r"(?:(?<=[Tt]he answer is )|(?<=The answer: )|(?<=The final answer: ))(.*)(?=.)"
)
# `answer is (B`: the same as the authors' first level.
_LM_EVAL_LETTER = re.compile(r"answer is \(?([A-J])\)?")


def _first_match(pattern: re.Pattern[str]) -> Rule:
    def read(text: str, _: Sample) -> str | None:
        match = pattern.search(text)
        return match[1].strip() if match else None

    return read


# --- OpenCompass -------------------------------------------------------------------------------

# `Answer: B`.
_OPENCOMPASS_COLON = re.compile(r"ANSWER\s*:\s*([A-P])", re.IGNORECASE)


def _opencompass_bbh(text: str, sample: Sample) -> str | None:
    choice = kind_of(sample) == "choice"
    return opencompass.extract_choice(text) if choice else opencompass.extract_free_form(text)


# --- Inspect -----------------------------------------------------------------------------------

# A line `ANSWER: B`, else `ANSWER: B` anywhere.
_INSPECT = (
    re.compile(r"(?im)^ANSWER\s*:\s*([A-Za-z\d ,]+)\s*(?:$|\n|\.)"),
    re.compile(r"(?i)ANSWER\s*:\s*([A-Za-z\d ,]+)(?:[^\w]|\n|$|\.)"),
)


def _inspect_choice(text: str, _: Sample) -> str | None:
    match = next(
        (option_match for pattern in _INSPECT if (option_match := pattern.search(text))), None
    )
    return match[1].strip() if match else None


def _inspect_bbh(text: str, sample: Sample) -> str | None:
    """Labels after ``ANSWER:``; other answers count if the reply ends with them."""
    kind = kind_of(sample)
    if kind == "choice":
        return _inspect_choice(text, sample)
    text = text.strip().rstrip(".,;:!?*\"'`)")
    if kind == "brackets":
        return text[len(text.rstrip("()[]{}<> ")) :]
    length = len(sample.text.rpartition("List: ")[2].split()) if kind == "words" else 1
    return " ".join(text.split()[-length:]) or None


_OTHERS: Mapping[str, Mapping[str, Rule]] = {
    "bbh": {
        "lm-eval few-shot": _first_match(_LM_EVAL_FEW_SHOT),
        "lm-eval zero-shot": _first_match(_LM_EVAL_ZERO_SHOT),
        "opencompass": _opencompass_bbh,
        "inspect": _inspect_bbh,
    },
    "mmlu_pro": {
        "lm-eval": _first_match(_LM_EVAL_LETTER),
        "opencompass": _first_match(_OPENCOMPASS_COLON),
        "inspect": _inspect_choice,
    },
    "ceval": {"inspect": _inspect_choice},
    "bixbench": {"inspect": _inspect_choice},
}
