"""How far two raters, or the repeats of one, agree."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple


class Kappa(NamedTuple):
    """Agreement beyond chance (Cohen 1960)."""

    observed: float
    expected: float
    """Agreement of two raters with these margins who look at nothing."""
    value: float | None
    """None where chance alone gives full agreement, so that nothing can be said."""


def cohens_kappa(table: Sequence[Sequence[int]]) -> Kappa:
    """Kappa of a square table of counts, first rater by row, second by column."""
    total = sum(map(sum, table))
    if total == 0 or any(len(row) != len(table) for row in table):
        raise ValueError("kappa needs a square table with at least one count")
    agreed = sum(table[i][i] for i in range(len(table)))
    columns = [sum(column) for column in zip(*table, strict=True)]
    by_chance = sum(sum(row) * column for row, column in zip(table, columns, strict=True))
    observed, expected = agreed / total, by_chance / total**2
    if by_chance == total**2:
        return Kappa(observed, expected, None)
    return Kappa(observed, expected, (observed - expected) / (1 - expected))


def kappa_of_labels(first: Sequence[Hashable], second: Sequence[Hashable]) -> Kappa:
    """Kappa of two raters' labels of the same items."""
    names = list(dict.fromkeys([*first, *second]))
    pairs = Counter(zip(first, second, strict=True))
    return cohens_kappa([[pairs[a, b] for b in names] for a in names])


def self_consistency(votes: Iterable[int]) -> float | None:
    """Chance that two of an item's answers are the same, from the votes of each answer.

    None for fewer than two answers.
    """
    counts = list(votes)
    pairs = math.comb(sum(counts), 2)
    return sum(math.comb(count, 2) for count in counts) / pairs if pairs else None
