"""Several samples of each item: pass@k, pass^k, majority votes, and where the variance lies:
between items, within them, or in the wording of the prompt.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple


def pass_at_k(n: int, correct: int, k: int) -> float:
    """Chance that at least one of `k` of the `n` samples is right (Chen et al. 2021)."""
    _check(n, correct, k)
    return 1.0 - math.comb(n - correct, k) / math.comb(n, k)


def pass_all_k(n: int, correct: int, k: int) -> float:
    """pass^k: chance that all `k` of the `n` samples are right."""
    _check(n, correct, k)
    return math.comb(correct, k) / math.comb(n, k)


def _check(n: int, correct: int, k: int) -> None:
    if not (0 <= correct <= n and 1 <= k <= n):
        raise ValueError(f"no k={k} of n={n} samples with {correct} correct")


def ladder(repeats: int) -> list[int]:
    """The k worth reporting: 1, 2, 4, … below `repeats`, and `repeats` itself."""
    rungs = [1 << step for step in range(repeats.bit_length()) if 1 << step < repeats]
    return [*rungs, repeats]


class VarianceParts(NamedTuple):
    """Var(item mean) = between + within / K."""

    within: float
    """Mean variance of the samples of one item."""
    between: float
    """Variance of the items' true means; an estimate, so noise may make it negative."""


def variance_parts(items: Iterable[tuple[int, int, int]]) -> VarianceParts | None:
    """Split the variance of repeated yes-or-no items.

    `items` holds (samples, correct, how many such items). Items with one sample say nothing of
    the variance within and are left out; None if fewer than two remain.
    """
    rows = [(n, c, many) for n, c, many in items if n > 1]
    size = sum(many for _, _, many in rows)
    if size < 2:
        return None
    mean = math.fsum(many * c / n for n, c, many in rows) / size
    spread = math.fsum(many * (c / n - mean) ** 2 for n, c, many in rows) / (size - 1)
    inside = [(many, n, c * (n - c) / (n * (n - 1))) for n, c, many in rows]
    within = math.fsum(many * own for many, _, own in inside) / size
    noise = math.fsum(many * own / n for many, n, own in inside) / size
    return VarianceParts(within, spread - noise)


def majority_vote(
    right: Sequence[int], wrong: Sequence[int], abstained: int = 0, k: int | None = None
) -> float:
    """The expected score of a majority vote among `k` of an item's samples (all by default).

    `right` and `wrong` hold the votes of each right and each wrong option; `abstained` samples
    cast no vote. A tie of t options scores 1/t for each right one among them, and no vote at all
    scores 0. For fewer than all samples this is the exact mean over all subsets of size k.
    """
    total = sum(right) + sum(wrong) + abstained
    size = total if k is None else k
    if not 1 <= size <= total:
        raise ValueError(f"no vote among {size} of {total} samples")
    return _vote(tuple(sorted(right)), tuple(sorted(wrong)), abstained, size)


@lru_cache(maxsize=8192)
def _vote(right: tuple[int, ...], wrong: tuple[int, ...], abstained: int, k: int) -> float:
    """In whole numbers up to the last division: the ways to draw outgrow a float."""
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


class TwoWay(NamedTuple):
    """Variance components of items by prompt variants, one sample a cell."""

    mean: float
    item_square: float
    variant_square: float
    residual_square: float
    item: float
    variant: float
    residual: float
    """Components are at least 0: a negative estimate is noise about 0."""

    @property
    def variant_sd(self) -> float:
        """Standard deviation between prompt variants, to print beside the standard error."""
        return math.sqrt(self.variant)


def variance_shares(rows: Sequence[Sequence[float]]) -> TwoWay:
    """Split the variance of `rows` (items) by columns (prompt variants)."""
    items, variants = len(rows), len(rows[0]) if rows else 0
    if items < 2 or variants < 2 or any(len(row) != variants for row in rows):
        raise ValueError("variance shares need a full table of at least two items and variants")
    mean = math.fsum(map(math.fsum, rows)) / (items * variants)
    by_item = [math.fsum(row) / variants for row in rows]
    by_variant = [math.fsum(column) / items for column in zip(*rows, strict=True)]
    item_square = variants * math.fsum((m - mean) ** 2 for m in by_item) / (items - 1)
    variant_square = items * math.fsum((m - mean) ** 2 for m in by_variant) / (variants - 1)
    left = math.fsum(
        (rows[i][j] - by_item[i] - by_variant[j] + mean) ** 2
        for i in range(items)
        for j in range(variants)
    )
    residual = left / ((items - 1) * (variants - 1))
    item = max(0.0, (item_square - residual) / variants)
    variant = max(0.0, (variant_square - residual) / items)
    return TwoWay(mean, item_square, variant_square, residual, item, variant, residual)
