"""Keju's attention implementations: over a tree of prefixes and questions packed into one sequence,
and over the rows of a running batch."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

IMPLEMENTATION = "keju"
"""The name among the attention implementations of transformers."""
UNSUPPORTED = ("softcap", "sliding_window", "s_aux", "position_bias")
"""Features of attention layers that these implementations do not support."""

Attend = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, "float | None"], torch.Tensor]
"""Query, key and value as (rows, heads, tokens, dimension) and a scale, to the same shape."""

_active = threading.local()


@contextlib.contextmanager
def use_attention(net: Any, attend: Attend) -> Iterator[None]:
    """Make the layers of `net` use `attend` in this thread, without any mask."""
    from transformers import AttentionInterface

    AttentionInterface.register(IMPLEMENTATION, _dispatch)
    config = net.config.get_text_config()
    previous = config._attn_implementation
    config._attn_implementation = IMPLEMENTATION
    _active.attend = attend
    try:
        yield
    finally:
        config._attn_implementation = previous
        del _active.attend


def _dispatch(
    _module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    _mask: Any,
    scaling: float | None = None,
    **options: Any,
) -> tuple[torch.Tensor, None]:
    """Return the attention of one layer, in the signature of transformers."""
    for name in UNSUPPORTED:
        if options.get(name) is not None:
            raise NotImplementedError(f"shared attention does not support {name}")
    return _active.attend(query, key, value, scaling).transpose(1, 2), None


def attend_rows(mask: torch.Tensor) -> Attend:
    """Return the attention for one new token per row; `mask` (rows, places) marks visible places.

    Heads that share keys are treated as several queries of one head, so keys and values are never
    copied.
    """
    visible = mask[:, None, None, :]

    def attend(
        query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scaling: float | None
    ) -> torch.Tensor:
        rows, heads, _, width = query.shape
        grouped = query.reshape(rows, key.shape[1], heads // key.shape[1], width)
        out = torch.nn.functional.scaled_dot_product_attention(
            grouped, key, value, attn_mask=visible, scale=scaling
        )
        return out.reshape(rows, heads, 1, value.shape[-1])

    return attend


FLASH_DTYPES = (torch.bfloat16, torch.float16)
FLASH_MOST_DIM = 256
FLASH_CAPABILITY = 8
"""Ampere and newer GPUs have the kernels of `torch.ops.aten._flash_attention_forward`."""


@dataclass(frozen=True)
class PrefixBranch:
    """A prefix and the questions that follow it."""

    prefix: Sequence[int]
    questions: Sequence[Sequence[int]]


@dataclass(frozen=True)
class SegmentBounds:
    """Segments of a packed sequence: their cumulative ends and the longest length."""

    ends: torch.Tensor
    longest: int

    @classmethod
    def of(cls, lengths: Sequence[int], device: torch.device) -> SegmentBounds:
        """Return the bounds of segments of these lengths."""
        ends = torch.tensor([0, *itertools.accumulate(lengths)], dtype=torch.int32)
        return cls(ends.to(device, non_blocking=True), max(lengths))


@dataclass(frozen=True)
class PackedPass:
    """One pass: the tokens, their positions, and what each token may see."""

    tokens: torch.Tensor
    positions: torch.Tensor
    last_positions: torch.Tensor
    """The index of every question's last token, in the order of the branches."""
    prefix_count: int
    """The number of prefix tokens."""
    segments: SegmentBounds
    """All segments, prefixes and questions."""
    prefixes: SegmentBounds
    question_groups: SegmentBounds
    """The questions of each prefix together."""
    lengths: tuple[int, ...]
    """The lengths of all segments in order."""
    owners: tuple[int, ...]
    """For each segment, the number of its prefix."""


