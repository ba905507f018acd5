"""Drawing the next token of every row."""

from __future__ import annotations

import random
from collections.abc import Sequence

import torch

from keju.models.hf.encode import seed_of
from keju.types import Request, Sampling


def is_greedy(sampling: Sampling) -> bool:
    """Whether the likeliest token is always taken: temperature 0 or none given."""
    return not sampling.temperature


def dice(request: Request) -> random.Random:
    """A source of chance of its own for each request, so that a batch's make-up cannot matter."""
    seed = seed_of(request)
    return random.Random(f"{seed}:{request.hash}") if seed is not None else random.Random()


def draw(logits: torch.Tensor, sampling: Sampling, chance: Sequence[float]) -> list[int]:
    """The next token of each row of `logits`; `chance` holds one number in [0, 1) a row."""
    if is_greedy(sampling):
        greedy: list[int] = logits.argmax(-1).tolist()
        return greedy
    shares = torch.softmax(logits / sampling.temperature, -1)
    shares, ids = shares.sort(dim=-1, descending=True, stable=True)
    kept = _kept(shares, sampling)
    shares = torch.where(kept, shares, 0.0)
    totals = shares.cumsum(-1)
    wanted = torch.tensor(chance, device=logits.device, dtype=totals.dtype)[:, None]
    places = torch.searchsorted(totals, wanted * totals[:, -1:], right=True)
    places = torch.minimum(places, kept.sum(-1, keepdim=True) - 1)
    drawn: list[int] = ids.gather(-1, places)[:, 0].tolist()
    return drawn


def _kept(shares: torch.Tensor, sampling: Sampling) -> torch.Tensor:
    """Which of the sorted tokens may be drawn; the likeliest always may."""
    kept = torch.ones_like(shares, dtype=torch.bool)
    if sampling.top_p is not None:
        kept &= shares.cumsum(-1) - shares < sampling.top_p
    top_k = sampling.extra.get("top_k")
    if top_k is not None and top_k > 0:
        kept[:, top_k:] = False
    min_p = sampling.extra.get("min_p")
    if min_p is not None:
        kept &= shares >= min_p * shares[:, :1]
    kept[:, 0] = True
    return kept
