"""Caches of keys and values that transformers' models can write to."""

from __future__ import annotations

from typing import Any

import torch
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

ROOM = 128
"""The room of a growing cache is a multiple of so many tokens."""


class PassingLayer(DynamicLayer):  # type: ignore[misc]
    """Shows new tokens behind the kept ones to the attention, and keeps nothing of them."""

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **more: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        keys = torch.cat([self.keys, key_states], dim=-2)
        return keys, torch.cat([self.values, value_states], dim=-2)


class GrowingLayer(DynamicLayer):  # type: ignore[misc]
    """Writes new tokens into room that is already there, and shows all of the room.

    What lies behind the last token is zero and must be masked. So the shapes, for which kernels
    are chosen, change only when the room is enlarged.
    """

    filled = 0

    def fill(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Begin with these keys and values."""
        self.filled = keys.shape[-2]
        self.dtype, self.device = keys.dtype, keys.device
        self.keys, self.values = keys, values
        self.is_initialized = True

    def reserve(self, tokens: int) -> None:
        """Have room for so many tokens in all."""
        if tokens > self.keys.shape[-2]:
            self.keys, self.values = _enlarged(self.keys, tokens), _enlarged(self.values, tokens)

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **more: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        end = self.filled + key_states.shape[-2]
        self.reserve(end)
        self.keys[:, :, self.filled : end] = key_states
        self.values[:, :, self.filled : end] = value_states
        self.filled = end
        return self.keys, self.values

    def parts(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values as far as they are filled."""
        return self.keys[:, :, : self.filled], self.values[:, :, : self.filled]

    def get_seq_length(self) -> int:
        return self.filled

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        self.reserve(self.filled + query_length)
        return self.keys.shape[-2], 0


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


def reserve(cache: Any, tokens: int) -> int:
    """Make room for so many tokens in all layers; return how many places there are."""
    for layer in cache.layers:
        layer.reserve(tokens)
    places: int = cache.layers[0].keys.shape[-2]
    return places


def _enlarged(part: torch.Tensor, tokens: int) -> torch.Tensor:
    rows, heads, filled, width = part.shape
    larger = part.new_zeros((rows, heads, -(-tokens // ROOM) * ROOM, width))
    larger[:, :, :filled] = part
    return larger
