"""One copy of the weights on one device, and the ways to run questions through it."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

from keju.models.hf.attention import PrefixBranch, attend_rows, attend_tree, pack, use_attention

ROOM = 128
"""The capacity of a growing cache is a multiple of this number of tokens."""


KeysValues = list[tuple[torch.Tensor, torch.Tensor]]
"""Keys and values of every layer, each (rows, heads, tokens, dimension)."""


class PassingLayer(DynamicLayer):  # type: ignore[misc]
    """A cache layer that shows new tokens after the kept ones to the attention, but does not store
    them."""

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **options: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        keys = torch.cat([self.keys, key_states], dim=-2)
        return keys, torch.cat([self.values, value_states], dim=-2)


class GrowingLayer(DynamicLayer):  # type: ignore[misc]
    """A cache layer that writes new tokens into preallocated space and shows all of the space.

    Places after the last token are zero and must be masked. So the shapes, for which kernels are
    selected, only change when the space grows.
    """

    keys: torch.Tensor
    values: torch.Tensor
    filled = 0
    """Number of stored tokens."""

    def reserve(self, tokens: int) -> None:
        """Make room for `tokens` tokens in total."""
        if tokens > self.keys.shape[-2]:
            self.keys, self.values = _enlarge(self.keys, tokens), _enlarge(self.values, tokens)

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **options: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        end = self.filled + key_states.shape[-2]
        self.reserve(end)
        self.keys[:, :, self.filled : end] = key_states
        self.values[:, :, self.filled : end] = value_states
        self.filled = end
        return self.keys, self.values

    def parts(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the filled part of keys and values."""
        return self.keys[:, :, : self.filled], self.values[:, :, : self.filled]

    def get_seq_length(self) -> int:
        return self.filled

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        self.reserve(self.filled + query_length)
        return self.keys.shape[-2], 0


def make_cache(layers: KeysValues, kind: type[DynamicLayer]) -> Any:
    """Return a cache that begins with these keys and values; empty if there are none."""
    cache = DynamicCache()
    for keys, values in layers:
        layer = kind()
        layer.dtype, layer.device = keys.dtype, keys.device
        layer.keys, layer.values = keys, values
        layer.is_initialized = True
        if isinstance(layer, GrowingLayer):
            layer.filled = keys.shape[-2]
        cache.layers.append(layer)
    return cache


def reserve(cache: Any, tokens: int) -> int:
    """Make room for `tokens` tokens in all layers; return the number of places."""
    for layer in cache.layers:
        layer.reserve(tokens)
    return int(cache.layers[0].keys.shape[-2])


