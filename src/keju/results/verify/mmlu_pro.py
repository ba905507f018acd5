"""MMLU-Pro: raw outputs against both of the authors' readers, both golds and all guesses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from keju.benchmarks.base import Exam
from keju.benchmarks.mmlu_pro import official_guess_accuracy, official_guess_correct
from keju.benchmarks.prepare import prepare_exam
from keju.errors import DataError
from keju.files import read_json
from keju.results.score import located_rows, recorded_reply
from keju.results.verify.sets import Check, RecordedSet
from keju.types import Sample

LEVELS = {"level1": "l1", "level2": "l2"}
GOLDS = {"recorded_gold": "recorded gold", "current_gold": "current gold"}
SEEDED = "official_script_seed_12345"
REVISIONS = "revisions.json"
CHANGED = "test_rows_changed_since_the_earliest_recorded_predictions"

PRINTED_COUNT = 6e-4
PRINTED_SHARE = 6e-7
"""The golden files have three digits of an expected count and six of a share."""


class Rows(NamedTuple):
    """The recorded rows in file order."""

    samples: list[Sample]
    golds: dict[str, list[str]]
    """The right letters at the time of the run, and those of the data now."""
    letters: dict[str, list[str | None]]
    """By reader."""
    options: list[int]
    """How many options each row had at the time of the run."""


def check(recorded: RecordedSet, golden: dict[str, Any]) -> list[Check]:
    """Read every output with both readers and compare all counts."""
    exam, _ = prepare_exam(
        "mmlu_pro",
        {"few_shot_num": 0},
        data_dir=str(recorded.data_dir),
        protocol="official",
    )
    rows = _read(exam, recorded, golden)
    checks = [Check("rows", golden["rows"], len(rows.samples))]
    for which in GOLDS:
        checks += _counts(rows, which, golden[which])
    return [*checks, *_seeded(rows, golden[SEEDED])]


def _read(exam: Exam, recorded: RecordedSet, golden: dict[str, Any]) -> Rows:
    samples: list[Sample] = []
    then: list[str] = []
    letters: dict[str, list[str | None]] = {reader: [] for reader in LEVELS.values()}
    for index, (row, _) in located_rows(exam, recorded.predictions).items():
        sample = exam.samples[index]
        reply = recorded_reply(row)
        samples.append(sample)
        then.append(exam.as_recorded(sample, row, gold=True).target)
        for reader, read in letters.items():
            read.append(exam.grade(reply, sample, exam.readers[reader]).answer.value)
    golds = {"recorded_gold": then, "current_gold": [sample.target for sample in samples]}
    return Rows(samples, golds, letters, _options(recorded, golden, samples))


def _options(recorded: RecordedSet, golden: dict[str, Any], samples: Sequence[Sample]) -> list[int]:
    """How many options each row had then; the data tells which rows have changed since."""
    differ = set(golden["question_ids_where_options_differ"])
    older: dict[int, int] = {}
    path = recorded.data_dir / "mmlu_pro" / REVISIONS
    if differ and path.is_file():
        changed = read_json(path)[CHANGED]
        older = {row["question_id"]: len(row["older"]["options"]) for row in changed}
    ids = [sample.metadata["question_id"] for sample in samples]
    return [
        older.get(i, len(sample.choices)) if i in differ else len(sample.choices)
        for i, sample in zip(ids, samples, strict=True)
    ]


def _counts(rows: Rows, which: str, expected: dict[str, Any]) -> list[Check]:
    """Right and missing letters, over all rows and in every category."""
    everything = range(len(rows.samples))
    checks = _compare(rows, which, "", everything, expected["overall"])
    members: dict[str, list[int]] = {}
    for place, sample in enumerate(rows.samples):
        members.setdefault(sample.subset, []).append(place)
    if unknown := set(expected["categories"]) - set(members):
        raise DataError(f"the recorded outputs hold no row of {', '.join(sorted(unknown))}")
    for category, facts in expected["categories"].items():
        checks += _compare(rows, which, category, members[category], facts)
    right = _right(rows, which, LEVELS["level2"])
    macro = math.fsum(sum(right[i] for i in own) / len(own) for own in members.values())
    name = "macro_category_level2_no_guess"
    mean = macro / len(members)
    return [
        *checks,
        Check(f"{GOLDS[which]}, macro_14", expected["overall"][name], mean, PRINTED_SHARE),
    ]


def _compare(
    rows: Rows, which: str, category: str, members: Sequence[int], facts: dict[str, Any]
) -> list[Check]:
    title = ", ".join(part for part in (GOLDS[which], category) if part)
    checks = [Check(f"{title}, rows", facts["n"], len(members))]
    for level, reader in LEVELS.items():
        letters, right = rows.letters[reader], _right(rows, which, reader)
        missing = [i for i in members if letters[i] is None]
        correct = sum(right[i] for i in members)
        expected = correct + math.fsum(1 / rows.options[i] for i in missing)
        start = f"{title}, {reader}"
        checks += [
            Check(f"{start} correct", facts[f"{level}_correct"], correct),
            Check(f"{start} none", facts[f"{level}_none"], len(missing)),
            Check(
                f"{start} expected with guess",
                facts[f"{level}_expected_with_uniform_guess"],
                expected,
                PRINTED_COUNT,
            ),
        ]
    return [check._replace(part=bool(category)) for check in checks]


def _right(rows: Rows, which: str, reader: str) -> list[bool]:
    return [
        letter == gold for letter, gold in zip(rows.letters[reader], rows.golds[which], strict=True)
    ]


def _seeded(rows: Rows, expected: dict[str, Any]) -> list[Check]:
    """The authors' guesses, one stream over both passes in file order."""
    level1, level2 = rows.letters["l1"], rows.letters["l2"]
    golds = rows.golds["recorded_gold"]
    correct = official_guess_correct(level1, level2, golds)
    shares = official_guess_accuracy(level1, level2, golds)
    checks = []
    for level, reader in LEVELS.items():
        count = getattr(correct, level)
        share, known = shares[reader], expected[f"{level}_accuracy"]
        checks += [
            Check(f"seed 12345, {reader} correct", expected[f"{level}_correct"], count),
            Check(f"seed 12345, {reader} accuracy", known, share, PRINTED_SHARE),
        ]
    return checks
