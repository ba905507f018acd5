"""Caches of keys and values that transformers' models can write to."""

from __future__ import annotations

from typing import Any

import torch
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

ROOM = 128
"""Tokens by which a growing cache is enlarged at a time."""


class PassingLayer(DynamicLayer):  # type: ignore[misc]
    """Shows new tokens behind the kept ones to the attention, and keeps nothing of them."""

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **more: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        keys = torch.cat([self.keys, key_states], dim=-2)
        return keys, torch.cat([self.values, value_states], dim=-2)


class GrowingLayer(DynamicLayer):  # type: ignore[misc]
    """Writes new tokens into room that is already there, instead of copying all for each."""

    filled = 0

    def fill(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Begin with these keys and values."""
        self.filled = keys.shape[-2]
        self.dtype, self.device = keys.dtype, keys.device
        self.keys, self.values = keys, values
        self.is_initialized = True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **more: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        end = self.filled + key_states.shape[-2]
        if end > self.keys.shape[-2]:
            self.keys, self.values = (_enlarged(part, end + ROOM) for part in self.parts())
        self.keys[:, :, self.filled : end] = key_states
        self.values[:, :, self.filled : end] = value_states
        self.filled = end
        keys, values = self.parts()
        return keys, values

    def parts(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values as far as they are filled."""
        return self.keys[:, :, : self.filled], self.values[:, :, : self.filled]

    def get_seq_length(self) -> int:
        return self.filled


def filled_cache(layers: list[tuple[torch.Tensor, torch.Tensor]], *, passing: bool) -> Any:
    """A cache that begins with these keys and values; with none it begins empty."""
    cache = DynamicCache()
    for keys, values in layers:
        layer = PassingLayer() if passing else DynamicLayer()
        layer.dtype, layer.device = keys.dtype, keys.device
        layer.keys, layer.values = keys, values
        layer.is_initialized = True
        cache.layers.append(layer)
    return cache


def growing_cache(layers: list[tuple[torch.Tensor, torch.Tensor]]) -> Any:
    """A cache for a running batch."""
    cache = DynamicCache()
    for keys, values in layers:
        layer = GrowingLayer()
        layer.fill(keys, values)
        cache.layers.append(layer)
    return cache


def _enlarged(part: torch.Tensor, room: int) -> torch.Tensor:
    rows, heads, filled, width = part.shape
    larger = part.new_empty((rows, heads, room, width))
    larger[:, :, :filled] = part
    return larger
