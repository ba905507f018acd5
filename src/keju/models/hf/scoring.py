"""The log-probabilities of labels. Prefixes are computed once, and batches are halved if memory
runs out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from typing import NamedTuple, Protocol

import torch
from msgspec.structs import replace

from keju.models.hf.attention import PrefixBranch
from keju.models.hf.encode import EncodedRequest
from keju.models.hf.replica import DeviceReplica, KeysValues, NextTokenScores
from keju.models.hf.settings import Reuse
from keju.models.labels import common_length
from keju.types import Fault, Reply, Usage

_SIGNS = ("out of memory", "can't allocate memory", "not enough memory")
TOO_LARGE = "one question alone does not fit into memory: take a smaller dtype or another device"


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that the device or the machine has no memory left."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(sign in str(error).lower() for sign in _SIGNS)


def release(device: torch.device) -> None:
    """Return unused memory of the allocator to the system."""
    if device.type == "cuda":
        torch.cuda.empty_cache()


MOST_KEPT = 4
WORTH = 0.8
"""The least share of the common tokens that a kept prefix must cover; otherwise it is replaced."""


class SharedPrefix(NamedTuple):
    """A prefix that some questions continue."""

    cache: KeysValues
    length: int
    """Number of its tokens that the questions share."""
    fresh: bool
    """Whether it was computed for these questions, so that one of them has to count its tokens."""


class HasPrefix(Protocol):
    """A text of which other texts share the beginning."""

    @property
    def tokens(self) -> Sequence[int]: ...
    @property
    def shared(self) -> int:
        """Number of leading tokens that others may share."""


class PrefixStore:
    """Computes a prefix once and keeps the last few."""

    def __init__(self, replica: DeviceReplica) -> None:
        self._replica = replica
        self._kept: list[tuple[Sequence[int], KeysValues]] = []

    def shared_prefix(self, items: Sequence[HasPrefix]) -> SharedPrefix:
        """Return the common part of questions with one prefix, computed or kept."""
        length = min(item.shared for item in items)
        prefix_tokens = items[0].tokens[:length]
        reaches = [common_length(tokens, prefix_tokens) for tokens, _ in self._kept]
        longest_common = max(reaches, default=0)
        if longest_common and longest_common >= WORTH * length:
            # The prefix that was used last is at the end, and the first one is dropped first.
            best = self._kept.pop(reaches.index(longest_common))
            self._kept.append(best)
            return SharedPrefix(best[1], longest_common, fresh=False)
        del self._kept[: len(self._kept) + 1 - MOST_KEPT]
        cache = self._replica.run_prefix(prefix_tokens)
        self._kept.append((prefix_tokens, cache))
        return SharedPrefix(cache, length, fresh=True)

    def longest_common(self, tokens: Sequence[int]) -> int:
        """Return how many leading tokens of a text a kept prefix has."""
        return max((common_length(kept, tokens) for kept, _ in self._kept), default=0)

    def clear(self) -> None:
        """Drop everything, to free memory."""
        self._kept.clear()


def group_by_prefix(items: Sequence[EncodedRequest]) -> list[list[EncodedRequest]]:
    """Group items by prefix and sampling, in order of arrival."""
    groups: dict[tuple[int, int], list[EncodedRequest]] = {}
    for item in items:
        groups.setdefault((id(item.prefix), id(item.request.sampling)), []).append(item)
    return list(groups.values())


def sort_by_length(items: Sequence[EncodedRequest]) -> list[EncodedRequest]:
    """Sort items by length, the shortest first."""
    return sorted(items, key=lambda item: len(item.tokens))


def split_batches(items: Sequence[EncodedRequest], size: int) -> list[Sequence[EncodedRequest]]:
    """Return `items` in batches of at most `size`."""
    return [items[start : start + size] for start in range(0, len(items), size)]


Work = Callable[[Sequence[EncodedRequest]], list[Reply]]
"""A function that runs questions together."""


class LabelScorer:
    """Answers label requests on one replica, in one of the three forms."""

    def __init__(self, replica: DeviceReplica, form: Reuse, rows: int, store: PrefixStore) -> None:
        self.rows = rows
        """Questions in one batch; smaller after memory ran out."""
        self._replica = replica
        self._form = form
        self._store = store

    def run(self, items: Sequence[EncodedRequest]) -> Iterator[list[tuple[EncodedRequest, Reply]]]:
        """Answer `items` batch by batch, and yield each batch as soon as it is done."""
        for batch, work in self._batches(items):
            started = perf_counter()
            answered = self._run_halving(work, batch)
            seconds = perf_counter() - started
            yield [
                (item, replace(reply, seconds=seconds))
                for item, reply in zip(batch, answered, strict=True)
            ]

    def _batches(
        self, items: Sequence[EncodedRequest]
    ) -> list[tuple[Sequence[EncodedRequest], Work]]:
        """Return the batches with the way to run each; rows of one batch are of similar length."""
        shared = [item for item in items if item.shared and self._form != "off"]
        unshared = [item for item in items if not item.shared or self._form == "off"]
        groups: list[tuple[Sequence[EncodedRequest], Work]] = [
            (sort_by_length(unshared), self._run_plain)
        ]
        if self._form == "tree":
            groups.append((shared, self._run_tree))
        else:
            groups += [
                (sort_by_length(group), self._run_cached) for group in group_by_prefix(shared)
            ]
        return [
            (batch, work) for group, work in groups for batch in split_batches(group, self.rows)
        ]

    def _run_halving(self, work: Work, items: Sequence[EncodedRequest]) -> list[Reply]:
        """Run `items` together, or halves of them if memory runs out.

        Later batches are smaller then.
        """
        try:
            return work(items)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
        # Outside of the handler, because the error keeps the memory in use.
        if len(items) == 1:
            return [Reply(error=Fault("bad_request", TOO_LARGE))]
        half = len(items) // 2
        self.rows = max(1, min(self.rows, half))
        self._store.clear()
        release(self._replica.device)
        return [*self._run_halving(work, items[:half]), *self._run_halving(work, items[half:])]

    def _run_plain(self, items: Sequence[EncodedRequest]) -> list[Reply]:
        result = self._replica.run_plain([item.tokens for item in items])
        return self._make_replies(items, result, [0] * len(items))

    def _run_cached(self, items: Sequence[EncodedRequest]) -> list[Reply]:
        shared = self._store.shared_prefix(items)
        rows = [item.tokens[shared.length :] for item in items]
        result, _ = self._replica.continue_rows(shared.cache, shared.length, rows)
        return self._make_replies(
            items, result, saved_tokens(len(items), shared.length, shared.fresh)
        )

    def _run_tree(self, items: Sequence[EncodedRequest]) -> list[Reply]:
        groups = group_by_prefix(items)
        branches, saved = [], []
        for group in groups:
            length = min(item.shared for item in group)
            prefix = group[0].tokens[:length]
            branches.append(PrefixBranch(prefix, [item.tokens[length:] for item in group]))
            saved += saved_tokens(len(group), length, fresh=True)
        ordered = [item for group in groups for item in group]
        replies = self._make_replies(ordered, self._replica.run_tree(branches), saved)
        reply_of = {id(item): reply for item, reply in zip(ordered, replies, strict=True)}
        return [reply_of[id(item)] for item in items]

    def _make_replies(
        self, items: Sequence[EncodedRequest], result: NextTokenScores, saved: Sequence[int]
    ) -> list[Reply]:
        """Return the label values of every row, copied from the device in one transfer."""
        spellings_by_row = [
            (row, spelling)
            for row, item in enumerate(items)
            for spellings in item.labels.values()
            for spelling in spellings
        ]
        rows, ids = torch.tensor(spellings_by_row, device=result.logits.device).T
        values = self._replica.exact_logits(result, rows, ids) - result.logits.logsumexp(-1)[rows]
        remaining = iter(values.tolist())
        replies = []
        for item, cached in zip(items, saved, strict=True):
            logs = {
                label: _log_sum([next(remaining) for _ in spellings])
                for label, spellings in item.labels.items()
            }
            reply = Reply(
                text=max(logs, key=logs.__getitem__),
                finish="stop",
                usage=Usage(len(item.tokens), 1, cached),
                label_logprobs=logs,
                label_ids={label: list(ids) for label, ids in item.labels.items()},
                outside_mass=max(0.0, 1.0 - sum(map(math.exp, logs.values()))),
            )
            replies.append(reply)
        return replies


def _log_sum(values: Sequence[float]) -> float:
    """Return the log of the summed probability of all spellings of a label."""
    largest = max(values)
    if len(values) == 1 or largest == -math.inf:
        return largest
    return largest + math.log(sum(math.exp(value - largest) for value in values))


def saved_tokens(count: int, length: int, fresh: bool) -> list[int]:
    """Return the tokens that each question did not have to compute; the first one counts a fresh
    prefix."""
    return [0 if fresh and number == 0 else length for number in range(count)]
