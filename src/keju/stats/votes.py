"""Majority votes among a subset of an item's samples: the mean over all subsets, in linear time.

Few samples are counted with integers. With many samples the number of votes of an option is
binomial, given that all numbers add up to the size of the vote. The probability of a sum with a
known value is a coefficient of a product of polynomials, which a discrete Fourier transform gives.
Only counts with a non-negligible probability are used, so the work only grows with the samples.
"""

from __future__ import annotations

import cmath
import math
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, groupby
from operator import mul
from typing import NamedTuple

MOST_COUNTED = 20
"""Number of samples up to which all subsets are counted with integers."""
DIGITS = 13
"""Decimal digits to which the mean of more samples is exact."""
_NEGLIGIBLE = 1e-17
"""Probabilities of a count below this part of the largest one are left out."""
_REACH = 8.3
"""Standard deviations from the expected sum beyond which a sum has a negligible probability."""


def majority_vote(
    right: Sequence[int], wrong: Sequence[int], abstained: int = 0, k: int | None = None
) -> float:
    """Return the expected score of a majority vote among `k` of an item's samples (default: all).

    `right` and `wrong` hold the votes of each right and each wrong option; `abstained` samples
    cast no vote. A tie of t options scores 1/t for each right one among them, and no vote at all
    scores 0. For fewer than all samples this is the mean over all subsets of size k.
    """
    total = sum(right) + sum(wrong) + abstained
    size = total if k is None else k
    if not 1 <= size <= total:
        raise ValueError(f"no vote among {size} of {total} samples")
    right, wrong = [votes for votes in right if votes], [votes for votes in wrong if votes]
    if size == total:
        top = max((*right, *wrong), default=0)
        return right.count(top) / (right.count(top) + wrong.count(top)) if top else 0.0
    vote = _exact_vote if total <= MOST_COUNTED else _approximate_vote
    return vote(tuple(sorted(right)), tuple(sorted(wrong)), abstained, size)


