"""Choosing among labels: one pass, the output head at the end of each question, a few ids."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter

import torch
from msgspec.structs import replace

from keju.models.hf.encode import Item
from keju.models.hf.memory import halving, release
from keju.models.hf.prefixes import PrefixStore, batched, by_prefix
from keju.models.hf.replica import Read, Replica
from keju.models.hf.settings import Reuse
from keju.models.hf.tree import Branch
from keju.types import Reply, Usage

LEAST_SHARED = 1
"""A prefix needs at least one token to be computed apart."""

Batch = tuple[Sequence[Item], Callable[[Sequence[Item]], list[Reply]]]
"""Questions that run together, and what runs them."""


class LabelScorer:
    """Answers label requests on one replica, in one of the three forms."""

    def __init__(self, replica: Replica, form: Reuse, rows: int, store: PrefixStore) -> None:
        self.rows = rows
        """Questions in one batch; smaller after memory ran out."""
        self._replica = replica
        self._form = form
        self._store = store

    def run(self, items: Sequence[Item]) -> Iterator[list[tuple[Item, Reply]]]:
        """Answer `items` batch by batch, those of one batch as soon as they are there."""
        for batch, work in self._batches(items):
            started = perf_counter()
            answered = halving(work, batch, self._smaller)
            seconds = perf_counter() - started
            yield [
                (item, replace(reply, seconds=seconds))
                for item, reply in zip(batch, answered, strict=True)
            ]

    def _batches(self, items: Sequence[Item]) -> list[Batch]:
        """What runs together, and how; rows of one batch are of similar length."""
        sharing = [item for item in items if item.shared >= LEAST_SHARED and self._form != "off"]
        alone = sorted(
            (item for item in items if item.shared < LEAST_SHARED or self._form == "off"),
            key=_length,
        )
        work: list[Batch] = [(batch, self._plain) for batch in batched(alone, self.rows)]
        if self._form == "tree":
            return work + [(batch, self._tree) for batch in batched(sharing, self.rows)]
        for group in by_prefix(sharing):
            ordered = sorted(group, key=_length)
            work += [(batch, self._cached) for batch in batched(ordered, self.rows)]
        return work

    def _plain(self, items: Sequence[Item]) -> list[Reply]:
        read = self._replica.plain([item.tokens for item in items])
        return self._replies(items, read, [0] * len(items))

    def _cached(self, items: Sequence[Item]) -> list[Reply]:
        shared = self._store.share(items)
        rows = [item.tokens[shared.length :] for item in items]
        read, _ = self._replica.after(shared.cache, shared.length, rows)
        return self._replies(items, read, _saved(len(items), shared.length, shared.fresh))

    def _tree(self, items: Sequence[Item]) -> list[Reply]:
        groups = by_prefix(items)
        branches, saved = [], []
        for group in groups:
            length = min(item.shared for item in group)
            prefix = group[0].tokens[:length]
            branches.append(Branch(prefix, [item.tokens[length:] for item in group]))
            saved += _saved(len(group), length, fresh=True)
        ordered = [item for group in groups for item in group]
        replies = self._replies(ordered, self._replica.tree(branches), saved)
        found = {id(item): reply for item, reply in zip(ordered, replies, strict=True)}
        return [found[id(item)] for item in items]

    def _replies(self, items: Sequence[Item], read: Read, saved: Sequence[int]) -> list[Reply]:
        """The label values of every row, brought from the device in one go."""
        spelt = [
            (row, spelling)
            for row, item in enumerate(items)
            for spellings in item.labels.values()
            for spelling in spellings
        ]
        rows, ids = torch.tensor(spelt, device=read.logits.device).T
        values = self._replica.exact_logits(read, rows, ids) - read.logits.logsumexp(-1)[rows]
        remaining = iter(values.tolist())
        replies = []
        for item, cached in zip(items, saved, strict=True):
            shares = {
                label: [next(remaining) for _ in spellings]
                for label, spellings in item.labels.items()
            }
            replies.append(_reply(item, shares, cached))
        return replies

    def _smaller(self, rows: int) -> None:
        self.rows = max(1, min(self.rows, rows))
        self._store.clear()
        release(self._replica.device)


def _length(item: Item) -> int:
    return len(item.tokens)


def _reply(item: Item, shares: dict[str, list[float]], cached: int) -> Reply:
    values = {label: _log_sum(found) for label, found in shares.items()}
    inside = sum(math.exp(value) for value in values.values())
    return Reply(
        text=max(values, key=values.__getitem__),
        finish="stop",
        usage=Usage(len(item.tokens), 1, cached),
        label_logprobs=values,
        label_ids={label: list(ids) for label, ids in item.labels.items()},
        outside_mass=max(0.0, 1.0 - inside),
    )


def _log_sum(values: Sequence[float]) -> float:
    most = max(values)
    if len(values) == 1 or most == -math.inf:
        return most
    return most + math.log(sum(math.exp(value - most) for value in values))


def _saved(count: int, length: int, fresh: bool) -> list[int]:
    """Tokens that each question had for nothing; the first pays for a fresh prefix."""
    return [0 if fresh and number == 0 else length for number in range(count)]
