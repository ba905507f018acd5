"""Majority votes among a part of an item's samples: the mean over all parts, in linear time.

Few samples are counted in whole numbers. Of many samples the number of votes that an option gets
is binomial, given that all numbers add up to the size of the vote. A sum with a known value is a
coefficient of a product of polynomials, which a discrete Fourier transform gives. Only the counts
that have a chance worth mentioning take part, so that the work grows with the samples alone.
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
"""Samples up to which all ways to draw are counted in whole numbers."""
DIGITS = 13
"""Decimal digits to which the mean of more samples is exact."""
_NEGLIGIBLE = 1e-17
"""Chances of a count below this part of the largest one are left out."""
_REACH = 8.3
"""Standard deviations from the usual sum beyond which a sum has no chance worth mentioning."""


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
    vote = _counted if total <= MOST_COUNTED else _transformed
    return vote(tuple(sorted(right)), tuple(sorted(wrong)), abstained, size)


@lru_cache(maxsize=8192)
def _counted(right: tuple[int, ...], wrong: tuple[int, ...], abstained: int, k: int) -> float:
    """Return the mean in whole numbers up to the last division."""
    total = sum(right) + sum(wrong) + abstained
    whole = math.lcm(*range(1, len(right) + len(wrong) + 1))  # what a vote is worth, in shares
    score = 0
    for place, votes in enumerate(right):
        others = (*right[:place], *right[place + 1 :], *wrong)
        for top in range(1, min(votes, k) + 1):
            ways = _ways(others, abstained, k - top, top)
            won = sum(count * (whole // (tied + 1)) for tied, count in enumerate(ways))
            score += math.comb(votes, top) * won
    return score / (whole * math.comb(total, k))


def _ways(others: tuple[int, ...], abstained: int, size: int, top: int) -> list[int]:
    """Ways to draw `size` samples with no option above `top`, by how many options reach it."""
    ways = {(0, 0): 1}
    for votes in others:
        grown: dict[tuple[int, int], int] = {}
        for (drawn, tied), count in ways.items():
            for take in range(min(votes, top, size - drawn) + 1):
                state = (drawn + take, tied + (take == top))
                grown[state] = grown.get(state, 0) + count * math.comb(votes, take)
        ways = grown
    by_ties = [0] * (len(others) + 1)
    for (drawn, tied), count in ways.items():
        by_ties[tied] += count * math.comb(abstained, size - drawn)
    return by_ties


@lru_cache(maxsize=8192)
def _transformed(right: tuple[int, ...], wrong: tuple[int, ...], abstained: int, k: int) -> float:
    """Return the mean of a large vote, exact to `DIGITS` decimal digits."""
    total = sum(right) + sum(wrong) + abstained
    draw = k / total
    counts = Counter((*right, *wrong))
    chances = {votes: _binomial(votes, draw) for votes in {*counts, abstained}}
    most = math.ceil(_REACH * math.sqrt(total * draw * (1 - draw))) + 12
    points = min(total + 1, most)
    whole = _binomial(total, draw)
    scale = points * whole.values[k - whole.first]
    score = 0.0
    for votes, many in Counter(right).items():
        others = counts - Counter({votes: 1})
        contest = _Contest(chances[votes], [(chances[own], n) for own, n in others.items()], k)
        score += many * contest.won(chances[abstained], points) / scale
    return min(1.0, max(0.0, round(score, DIGITS)))


class _Chances(NamedTuple):
    """The chances of the counts `first`, `first` + 1, … that are worth mentioning."""

    first: int
    values: tuple[float, ...]

    @property
    def last(self) -> int:
        """The largest count that has a chance worth mentioning."""
        return self.first + len(self.values) - 1

    @property
    def places(self) -> range:
        """The places of the values."""
        return range(len(self.values))

    def at(self, count: int) -> float:
        """The chance of one count."""
        return self.values[count - self.first] if self.first <= count <= self.last else 0.0

    def below(self, count: int) -> _Chances:
        """The chances of all smaller counts."""
        return _Chances(self.first, self.values[: max(0, count - self.first)])


@lru_cache(maxsize=1024)
def _binomial(n: int, share: float) -> _Chances:
    """Return the binomial distribution of `n` draws, from its most likely count outwards."""
    usual, odds = min(n, math.floor((n + 1) * share)), share / (1 - share)
    above, below = [1.0], []
    for count in range(usual, n):
        if (chance := above[-1] * (n - count) / (count + 1) * odds) < _NEGLIGIBLE:
            break
        above.append(chance)
    chance = 1.0
    for count in range(usual, 0, -1):
        if (chance := chance * count / (n - count + 1) / odds) < _NEGLIGIBLE:
            break
        below.append(chance)
    values = [*reversed(below), *above]
    whole = math.fsum(values)
    return _Chances(usual - len(below), tuple([value / whole for value in values]))


class _Contest:
    """One right option against all others in votes of size `k`."""

    def __init__(self, own: _Chances, others: Sequence[tuple[_Chances, int]], k: int) -> None:
        self._k = k
        self._low, self._high = _winning(own, others, k)
        tops = range(self._low, self._high + 1)
        self._own = [own.at(top) for top in tops]
        # Options that never reach the lowest winning count only add to the sum.
        self._rest = [(each, many) for each, many in others if each.last < self._low]
        self._rivals = [
            _Rival(each.below(self._low), [each.at(top) for top in tops], many)
            for each, many in others
            if each.last >= self._low
        ]
        self._segments = _segments(self._own, self._rivals, self._low, k)

    def won(self, abstained: _Chances, points: int) -> float:
        """Return `points` times the chance that the votes add up to k and the option wins."""
        if not self._own:
            return 0.0
        roots = [cmath.rect(1.0, 2 * math.pi * place / points) for place in range(points)]
        sums = [
            # The other half of the points has the conjugate values.
            (1 if 2 * place % points == 0 else 2) * self._at(place, roots, abstained).real
            for place in range(points // 2 + 1)
        ]
        return math.fsum(sums)

    def _at(self, place: int, roots: Sequence[complex], abstained: _Chances) -> complex:
        """Return one coefficient of the transform."""
        points = len(roots)

        def whole(chances: _Chances) -> complex:
            turns = [roots[place * (chances.first + at) % points] for at in chances.places]
            return sum(map(mul, chances.values, turns), 0j)

        outside = roots[-place * self._k % points] * whole(abstained)
        for chances, many in self._rest:
            outside *= whole(chances) ** many
        turns = [roots[place * top % points] for top in range(self._low, self._high + 1)]
        rivals = []
        for rival in self._rivals:
            steps = list(map(mul, rival.steps, turns))
            less = list(accumulate(steps, initial=whole(rival.below)))
            rivals.append((less, steps, rival.many))
        own = list(map(mul, self._own, turns))
        total = 0j
        for (first, last), nodes in self._segments:
            for at, weight in nodes:
                product = own[first:last]
                for less, steps, many in rivals:
                    pairs = zip(less[first:last], steps[first:last], strict=True)
                    factors = [fewer + at * tie for fewer, tie in pairs]
                    if many > 1:
                        factors = [factor**many for factor in factors]
                    product = list(map(mul, product, factors))
                total += weight * sum(product)
        return outside * total


class _Rival(NamedTuple):
    """Options with the same number of votes that may tie with the winner."""

    below: _Chances
    """The chances of all counts below the lowest winning one."""
    steps: list[float]
    """The chance of each winning count."""
    many: int


def _winning(own: _Chances, others: Sequence[tuple[_Chances, int]], k: int) -> tuple[int, int]:
    """Return the range of counts with which the option may win; the first is the larger if none."""
    low, high = max(1, own.first), min(k, own.last)
    low = max(low, *(chances.first for chances, _ in others), low)
    sums = [(sum(chances.below(low).values), chances, many) for chances, many in others]
    while low <= high:
        sums = [(less + chances.at(low), chances, many) for less, chances, many in sums]
        if own.at(low) * math.prod(less**many for less, _, many in sums) >= _NEGLIGIBLE:
            break
        low += 1
    return low, high


Nodes = Sequence[tuple[float, float]]
"""Places between 0 and 1, and their weights."""


def _segments(
    own: Sequence[float], rivals: Sequence[_Rival], low: int, k: int
) -> list[tuple[tuple[int, int], Nodes]]:
    """Return ranges of winning counts (from `low` on) with the nodes that ties among them need.

    A tie with r others is worth 1 / (r + 1), the integral of y^r from 0 to 1. The nodes of a Gauss
    quadrature of r // 2 + 1 places give it exactly.
    """
    sizes: list[int] = []
    for place, chance in enumerate(own):
        tied = [(rival.steps[place], rival.many) for rival in rivals]
        most = min(sum(many for step, many in tied if step), max(0, k // (low + place) - 1))
        expected, others = math.fsum(step * many for step, many in tied), 0
        while others < most and chance >= _NEGLIGIBLE:  # more ties have no chance
            others += 1
            chance *= expected / others
        sizes.append(others // 2 + 1)
    segments, first = [], 0
    for size, same in groupby(sizes):
        last = first + len(list(same))
        segments.append(((first, last), _gauss(size)))
        first = last
    return segments


@lru_cache(maxsize=1024)
def _gauss(size: int) -> Nodes:
    """Return the Gauss-Legendre nodes of [0, 1], found by Newton's method."""
    nodes: list[tuple[float, float]] = []
    for place in range(size):
        x = math.cos(math.pi * (place + 0.75) / (size + 0.5))
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
    before, value = 1.0, x
    for degree in range(2, size + 1):
        before, value = value, ((2 * degree - 1) * x * value - (degree - 1) * before) / degree
    return value, size * (x * value - before) / (x * x - 1)
