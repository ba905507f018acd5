"""What is known about MMLU-Pro beside its data: other tools' names, guesses, recorded outputs.

A missing letter is worth a guess in published accuracies. Keju's headline never guesses; figures
with guesses stand beside it, for parity with published tables. The recorded outputs are verified
with both of the authors' readers, under both golds and with all guesses.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from keju.benchmarks.base import Exam, Scores, ToolTask
from keju.benchmarks.facts import Answered, Figure, Golden, GoldenCheck, Recorded, Sitting
from keju.benchmarks.grading import GRADED, LOST
from keju.errors import DataError
from keju.files import read_json
from keju.stats.estimate import Estimate, Repeats, mean_of_items
from keju.types import OUTCOMES

TOOL_TASKS = (
    ToolTask(tool="evalscope", name="mmlu_pro(?:_(.+))?", protocol="evalscope", shots=5),
    ToolTask(tool="lm-eval", name="mmlu_pro_(.+)", protocol="official", reader="l1", shots=5),
    ToolTask(
        tool="inspect",
        name="mmlu_pro",
        protocol="evalscope",
        reader="inspect",
        args={"few_shot_num": 0},
    ),
    ToolTask(
        tool="opencompass",
        name="mmlu_pro[-_](.+)",
        protocol="evalscope",
        args={"few_shot_num": 0},
        rules={"": "colon"},
    ),
    ToolTask(tool="verifiers", name="mmlu_pro", shots=5),
)
"""Its names in the logs of other tools."""

# --- what a missing letter is worth -------------------------------------------------------------

OFFICIAL_SEED = 12345
OFFICIAL_LETTERS = "ABCDEFGHIJ"
OFFICIAL_METRIC = f"accuracy_official_seed_{OFFICIAL_SEED}"
OFFICIAL_TITLE = (
    f"accuracy of the authors' script, missing letters guessed with seed {OFFICIAL_SEED}"
)

_MISSING = (OUTCOMES.index("unparsed"), OUTCOMES.index("truncated"))
"""Outcomes without a letter, unless one was read before the reply was cut off."""


class GuessedCorrect(NamedTuple):
    """Right answers of the two passes of the authors' scoring script, its guesses included."""

    level1: int
    level2: int


