"""Recorded outputs of MATH: eight replies to each question, with Qwen2.5-Math's verdicts.

The recorded questions are not those of MATH-500, so the set's folder holds them.
"""

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


def recording_settings(_: Golden, __: Sequence[Mapping[str, Any]]) -> RecordingSetup:
    """Return the protocol and reader of the recorded set."""
    return RecordingSetup({}, "qwen", ["qwen"], has_questions=True)


def golden_figures(golden: Golden, recording: GradedRecording) -> Iterator[RecordedFigure]:
    """Yield the number of right replies, and of replies with another verdict."""
    right = {
        (row.row["id"], row.row["epoch"])
        for row in recording.rows
        if row.readings["qwen"].score.outcome == "correct"
    }
    recorded = {(name, epoch) for name, epoch in golden["correct"]}
    yield RecordedFigure("correct", len(recorded), len(right))
    yield RecordedFigure("replies with another verdict", 0, len(right ^ recorded))


GOLDEN = GoldenCheck(settings=recording_settings, figures=golden_figures, recorded_gold=False)