def pack(branches: Sequence[PrefixBranch], device: torch.device) -> PackedPass:
    """Lay branches out as one sequence; every prefix and question has at least one token."""
    questions = [(owner, q) for owner, branch in enumerate(branches) for q in branch.questions]
    prefixes = [branch.prefix for branch in branches]
    tokens = list(itertools.chain(*prefixes, *(q for _, q in questions)))
    positions = [position for prefix in prefixes for position in range(len(prefix))]
    for owner, question in questions:
        start = len(prefixes[owner])
        positions.extend(range(start, start + len(question)))
    prefix_tokens = sum(map(len, prefixes))
    lengths = [*map(len, prefixes), *(len(question) for _, question in questions)]
    ends = list(itertools.accumulate(lengths))
    return PackedPass(
        tokens=torch.tensor(tokens).to(device, non_blocking=True)[None],
        positions=torch.tensor(positions).to(device, non_blocking=True)[None],
        last_positions=torch.tensor(ends[len(prefixes) :]).to(device, non_blocking=True) - 1,
        prefix_count=prefix_tokens,
        segments=SegmentBounds.of(lengths, device),
        prefixes=SegmentBounds.of([len(prefix) for prefix in prefixes], device),
        question_groups=SegmentBounds.of(
            [sum(map(len, branch.questions)) for branch in branches], device
        ),
        lengths=tuple(lengths),
        owners=(*range(len(prefixes)), *(owner for owner, _ in questions)),
    )


def dense_mask(packed: PackedPass) -> torch.Tensor:
    """Return which token sees which as a full matrix, for devices without the kernels."""
    lengths = torch.tensor(packed.lengths)
    segment = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
    owner = torch.tensor(packed.owners)[segment]
    position = torch.arange(len(segment))
    same_segment = (segment[:, None] == segment) & (position <= position[:, None])
    own_prefix = (owner[:, None] == owner) & (position < packed.prefix_count)
    later = (position >= packed.prefix_count)[:, None]
    return (same_segment | (own_prefix & later)).to(packed.tokens.device)


def attend_tree(packed: PackedPass) -> Attend:
    """Return the attention of a packed tree."""
    masks: list[torch.Tensor] = []

    def attend(
        query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scaling: float | None
    ) -> torch.Tensor:
        if has_kernels(query):
            q, k, v = (part[0].transpose(0, 1) for part in (query, key, value))
            return attend_in_parts(q, k, v, packed, scaling).transpose(0, 1)[None]
        if not masks:
            masks.append(dense_mask(packed))
        return torch.nn.functional.scaled_dot_product_attention(
            query,
            key,
            value,
            attn_mask=masks[0],
            scale=scaling,
            enable_gqa=query.shape[1] != key.shape[1],
        )

    return attend


def has_kernels(query: torch.Tensor) -> bool:
    """Whether the flash kernels support tensors like this one."""
    return bool(
        query.is_cuda
        and query.dtype in FLASH_DTYPES
        and query.shape[-1] <= FLASH_MOST_DIM
        and query.shape[-1] % 8 == 0
        and torch.version.cuda is not None
        and torch.cuda.get_device_capability(query.device)[0] >= FLASH_CAPABILITY
    )


def attend_in_parts(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    packed: PackedPass,
    scaling: float | None,
) -> torch.Tensor:
    """Return the attention of a packed tree; tensors are (tokens, heads, dimension).

    The weights of the parts are float32, and their sum is rounded only once.
    """
    prefix_count = packed.prefix_count
    segments = packed.segments
    out, own_weight = flash_segments(query, key, value, segments, segments, scaling, causal=True)
    over_prefix, prefix_weight = flash_segments(
        query[prefix_count:],
        key[:prefix_count],
        value[:prefix_count],
        packed.question_groups,
        packed.prefixes,
        scaling,
    )
    share = torch.sigmoid(prefix_weight - own_weight[:, prefix_count:]).T[..., None]
    combined = over_prefix * share
    combined.addcmul_(out[prefix_count:], 1 - share)
    out[prefix_count:] = combined
    return out


def flash_segments(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    queries: SegmentBounds,
    keys: SegmentBounds,
    scaling: float | None,
    *,
    causal: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return segment-wise attention and its log-sum-exp (heads, tokens)."""
    out, weight, *_ = torch.ops.aten._flash_attention_forward(
        query,
        key,
        value,
        queries.ends,
        keys.ends,
        queries.longest,
        keys.longest,
        0.0,
        causal,
        False,
        scale=scaling,
    )
    return out, weight