def _enlarge(part: torch.Tensor, tokens: int) -> torch.Tensor:
    """Return `part` with zeros after it, up to the next multiple of `ROOM` places."""
    rows, heads, filled, width = part.shape
    larger = part.new_zeros((rows, heads, -(-tokens // ROOM) * ROOM, width))
    larger[:, :, :filled] = part
    return larger


PAD = 0
"""Padding to the right of shorter rows, which is never read."""


class NextTokenScores(NamedTuple):
    """The output of the model after the last tokens of some rows."""

    logits: torch.Tensor
    """(rows, vocabulary), float32."""
    hidden: torch.Tensor
    """(rows, width): the input of the output head."""


class DeviceReplica:
    """Runs a causal language model of transformers on one device.

    The output head is only applied to selected positions. A hook before the head selects them, so
    all later operations of the architecture on its logits still happen. Attention kernels of cuDNN
    are disabled, because they are planned for every shape and here each pass has another shape.
    """

    def __init__(self, net: Any, device: torch.device) -> None:
        self.net = net.to(device)
        self.device = device
        self.uses_row_attention = False
        """Whether steps use Keju's attention, for networks that were shown to allow it."""
        self._head = net.get_output_embeddings()
        self._positions: torch.Tensor | None = None
        self._hidden: torch.Tensor | None = None
        self._hook = self._head.register_forward_pre_hook(self._select_positions)
        if device.type == "cuda":
            torch.backends.cuda.enable_cudnn_sdp(False)

    @property
    def dtype(self) -> torch.dtype:
        """The type of the arithmetic."""
        return self._head.weight.dtype

    def close(self) -> None:
        """Leave the network as it was."""
        self._hook.remove()

    def run_plain(self, rows: Sequence[Sequence[int]]) -> NextTokenScores:
        """Run whole prompts, one row each, without sharing."""
        tokens, last_positions = self._pad_rows(rows)
        return self._run(last_positions, input_ids=tokens, use_cache=False)

    def run_rows(self, rows: Sequence[Sequence[int]], places: Sequence[int]) -> NextTokenScores:
        """Run whole texts, one row each, and read them at flat places of the padded rows."""
        tokens, _ = self._pad_rows(rows)
        selected = torch.tensor(places, device=self.device)
        return self._run(selected, input_ids=tokens, use_cache=False)

    def run_trees(
        self,
        tokens: torch.Tensor,
        positions: torch.Tensor,
        places: Sequence[int],
        prefix: KeysValues | None = None,
        length: int = 0,
    ) -> NextTokenScores:
        """Run packed trees, after the first `length` tokens of a kept prefix if there is one, and
        read them at flat places. The attention must be set by the caller."""
        selected = torch.tensor(places, device=self.device)
        inputs = {"input_ids": tokens, "position_ids": positions}
        if prefix is None:
            return self._run(selected, **inputs, use_cache=False)
        shared = [
            tuple(part[:, :, :length].expand(len(tokens), -1, -1, -1) for part in layer)
            for layer in prefix
        ]
        cache = make_cache(shared, PassingLayer)
        return self._run(selected, **inputs, past_key_values=cache, use_cache=True)

    def run_tree(self, branches: Sequence[PrefixBranch]) -> NextTokenScores:
        """Run prefixes and their questions packed into one sequence; questions in branch order."""
        packed = pack(branches, self.device)
        with use_attention(self.net, attend_tree(packed)):
            return self._run(
                packed.last_positions,
                input_ids=packed.tokens,
                position_ids=packed.positions,
                use_cache=False,
            )

    def run_prefix(self, tokens: Sequence[int]) -> KeysValues:
        """Return the keys and values of a prefix, for one row."""
        cache = DynamicCache()
        row = torch.tensor([list(tokens)], device=self.device)
        last_positions = torch.tensor([len(tokens) - 1], device=self.device)
        self._run(last_positions, input_ids=row, past_key_values=cache, use_cache=True)
        return [(layer.keys, layer.values) for layer in cache.layers]

    def continue_rows(
        self, prefix: KeysValues, length: int, rows: Sequence[Sequence[int]], *, keep: bool = False
    ) -> tuple[NextTokenScores, KeysValues]:
        """Run rows that continue from the first `length` tokens of one kept prefix.

        The prefix is expanded over the rows without a lasting copy. With `keep` the keys and values
        of all rows are kept and returned.
        """
        tokens, last_positions = self._pad_rows(rows)
        count = len(rows)
        shared = [
            (k[:, :, :length].expand(count, -1, -1, -1), v[:, :, :length].expand(count, -1, -1, -1))
            for k, v in prefix
        ]
        cache = make_cache(shared, DynamicLayer if keep else PassingLayer)
        positions = torch.arange(length, length + tokens.shape[1], device=self.device)[None]
        result = self._run(
            last_positions,
            input_ids=tokens,
            position_ids=positions.expand(count, -1),
            past_key_values=cache,
            use_cache=True,
        )
        all_rows = [(layer.keys, layer.values) for layer in cache.layers] if keep else []
        return result, all_rows

    def run_step(
        self, tokens: torch.Tensor, positions: torch.Tensor, mask: Any, cache: Any
    ) -> NextTokenScores:
        """Run one more token for every row of a running batch."""
        row_attention = (
            use_attention(self.net, attend_rows(mask))
            if self.uses_row_attention
            else contextlib.nullcontext()
        )
        with row_attention:
            return self._run(
                torch.arange(len(tokens), device=self.device),
                input_ids=tokens[:, None],
                position_ids=positions[:, None],
                attention_mask=mask,
                past_key_values=cache,
                use_cache=True,
            )

    def exact_logits(
        self, result: NextTokenScores, rows: torch.Tensor, ids: torch.Tensor
    ) -> torch.Tensor:
        """Return logits of a few tokens, in float32 if the head allows it.

        In bfloat16 a logit of 10 has steps of 1/16, so different labels would tie. The few logits
        that matter are computed again from the head's weights. The result is only used if it equals
        the model's logits up to rounding, because an architecture may scale or cap its logits.
        """
        coarse = result.logits[rows, ids]
        weight = getattr(self._head, "weight", None)
        if self.dtype == torch.float32 or weight is None or not weight.is_floating_point():
            return coarse
        fine = (result.hidden[rows].float() * weight[ids].float()).sum(-1)
        if getattr(self._head, "bias", None) is not None:
            fine = fine + self._head.bias[ids].float()
        is_close = (fine - coarse).abs() <= 2.0**-5 + coarse.abs() * 2.0**-6
        return fine if bool(is_close.all()) else coarse

    def _run(self, positions: torch.Tensor, **inputs: Any) -> NextTokenScores:
        """Run the network and read it at the flat `positions`."""
        self._positions = positions
        try:
            with torch.inference_mode():
                logits = self.net(**inputs).logits
            assert self._hidden is not None
            return NextTokenScores(logits[0].float(), self._hidden[0])
        finally:
            self._positions = self._hidden = None

    def _select_positions(
        self, _head: Any, args: tuple[torch.Tensor, ...]
    ) -> tuple[torch.Tensor, ...] | None:
        """Pass only the selected positions to the output head."""
        if self._positions is None:
            return None
        hidden = args[0]
        self._hidden = hidden.reshape(1, -1, hidden.shape[-1])[:, self._positions]
        return (self._hidden, *args[1:])

    def _pad_rows(self, rows: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return rows of equal length, and the flat index of each row's last real token."""
        longest = max(map(len, rows))
        filled = [[*row, *[PAD] * (longest - len(row))] for row in rows]
        last_positions = [number * longest + len(row) - 1 for number, row in enumerate(rows)]
        return torch.tensor(filled, device=self.device), torch.tensor(
            last_positions, device=self.device
        )
