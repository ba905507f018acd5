"""How often Keju's 95 % intervals hold the truth: a grid of exams, each simulated many times.

`python -m perf.simulate` prints a row for each exam of the grid. An exam has questions in subsets
or in clusters, asked once or four times. For each of fifty true shares from 0.005 to 0.5 (the
estimator treats right and wrong alike, so the other half is the same) the exam is run `--draws`
times. The intervals of all draws are computed at once with numpy; Keju's own estimator computes
those of the first draws too, and both must be the same. One subset asked once needs no luck: its
coverage is a sum over all numbers of right answers.

A row gives the least coverage at a single true share, and the least and the largest mean over the
true shares within 0.05 of one. The last table joins the rows of one kind, as in docs/statistics.md.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.random import Generator, default_rng

from keju.stats.agreement import JudgeQuality, rogan_gladen
from keju.stats.estimate import BORROWED, ItemValues, estimate
from keju.stats.intervals import (
    FEARED_CORRELATION,
    TELLING,
    Z90,
    Z95,
    imbalance,
    student_t_quantile,
)
from perf import early, early_gate

SHARES = (0.005, *(step / 100 for step in range(1, 51)))
SIZES = (10, 30, 100, 250, 1000)
POPULATION = 200
"""Questions of a subset from which a limit draws."""
REPEATS = 4
ALIKE = 0.5
"""Intraclass correlation of the repeats of one question."""
WINDOW = 0.05
CHECKED = 3
"""Draws of each exam and true share that Keju's own estimator computes as well."""
SEED = 20_261_116


Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class SimulatedExam(NamedTuple):
    """One row of the grid."""

    n: int
    strata: int = 1
    limit: int = 0
    """Questions drawn from each subset; 0 where all of them are asked."""
    clusters: int = 0
    spread: float = 0.0
    """Intraclass correlation of subsets or clusters: 0 if all have the same share."""
    repeats: int = 1
    largest: int = 1
    """How many times as large as the smallest cluster the largest one is."""

    @property
    def parts(self) -> int:
        """Clusters, or else subsets."""
        return self.clusters or self.strata

    @property
    def sizes(self) -> Ints:
        """The number of questions of each part."""
        even = _sizes(self.n, self.parts)
        if self.largest == 1:
            return even
        weights = np.linspace(1, self.largest, self.parts)
        ends = np.rint(np.cumsum(weights) / weights.sum() * (self.n - self.parts)).astype(int)
        return np.asarray(np.diff(ends, prepend=0) + 1, np.int64)

    @property
    def drawn_from(self) -> bool:
        """Whether a part of each known subset is asked, so that only the rest is unsure."""
        return self.limit > 0 and self.repeats == 1

    @property
    def kind(self) -> str:
        """The exam in a few words, without its size."""
        words = [f"{self.clusters} clusters" if self.clusters else f"{self.strata} subsets"]
        if self.largest > 1:
            words[0] += f" of size 1 to {self.largest}"
        if self.strata > 1 or self.clusters:
            words.append(f"correlation {self.spread:g}")
        else:
            words = ["one subset"]
        return ", ".join([*words, *([f"{self.repeats} repeats"] if self.repeats > 1 else [])])

    @property
    def name(self) -> str:
        """The exam in a few words."""
        return f"n {self.n}, {f'limit {self.limit}, ' if self.limit else ''}{self.kind}"


class Judged(NamedTuple):
    """Answers graded by a judge that was measured on labelled ones."""

    n: int
    sensitivity: float
    specificity: float
    positives: int
    negatives: int

    @property
    def kind(self) -> str:
        """The exam in a few words, without its size."""
        rates = f"sensitivity {self.sensitivity:g}, specificity {self.specificity:g}"
        return f"judge: {rates}, {self.positives} + {self.negatives} labelled"

    @property
    def name(self) -> str:
        """The exam in a few words."""
        return f"n {self.n}, {self.kind}"


class Coverage(NamedTuple):
    """How often the intervals of one exam hold the truth."""

    exam: SimulatedExam | Judged
    at: list[float]
    """By true share, as in `SHARES`."""

    @property
    def windows(self) -> list[float]:
        """Means over the true shares within `WINDOW` of each."""
        coverage_by_share = dict(zip(SHARES, self.at, strict=True))
        coverage_by_share |= {
            round(1 - share, 3): coverage for share, coverage in coverage_by_share.items()
        }
        means = []
        for centre in SHARES:
            near = [
                coverage
                for share, coverage in coverage_by_share.items()
                if abs(share - centre) <= WINDOW + 1e-9
            ]
            means.append(math.fsum(near) / len(near))
        return means

    def row(self) -> str:
        """The row of the table."""
        low, high = min(self.windows), max(self.windows)
        return f"| {self.exam.name} | {min(self.at):.1%} | {low:.1%} | {high:.1%} |"


