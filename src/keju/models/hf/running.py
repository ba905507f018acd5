"""The rows of a running batch: their keys and values, aligned at the end."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from keju.models.hf.caches import growing_cache, reserve
from keju.models.hf.encode import Item
from keju.models.hf.replica import KeysValues


@dataclass(eq=False, slots=True)
class Row:
    """One reply in the making."""

    item: Item
    limit: int
    """Tokens it may have."""
    cached: int
    dice: random.Random
    written: list[int] = field(default_factory=list)
    text: str = ""
    finish: str = ""
    told: bool = False
    """Whether its reply was handed out."""

    @property
    def length(self) -> int:
        """Tokens that the cache holds of it: all but the one drawn last."""
        return len(self.item.tokens) + len(self.written) - 1


class RunningBatch:
    """Rows of different lengths side by side; shorter ones are padded on the left.

    Rows have no holes, so places in the cache are as far apart as the tokens are.
    """

    def __init__(self, device: torch.device) -> None:
        self.rows: list[Row] = []
        self._device = device
        self._cache: Any = None
        self._filled = 0

    def join(self, rows: Sequence[Row], layers: KeysValues) -> None:
        """Take up new rows; `layers` hold each one's tokens from the left, then padding."""
        lengths = [row.length for row in rows]
        new_width = max(lengths)
        arriving = _aligned(layers, lengths, new_width)
        if not self.rows:
            self._set([*rows], arriving, new_width)
            return
        present = self._parts()
        width = max(self._filled, new_width)
        both = [
            (
                torch.cat([_widened(k, width), _widened(new_k, width)]),
                torch.cat([_widened(v, width), _widened(new_v, width)]),
            )
            for (k, v), (new_k, new_v) in zip(present, arriving, strict=True)
        ]
        self._set([*self.rows, *rows], both, width)

    def keep(self, rows: Sequence[Row]) -> None:
        """Drop all other rows, and the padding that nobody needs any more."""
        if len(rows) == len(self.rows):
            return
        if not rows:
            self.rows, self._cache, self._filled = [], None, 0
            return
        wanted = {id(row) for row in rows}
        places = [place for place, row in enumerate(self.rows) if id(row) in wanted]
        index = torch.tensor(places, device=self._device)
        kept = [self.rows[place] for place in places]
        width = max(row.length for row in kept)
        layers = [
            (k[index, :, self._filled - width :], v[index, :, self._filled - width :])
            for k, v in self._parts()
        ]
        self._set(kept, layers, width)

    def inputs(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, Any]:
        """The last tokens, their positions, which places count, and the cache."""
        tokens = torch.tensor([row.written[-1] for row in self.rows], device=self._device)
        lengths = torch.tensor([row.length for row in self.rows], device=self._device)
        room = reserve(self._cache, self._filled + 1)
        places = torch.arange(room, device=self._device)
        mask = (places >= (self._filled - lengths)[:, None]) & (places <= self._filled)
        self._filled += 1
        return tokens, lengths, mask, self._cache

    def _parts(self) -> KeysValues:
        return [layer.parts() for layer in self._cache.layers]

    def _set(self, rows: list[Row], layers: KeysValues, width: int) -> None:
        self.rows, self._filled = rows, width
        self._cache = growing_cache(layers)


def _aligned(layers: KeysValues, lengths: Sequence[int], width: int) -> KeysValues:
    """Move every row's tokens to the right end of `width` places."""
    device = layers[0][0].device
    missing = width - torch.tensor(lengths, device=device)
    source = (torch.arange(width, device=device) - missing[:, None]).clamp(min=0)
    index = source[:, None, :, None]

    def move(part: torch.Tensor) -> torch.Tensor:
        return part.gather(2, index.expand(-1, part.shape[1], -1, part.shape[3]))

    return [(move(k), move(v)) for k, v in layers]


def _widened(part: torch.Tensor, width: int) -> torch.Tensor:
    """Room on the left up to `width` places."""
    return torch.nn.functional.pad(part, (0, 0, width - part.shape[2], 0))
