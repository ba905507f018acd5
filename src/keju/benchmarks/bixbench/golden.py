"""Official zero-shot runs of BixBench, from raw outputs or, where none were kept, from letters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from keju.benchmarks.facts import Figure, Golden, GoldenCheck, Recorded, Sitting

READER = "official"
PRINTED = 1e-12
"""The golden files have all digits of a share."""


def _settings(golden: Golden, rows: Sequence[Mapping[str, Any]]) -> Sitting:
    version = golden["version"].removeprefix("v")
    args: dict[str, Any] = {
        "data_version": version,
        "with_refusal": any(row.get("unsure") for row in rows),
    }
    if version == "1.0":
        args["all_questions"] = True
    return Sitting(args, readers=[READER])


def _figures(golden: Golden, recorded: Recorded) -> Iterator[Figure]:
    """Counts, accuracy, precision and coverage."""
    counts, n = recorded.whole.outcomes, len(recorded.rows)
    correct, sure = counts["correct"], n - counts["refused"]
    precision = correct / sure if sure else None
    yield Figure("rows", golden["n"], n)
    yield Figure("correct", golden["recomputed_correct"], correct)
    yield Figure("refused", golden["refused"], counts["refused"])
    yield Figure("without a letter", golden["predicted_not_a_letter"], counts["unparsed"])
    yield Figure("accuracy", golden["recomputed_accuracy"], correct / n, PRINTED)
    yield Figure("precision", golden["recomputed_precision"], precision, PRINTED)
    yield Figure("coverage", golden["recomputed_coverage"], sure / n, PRINTED)
    if "predicted_equals_parsed_output" in golden:
        same = sum(
            answered.readings[READER].answer.value == answered.row["predicted"]
            for answered in recorded.rows
        )
        yield Figure("letters as recorded", golden["predicted_equals_parsed_output"], same)


GOLDEN = GoldenCheck(settings=_settings, figures=_figures, letter="predicted")
