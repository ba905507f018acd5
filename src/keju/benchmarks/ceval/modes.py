"""Knowledge or reasoning? The tutorial's question, asked of two runs of the same model."""

from __future__ import annotations

import re

from keju.benchmarks.ceval.facts import CATEGORIES, HARD, SUBJECTS, members
from keju.benchmarks.facts import Modes

_SAMPLE_ID = re.compile(r"ceval_(?P<subject>.+)_(?:val|test)_\d+")
"""An id such as ``ceval_high_school_physics_val_12``."""


def _subject_of(sample_id: str) -> str | None:
    match = _SAMPLE_ID.fullmatch(sample_id)
    return match["subject"] if match is not None else None


MODES = Modes(
    direct="answer-only",
    reasoned="cot",
    subjects={name: subject.chinese for name, subject in SUBJECTS.items()},
    subject_of=_subject_of,
    groups={name: members(name) for name in CATEGORIES} | {"hard": tuple(sorted(HARD))},
    titles={"hard": "C-Eval Hard"},
)
