"""Running out of memory: recognised, made room for, and answered with a smaller batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import torch

from keju.models.hf.encode import Item
from keju.types import Fault, Reply

T = TypeVar("T")
_SIGNS = ("out of memory", "can't allocate memory", "not enough memory")
TOO_LARGE = "one question alone does not fit into memory: take a smaller dtype or another device"


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that the device or the machine has no memory left."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(sign in str(error).lower() for sign in _SIGNS)


def release(device: torch.device) -> None:
    """Give unused memory of the allocator back."""
    if device.type == "cuda":
        torch.cuda.empty_cache()


def halving(
    work: Callable[[Sequence[Item]], list[Reply]],
    items: Sequence[Item],
    smaller: Callable[[int], None],
) -> list[Reply]:
    """Work on `items` together, or on halves of them where memory runs out.

    `smaller` is told how many were tried less, so that later batches begin smaller.
    """
    try:
        return work(items)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
    if len(items) == 1:
        return [Reply(error=Fault("bad_request", TOO_LARGE))]
    half = len(items) // 2
    smaller(half)
    return [
        *halving(work, items[:half], smaller),
        *halving(work, items[half:], smaller),
    ]