@lru_cache(maxsize=8192)
def _exact_vote(right: tuple[int, ...], wrong: tuple[int, ...], abstained: int, k: int) -> float:
    """Return the mean, computed with integers up to the last division."""
    total = sum(right) + sum(wrong) + abstained
    # the value of one vote, divisible by every number of ties
    vote_worth = math.lcm(*range(1, len(right) + len(wrong) + 1))
    score = 0
    for index, votes in enumerate(right):
        other_votes = (*right[:index], *right[index + 1 :], *wrong)
        for top in range(1, min(votes, k) + 1):
            ways = _ways_by_ties(other_votes, abstained, k - top, top)
            winning_ways = sum(
                count * (vote_worth // (tied + 1)) for tied, count in enumerate(ways)
            )
            score += math.comb(votes, top) * winning_ways
    return score / (vote_worth * math.comb(total, k))


def _ways_by_ties(other_votes: tuple[int, ...], abstained: int, size: int, top: int) -> list[int]:
    """Return the ways to draw `size` samples with no option above `top`, by the number that reach
    it."""
    ways = {(0, 0): 1}
    for votes in other_votes:
        next_ways: dict[tuple[int, int], int] = {}
        for (drawn, tied), count in ways.items():
            for take in range(min(votes, top, size - drawn) + 1):
                state = (drawn + take, tied + (take == top))
                next_ways[state] = next_ways.get(state, 0) + count * math.comb(votes, take)
        ways = next_ways
    by_ties = [0] * (len(other_votes) + 1)
    for (drawn, tied), count in ways.items():
        by_ties[tied] += count * math.comb(abstained, size - drawn)
    return by_ties


@lru_cache(maxsize=8192)
def _approximate_vote(
    right: tuple[int, ...], wrong: tuple[int, ...], abstained: int, k: int
) -> float:
    """Return the mean of a large vote, exact to `DIGITS` decimal digits."""
    total = sum(right) + sum(wrong) + abstained
    draw = k / total
    counts = Counter((*right, *wrong))
    chances = {votes: _binomial(votes, draw) for votes in {*counts, abstained}}
    sum_range = math.ceil(_REACH * math.sqrt(total * draw * (1 - draw))) + 12
    points = min(total + 1, sum_range)
    size_chances = _binomial(total, draw)
    scale = points * size_chances.values[k - size_chances.lowest]
    score = 0.0
    for votes, option_count in Counter(right).items():
        rival_counts = counts - Counter({votes: 1})
        contest = _VoteContest(
            chances[votes],
            [(chances[rival_votes], n) for rival_votes, n in rival_counts.items()],
            k,
        )
        score += option_count * contest.win_weight(chances[abstained], points) / scale
    return min(1.0, max(0.0, round(score, DIGITS)))


class _CountChances(NamedTuple):
    """The non-negligible probabilities of the counts `lowest`, `lowest` + 1, …"""

    lowest: int
    values: tuple[float, ...]

    @property
    def highest(self) -> int:
        """The largest count with a non-negligible probability."""
        return self.lowest + len(self.values) - 1

    @property
    def places(self) -> range:
        """The indices of the values."""
        return range(len(self.values))

    def at(self, count: int) -> float:
        """Return the probability of one count."""
        return self.values[count - self.lowest] if self.lowest <= count <= self.highest else 0.0

    def below(self, count: int) -> _CountChances:
        """Return the probabilities of all smaller counts."""
        return _CountChances(self.lowest, self.values[: max(0, count - self.lowest)])


@lru_cache(maxsize=1024)
def _binomial(n: int, share: float) -> _CountChances:
    """Return the binomial distribution of `n` draws, from its most likely count outwards."""
    most_likely, odds = min(n, math.floor((n + 1) * share)), share / (1 - share)
    above, below = [1.0], []
    for count in range(most_likely, n):
        if (chance := above[-1] * (n - count) / (count + 1) * odds) < _NEGLIGIBLE:
            break
        above.append(chance)
    chance = 1.0
    for count in range(most_likely, 0, -1):
        if (chance := chance * count / (n - count + 1) / odds) < _NEGLIGIBLE:
            break
        below.append(chance)
    values = [*reversed(below), *above]
    total = math.fsum(values)
    return _CountChances(most_likely - len(below), tuple([value / total for value in values]))


class _VoteContest:
    """One right option against all others in votes of size `k`."""

    def __init__(
        self, option: _CountChances, rivals: Sequence[tuple[_CountChances, int]], k: int
    ) -> None:
        self._k = k
        self._low, self._high = _winning_counts(option, rivals, k)
        tops = range(self._low, self._high + 1)
        self._option_chances = [option.at(top) for top in tops]
        # Options that never reach the lowest winning count only add to the sum.
        self._certain_losers = [
            (rival, count) for rival, count in rivals if rival.highest < self._low
        ]
        self._rivals = [
            _TiedOptions(rival.below(self._low), [rival.at(top) for top in tops], count)
            for rival, count in rivals
            if rival.highest >= self._low
        ]
        self._segments = _segments(self._option_chances, self._rivals, self._low, k)

    def win_weight(self, abstained: _CountChances, points: int) -> float:
        """Return `points` times the chance that the votes add up to k and the option wins."""
        if not self._option_chances:
            return 0.0
        roots = [cmath.rect(1.0, 2 * math.pi * index / points) for index in range(points)]
        sums = [
            # The other half of the points has the conjugate values.
            (1 if 2 * index % points == 0 else 2) * self._coefficient(index, roots, abstained).real
            for index in range(points // 2 + 1)
        ]
        return math.fsum(sums)

    def _coefficient(
        self, index: int, roots: Sequence[complex], abstained: _CountChances
    ) -> complex:
        """Return one coefficient of the transform."""
        points = len(roots)

        def transform(chances: _CountChances) -> complex:
            turns = [roots[index * (chances.lowest + offset) % points] for offset in chances.places]
            return sum(map(mul, chances.values, turns), 0j)

        outside = roots[-index * self._k % points] * transform(abstained)
        for chances, count in self._certain_losers:
            outside *= transform(chances) ** count
        turns = [roots[index * top % points] for top in range(self._low, self._high + 1)]
        rivals = []
        for rival in self._rivals:
            steps = list(map(mul, rival.steps, turns))
            below_or_equal = list(accumulate(steps, initial=transform(rival.below)))
            rivals.append((below_or_equal, steps, rival.options))
        option_terms = list(map(mul, self._option_chances, turns))
        total = 0j
        for (start, end), nodes in self._segments:
            for node, weight in nodes:
                product = option_terms[start:end]
                for below_or_equal, steps, count in rivals:
                    pairs = zip(below_or_equal[start:end], steps[start:end], strict=True)
                    factors = [fewer + node * tie for fewer, tie in pairs]
                    if count > 1:
                        factors = [factor**count for factor in factors]
                    product = list(map(mul, product, factors))
                total += weight * sum(product)
        return outside * total


class _TiedOptions(NamedTuple):
    """Options with the same number of votes that may tie with the winner."""

    below: _CountChances
    """The probabilities of all counts below the lowest winning one."""
    steps: list[float]
    """The probability of each winning count."""
    options: int


def _winning_counts(
    option: _CountChances, rivals: Sequence[tuple[_CountChances, int]], k: int
) -> tuple[int, int]:
    """Return the range of counts with which the option may win; empty (low above high) if it cannot
    win."""
    low, high = max(1, option.lowest), min(k, option.highest)
    low = max(low, *(chances.lowest for chances, _ in rivals), low)
    sums = [(sum(chances.below(low).values), chances, count) for chances, count in rivals]
    while low <= high:
        sums = [(lower + chances.at(low), chances, count) for lower, chances, count in sums]
        if option.at(low) * math.prod(less**count for less, _, count in sums) >= _NEGLIGIBLE:
            break
        low += 1
    return low, high


Nodes = Sequence[tuple[float, float]]
"""Places between 0 and 1, and their weights."""


def _segments(
    option_chances: Sequence[float], rivals: Sequence[_TiedOptions], low: int, k: int
) -> list[tuple[tuple[int, int], Nodes]]:
    """Return ranges of winning counts (from `low` on) with the quadrature nodes that their ties
    need.

    A tie with r others is worth 1 / (r + 1), the integral of y^r from 0 to 1. A Gauss quadrature of
    r // 2 + 1 nodes gives it exactly.
    """
    sizes: list[int] = []
    for index, chance in enumerate(option_chances):
        tied = [(rival.steps[index], rival.options) for rival in rivals]
        most_ties = min(sum(count for step, count in tied if step), max(0, k // (low + index) - 1))
        expected, tie_count = math.fsum(step * count for step, count in tied), 0
        # more ties have a negligible probability
        while tie_count < most_ties and chance >= _NEGLIGIBLE:
            tie_count += 1
            chance *= expected / tie_count
        sizes.append(tie_count // 2 + 1)
    segments, start = [], 0
    for size, run in groupby(sizes):
        end = start + len(list(run))
        segments.append(((start, end), _gauss(size)))
        start = end
    return segments


@lru_cache(maxsize=1024)
def _gauss(size: int) -> Nodes:
    """Return the Gauss-Legendre nodes of [0, 1], found by Newton's method."""
    nodes: list[tuple[float, float]] = []
    for index in range(size):
        x = math.cos(math.pi * (index + 0.75) / (size + 0.5))
        for _ in range(100):
            value, slope = _legendre(size, x)
            x -= value / slope
            if abs(value / slope) < 1e-15:
                break
        _, slope = _legendre(size, x)
        nodes.append(((1 + x) / 2, 1 / ((1 - x * x) * slope * slope)))
    return nodes


def _legendre(size: int, x: float) -> tuple[float, float]:
    """Return the Legendre polynomial of degree `size` at `x`, and its slope."""
    previous, value = 1.0, x
    for degree in range(2, size + 1):
        previous, value = value, ((2 * degree - 1) * x * value - (degree - 1) * previous) / degree
    return value, size * (x * value - previous) / (x * x - 1)
