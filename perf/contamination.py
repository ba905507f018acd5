"""How well ``keju compare --contamination`` finds a model that has learnt published rows by heart.

`python -m perf.contamination` prints the table of docs/reference-fresh.md, and writes it there
between its markers with ``--write``. A model with a true accuracy answers `SUBSETS` subsets of
`PUBLISHED` published questions, a share of which it has learnt by heart, and of some fresh ones.
Each exam is drawn `--draws` times; the tests are Keju's own.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from numpy.random import default_rng

from keju.stats.paired import SIGNIFICANT, benjamini_hochberg
from keju.stats.unpaired import ScoreGroup, group_difference, stratified_difference
from perf.pages import write_between

SUBSETS, PUBLISHED = 20, 250
"""About as many as there are with fresh questions; nearly all published subsets have 250 rows."""
LEARNT = (0.0, 0.3)
ACCURACIES = (0.3, 0.5, 0.7)
SIZES = (250, 500, 1000)
SEED = 20_261_116
PAGE = Path(__file__).parent.parent / "docs" / "reference-fresh.md"


class DetectionRates(NamedTuple):
    """How often a memory is found, or alarmed about where there is none."""

    exam: float
    """By the test of the whole exam."""
    subset: float
    """By the tests of subsets, false discoveries controlled: the share of subsets."""
    any_subset: float
    """At least one subset."""


def simulate(
    accuracy: float, learnt: float, fresh: int, *, draws: int, seed: int = SEED
) -> DetectionRates:
    """Sit a model for published and fresh questions many times."""
    draw = default_rng([seed, *(round(1000 * fraction) for fraction in (accuracy, learnt, fresh))])
    learnt_count = round(learnt * PUBLISHED)
    size = (draws, SUBSETS)
    old = learnt_count + draw.binomial(PUBLISHED - learnt_count, accuracy, size)
    new = draw.binomial(fresh, accuracy, size)
    significant_runs = parts = alarms = 0
    for published_counts, fresh_counts in zip(old.tolist(), new.tolist(), strict=True):
        strata = [
            (_group(published_right, PUBLISHED), _group(fresh_right, fresh))
            for published_right, fresh_right in zip(published_counts, fresh_counts, strict=True)
        ]
        overall = stratified_difference(strata)
        assert overall is not None
        significant_runs += overall.p < SIGNIFICANT
        ps = [_p(*pair) for pair in strata]
        significant_subsets = sum(p < SIGNIFICANT for p in benjamini_hochberg(ps))
        parts += significant_subsets
        alarms += significant_subsets > 0
    return DetectionRates(significant_runs / draws, parts / draws / SUBSETS, alarms / draws)


def _group(right: int, n: int) -> ScoreGroup:
    return ScoreGroup(n, float(right), float(right))


@cache
def _p(published_group: ScoreGroup, fresh_group: ScoreGroup) -> float:
    difference = group_difference(published_group, fresh_group)
    assert difference is not None
    return difference.p


def table(draws: int) -> Iterator[str]:
    """The lines of the table."""
    yield "| accuracy | fresh questions a subset | learnt by heart | exam | subset | any subset |"
    yield "|---|---|---|---|---|---|"
    for learnt in LEARNT:
        for accuracy in ACCURACIES:
            for fresh in SIZES:
                rates = simulate(accuracy, learnt, fresh, draws=draws)
                shares = " | ".join(f"{100 * share:.1f} %" for share in rates)
                yield f"| {accuracy:g} | {fresh} | {100 * learnt:.0f} % | {shares} |"


def main() -> None:
    """Print the table, or write it into its page."""
    parser = argparse.ArgumentParser(prog="python -m perf.contamination", description=__doc__)
    parser.add_argument("--draws", type=int, default=10_000)
    parser.add_argument("--write", action="store_true", help="write it to the page")
    args = parser.parse_args()
    lines = []
    for line in table(args.draws):
        print(line, flush=True)
        lines.append(line)
    if args.write:
        write_between(PAGE, "contamination", lines)


if __name__ == "__main__":
    main()