def joined(coverages: Sequence[Coverage]) -> Iterator[str]:
    """The rows of the table in which exams of one kind are one."""
    kinds: dict[str, list[Coverage]] = {}
    for coverage in coverages:
        kinds.setdefault(coverage.exam.kind, []).append(coverage)
    for kind, rows in kinds.items():
        sizes = ", ".join(f"{n:,}" for n in sorted({coverage.exam.n for coverage in rows}))
        lowest = min(
            (min(coverage.at) for coverage in rows if coverage.exam.n >= 10), default=math.nan
        )
        ranges = []
        for part in ([o for o in rows if o.exam.n >= 30], [o for o in rows if o.exam.n < 30]):
            means = [mean for coverage in part for mean in coverage.windows]
            ranges.append(f"{100 * min(means):.1f}–{100 * max(means):.1f} %" if means else "")
        yield f"| {kind} | {sizes} | {100 * lowest:.1f} % | {' | '.join(ranges)} |"


def grid() -> Iterator[SimulatedExam | Judged]:
    """All exams."""
    for repeats in (1, REPEATS):
        for n in SIZES:
            yield SimulatedExam(n, repeats=repeats)
        for strata in (5, 27, 52):
            for spread in (0.0, 0.1):
                for limit in (1, 2, 5, 10):
                    yield SimulatedExam(
                        strata * limit, strata, limit, spread=spread, repeats=repeats
                    )
                for n in SIZES:
                    if n >= strata:  # else some subsets would have no question
                        yield SimulatedExam(n, strata, spread=spread, repeats=repeats)
        for clusters in (5, 20, 54):
            for spread in (0.0, 0.1, 0.2, 0.3):
                for n in SIZES:
                    if n > clusters:  # else each question would be a cluster
                        yield SimulatedExam(n, clusters=clusters, spread=spread, repeats=repeats)
        for clusters, n in ((12, 250), (20, 250), (54, 1000)):
            for spread in (0.0, 0.1, 0.2, 0.3):
                yield SimulatedExam(
                    n, clusters=clusters, spread=spread, repeats=repeats, largest=20
                )
    for n in SIZES:
        yield Judged(n, 0.92, 0.88, 60, 40)
        yield Judged(n, 0.95, 0.95, 100, 100)


def coverage(exam: SimulatedExam | Judged, *, draws: int, seed: int = SEED) -> Coverage:
    """Sit one exam many times."""
    chance = default_rng([seed, *exam.name.encode()])
    if isinstance(exam, Judged):
        at = [_share_of(draws, partial(_judged, exam, share, chance)) for share in SHARES]
    elif exam == SimulatedExam(exam.n):
        at = _exact(exam.n)
    else:
        at = [_covered(exam, share, draws, chance) for share in SHARES]
    return Coverage(exam, at)


def _share_of(draws: int, evaluate: Callable[[], bool]) -> float:
    return sum(evaluate() for _ in range(draws)) / draws


def _exact(n: int) -> list[float]:
    """The coverage of one subset asked once, summed over the numbers of right answers."""
    counts = np.arange(n + 1)
    logs = np.array([math.lgamma(k + 1) for k in range(n + 1)])
    ways = logs[n] - logs - logs[::-1]
    ends = [_own_ends(SimulatedExam(n), [[1.0] * k + [0.0] * (n - k)]) for k in range(n + 1)]
    lows, highs = (np.array(bound) for bound in zip(*ends, strict=True))
    covered = []
    for share in SHARES:
        chances = np.exp(ways + counts * math.log(share) + (n - counts) * math.log(1 - share))
        covered.append(float(chances[(lows <= share) & (share <= highs)].sum()))
    return covered


def _covered(exam: SimulatedExam, share: float, draws: int, chance: Generator) -> float:
    """How often the interval holds the truth; the first draws are given to Keju's estimator too."""
    truth, values = _draw_sample(exam, share, draws, chance)
    lows, highs = ends(exam, values)
    starts = np.cumsum(exam.sizes)[:-1]
    for place in range(min(CHECKED, draws)):
        interval = _own_ends(exam, [part.tolist() for part in np.split(values[place], starts)])
        if not np.allclose(interval, (lows[place], highs[place]), rtol=1e-9, atol=1e-12):
            raise AssertionError(
                f"{exam.name}: {interval} is Keju's, not {lows[place], highs[place]}"
            )
    return float(((lows <= truth) & (truth <= highs)).mean())


