"""Attention of Keju's own inside transformers' models, switched on for a single pass."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch

IMPLEMENTATION = "keju"
"""The name among the attention implementations of transformers."""
UNSUPPORTED = ("softcap", "sliding_window", "s_aux", "position_bias")
"""What an attention layer may ask for that these attentions do not do."""

Attend = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, "float | None"], torch.Tensor]
"""Query, key and value as (rows, heads, tokens, dimension) and a scale, to the same shape."""

_now = threading.local()


@contextlib.contextmanager
def attending(net: Any, attend: Attend) -> Iterator[None]:
    """While it is open, the layers of `net` use `attend` in this thread, without any mask."""
    from transformers import AttentionInterface

    AttentionInterface.register(IMPLEMENTATION, _dispatch)
    config = net.config.get_text_config()
    before = config._attn_implementation
    config._attn_implementation = IMPLEMENTATION
    _now.attend = attend
    try:
        yield
    finally:
        config._attn_implementation = before
        del _now.attend


def _dispatch(
    _module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    _mask: Any,
    scaling: float | None = None,
    **more: Any,
) -> tuple[torch.Tensor, None]:
    """The attention of one layer, in the signature of transformers."""
    for name in UNSUPPORTED:
        if more.get(name) is not None:
            raise NotImplementedError(f"there is no shared attention with {name}")
    return _now.attend(query, key, value, scaling).transpose(1, 2), None


def over_rows(mask: torch.Tensor) -> Attend:
    """One new token for every row, which sees the places where `mask` (rows, places) is true.

    The heads that share keys stand as several queries of one head, so that keys and values
    are read where they lie and never repeated.
    """
    seen = mask[:, None, None, :]

    def attend(
        query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scaling: float | None
    ) -> torch.Tensor:
        rows, heads, _, width = query.shape
        grouped = query.reshape(rows, key.shape[1], heads // key.shape[1], width)
        out = torch.nn.functional.scaled_dot_product_attention(
            grouped, key, value, attn_mask=seen, scale=scaling
        )
        return out.reshape(rows, heads, 1, value.shape[-1])

    return attend
