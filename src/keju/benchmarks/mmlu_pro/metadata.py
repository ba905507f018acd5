"""Facts about MMLU-Pro apart from its data: names in other tools, guesses, recorded outputs.

Published accuracies guess missing letters. Keju's main metric never guesses; extra metrics with
guesses allow comparison with published tables. ``keju verify`` checks the recorded outputs with
both of the authors' readers, under both sets of gold answers, with all guesses.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from keju.benchmarks.base import Exam, Scores, ToolTask
from keju.benchmarks.grading import GRADED, LOST
from keju.benchmarks.metadata import (
    Golden,
    GoldenCheck,
    GradedRecording,
    GradedRow,
    RecordedFigure,
    RecordingSetup,
    read_facts,
)
from keju.errors import DataError
from keju.files import read_json
from keju.stats.estimate import Estimate, QuestionRepeats, mean_of_items
from keju.types import OUTCOMES


class MMLUProFacts(msgspec.Struct):
    """The content of ``facts.json``."""

    categories: dict[str, int]
    golds: dict[str, list[str]]
    tool_tasks: list[ToolTask]


_FACTS = read_facts(__file__, MMLUProFacts)
CATEGORIES = _FACTS.categories
"""Rows of the test split, in the order of the published tables (EvalScope 1.14)."""
GOLDS = _FACTS.golds
"""Digests of the gold answers of each category (see `gold_digest`): today's, and those before the
authors corrected some."""
TOOL_TASKS = _FACTS.tool_tasks
"""MMLU-Pro's names in the logs of other tools."""

# --- guesses for missing letters ----------------------------------------------------------------

OFFICIAL_SEED = 12345
OFFICIAL_LETTERS = "ABCDEFGHIJ"
OFFICIAL_METRIC = f"accuracy_official_seed_{OFFICIAL_SEED}"
OFFICIAL_TITLE = (
    f"accuracy of the authors' script, missing letters guessed with seed {OFFICIAL_SEED}"
)

_MISSING = (OUTCOMES.index("unparsed"), OUTCOMES.index("truncated"))
"""Outcomes without a letter, unless one was read before the reply was cut off."""


class CorrectWithGuesses(NamedTuple):
    """Right answers in the two passes of the authors' scoring script, including its guesses."""

    level1: int
    level2: int


def official_guess_correct(
    level1: Sequence[str | None], level2: Sequence[str | None], golds: Sequence[str]
) -> CorrectWithGuesses:
    """Count right answers like the authors' script, which guesses every missing letter.

    One stream of ``random.Random(12345)`` draws from the ten letters A to J: first for all rows
    with reader ``l1``, then for all rows with ``l2``, in the order of the predictions file. All
    three sequences are in that order.
    """
    stream = random.Random(OFFICIAL_SEED)
    correct = [
        sum(
            (letter or stream.choice(OFFICIAL_LETTERS)) == gold
            for letter, gold in zip(letters, golds, strict=True)
        )
        for letters in (level1, level2)
    ]
    return CorrectWithGuesses(*correct)


def official_guess_accuracy(
    level1: Sequence[str | None], level2: Sequence[str | None], golds: Sequence[str]
) -> dict[str, float]:
    """Return `official_guess_correct` as shares by reader: ``accuracy_official_seed_12345``."""
    correct = official_guess_correct(level1, level2, golds)
    return {"l1": correct.level1 / len(golds), "l2": correct.level2 / len(golds)}


def expected_with_guess(exam: Exam, scores: Scores) -> Estimate | None:
    """Return the expected accuracy if missing letters were random guesses among the row's options.

    None if no reply is graded yet.
    """
    repeats = []
    for first_unit, sample in zip(itertools.count(0, scores.epochs), exam.samples):
        units = range(first_unit, first_unit + scores.epochs)
        values = [
            1 / len(sample.choices)
            if scores.outcomes[unit] in _MISSING and not (scores.answers and scores.answers[unit])
            else scores.values[unit]
            for unit in units
            if scores.outcomes[unit] in GRADED
        ]
        ungraded_count = sum(scores.outcomes[unit] in LOST for unit in units)
        repeats.append(QuestionRepeats(sample.group or sample.id, values, ungraded_count))
    mean = mean_of_items(repeats, clustered=exam.clustered)
    return mean if mean.n else None


# --- recorded outputs --------------------------------------------------------------------------

LEVELS = {"level1": "l1", "level2": "l2"}
SEEDED_KEY = "official_script_seed_12345"
REVISIONS = "revisions.json"
CHANGED_ROWS_KEY = "test_rows_changed_since_the_earliest_recorded_predictions"

COUNT_TOLERANCE = 6e-4
SHARE_TOLERANCE = 6e-7
"""The golden files have three digits of an expected count and six of a share."""


def _letter(row: GradedRow, reader: str) -> str | None:
    return row.readings[reader].answer.value