def _draw_sample(
    exam: SimulatedExam, share: float, draws: int, chance: Generator
) -> tuple[float, Floats]:
    """The true mean, and the scores of all items (draws by items), part after part.

    Subsets are the same in all draws, clusters are drawn anew.
    """
    sizes = exam.sizes
    if exam.clusters:
        parts = _around(np.full((draws, exam.clusters), share), exam.spread, chance)
        truth = share
    else:
        fixed = default_rng([SEED, exam.strata, round(1000 * share)])
        parts = _around(np.full((1, exam.strata), share), exam.spread, fixed)
        if exam.drawn_from:
            parts = np.rint(parts * POPULATION) / POPULATION
        truth = float(parts.mean())
        parts = np.broadcast_to(parts, (draws, exam.strata))
    if exam.repeats > 1:
        items = _around(np.repeat(parts, sizes, axis=1), ALIKE, chance)
        return truth, chance.binomial(exam.repeats, items) / exam.repeats
    if exam.drawn_from:
        good = np.rint(parts * POPULATION).astype(int)
        right = chance.hypergeometric(good, POPULATION - good, sizes)
    else:
        right = chance.binomial(sizes, parts)
    within = np.concatenate([np.arange(size) for size in sizes])
    return truth, (within < np.repeat(right, sizes, axis=1)).astype(float)


def _around(shares: Floats, spread: float, chance: Generator) -> Floats:
    """Chances with these means and this intraclass correlation."""
    if not spread:
        return shares
    weight, inside = (1 - spread) / spread, shares.clip(1e-6, 1 - 1e-6)
    return chance.beta(inside * weight, (1 - inside) * weight)


