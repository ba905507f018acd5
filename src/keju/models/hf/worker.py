"""The queue of encoded questions, and the thread of each device that runs passes."""

from __future__ import annotations

import asyncio
import copy
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from keju.errors import EndpointError
from keju.models.base import one_line
from keju.models.hf.continuation_scoring import ContinuationScorer
from keju.models.hf.encode import EncodedRequest
from keju.models.hf.forms import best_form, form_agrees, supports_row_attention
from keju.models.hf.generation import TextGenerator, TransformersGenerator
from keju.models.hf.load import Checkpoint
from keju.models.hf.replica import DeviceReplica
from keju.models.hf.scoring import LabelScorer, PrefixStore, group_by_prefix
from keju.models.hf.settings import HFSettings, Reuse
from keju.models.labels import common_length
from keju.types import Reply, Sampling

QUIET = 0.005
"""Seconds without an arrival after which no more questions are expected for now."""
ROUNDS = 8
"""Number of batches that are taken together, so that rows of one batch are of similar length."""


@dataclass(frozen=True)
class PassSize:
    """The limits of one pass."""

    rows: int
    tokens: int
    form: Reuse


class PassQueue:
    """Questions in order of arrival, handed out in passes; thread-safe."""

    def __init__(self) -> None:
        self._waiting: list[EncodedRequest] = []
        self._changed = threading.Condition()
        self._closed = False

    def put(self, items: Sequence[EncodedRequest]) -> None:
        """Add questions."""
        with self._changed:
            self._waiting.extend(items)
            self._changed.notify_all()

    def take(self, size: PassSize) -> list[EncodedRequest]:
        """Wait for the next pass, all of one kind; empty after the pool is closed."""
        with self._changed:
            is_settled = False
            while not self._closed:
                batch = (
                    choose_batch(self._waiting, size, settled=is_settled) if self._waiting else []
                )
                if batch:
                    self._remove(batch)
                    return batch
                waiting_before = len(self._waiting)
                self._changed.wait(QUIET if waiting_before else None)
                is_settled = bool(waiting_before) and len(self._waiting) == waiting_before
            return []

    def refill(self, sampling: Sampling, count: int) -> list[EncodedRequest]:
        """Return at most `count` further questions with this sampling, without waiting."""
        with self._changed:
            matching = [item for item in self._waiting if item.request.sampling == sampling]
            batch = [item for group in group_by_prefix(matching) for item in group][:count]
            self._remove(batch)
            return batch

    def close(self) -> None:
        """Wake all waiting threads, and drop the remaining questions."""
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._changed.notify_all()

    def _remove(self, batch: Sequence[EncodedRequest]) -> None:
        batch_ids = {id(item) for item in batch}
        self._waiting = [item for item in self._waiting if id(item) not in batch_ids]


def choose_batch(
    waiting: Sequence[EncodedRequest], size: PassSize, *, settled: bool
) -> list[EncodedRequest]:
    """Return the questions of the next pass, or none if it is better to wait for more.

    Whole groups of one prefix are preferred, because a prefix that is split over passes is computed
    twice. `settled` says that no question has arrived for a while.
    """
    sampling = waiting[0].request.sampling
    matching = [item for item in waiting if item.request.sampling == sampling]
    if sampling.decode == "continuations":
        return _choose_continuations(matching, size, settled=settled)
    if sampling.decode != "labels":
        return matching[: size.rows] if settled or len(matching) >= size.rows else []
    groups = group_by_prefix(matching)
    if size.form != "tree":
        limit = size.rows * ROUNDS
        batch = matching if size.form == "off" else groups[0]
        complete = settled or len(groups) > 1 or len(batch) >= limit
        return batch[:limit] if complete else []
    return _choose_tree(groups, size, settled=settled)


def _choose_continuations(
    matching: Sequence[EncodedRequest], size: PassSize, *, settled: bool
) -> list[EncodedRequest]:
    """Return questions in order of arrival for several rounds, or for two packed passes. Those
    that begin like the one before need few tokens."""
    limit = size.rows * ROUNDS
    batch: list[EncodedRequest] = []
    tokens, previous = 0, None
    for item in matching:
        if len(batch) >= limit or (size.form == "tree" and tokens >= 2 * size.tokens):
            return batch
        tokens += sum(tree.length for tree in item.trees)
        tokens -= common_length(previous.tokens, item.tokens) if previous else 0
        batch.append(item)
        previous = item
    return batch if settled or len(batch) >= limit else []


def _choose_tree(
    groups: Sequence[Sequence[EncodedRequest]], size: PassSize, *, settled: bool
) -> list[EncodedRequest]:
    """Return groups in order of arrival, up to the size of a pass."""
    batch: list[EncodedRequest] = []
    room = size.tokens
    for group in groups:
        half_full = room <= size.tokens / 2
        shared = min(item.shared for item in group)
        cost = sum(len(item.tokens) for item in group) - (len(group) - 1) * shared
        if cost > room or len(batch) + len(group) > size.rows:
            return batch if half_full else _fill_up(batch, group, room - shared, size.rows)
        if group is groups[-1] and batch and half_full:
            return batch  # more questions of the last group may still arrive
        batch += group
        room -= cost
    return batch if settled else []


