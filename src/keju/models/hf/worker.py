"""Where encoded questions wait, and the thread of each device that takes passes from there."""

from __future__ import annotations

import asyncio
import copy
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from keju.errors import EndpointError
from keju.models.faults import one_line
from keju.models.hf.encode import Item
from keju.models.hf.forms import agrees, allows_own_steps, best_form
from keju.models.hf.load import Checkpoint
from keju.models.hf.replica import Replica
from keju.models.hf.scoring import LabelScorer, PrefixStore, by_prefix
from keju.models.hf.settings import HFSettings, Reuse
from keju.models.hf.writing import LoneWriter, Writer
from keju.types import Reply, Sampling

QUIET = 0.005
"""Seconds without an arrival after which nothing more is expected for the moment."""
ROUNDS = 8
"""Batches that are taken together, so that rows of one batch are of similar length."""


@dataclass(frozen=True)
class Size:
    """How much one pass may hold."""

    rows: int
    tokens: int
    form: Reuse


class Pool:
    """Questions in order of arrival, given out in passes; safe between threads."""

    def __init__(self) -> None:
        self._waiting: list[Item] = []
        self._changed = threading.Condition()
        self._closed = False

    def put(self, items: Sequence[Item]) -> None:
        """Let questions in."""
        with self._changed:
            self._waiting.extend(items)
            self._changed.notify_all()

    def take(self, size: Size) -> list[Item]:
        """Wait for the next pass: all of one kind; empty when the pool is closed."""
        with self._changed:
            settled = False
            while not self._closed:
                chosen = choose(self._waiting, size, settled=settled) if self._waiting else []
                if chosen:
                    self._remove(chosen)
                    return chosen
                before = len(self._waiting)
                self._changed.wait(QUIET if before else None)
                settled = bool(before) and len(self._waiting) == before
            return []

    def refill(self, sampling: Sampling, count: int) -> list[Item]:
        """At most `count` further questions with this sampling, without waiting."""
        with self._changed:
            same = [item for item in self._waiting if item.request.sampling == sampling]
            chosen = [item for group in by_prefix(same) for item in group][:count]
            self._remove(chosen)
            return chosen

    def close(self) -> list[Item]:
        """Let nobody wait any longer; return what was left."""
        with self._changed:
            self._closed = True
            left, self._waiting = self._waiting, []
            self._changed.notify_all()
            return left

    def _remove(self, chosen: Sequence[Item]) -> None:
        taken = {id(item) for item in chosen}
        self._waiting = [item for item in self._waiting if id(item) not in taken]


def choose(waiting: Sequence[Item], size: Size, *, settled: bool) -> list[Item]:
    """The questions of the next pass, or none where it is better to wait for more.

    Whole groups of one prefix are preferred: a prefix that is split over passes is computed
    twice. `settled` says that nothing has arrived for a while.
    """
    sampling = waiting[0].request.sampling
    same = [item for item in waiting if item.request.sampling == sampling]
    if sampling.decode != "labels":
        return same[: size.rows] if settled or len(same) >= size.rows else []
    groups = by_prefix(same)
    if size.form != "tree":
        most = size.rows * ROUNDS
        chosen = same if size.form == "off" else groups[0]
        complete = settled or len(groups) > 1 or len(chosen) >= most
        return chosen[:most] if complete else []
    return _whole_groups(groups, size, settled=settled)


def _whole_groups(groups: Sequence[list[Item]], size: Size, *, settled: bool) -> list[Item]:
    """Groups in order of arrival up to the size of a pass; the last one may still be growing."""
    chosen: list[Item] = []
    room = size.tokens
    for number, group in enumerate(groups):
        shared = min(item.shared for item in group)
        cost = shared + sum(len(item.tokens) - shared for item in group)
        growing = number == len(groups) - 1
        if cost > room or len(chosen) + len(group) > size.rows:
            return chosen if room <= size.tokens / 2 else chosen + _part(group, room, size, chosen)
        if growing and chosen and room <= size.tokens / 2:
            return chosen
        chosen += group
        room -= cost
    return chosen if settled else []


def _part(group: Sequence[Item], room: int, size: Size, chosen: Sequence[Item]) -> list[Item]:
    """As much of a group as there is room for; at least one question if nothing else is chosen."""
    shared = min(item.shared for item in group)
    room -= shared
    part: list[Item] = []
    for item in group:
        own = len(item.tokens) - shared
        if (own > room and (part or chosen)) or len(chosen) + len(part) >= size.rows:
            break
        part.append(item)
        room -= own
    return part