def _sizes(n: int, parts: int) -> Ints:
    """`n` items as evenly as they go into parts."""
    return np.full(parts, n // parts) + (np.arange(parts) < n % parts)


def _own_ends(exam: SimulatedExam, parts: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Keju's own interval of the scores of each part."""
    population = POPULATION if exam.drawn_from else 0
    gathered = [ItemValues(clustered=bool(exam.clusters)) for _ in range(exam.strata)]
    for place, values in enumerate(parts):
        for value in values:
            gathered[0 if exam.clusters else place].add(value, str(place), draws=exam.repeats)
    strata = [stratum for group in gathered if (stratum := group.stratum(population)) is not None]
    interval = estimate(strata, [1 / len(strata)] * len(strata)).ci95
    assert interval is not None
    return interval


# `keju.stats.estimate.stratified_mean` for many draws at once; `_covered` compares the two.


def ends(exam: SimulatedExam, values: Floats) -> tuple[Floats, Floats]:
    """The ends of the intervals of many draws (rows) of an exam."""
    parts = np.ones(1, int) * exam.n if exam.clusters else _sizes(exam.n, exam.strata)
    weight = 1 / len(parts)
    means, seconds = (_sums(part, parts) / parts for part in (values, values**2))
    value = means.mean(1)
    equal_weights = float((weight**2 / parts).sum())
    total = parts + BORROWED
    centre = (parts * means + BORROWED * value[:, None]) / total
    spread = (parts * seconds + BORROWED * seconds.mean(1)[:, None]) / total - centre**2
    remaining = 1 - (parts + 2 * BORROWED * weight + BORROWED**2 * equal_weights) / total**2
    borrowed_spread = np.maximum(0, spread) / remaining
    unseen = 1 - parts / POPULATION if exam.drawn_from else np.ones(len(parts))
    scale = weight**2 * unseen / parts
    items, variance = 1 / scale.sum(), (scale * borrowed_spread).sum(1)
    answers = np.full(len(value), items * exam.repeats)
    with np.errstate(divide="ignore", invalid="ignore"):
        size = value * (1 - value) / (1 - equal_weights) / variance
    size = np.where(np.isclose(size, items, rtol=1e-12, atol=0), items, size)
    binary = ((values == 0) | (values == 1)).all(1)
    size = np.where(binary, size, np.minimum(size, answers))
    size = np.where(variance < 1e-15, answers, size)
    certain = (value < 1e-12) | (value > 1 - 1e-12)
    effective = np.where(certain, items, size)
    answers = np.where(certain, answers, np.maximum(answers, size))
    z = np.where(binary, Z95, student_t_quantile(0.975, exam.n - 1))
    if not exam.clusters:
        return bunched_ends(value, answers, items, answers / effective, z)
    sizes, count = exam.sizes, exam.clusters
    unequal = imbalance([float(size) for size in sizes])
    deviations = (_sums(values, sizes) - sizes * value[:, None]) / exam.n
    alone = (seconds[:, 0] - value**2) / (exam.n - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        deff = count / (count - 1) * (deviations**2).sum(1) / alone
    observed_effect = np.where(certain | (alone < 1e-15), 1.0, deff).clip(1)
    largest_effect = np.maximum(observed_effect, answers / unequal.effective)
    effect = np.where(
        observed_effect > 1,
        np.minimum(observed_effect * unequal.factor, largest_effect),
        observed_effect,
    )
    z = z + np.maximum(0, student_t_quantile(0.975, unequal.df) - z) * (1 - effect**-2)
    return bunched_ends(value, answers, unequal.effective, answers / (effective / effect), z)


def _sums(values: Floats, sizes: Ints) -> Floats:
    """The sums of each part of the columns."""
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    return np.asarray(np.add.reduceat(values, starts, axis=1), float)


def bunched_ends(
    share: Floats, size: Floats, bunches: float, deff: Floats, z: Floats
) -> tuple[Floats, Floats]:
    """`keju.stats.intervals.bunched_wilson` of many draws at once."""
    rare = np.minimum(share, 1 - share) * size / deff
    hidden = abs(1 - 2 * share) * TELLING / (rare + TELLING)
    largest_bunch = np.maximum(1, size / bunches)
    feared = np.minimum(
        deff + FEARED_CORRELATION * (largest_bunch - 1) * hidden, np.maximum(deff, largest_bunch)
    )
    quantile_ratio = student_t_quantile(0.975, max(1.0, bunches - 1)) / Z95
    extra = (feared / deff - 1) * quantile_ratio**6
    near = _wilson_ends(share, size / deff, z - extra / (1 + extra) * (z - Z90))
    far = _wilson_ends(share, size / feared, z)
    below = share <= 0.5
    return np.where(below, near[0], far[0]), np.where(below, far[1], near[1])


def _wilson_ends(share: Floats, n: Floats, z: Floats) -> tuple[Floats, Floats]:
    spread = z * z / n
    centre = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    low, high, rarest = centre - half, centre + half, -math.log(0.95)
    low = low - np.maximum(0, low - rarest * share) * (2 - share * n).clip(0, 1)
    complement = 1 - share
    high = high + np.maximum(0, 1 - rarest * complement - high) * (2 - complement * n).clip(0, 1)
    low, high = np.where(share == 0, 0.0, low), np.where(share == 1, 1.0, high)
    return low.clip(0, 1), high.clip(0, 1)


def _judged(exam: Judged, share: float, chance: Generator) -> bool:
    """Whether the corrected interval holds the share; the judge is measured anew."""
    called_share = share * exam.sensitivity + (1 - share) * (1 - exam.specificity)
    judge = JudgeQuality(
        chance.binomial(exam.positives, exam.sensitivity) / exam.positives,
        chance.binomial(exam.negatives, exam.specificity) / exam.negatives,
        exam.positives,
        exam.negatives,
    )
    low, high = rogan_gladen(chance.binomial(exam.n, called_share) / exam.n, exam.n, judge).interval
    return low <= share <= high


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draws", type=int, default=1000, help="runs for each true share")
    parser.add_argument("--every", type=int, default=1, help="only every so many exams")
    parser.add_argument("--only", default="", help="exams whose name holds this text")
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    print("| exam | least at one share | least mean within 0.05 | largest |")
    print("|---|---|---|---|")
    with ProcessPoolExecutor(args.workers) as pool:
        exams = [exam for exam in grid() if args.only in exam.name][:: args.every]
        coverages = []
        for result in pool.map(partial(coverage, draws=args.draws), exams):
            print(result.row(), flush=True)
            coverages.append(result)
    print("\n| exams | sizes | least at one share (n ≥ 10) | means, n ≥ 30 | means, n < 30 |")
    print("|---|---|---|---|---|", *joined(coverages), sep="\n")
    early.print_table(args.workers)
    early_gate.print_table(args.workers)


if __name__ == "__main__":
    main()
