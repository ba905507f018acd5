"""How often Keju's 95 % intervals hold the truth: a grid of exams, each simulated many times.

`python -m perf.simulate` prints a row for each exam of the grid. An exam has questions in subsets
or in clusters, asked once or four times. For each of fifty true shares from 0.005 to 0.5 (the
estimator treats right and wrong alike, so the other half is the same) the exam is sat `--draws`
times, and its interval is looked at by Keju's own estimator. One subset asked once needs no luck:
its coverage is a sum over all numbers of right answers.

A row gives the least coverage at a single true share, and the least and the largest mean over the
true shares within 0.05 of one.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.random import Generator, default_rng

from keju.stats.estimate import Gathered
from keju.stats.intervals import Interval
from keju.stats.judge import JudgeQuality, rogan_gladen
from keju.stats.strata import Stratum, stratified_mean

SHARES = (0.005, *(step / 100 for step in range(1, 51)))
SIZES = (10, 30, 100, 250, 1000)
POPULATION = 200
"""Questions of a subset from which a limit draws."""
REPEATS = 4
ALIKE = 0.5
"""Intraclass correlation of the repeats of one question."""
WINDOW = 0.05
SEED = 20_261_116


Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Exam(NamedTuple):
    """One row of the grid."""

    n: int
    strata: int = 1
    limit: int = 0
    """Questions drawn from each subset; 0 where all of them are asked."""
    clusters: int = 0
    spread: float = 0.0
    """Intraclass correlation of subsets or clusters: 0 if all have the same share."""
    repeats: int = 1

    @property
    def name(self) -> str:
        """The exam in a few words."""
        words = [f"n {self.n}"]
        if self.strata > 1:
            words.append(f"{self.strata} subsets")
        if self.limit:
            words.append(f"limit {self.limit}")
        if self.clusters:
            words.append(f"{self.clusters} clusters")
        if self.strata > 1 or self.clusters:
            words.append(f"correlation {self.spread:g}")
        return ", ".join([*words, *([f"{self.repeats} repeats"] if self.repeats > 1 else [])])


class Judged(NamedTuple):
    """Answers graded by a judge that was measured on labelled ones."""

    n: int
    sensitivity: float
    specificity: float
    positives: int
    negatives: int

    @property
    def name(self) -> str:
        """The exam in a few words."""
        rates = f"sensitivity {self.sensitivity:g}, specificity {self.specificity:g}"
        return f"n {self.n}, judge: {rates}, {self.positives} + {self.negatives} labelled"


class Coverage(NamedTuple):
    """How often the intervals of one exam hold the truth."""

    name: str
    n: int
    at: list[float]
    """By true share, as in `SHARES`."""

    @property
    def windows(self) -> list[float]:
        """Means over the true shares within `WINDOW` of each."""
        both = dict(zip(SHARES, self.at, strict=True))
        both |= {round(1 - share, 3): own for share, own in both.items()}
        means = []
        for centre in SHARES:
            near = [own for share, own in both.items() if abs(share - centre) <= WINDOW + 1e-9]
            means.append(math.fsum(near) / len(near))
        return means

    def row(self) -> str:
        """The row of the table."""
        low, high = min(self.windows), max(self.windows)
        return f"| {self.name} | {min(self.at):.1%} | {low:.1%} | {high:.1%} |"


def grid() -> Iterator[Exam | Judged]:
    """All exams."""
    for repeats in (1, REPEATS):
        for n in SIZES:
            yield Exam(n, repeats=repeats)
        for strata in (5, 27, 52):
            for spread in (0.0, 0.1):
                for limit in (1, 2, 5, 10):
                    yield Exam(strata * limit, strata, limit, spread=spread, repeats=repeats)
                for n in SIZES:
                    if n >= 2 * strata:
                        yield Exam(n, strata, spread=spread, repeats=repeats)
        for clusters in (5, 20, 54):
            for spread in (0.0, 0.1, 0.2, 0.3):
                for n in SIZES:
                    if n > clusters:
                        yield Exam(n, clusters=clusters, spread=spread, repeats=repeats)
    for n in SIZES:
        yield Judged(n, 0.92, 0.88, 60, 40)
        yield Judged(n, 0.95, 0.95, 100, 100)


def coverage(exam: Exam | Judged, *, draws: int, seed: int = SEED) -> Coverage:
    """Sit one exam many times."""
    chance = default_rng([seed, *exam.name.encode()])
    if isinstance(exam, Judged):
        at = [_share_of(draws, partial(_judged, exam, share, chance)) for share in SHARES]
    elif exam == Exam(exam.n):
        at = _exact(exam.n)
    else:
        sit = _in_clusters if exam.clusters else _in_strata
        at = [_share_of(draws, partial(sit, exam, share, chance)) for share in SHARES]
    return Coverage(exam.name, exam.n, at)


def _share_of(draws: int, sit: Callable[[], bool]) -> float:
    return sum(sit() for _ in range(draws)) / draws


def _exact(n: int) -> list[float]:
    """The coverage of one subset asked once, summed over the numbers of right answers."""
    counts = np.arange(n + 1)
    logs = np.array([math.lgamma(k + 1) for k in range(n + 1)])
    ways = logs[n] - logs - logs[::-1]
    ends = [stratified_mean([_stratum((k, n - k))]).interval or (0.0, 1.0) for k in range(n + 1)]
    lows, highs = (np.array(own) for own in zip(*ends, strict=True))
    covered = []
    for share in SHARES:
        chances = np.exp(ways + counts * math.log(share) + (n - counts) * math.log(1 - share))
        covered.append(float(chances[(lows <= share) & (share <= highs)].sum()))
    return covered


@lru_cache(5_000)
def _stratum(by_right: tuple[int, ...], population: int = 0) -> Stratum:
    """A subset of so many items with all, …, no answers right."""
    gathered = Gathered(clustered=False)
    _enter(gathered, by_right)
    stratum = gathered.stratum(population)
    assert stratum is not None
    return stratum


def _enter(gathered: Gathered, by_right: Sequence[int], group: str = "") -> None:
    repeats = len(by_right) - 1
    for wrong, many in enumerate(by_right):
        if many:
            gathered.add(1 - wrong / repeats, group, many=many, draws=repeats)


def _shares(share: float, spread: float, chance: Generator, size: int) -> Floats:
    """Chances with this mean and intraclass correlation."""
    return _around(np.full(size, share), spread, chance)


def _around(shares: Floats, spread: float, chance: Generator) -> Floats:
    if not spread:
        return shares
    weight, inside = (1 - spread) / spread, shares.clip(1e-6, 1 - 1e-6)
    return chance.beta(inside * weight, (1 - inside) * weight)


def _by_right(exam: Exam, shares: Floats, chance: Generator) -> list[tuple[int, ...]]:
    """How many items have all, …, no answers right, for each subset or cluster."""
    sizes = _sizes(exam.n, len(shares))
    if exam.repeats == 1:
        right = chance.binomial(sizes, shares)
        return [tuple(pair) for pair in np.stack([right, sizes - right], 1).tolist()]
    items = _around(np.repeat(shares, sizes), ALIKE, chance)
    wrong = exam.repeats - chance.binomial(exam.repeats, items)
    counts = np.zeros((len(shares), exam.repeats + 1), int)
    np.add.at(counts, (np.repeat(np.arange(len(shares)), sizes), wrong), 1)
    return [tuple(row) for row in counts.tolist()]


def _sizes(n: int, parts: int) -> Ints:
    """`n` items as evenly as they go into parts."""
    return np.full(parts, n // parts) + (np.arange(parts) < n % parts)


def _in_strata(exam: Exam, share: float, chance: Generator) -> bool:
    """Whether the interval of the mean over subsets holds it; subsets are the same in all draws."""
    fixed = default_rng([SEED, exam.strata, round(1000 * share)])
    shares = _shares(share, exam.spread, fixed, exam.strata)
    population = POPULATION if exam.limit and exam.repeats == 1 else 0
    if population:
        good = np.rint(shares * population).astype(int)
        shares, sizes = good / population, _sizes(exam.n, exam.strata)
        right = chance.hypergeometric(good, population - good, sizes)
        drawn = [tuple(pair) for pair in np.stack([right, sizes - right], 1).tolist()]
    else:
        drawn = _by_right(exam, shares, chance)
    interval = _interval(tuple(sorted(drawn)), population)
    return interval.low <= float(shares.mean()) <= interval.high


@lru_cache(5_000)
def _interval(drawn: tuple[tuple[int, ...], ...], population: int) -> Interval:
    strata = [_stratum(by_right, population) for by_right in drawn]
    interval = stratified_mean(strata, [1 / len(strata)] * len(strata)).interval
    assert interval is not None
    return interval


def _in_clusters(exam: Exam, share: float, chance: Generator) -> bool:
    """Whether the interval holds the share; clusters are drawn anew."""
    shares = _shares(share, exam.spread, chance, exam.clusters)
    low, high = _clustered_ends(tuple(sorted(_by_right(exam, shares, chance))))
    return low <= share <= high


@lru_cache(5_000)
def _clustered_ends(drawn: tuple[tuple[int, ...], ...]) -> tuple[float, float]:
    gathered = Gathered(clustered=True)
    for place, by_right in enumerate(drawn):
        _enter(gathered, by_right, str(place))
    ends = gathered.estimate().ci95
    assert ends is not None
    return ends


def _judged(exam: Judged, share: float, chance: Generator) -> bool:
    """Whether the corrected interval holds the share; the judge is measured anew."""
    called = share * exam.sensitivity + (1 - share) * (1 - exam.specificity)
    judge = JudgeQuality(
        chance.binomial(exam.positives, exam.sensitivity) / exam.positives,
        chance.binomial(exam.negatives, exam.specificity) / exam.negatives,
        exam.positives,
        exam.negatives,
    )
    low, high = rogan_gladen(chance.binomial(exam.n, called) / exam.n, exam.n, judge).interval
    return low <= share <= high


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draws", type=int, default=200, help="sittings for each true share")
    parser.add_argument("--every", type=int, default=1, help="only every so many exams")
    parser.add_argument("--only", default="", help="exams whose name holds this text")
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    print("| exam | least at one share | least mean within 0.05 | largest |")
    print("|---|---|---|---|")
    with ProcessPoolExecutor(args.workers) as pool:
        exams = [exam for exam in grid() if args.only in exam.name][:: args.every]
        for own in pool.map(partial(coverage, draws=args.draws), exams):
            print(own.row(), flush=True)


if __name__ == "__main__":
    main()