Answer = Callable[[Sequence[tuple["asyncio.Future[Any]", "Reply | Exception"]]], None]

CPU_ROWS = 16
GPU_ROWS = 64
CPU_LABEL_ROWS = 4
"""Enough to fill a core's arithmetic; more rows would only be padded to the longest."""
TREE_ROWS = 4096
"""A packed pass is limited by its tokens; this only bounds the output head's part."""
LEAST_TOKENS, MOST_TOKENS = 2048, 32768
"""Of a packed pass: below, the device is not busy; above, there is nothing left to gain."""
MEMORY_SHARE = 0.25
"""Share of the free memory that the activations of a packed pass may take."""


@dataclass(frozen=True)
class Limits:
    """What the user set, where it was set."""

    rows: int | None
    tokens: int | None
    reuse: Reuse

    @classmethod
    def of(cls, settings: HFSettings) -> Limits:
        """The limits of these settings."""
        return cls(settings.batch_size, settings.batch_tokens, settings.reuse)


class Worker:
    """Works for one replica until it is stopped."""

    def __init__(
        self, checkpoint: Checkpoint, number: int, limits: Limits, pool: Pool, answer: Answer
    ) -> None:
        device = checkpoint.devices[number]
        net = checkpoint.net if number == 0 else copy.deepcopy(checkpoint.net)
        self.replica = Replica(net, device)
        self.form: Reuse = best_form(self.replica, limits.reuse)
        cached = self.form in ("tree", "cache") or agrees(self.replica, "cache")
        self.replica.own_steps = allows_own_steps(self.replica)
        self.tokens = limits.tokens or pass_tokens(checkpoint.net.config, self.replica)
        rows = limits.rows or (CPU_ROWS if device.type == "cpu" else GPU_ROWS)
        label_rows = limits.rows or (CPU_LABEL_ROWS if device.type == "cpu" else GPU_ROWS)
        if self.form == "tree" and limits.rows is None:
            label_rows = TREE_ROWS
        store = PrefixStore(self.replica)
        self._pool = pool
        self._answer = answer
        self._stopped = threading.Event()
        self.scorer = LabelScorer(self.replica, self.form, label_rows, store)
        self.writer = (Writer if cached else LoneWriter)(
            self.replica,
            checkpoint.tokenizer,
            store,
            eos=checkpoint.eos,
            context=checkpoint.context,
            rows=rows,
            reuse=self.form != "off",
            stopping=self._stopped.is_set,
        )

    def stop(self) -> None:
        """End after the pass, or the token, that is under way."""
        self._stopped.set()

    def run(self) -> None:
        """Work until stopped."""
        while not self._stopped.is_set():
            held = self._pool.take(self._size())
            if not held:
                break
            try:
                self._work(held)
            except Exception as error:
                told = f"the model broke down on {self.replica.device}: {one_line(str(error))}"
                failure = EndpointError(f"{told}; what was answered is saved, resume the run")
                self._answer([(item.future, failure) for item in held if item.future is not None])
        self.replica.close()

    def _size(self) -> Size:
        return Size(self.scorer.rows, self.tokens, self.form)

    def _work(self, held: list[Item]) -> None:
        """Answer what is held; whatever is taken up on the way is held from then on too."""
        sampling = held[0].request.sampling
        if sampling.decode == "labels":
            for answered in self.scorer.run(held):
                self._answer([(i.future, reply) for i, reply in answered if i.future is not None])
                if self._stopped.is_set():
                    break
            return

        def refill(room: int) -> list[Item]:
            more = self._pool.refill(sampling, room)
            held.extend(more)
            return more

        self.writer.run(held, refill, self._done)

    def _done(self, item: Item, reply: Reply) -> None:
        if item.future is not None:
            self._answer([(item.future, reply)])


def pass_tokens(config: Any, replica: Replica) -> int:
    """Tokens of a packed pass whose activations fit into a share of the free memory."""
    if replica.device.type != "cuda":
        return LEAST_TOKENS
    text = config.get_text_config()
    inner = getattr(text, "intermediate_size", None) or 4 * text.hidden_size
    bytes_per_token: int = (8 * text.hidden_size + 4 * inner) * replica.dtype.itemsize
    free, _ = torch.cuda.mem_get_info(replica.device)
    fitting = int(free * MEMORY_SHARE) // bytes_per_token
    return max(LEAST_TOKENS, min(MOST_TOKENS, fitting))
