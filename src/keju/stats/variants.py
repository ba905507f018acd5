"""How much of a score's variance comes from the wording of the prompt."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple


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
