"""What a missing letter is worth: the rules behind published MMLU-Pro accuracies.

Keju's headline never guesses. These figures stand beside it, for parity with published tables.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from typing import NamedTuple

from keju.benchmarks.base import Exam, Scores
from keju.benchmarks.grading import GRADED
from keju.stats.estimate import Estimate
from keju.stats.intervals import Moments, bounded_mean
from keju.types import OUTCOMES

OFFICIAL_SEED = 12345
OFFICIAL_LETTERS = "ABCDEFGHIJ"
OFFICIAL_METRIC = f"accuracy_official_seed_{OFFICIAL_SEED}"
OFFICIAL_TITLE = (
    f"accuracy of the authors' script, missing letters guessed with seed {OFFICIAL_SEED}"
)

_MISSING = (OUTCOMES.index("unparsed"), OUTCOMES.index("truncated"))


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
    means = []
    for first, sample in zip(itertools.count(0, scores.epochs), exam.samples):
        values = [
            1 / len(sample.choices) if scores.outcomes[unit] in _MISSING else scores.values[unit]
            for unit in range(first, first + scores.epochs)
            if scores.outcomes[unit] in GRADED
        ]
        if values:
            means.append(math.fsum(values) / len(values))
    moments = Moments.of(means)
    if moments is None:
        return None
    mean = bounded_mean(moments)
    return Estimate(mean.value, mean.interval, mean.n)
