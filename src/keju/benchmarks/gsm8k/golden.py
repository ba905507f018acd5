"""Recorded outputs of GSM8K: OpenAI's solutions with their verdicts, and ZeroEval's replies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from keju.benchmarks.metadata import (
    Golden,
    GoldenCheck,
    GradedRecording,
    RecordedFigure,
    RecordingSetup,
)

PERCENT_TOLERANCE = 0.005
"""Published percentages have two decimals."""


def recording_settings(golden: Golden, _: Sequence[Mapping[str, Any]]) -> RecordingSetup:
    """Return the protocol and readers of a recorded set."""
    if "correct_rows" in golden:
        no_shots = {"few_shot_num": 0}
        return RecordingSetup(no_shots, "lm-eval", ["flexible-extract", "strict-match"])
    return RecordingSetup({}, "zeroeval", ["zeroeval"])


def golden_figures(golden: Golden, recording: GradedRecording) -> Iterator[RecordedFigure]:
    """Yield the figures of a recorded set: row by row for OpenAI's, the summary for ZeroEval's."""
    rows = recording.rows
    yield RecordedFigure("rows", golden["n"], len(rows))
    if "correct_rows" in golden:
        right = {
            reader: [
                row.row["index"] for row in rows if row.readings[reader].score.outcome == "correct"
            ]
            for reader in ("flexible-extract", "strict-match")
        }
        yield RecordedFigure(
            "flexible-extract correct", golden["correct"], len(right["flexible-extract"])
        )
        differences = set(right["flexible-extract"]) ^ set(golden["correct_rows"])
        yield RecordedFigure("rows with another verdict", 0, len(differences))
        yield RecordedFigure("strict-match correct", 0, len(right["strict-match"]))
    elif summary := golden.get("summary"):
        outcomes: list[str] = [row.readings["zeroeval"].score.outcome for row in rows]
        for label, key, outcome in (
            ("accuracy", "Acc", "correct"),
            ("no answer", "No answer", "unparsed"),
        ):
            share = 100 * outcomes.count(outcome) / len(rows)
            yield RecordedFigure(label, float(summary[key]), share, PERCENT_TOLERANCE)


GOLDEN = GoldenCheck(settings=recording_settings, figures=golden_figures, recorded_gold=False)
