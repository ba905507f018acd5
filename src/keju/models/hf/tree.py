"""Many questions and their shared prefixes in one sequence: the packed tree.

All prefixes of a pass stand first, then all questions, prefix by prefix:

    P1 P2 … | Q11 Q12 … Q21 Q22 …

A question's positions go on from the end of its prefix, and its tokens see that prefix and
themselves. Nothing is padded and no cache is copied. The attention is computed in two parts
that never touch a masked block: every segment over itself (causal), and all questions of a prefix
over that prefix; the log-sum-exp of the parts says how to weigh them.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from keju.models.hf.attention import Attend

FLASH_DTYPES = (torch.bfloat16, torch.float16)
FLASH_MOST_DIM = 256
FLASH_CAPABILITY = 8
"""Ampere and newer have the kernels behind `torch.ops.aten._flash_attention_forward`."""


@dataclass(frozen=True)
class Branch:
    """A prefix and the questions that follow it."""

    prefix: Sequence[int]
    questions: Sequence[Sequence[int]]


@dataclass(frozen=True)
class Bounds:
    """Segments of a packed sequence: their cumulative ends, and the longest."""

    ends: torch.Tensor
    longest: int

    @classmethod
    def of(cls, lengths: Sequence[int], device: torch.device) -> Bounds:
        """The bounds of segments of these lengths."""
        ends = torch.tensor([0, *itertools.accumulate(lengths)], dtype=torch.int32)
        return cls(ends.to(device, non_blocking=True), max(lengths))


@dataclass(frozen=True)
class Packed:
    """One pass: the tokens, where each stands, and what it may see."""

    tokens: torch.Tensor
    positions: torch.Tensor
    last: torch.Tensor
    """The place of every question's last token, in the order of the branches."""
    stem: int
    """How many tokens are those of prefixes."""
    segments: Bounds
    """All segments, prefixes and questions."""
    prefixes: Bounds
    crowns: Bounds
    """The questions of each prefix taken together."""
    lengths: tuple[int, ...]
    """The lengths of all segments in order."""
    owners: tuple[int, ...]
    """The number of the prefix that each segment is or follows."""


def pack(branches: Sequence[Branch], device: torch.device) -> Packed:
    """Lay branches out as one sequence; every prefix and question has at least one token."""
    questions = [(owner, q) for owner, branch in enumerate(branches) for q in branch.questions]
    prefixes = [branch.prefix for branch in branches]
    tokens = list(itertools.chain(*prefixes, *(q for _, q in questions)))
    positions = [place for prefix in prefixes for place in range(len(prefix))]
    for owner, question in questions:
        start = len(prefixes[owner])
        positions.extend(range(start, start + len(question)))
    stem = sum(map(len, prefixes))
    lengths = [*map(len, prefixes), *(len(question) for _, question in questions)]
    ends = list(itertools.accumulate(lengths))
    return Packed(
        tokens=torch.tensor(tokens).to(device, non_blocking=True)[None],
        positions=torch.tensor(positions).to(device, non_blocking=True)[None],
        last=torch.tensor(ends[len(prefixes) :]).to(device, non_blocking=True) - 1,
        stem=stem,
        segments=Bounds.of(lengths, device),
        prefixes=Bounds.of([len(prefix) for prefix in prefixes], device),
        crowns=Bounds.of([sum(map(len, branch.questions)) for branch in branches], device),
        lengths=tuple(lengths),
        owners=(*range(len(prefixes)), *(owner for owner, _ in questions)),
    )


def dense_mask(packed: Packed) -> torch.Tensor:
    """Which token sees which, as a full matrix: the definition, for devices without the kernels."""
    lengths = torch.tensor(packed.lengths)
    segment = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
    owner = torch.tensor(packed.owners)[segment]
    place = torch.arange(len(segment))
    itself = (segment[:, None] == segment) & (place <= place[:, None])
    own_prefix = (owner[:, None] == owner) & (place < packed.stem)
    later = (place >= packed.stem)[:, None]
    return (itself | (own_prefix & later)).to(packed.tokens.device)


def over_tree(packed: Packed) -> Attend:
    """The attention of a packed tree."""
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
    """Whether the flash kernels take tensors like this one."""
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
    packed: Packed,
    scaling: float | None,
) -> torch.Tensor:
    """Attention of a packed tree; tensors are (tokens, heads, dimension).

    The weights of the parts are float32, and so is the sum before it is rounded once.
    """
    stem = packed.stem
    every = packed.segments
    out, own_weight = _flash(query, key, value, every, every, scaling, causal=True)
    over_prefix, prefix_weight = _flash(
        query[stem:], key[:stem], value[:stem], packed.crowns, packed.prefixes, scaling
    )
    share = torch.sigmoid(prefix_weight - own_weight[:, stem:]).T[..., None]
    both = over_prefix * share
    both.addcmul_(out[stem:], 1 - share)
    out[stem:] = both
    return out


def _flash(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    asking: Bounds,
    asked: Bounds,
    scaling: float | None,
    *,
    causal: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Segment-wise attention and its log-sum-exp (heads, tokens)."""
    out, weight, *_ = torch.ops.aten._flash_attention_forward(
        query,
        key,
        value,
        asking.ends,
        asked.ends,
        asking.longest,
        asked.longest,
        0.0,
        causal,
        False,
        scale=scaling,
    )
    return out, weight
