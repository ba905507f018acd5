"""BixBench: official zero-shot runs, from raw outputs or, where none were kept, from letters."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from keju.benchmarks.base import Exam
from keju.benchmarks.grading import REFUSAL
from keju.benchmarks.prepare import prepare_exam
from keju.errors import DataError
from keju.files import read_rows
from keju.results.score import recorded_reply
from keju.results.verify.sets import Check, RecordedSet
from keju.types import Reading, Reply, Sample

READER = "official"
PRINTED = 1e-12
"""The golden files have all digits of a share."""

Row = dict[str, Any]


def check(recorded: RecordedSet, golden: dict[str, Any]) -> list[Check]:
    """Grade every row as recorded and compare counts, accuracy, precision and coverage."""
    rows = dict(read_rows(recorded.predictions))
    exam = _exam(recorded, golden["version"].removeprefix("v"), list(rows.values()))
    samples = {sample.id: sample for sample in exam.samples}
    readings: list[Reading] = []
    same = 0
    for number, row in rows.items():
        sample_id = exam.locate(row)
        if sample_id not in samples:
            where = f"{recorded.predictions}, line {number}"
            raise DataError(f"{where}: bixbench has no question '{sample_id}'")
        sample = _as_recorded(exam, samples[sample_id], row)
        reading = exam.grade(_reply(row, sample), sample, exam.readers[READER])
        readings.append(reading)
        same += reading.answer.value == row["predicted"]
    return _compare(golden, readings, same)


def _exam(recorded: RecordedSet, version: str, rows: list[Row]) -> Exam:
    args: dict[str, Any] = {
        "data_version": version,
        "with_refusal": any(row.get("unsure") for row in rows),
    }
    if version == "1.0":
        args["all_questions"] = True
    exam, _ = prepare_exam("bixbench", args, data_dir=str(recorded.data_dir))
    return exam


def _as_recorded(exam: Exam, sample: Sample, row: Row) -> Sample:
    """The question as that run showed it: its options, right letter and letter of refusal."""
    shown = exam.as_recorded(sample, row, gold=True)
    metadata = {key: value for key, value in shown.metadata.items() if key != REFUSAL}
    if row.get("unsure"):
        metadata[REFUSAL] = row["unsure"]
    return msgspec.structs.replace(shown, metadata=metadata)


def _reply(row: Row, sample: Sample) -> Reply:
    """The raw output; where only a letter was kept, that letter."""
    if "output" in row:
        return recorded_reply(row)
    letter = str(row["predicted"] or "")
    known = len(letter) == 1 and letter in sample.labels
    return Reply(label_logprobs={letter: 0.0} if known else {})


def _compare(golden: dict[str, Any], readings: list[Reading], same: int) -> list[Check]:
    counts = Counter(reading.score.outcome for reading in readings)
    n, correct, refused = len(readings), counts["correct"], counts["refused"]
    sure = n - refused
    checks = [
        Check("rows", golden["n"], n),
        Check("correct", golden["recomputed_correct"], correct),
        Check("refused", golden["refused"], refused),
        Check("without a letter", golden["predicted_not_a_letter"], counts["unparsed"]),
        Check("accuracy", golden["recomputed_accuracy"], correct / n, PRINTED),
        Check(
            "precision", golden["recomputed_precision"], correct / sure if sure else None, PRINTED
        ),
        Check("coverage", golden["recomputed_coverage"], sure / n, PRINTED),
    ]
    if "predicted_equals_parsed_output" in golden:
        checks.append(Check("letters as recorded", golden["predicted_equals_parsed_output"], same))
    return checks
