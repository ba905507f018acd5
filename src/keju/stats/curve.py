"""Accuracy against difficulty: whether it falls, and where it is halfway to chance.

Difficulties are doubled rather than added to, so a `place` on their scale is a logarithm.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from keju.stats.intervals import Z90, Z95, floor_p, normal_survival

STEPS = 400
"""Places between the easiest and the hardest difficulty at which half of the way is looked for."""


class Level(NamedTuple):
    """What was scored at one difficulty."""

    place: float
    n: int
    rate: float
    """The share of right answers."""
    chance: float = 0.0
    """The share that a blind guess gets right."""

    @property
    def skill(self) -> float:
        """How far the rate is on the way from chance, 0, to all right, 1."""
        return (self.rate - self.chance) / (1 - self.chance)

    @property
    def variance(self) -> float:
        """Of the skill; a rate of 0 or 1 is not taken for certain."""
        rate = (self.n * self.rate + 1) / (self.n + 2)
        return rate * (1 - rate) / self.n / (1 - self.chance) ** 2


class Trend(NamedTuple):
    """A test for a linear trend of shares."""

    slope: float
    """The change of the rate for one step of the scale, in all strata alike."""
    z: float
    p: float
    """Two-sided."""


def trend(strata: Iterable[Sequence[Level]]) -> Trend | None:
    """Cochran's and Armitage's test, within strata: Mantel's extension. None if nothing varies.

    Each stratum, a subset say, is compared with itself alone at other difficulties. The variance is
    that of all ways to deal its right answers out to its questions.
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
    """The place where a skill has fallen to half of what it is at the easiest level."""

    reached: Literal["reached", "beyond", "at_chance"]
    """Whether it lies in the range, beyond the hardest level, or nowhere: a model that is not above
    chance at the easiest level has nothing to lose."""
    place: float | None = None
    low: float | None = None
    """Ends of the 95 % interval; None for one that lies beyond the hardest level."""
    high: float | None = None


def half_point(levels: Sequence[Level]) -> HalfPoint:
    """Where half of the way to chance is gone; `levels` ascend in difficulty.

    The place is read off the straight lines between levels, after levels that rise were pooled with
    those before them. The interval holds all places at which the skill may be half of the first
    one: Fieller's method, exact for normal errors, which needs no fall to be steep.
    """
    easiest, hardest = levels[0], levels[-1]
    if easiest.skill <= Z90 * math.sqrt(easiest.variance):
        return HalfPoint("at_chance")
    fitted = _pooled_skills(levels)
    aim, place = fitted[0] / 2, None
    for number in range(1, len(levels)):
        before, after = fitted[number - 1], fitted[number]
        if after <= aim < before:
            share = (before - aim) / (before - after)
            start, end = levels[number - 1].place, levels[number].place
            place = start + share * (end - start)
            break
    possible = [at for at, z in _distances_from_half(levels) if abs(z) <= Z95]
    if place is None:
        return HalfPoint("beyond", None, min(possible, default=None))
    low, high = min([place, *possible]), max([place, *possible])
    return HalfPoint("reached", place, low, high if high < hardest.place else None)


def _pooled_skills(levels: Sequence[Level]) -> list[float]:
    """The skills, those that rise pooled with their neighbours until none does."""
    blocks: list[tuple[float, int, int]] = []  # skill, questions, levels
    for level in levels:
        block = (level.skill, level.n, 1)
        while blocks and blocks[-1][0] <= block[0]:
            skill, n, level_count = blocks.pop()
            pooled = (skill * n + block[0] * block[1]) / (n + block[1])
            block = (pooled, n + block[1], level_count + block[2])
        blocks.append(block)
    return [skill for skill, _, many in blocks for _ in range(many)]


def _distances_from_half(levels: Sequence[Level]) -> Iterable[tuple[float, float]]:
    """Places between the levels, and how many standard errors the skill is from half there."""
    for number in range(1, len(levels)):
        start, end = levels[number - 1], levels[number]
        for step in range(STEPS + 1):
            share = step / STEPS
            # The skill there minus half of the first one, as a sum over independent levels.
            weights = {0: -0.5}
            for place, weight in ((number - 1, 1 - share), (number, share)):
                weights[place] = weights.get(place, 0.0) + weight
            value = math.fsum(weight * levels[at].skill for at, weight in weights.items())
            variance = math.fsum(w * w * levels[at].variance for at, w in weights.items())
            z = value / math.sqrt(variance) if variance > 0 else math.copysign(math.inf, value)
            yield start.place + share * (end.place - start.place), z
