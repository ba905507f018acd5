"""Statistics of several samples per item: pass@k, pass^k, and components of the variance (between
items and within items)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

MOST_EXACT = 1000
"""Number of samples up to which probabilities are computed with integers."""


@lru_cache(maxsize=8192)
def pass_at_k(n: int, correct: int, k: int) -> float:
    """Return the probability that at least one of `k` of the `n` samples is right (Chen et al.
    2021)."""
    _check(n, correct, k)
    return 1.0 - _chance_all_among(n, n - correct, k)


@lru_cache(maxsize=8192)
def pass_all_k(n: int, correct: int, k: int) -> float:
    """Return pass^k: the probability that all `k` of the `n` samples are right."""
    _check(n, correct, k)
    return _chance_all_among(n, correct, k)


def _chance_all_among(n: int, part: int, k: int) -> float:
    """Return the probability that `k` of `n` samples are all among `part` of them: C(part, k) /
    C(n, k).

    Binomial coefficients of many samples are very long integers. For these the ratio is computed as
    a product. It has as many factors as the smaller of `k` and the samples outside the part.
    """
    if n <= MOST_EXACT:
        return math.comb(part, k) / math.comb(n, k)
    if k > part:
        return 0.0
    factor_count, factor_offset = sorted((k, n - part))
    return math.exp(
        math.fsum(math.log1p(-factor_offset / (n - index)) for index in range(factor_count))
    )


def _check(n: int, correct: int, k: int) -> None:
    if not (0 <= correct <= n and 1 <= k <= n):
        raise ValueError(f"no k={k} of n={n} samples with {correct} correct")


def reported_ks(repeats: int) -> list[int]:
    """Return the k to report: 1, 2, 4, … below `repeats`, and `repeats` itself."""
    rungs = [1 << step for step in range(repeats.bit_length()) if 1 << step < repeats]
    return [*rungs, repeats]


class VarianceParts(NamedTuple):
    """Var(item mean) = between + within / K."""

    within: float
    """Mean variance of the samples of one item."""
    between: float
    """Variance of the items' true means. It is an estimate, so noise may make it negative."""


def variance_parts(counts: Iterable[tuple[int, int, int]]) -> VarianceParts | None:
    """Split the variance of repeated yes-or-no items.

    `counts` holds (samples, correct, number of such items). Items with one sample have no variance
    within and are left out. None if fewer than two items remain.
    """
    rows = [(n, c, item_count) for n, c, item_count in counts if n > 1]
    size = sum(item_count for _, _, item_count in rows)
    if size < 2:
        return None
    mean = math.fsum(item_count * c / n for n, c, item_count in rows) / size
    spread = math.fsum(item_count * (c / n - mean) ** 2 for n, c, item_count in rows) / (size - 1)
    inside = [(item_count, n, c * (n - c) / (n * (n - 1))) for n, c, item_count in rows]
    within = math.fsum(item_count * item_variance for item_count, _, item_variance in inside) / size
    noise = (
        math.fsum(item_count * item_variance / n for item_count, n, item_variance in inside) / size
    )
    return VarianceParts(within, spread - noise)