def official_guess_correct(
    level1: Sequence[str | None], level2: Sequence[str | None], golds: Sequence[str]
) -> GuessedCorrect:
    """Score as the authors' script does, which guesses every missing letter.

    One stream of ``random.Random(12345)`` draws from the ten letters A to J: first for the whole
    pass of reader ``l1``, then for that of ``l2``, rows in the order of the predictions file. All
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
    return GuessedCorrect(*correct)


def official_guess_accuracy(
    level1: Sequence[str | None], level2: Sequence[str | None], golds: Sequence[str]
) -> dict[str, float]:
    """`official_guess_correct` as shares, by reader: ``accuracy_official_seed_12345``."""
    correct = official_guess_correct(level1, level2, golds)
    return {"l1": correct.level1 / len(golds), "l2": correct.level2 / len(golds)}


def expected_with_guess(exam: Exam, scores: Scores) -> Estimate | None:
    """The expected accuracy if every missing letter were a blind guess among the row's options.

    None before anything was graded.
    """
    items = []
    for first, sample in zip(itertools.count(0, scores.epochs), exam.samples):
        units = range(first, first + scores.epochs)
        values = [
            1 / len(sample.choices)
            if scores.outcomes[unit] in _MISSING and not (scores.answers and scores.answers[unit])
            else scores.values[unit]
            for unit in units
            if scores.outcomes[unit] in GRADED
        ]
        lost = sum(scores.outcomes[unit] in LOST for unit in units)
        items.append(Repeats(sample.group or sample.id, values, lost))
    mean = mean_of_items(items, clustered=exam.clustered)
    return mean if mean.n else None


# --- recorded outputs --------------------------------------------------------------------------

LEVELS = {"level1": "l1", "level2": "l2"}
SEEDED = "official_script_seed_12345"
REVISIONS = "revisions.json"
CHANGED = "test_rows_changed_since_the_earliest_recorded_predictions"

PRINTED_COUNT = 6e-4
PRINTED_SHARE = 6e-7
"""The golden files have three digits of an expected count and six of a share."""


def _letter(answered: Answered, reader: str) -> str | None:
    return answered.readings[reader].answer.value


def golden_figures(golden: Golden, recorded: Recorded) -> Iterator[Figure]:
    """Counts under both golds, then what the authors' guesses make of them."""
    rows = recorded.rows
    golds = {
        "recorded_gold": ("recorded gold", [row.shown.target for row in rows]),
        "current_gold": ("current gold", [row.sample.target for row in rows]),
    }
    yield Figure("rows", golden["rows"], len(rows))
    # How many options each row had then; the data tells which rows have changed since.
    differ = set(golden["question_ids_where_options_differ"])
    older: dict[int, int] = {}
    path = recorded.data / REVISIONS
    if differ and path.is_file():
        changed = read_json(path)[CHANGED]
        older = {row["question_id"]: len(row["older"]["options"]) for row in changed}
    options = []
    for row in rows:
        number, now = row.sample.metadata["question_id"], len(row.sample.choices)
        options.append(older.get(number, now) if number in differ else now)
    for key, (title, targets) in golds.items():
        yield from _counts(golden[key], title, rows, targets, options)
    # The authors' guesses: one stream over both passes, in file order.
    level1, level2 = ([_letter(row, reader) for row in rows] for reader in LEVELS.values())
    then = golds["recorded_gold"][1]
    correct = official_guess_correct(level1, level2, then)
    shares = official_guess_accuracy(level1, level2, then)
    for level, reader in LEVELS.items():
        start, seeded = f"seed 12345, {reader}", golden[SEEDED]
        yield Figure(f"{start} correct", seeded[f"{level}_correct"], getattr(correct, level))
        yield Figure(
            f"{start} accuracy", seeded[f"{level}_accuracy"], shares[reader], PRINTED_SHARE
        )


def _counts(
    expected: Golden,
    gold: str,
    rows: Sequence[Answered],
    targets: Sequence[str],
    options: Sequence[int],
) -> Iterator[Figure]:
    """Right and missing letters, over all rows and in every category."""
    members: dict[str, list[int]] = {}
    for place, row in enumerate(rows):
        members.setdefault(row.sample.subset, []).append(place)
    if unknown := set(expected["categories"]) - set(members):
        raise DataError("mmlu_pro.no_rows_of", names=sorted(unknown))
    parts = {"": (range(len(rows)), expected["overall"])}
    parts |= {name: (members[name], facts) for name, facts in expected["categories"].items()}
    right = {
        reader: [_letter(row, reader) == target for row, target in zip(rows, targets, strict=True)]
        for reader in LEVELS.values()
    }
    for category, (places, facts) in parts.items():
        title, part = f"{gold}, {category}" if category else gold, bool(category)
        yield Figure(f"{title}, rows", facts["n"], len(places), part=part)
        for level, reader in LEVELS.items():
            start = f"{title}, {reader}"
            missing = [place for place in places if _letter(rows[place], reader) is None]
            correct = sum(right[reader][place] for place in places)
            guessed = correct + math.fsum(1 / options[place] for place in missing)
            published = facts[f"{level}_expected_with_uniform_guess"]
            yield Figure(f"{start} correct", facts[f"{level}_correct"], correct, part=part)
            yield Figure(f"{start} none", facts[f"{level}_none"], len(missing), part=part)
            yield Figure(f"{start} expected with guess", published, guessed, PRINTED_COUNT, part)
    shares = [sum(right["l2"][i] for i in own) / len(own) for own in members.values()]
    macro = expected["overall"]["macro_category_level2_no_guess"]
    yield Figure(f"{gold}, macro_14", macro, math.fsum(shares) / len(shares), PRINTED_SHARE)


GOLDEN = GoldenCheck(
    settings=lambda *_: Sitting({"few_shot_num": 0}, "official", list(LEVELS.values())),
    figures=golden_figures,
)
