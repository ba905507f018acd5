"""Raw outputs of MMLU-Pro: both of the authors' readers, both golds and all guesses."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from keju.benchmarks.facts import Answered, Figure, Golden, GoldenCheck, Recorded, Sitting
from keju.benchmarks.mmlu_pro.guessing import official_guess_accuracy, official_guess_correct
from keju.errors import DataError
from keju.files import read_json

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
        start, known = f"seed 12345, {reader}", golden[SEEDED]
        yield Figure(f"{start} correct", known[f"{level}_correct"], getattr(correct, level))
        yield Figure(f"{start} accuracy", known[f"{level}_accuracy"], shares[reader], PRINTED_SHARE)


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
        raise DataError(f"the recorded outputs hold no row of {', '.join(sorted(unknown))}")
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
            known = facts[f"{level}_expected_with_uniform_guess"]
            yield Figure(f"{start} correct", facts[f"{level}_correct"], correct, part=part)
            yield Figure(f"{start} none", facts[f"{level}_none"], len(missing), part=part)
            yield Figure(f"{start} expected with guess", known, guessed, PRINTED_COUNT, part)
    shares = [sum(right["l2"][i] for i in own) / len(own) for own in members.values()]
    known = expected["overall"]["macro_category_level2_no_guess"]
    yield Figure(f"{gold}, macro_14", known, math.fsum(shares) / len(shares), PRINTED_SHARE)


GOLDEN = GoldenCheck(
    settings=lambda *_: Sitting({"few_shot_num": 0}, "official", list(LEVELS.values())),
    figures=golden_figures,
)
