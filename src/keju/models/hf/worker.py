"""One thread for one device: takes passes from the pool and answers them."""

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
from keju.models.hf.alone import LoneWriter
from keju.models.hf.encode import Item
from keju.models.hf.forms import agrees, allows_own_steps, best_form
from keju.models.hf.generating import Writer
from keju.models.hf.load import Checkpoint
from keju.models.hf.pool import Pool, Size
from keju.models.hf.prefixes import PrefixStore
from keju.models.hf.replica import Replica
from keju.models.hf.scoring import LabelScorer
from keju.models.hf.settings import HFSettings, Reuse
from keju.types import Reply

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