def _fill_up(
    batch: list[EncodedRequest], group: Sequence[EncodedRequest], room: int, rows: int
) -> list[EncodedRequest]:
    """Return `batch` and as many questions of a group as fit; at least one question in total."""
    shared = min(item.shared for item in group)
    for item in group:
        question_tokens = len(item.tokens) - shared
        if (question_tokens > room and batch) or len(batch) >= rows:
            break
        batch.append(item)
        room -= question_tokens
    return batch


Answers = Sequence[tuple["asyncio.Future[Any] | None", "Reply | Exception"]]
"""Futures (or None) and their replies or errors."""

CPU_ROWS = 16
GPU_ROWS = 64
CPU_LABEL_ROWS = 4
"""Enough for the arithmetic of a core; more rows would only add padding."""
TREE_ROWS = 4096
"""A packed pass is limited by its tokens; this only limits the work of the output head."""
LEAST_TOKENS, MOST_TOKENS = 2048, 32768
"""Tokens of a packed pass: with fewer the device is not busy, and more bring no gain."""
MEMORY_SHARE = 0.25
"""Share of the free memory that the activations of a packed pass may use."""


class ReplicaWorker:
    """Runs passes on one replica until it is stopped."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        number: int,
        settings: HFSettings,
        pool: PassQueue,
        answer: Callable[[Answers], None],
    ) -> None:
        device = checkpoint.devices[number]
        net = checkpoint.net if number == 0 else copy.deepcopy(checkpoint.net)
        self.replica = DeviceReplica(net, device)
        self.form: Reuse = best_form(self.replica, settings.reuse)
        has_cache = self.form in ("tree", "cache") or form_agrees(self.replica, "cache")
        self.replica.uses_row_attention = supports_row_attention(self.replica)
        self.tokens = settings.batch_tokens or tokens_per_pass(checkpoint.net.config, self.replica)
        on_cpu = device.type == "cpu"
        rows, label_rows = (CPU_ROWS, CPU_LABEL_ROWS) if on_cpu else (GPU_ROWS, GPU_ROWS)
        label_rows = TREE_ROWS if self.form == "tree" else label_rows
        store = PrefixStore(self.replica)
        self._pool = pool
        self._answer = answer
        self._stopped = threading.Event()
        self.scorer = LabelScorer(self.replica, self.form, settings.batch_size or label_rows, store)
        self.continuation_scorer = ContinuationScorer(
            self.replica, self.form, settings.batch_size or label_rows, self.tokens, store
        )
        self.writer = (TextGenerator if has_cache else TransformersGenerator)(
            self.replica,
            checkpoint,
            store,
            rows=settings.batch_size or rows,
            reuse=self.form != "off",
            stopping=self._stopped.is_set,
        )

    def stop(self) -> None:
        """Stop after the current pass or token."""
        self._stopped.set()

    def run(self) -> None:
        """Run passes until stopped."""
        while not self._stopped.is_set():
            batch = self._pool.take(PassSize(self.scorer.rows, self.tokens, self.form))
            if not batch:
                break
            try:
                self._work(batch)
            except Exception as error:
                failure = EndpointError(
                    "hf_broke_down", device=self.replica.device, problem=one_line(str(error))
                )
                self._answer([(item.future, failure) for item in batch])
        self.replica.close()

    def _work(self, batch: list[EncodedRequest]) -> None:
        """Answer a batch, including the questions that are added to it on the way."""
        sampling = batch[0].request.sampling
        if sampling.decode != "generate":
            scorer = self.scorer if sampling.decode == "labels" else self.continuation_scorer
            for answered in scorer.run(batch):
                self._answer([(item.future, reply) for item, reply in answered])
                if self._stopped.is_set():
                    break
            return

        def refill(room: int) -> list[EncodedRequest]:
            new_items = self._pool.refill(sampling, room)
            batch.extend(new_items)
            return new_items

        def report_reply(item: EncodedRequest, reply: Reply) -> None:
            self._answer([(item.future, reply)])

        self.writer.run(batch, refill, report_reply)


def tokens_per_pass(config: Any, replica: DeviceReplica) -> int:
    """Return the tokens of a packed pass whose activations fit into a share of the free memory."""
    if replica.device.type != "cuda":
        return LEAST_TOKENS
    text = config.get_text_config()
    inner = getattr(text, "intermediate_size", None) or 4 * text.hidden_size
    bytes_per_token: int = (8 * text.hidden_size + 4 * inner) * replica.dtype.itemsize
    free, _ = torch.cuda.mem_get_info(replica.device)
    fitting = int(free * MEMORY_SHARE) // bytes_per_token
    return max(LEAST_TOKENS, min(MOST_TOKENS, fitting))