def golden_figures(golden: Golden, recorded: GradedRecording) -> Iterator[RecordedFigure]:
    """Yield the counts under both sets of gold answers, then scores with guesses."""
    rows = recorded.rows
    golds = {
        "recorded_gold": ("recorded gold", [row.recorded_sample.target for row in rows]),
        "current_gold": ("current gold", [row.sample.target for row in rows]),
    }
    yield RecordedFigure("rows", golden["rows"], len(rows))
    changed_ids = set(golden["question_ids_where_options_differ"])
    option_counts = _count_options(rows, changed_ids, recorded.data / REVISIONS)
    for key, (title, targets) in golds.items():
        yield from _count_figures(golden[key], title, rows, targets, option_counts)
    # The authors' guesses: one stream over both passes, in file order.
    level1, level2 = ([_letter(row, reader) for row in rows] for reader in LEVELS.values())
    recorded_golds = golds["recorded_gold"][1]
    correct = official_guess_correct(level1, level2, recorded_golds)
    shares = official_guess_accuracy(level1, level2, recorded_golds)
    for level, reader in LEVELS.items():
        label, seeded_figures = f"seed 12345, {reader}", golden[SEEDED_KEY]
        yield RecordedFigure(
            f"{label} correct", seeded_figures[f"{level}_correct"], getattr(correct, level)
        )
        yield RecordedFigure(
            f"{label} accuracy",
            seeded_figures[f"{level}_accuracy"],
            shares[reader],
            SHARE_TOLERANCE,
        )


def _count_options(rows: Sequence[GradedRow], changed_ids: set[int], revisions: Path) -> list[int]:
    """Return the number of options of each row at the time of the recording.

    The data lists the rows that changed since.
    """
    old_counts: dict[int, int] = {}
    if changed_ids and revisions.is_file():
        revised_rows = read_json(revisions)[CHANGED_ROWS_KEY]
        old_counts = {row["question_id"]: len(row["older"]["options"]) for row in revised_rows}
    option_counts = []
    for row in rows:
        number, count = row.sample.metadata["question_id"], len(row.sample.choices)
        option_counts.append(old_counts.get(number, count) if number in changed_ids else count)
    return option_counts


def _count_figures(
    expected: Golden,
    gold: str,
    rows: Sequence[GradedRow],
    targets: Sequence[str],
    option_counts: Sequence[int],
) -> Iterator[RecordedFigure]:
    """Yield right and missing letters, over all rows and in each category."""
    members = _group_by_subset(rows)
    if unknown := set(expected["categories"]) - set(members):
        raise DataError("mmlu_pro.no_rows_of", names=sorted(unknown))
    expected_groups = {"": (range(len(rows)), expected["overall"])}
    expected_groups |= {
        name: (members[name], facts) for name, facts in expected["categories"].items()
    }
    right = {
        reader: [_letter(row, reader) == target for row, target in zip(rows, targets, strict=True)]
        for reader in LEVELS.values()
    }
    for category, (row_indexes, facts) in expected_groups.items():
        title, is_of_subset = f"{gold}, {category}" if category else gold, bool(category)
        yield RecordedFigure(
            f"{title}, rows", facts["n"], len(row_indexes), is_of_subset=is_of_subset
        )
        for level, reader in LEVELS.items():
            label = f"{title}, {reader}"
            missing = [place for place in row_indexes if _letter(rows[place], reader) is None]
            correct = sum(right[reader][place] for place in row_indexes)
            expected_with_guess = correct + math.fsum(1 / option_counts[place] for place in missing)
            published = facts[f"{level}_expected_with_uniform_guess"]
            yield RecordedFigure(
                f"{label} correct", facts[f"{level}_correct"], correct, is_of_subset=is_of_subset
            )
            yield RecordedFigure(
                f"{label} none", facts[f"{level}_none"], len(missing), is_of_subset=is_of_subset
            )
            yield RecordedFigure(
                f"{label} expected with guess",
                published,
                expected_with_guess,
                COUNT_TOLERANCE,
                is_of_subset,
            )
    shares = [
        sum(right["l2"][i] for i in group_rows) / len(group_rows) for group_rows in members.values()
    ]
    macro = expected["overall"]["macro_category_level2_no_guess"]
    yield RecordedFigure(
        f"{gold}, macro_14", macro, math.fsum(shares) / len(shares), SHARE_TOLERANCE
    )


def _group_by_subset(rows: Sequence[GradedRow]) -> dict[str, list[int]]:
    """Return the positions of the rows of each subset."""
    members: dict[str, list[int]] = {}
    for row_index, row in enumerate(rows):
        members.setdefault(row.sample.subset, []).append(row_index)
    return members


GOLDEN = GoldenCheck(
    settings=lambda *_: RecordingSetup({"few_shot_num": 0}, "official", list(LEVELS.values())),
    figures=golden_figures,
)
