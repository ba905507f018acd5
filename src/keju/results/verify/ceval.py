"""C-Eval: recorded letters against every aggregate; nothing is read out of text here."""

from __future__ import annotations

from typing import Any

import msgspec

from keju.benchmarks.prepare import choose_readers, prepare_exam
from keju.engine.job import Job
from keju.errors import DataError
from keju.files import read_rows
from keju.results.summarise import entries_of
from keju.results.verify.sets import Check, RecordedSet
from keju.types import Reply, Sampling

PRINTED = 6e-7
"""The golden file has six digits, in per cent."""


def check(recorded: RecordedSet, golden: dict[str, Any]) -> list[Check]:
    """Aggregate the recorded letters as a sitting does and compare every figure."""
    entry = _entry(recorded, golden["split"])
    return [*_overall(golden["summary"], entry), *_subjects(golden["subjects"], entry)]


def _entry(recorded: RecordedSet, split: str) -> dict[str, Any]:
    exam, _ = prepare_exam(
        "ceval",
        {"split": split, "few_shot_num": 0, "decode": "labels"},
        data_dir=str(recorded.data_dir),
        protocol="tutorial",
    )
    positions = {sample.id: index for index, sample in enumerate(exam.samples)}
    readers = choose_readers(exam, [exam.protocol.reader])
    job = Job(exam, Sampling(), readers, model="")
    for number, row in read_rows(recorded.predictions):
        where = f"{recorded.predictions}, line {number}"
        try:
            unit, letter = positions[exam.locate(row)], row["pred"]
        except KeyError as error:
            raise DataError(f"{where}: no question of ceval {split}: {error}") from None
        reply = Reply(label_logprobs={letter: 0.0} if letter else {})
        sample = exam.as_recorded(exam.samples[unit], row, gold=True)
        readings = tuple(exam.grade(reply, sample, reader) for reader in readers)
        job.enter_readings(unit, reply, (), readings)
    entry: dict[str, Any] = msgspec.to_builtins(entries_of(job)[0])
    return entry


def _overall(summary: dict[str, Any], entry: dict[str, Any]) -> list[Check]:
    metrics, groups = entry["metrics"], {group["name"]: group for group in entry["groups"]}
    checks = [
        Check("rows", summary["n"], entry["n"]),
        Check("correct", summary["correct"], entry["outcomes"]["correct"]),
        _percent("micro accuracy", summary["micro"], metrics["accuracy"]["value"]),
        _percent("average", summary["macro_52_subjects"], metrics["average"]["value"]),
    ]
    wanted = summary["categories"] | {"hard": summary["hard"]}
    for name, facts in wanted.items():
        group = groups.get(name, {})
        outcomes = group.get("outcomes", {})
        checks += [
            Check(f"{name}, rows", facts["n"], group.get("n")),
            Check(f"{name}, correct", facts["correct"], outcomes.get("correct")),
            _percent(f"{name}, average", facts["macro"], group.get("accuracy")),
            _percent(f"{name}, micro", facts["micro"], group.get("micro_accuracy")),
        ]
    return checks


def _subjects(expected: dict[str, Any], entry: dict[str, Any]) -> list[Check]:
    by_name = {subset["name"]: subset for subset in entry["subsets"]}
    checks = []
    for name, facts in expected.items():
        subset = by_name.get(name, {"outcomes": {}})
        right = subset["outcomes"].get("correct")
        accuracy = _percent(f"{name}, accuracy", facts["accuracy"], subset.get("accuracy"))
        checks += [
            Check(f"{name}, correct", facts["correct"], right, part=True),
            accuracy._replace(part=True),
        ]
    return checks


def _percent(what: str, expected: float, share: float | None) -> Check:
    return Check(what, expected, None if share is None else 100 * share, PRINTED)
