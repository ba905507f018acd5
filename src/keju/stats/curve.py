"""Accuracy against difficulty: whether it falls, and where it is halfway to chance.

Difficulties grow by factors, so a `place` on their scale is a logarithm.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from keju.stats.intervals import Z90, Z95, floor_p, normal_survival

STEPS = 400
"""Number of steps between two neighbouring levels in the search for the half point."""


class DifficultyScore(NamedTuple):
    """The scores at one difficulty."""

    place: float
    n: int
    rate: float
    """The share of right answers."""
    chance: float = 0.0
    """The share that random guessing gets right."""

    @property
    def skill(self) -> float:
        """The position of the rate between chance (0) and all right (1)."""
        return (self.rate - self.chance) / (1 - self.chance)

    @property
    def variance(self) -> float:
        """The variance of the skill. A rate of 0 or 1 does not give a variance of 0."""
        rate = (self.n * self.rate + 1) / (self.n + 2)
        return rate * (1 - rate) / self.n / (1 - self.chance) ** 2


class Trend(NamedTuple):
    """A test for a linear trend of shares."""

    slope: float
    """The change of the rate for one step of the scale, the same in all strata."""
    z: float
    p: float
    """Two-sided."""


def trend(strata: Iterable[Sequence[DifficultyScore]]) -> Trend | None:
    """Return the Cochran-Armitage test within strata (Mantel's extension); None if nothing varies.

    Each stratum, for example a subset, is only compared with itself at other difficulties. The
    variance is over all assignments of its right answers to its questions.
    """
    score = spread = variance = 0.0
    for levels in strata:
        n = sum(level.n for level in levels)
        if n < 2:
            continue
        right = math.fsum(level.n * level.rate for level in levels)
        middle = math.fsum(level.n * level.place for level in levels) / n
        share = right / n
        score += math.fsum((lv.place - middle) * lv.n * lv.rate for lv in levels)
        place_spread = math.fsum(level.n * (level.place - middle) ** 2 for level in levels)
        spread += place_spread
        variance += place_spread * share * (1 - share) * n / (n - 1)
    if variance <= 0:
        return None
    z = score / math.sqrt(variance)
    return Trend(score / spread, z, floor_p(2 * normal_survival(abs(z))))


class HalfPoint(NamedTuple):
    """The place at which the skill has fallen to half of its value at the easiest level."""

    reached: Literal["reached", "beyond", "at_chance"]
    """Whether the half point is in the range, beyond the hardest level, or undefined because the
    model is not above chance at the easiest level."""
    place: float | None = None
    low: float | None = None
    """Ends of the 95 % interval; None for an end beyond the hardest level."""
    high: float | None = None


def half_point(levels: Sequence[DifficultyScore]) -> HalfPoint:
    """Return where the skill is halfway to chance; `levels` ascend in difficulty.

    The place is interpolated linearly between levels. Levels at which the skill rises are pooled
    with the levels before them first. The interval holds all places at which the skill may be half
    of the skill at the easiest level. It uses Fieller's method, which is exact for normal errors
    and also works for flat curves.
    """
    easiest, hardest = levels[0], levels[-1]
    if easiest.skill <= Z90 * math.sqrt(easiest.variance):
        return HalfPoint("at_chance")
    fitted = _pooled_skills(levels)
    half_skill, place = fitted[0] / 2, None
    for number in range(1, len(levels)):
        before_skill, after_skill = fitted[number - 1], fitted[number]
        if after_skill <= half_skill < before_skill:
            share = (before_skill - half_skill) / (before_skill - after_skill)
            start, end = levels[number - 1].place, levels[number].place
            place = start + share * (end - start)
            break
    possible = [position for position, z in _distances_from_half(levels) if abs(z) <= Z95]
    if place is None:
        return HalfPoint("beyond", None, min(possible, default=None))
    low, high = min([place, *possible]), max([place, *possible])
    return HalfPoint("reached", place, low, high if high < hardest.place else None)


def _pooled_skills(levels: Sequence[DifficultyScore]) -> list[float]:
    """Return the skills, pooled with their neighbours where they rise, so that they never rise."""
    blocks: list[tuple[float, int, int]] = []  # skill, questions, levels
    for level in levels:
        block = (level.skill, level.n, 1)
        while blocks and blocks[-1][0] <= block[0]:
            skill, n, level_count = blocks.pop()
            pooled = (skill * n + block[0] * block[1]) / (n + block[1])
            block = (pooled, n + block[1], level_count + block[2])
        blocks.append(block)
    return [skill for skill, _, level_count in blocks for _ in range(level_count)]


def _distances_from_half(levels: Sequence[DifficultyScore]) -> Iterable[tuple[float, float]]:
    """Yield places between the levels and the distance of the skill there from half, in standard
    errors."""
    for number in range(1, len(levels)):
        start, end = levels[number - 1], levels[number]
        for step in range(STEPS + 1):
            share = step / STEPS
            # The skill there minus half of the skill at the first level, as a sum over independent
            # levels.
            weights = {0: -0.5}
            for index, weight in ((number - 1, 1 - share), (number, share)):
                weights[index] = weights.get(index, 0.0) + weight
            value = math.fsum(weight * levels[index].skill for index, weight in weights.items())
            variance = math.fsum(w * w * levels[index].variance for index, w in weights.items())
            z = value / math.sqrt(variance) if variance > 0 else math.copysign(math.inf, value)
            yield start.place + share * (end.place - start.place), z
