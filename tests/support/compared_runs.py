"""Runs of recorded replies to compare."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

Evaluate = Callable[..., None]


SUBSETS = (
    "--dataset-args",
    '{"bbh": {"few_shot_num": 0, "subset_list": ["boolean_expressions", "date_understanding"]}}',
)


LOGS = Path(__file__).parents[1] / "interop" / "imports" / "fixtures"
