"""Recorded letters of C-Eval: every aggregate; nothing is read out of text here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from keju.benchmarks.facts import Figure, Golden, GoldenCheck, Part, Recorded, Sitting

PRINTED = 6e-7
"""The golden file has six digits, in per cent."""


def _settings(golden: Golden, _: Sequence[Mapping[str, Any]]) -> Sitting:
    return Sitting({"split": golden["split"], "few_shot_num": 0, "decode": "labels"}, "tutorial")


def _percent(what: str, expected: float, share: float | None, *, part: bool = False) -> Figure:
    return Figure(what, expected, None if share is None else 100 * share, PRINTED, part)


def _figures(golden: Golden, recorded: Recorded) -> Iterator[Figure]:
    summary, whole = golden["summary"], recorded.whole
    yield Figure("rows", summary["n"], whole.n)
    yield Figure("correct", summary["correct"], whole.outcomes["correct"])
    yield _percent("micro accuracy", summary["micro"], recorded.metrics["accuracy"])
    yield _percent("average", summary["macro_52_subjects"], recorded.metrics["average"])
    for name, facts in (summary["categories"] | {"hard": summary["hard"]}).items():
        group = recorded.groups.get(name, Part())
        yield Figure(f"{name}, rows", facts["n"], group.n)
        yield Figure(f"{name}, correct", facts["correct"], group.outcomes.get("correct"))
        yield _percent(f"{name}, average", facts["macro"], group.accuracy)
        yield _percent(f"{name}, micro", facts["micro"], group.micro_accuracy)
    for name, facts in golden["subjects"].items():
        subset = recorded.subsets.get(name, Part())
        right = subset.outcomes.get("correct")
        yield Figure(f"{name}, correct", facts["correct"], right, part=True)
        yield _percent(f"{name}, accuracy", facts["accuracy"], subset.accuracy, part=True)


GOLDEN = GoldenCheck(settings=_settings, figures=_figures, letter="pred")
