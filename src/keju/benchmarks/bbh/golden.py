"""Recorded outputs of BBH: counts by subset and the published means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from keju.benchmarks.facts import Figure, Golden, GoldenCheck, Part, Recorded, Sitting
from keju.errors import DataError, did_you_mean

READERS = {"cot": "paper", "answer_only": "answer-only"}
"""Setting of the recording to the reader that its rule describes."""

MEANS = {
    "macro_27_subsets": "macro_accuracy",
    "macro_23_tasks": "macro_23",
    "nlp_12_tasks": "nlp_12",
    "algorithmic_11_tasks": "algorithmic_11",
}
"""Name in the golden file to the metric's."""

PRINTED = 1e-9
"""The golden file has all digits, in per cent."""


def _settings(golden: Golden, _: Sequence[Mapping[str, Any]]) -> Sitting:
    setting = golden["setting"]
    if setting not in READERS:
        raise DataError(f"unknown setting '{setting}'{did_you_mean(setting, READERS)}")
    return Sitting({}, "paper", [READERS[setting]])


def _figures(golden: Golden, recorded: Recorded) -> Iterator[Figure]:
    summary, whole = golden["summary"], recorded.whole
    yield Figure("rows", summary["n_total"], whole.n)
    yield Figure("correct", summary["correct_total"], whole.outcomes["correct"])
    means = {"micro accuracy": ("micro_6511_rows", "accuracy")}
    means |= {metric: (name, metric) for name, metric in MEANS.items()}
    for what, (name, metric) in means.items():
        value = recorded.metrics.get(metric)
        yield Figure(what, summary[name], None if value is None else 100 * value, PRINTED)
    for name, facts in golden["subsets"].items():
        outcomes = recorded.subsets.get(name, Part()).outcomes
        yield Figure(f"{name}, correct", facts["correct"], outcomes.get("correct"), part=True)
        if (without := facts["no_answer_marker"]) is not None:
            yield Figure(f"{name}, without marker", without, outcomes.get("unparsed"), part=True)


GOLDEN = GoldenCheck(settings=_settings, figures=_figures, recorded_gold=False)
