"""BBH: raw outputs against counts by subset and the published means."""

from __future__ import annotations

from typing import Any

import msgspec

from keju.errors import DataError, did_you_mean
from keju.results.score import score_predictions
from keju.results.verify.sets import Check, RecordedSet

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


def check(recorded: RecordedSet, golden: dict[str, Any]) -> list[Check]:
    """Score the outputs as ``keju score`` does and compare every subset and mean."""
    setting = golden["setting"]
    if setting not in READERS:
        hint = did_you_mean(setting, READERS)
        raise DataError(f"{recorded.golden}: unknown setting '{setting}'{hint}")
    results = score_predictions(
        "bbh",
        recorded.predictions,
        protocol="paper",
        readers=[READERS[setting]],
        data_dir=str(recorded.data_dir),
        gold="current",
    )
    entry = msgspec.to_builtins(results.benchmarks[0])
    return [*_overall(golden["summary"], entry), *_subsets(golden["subsets"], entry)]


def _overall(summary: dict[str, Any], entry: dict[str, Any]) -> list[Check]:
    metrics = entry["metrics"]
    micro = 100 * metrics["accuracy"]["value"]
    checks = [
        Check("rows", summary["n_total"], entry["n"]),
        Check("correct", summary["correct_total"], entry["outcomes"]["correct"]),
        Check("micro accuracy", summary["micro_6511_rows"], micro, PRINTED),
    ]
    for name, metric in MEANS.items():
        value = metrics.get(metric, {}).get("value")
        got = None if value is None else 100 * value
        checks.append(Check(metric, summary[name], got, PRINTED))
    return checks


def _subsets(expected: dict[str, Any], entry: dict[str, Any]) -> list[Check]:
    by_name = {subset["name"]: subset["outcomes"] for subset in entry["subsets"]}
    checks = []
    for name, facts in expected.items():
        outcomes = by_name.get(name, {})
        right = outcomes.get("correct")
        checks.append(Check(f"{name}, correct", facts["correct"], right, part=True))
        if facts["no_answer_marker"] is not None:
            unread = outcomes.get("unparsed")
            without = facts["no_answer_marker"]
            checks.append(Check(f"{name}, without marker", without, unread, part=True))
    return checks
