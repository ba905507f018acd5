"""A transformers checkpoint in this process: requests in, batches through the model, replies
out."""

from __future__ import annotations

import asyncio
import importlib.util
import queue
import threading
from typing import Any

from keju.errors import Notice
from keju.models.base import Model
from keju.models.hf.encode import EncodedRequest, RequestEncoder
from keju.models.hf.load import Checkpoint, choose_devices, load
from keju.models.hf.metadata import describe
from keju.models.hf.settings import HFSettings
from keju.models.hf.worker import Answers, PassQueue, ReplicaWorker
from keju.signals import run_in_thread
from keju.types import Fault, Reply, Request, Sampling

GPU_SLOTS = 1024
"""Requests in flight per GPU: two to three passes, so that it never waits for questions."""
CPU_SLOTS = 64
ENCODED_AT_ONCE = 128
"""Number of requests tokenised together: enough for several cores, few enough to start a device
early."""

Question = tuple[Request, float, "asyncio.Future[Reply]"]


class HFModel(Model):
    """A causal language model of transformers.

    `ask` handles one request, but the work is done in batches. Waiting requests are grouped by
    prefix, one thread per device runs them, and the replies return to the event loop.
    """

    batches = True
    bounded = True

    def __init__(
        self, name: str, settings: HFSettings, *, checkpoint: Checkpoint | None = None
    ) -> None:
        if importlib.util.find_spec("transformers") is None:
            raise ModuleNotFoundError("transformers")
        self.name = name
        self.settings = settings
        devices = checkpoint.devices if checkpoint is not None else choose_devices(settings.device)
        per_device = CPU_SLOTS if devices[0].type == "cpu" else GPU_SLOTS
        self.slots = max(per_device, 4 * (settings.batch_size or 1)) * len(devices)
        self._checkpoint = checkpoint
        self._encoder: RequestEncoder | None = None
        self._inbox: queue.SimpleQueue[Question | None] = queue.SimpleQueue()
        self._pool = PassQueue()
        self._threads: list[threading.Thread] = []
        self._workers: list[ReplicaWorker] = []
        self._unanswered: set[asyncio.Future[Reply]] = set()

    @property
    def loading(self) -> Notice | None:
        """A notice, because libraries and weights take seconds to load."""
        return None if self._threads else Notice("model_loading", {"name": self.name})

    async def start(self) -> None:
        """Load the weights and start the threads; raise an error in one line on failure."""
        if self._threads:
            return
        self._loop = asyncio.get_running_loop()
        await run_in_thread(self._load)
        targets = {"encode": self._encode_forever}
        targets |= {str(number): worker.run for number, worker in enumerate(self._workers)}
        for name, target in targets.items():
            thread = threading.Thread(target=target, name=f"keju-hf-{name}", daemon=True)
            thread.start()
            self._threads.append(thread)

    async def preflight(self, sampling: Sampling) -> None:
        """Refuse settings that this checkpoint does not support, before the first question."""
        assert self._encoder is not None
        self._encoder.check(sampling)

    async def ask(self, request: Request, *, timeout: float) -> Reply:
        """Answer one request; `timeout` counts from the start of work on it."""
        future: asyncio.Future[Reply] = self._loop.create_future()
        self._unanswered.add(future)
        self._inbox.put((request, timeout, future))
        try:
            return await future
        finally:
            self._unanswered.discard(future)

    async def close(self) -> None:
        """End the threads after the current pass, and release the weights."""
        self._inbox.put(None)
        for worker in self._workers:
            worker.stop()
        self._pool.close()
        for thread in self._threads:
            await asyncio.to_thread(thread.join)
        for future in self._unanswered:
            future.cancel()
        self._workers, self._checkpoint = [], None

    def facts(self) -> dict[str, Any]:
        """Return everything that determines the numbers of a local checkpoint."""
        if self._checkpoint is None:
            return {"name": self.name}
        return describe(self.name, self.settings, self._checkpoint, self._workers)

    # Threads

    def _load(self) -> None:
        if self._checkpoint is None:
            self._checkpoint = load(self.settings)
        self._encoder = RequestEncoder(self._checkpoint, label_space=self.settings.label_space)
        self._workers = [
            ReplicaWorker(self._checkpoint, number, self.settings, self._pool, self._answer)
            for number in range(len(self._checkpoint.devices))
        ]

    def _encode_forever(self) -> None:
        """Tokenise waiting requests in batches."""
        assert self._encoder is not None
        while (question := self._inbox.get()) is not None:
            batch: list[Question | None] = [question]
            while len(batch) < ENCODED_AT_ONCE and batch[-1] and not self._inbox.empty():
                batch.append(self._inbox.get())
            pending = [entry for entry in batch if entry is not None and not entry[2].cancelled()]
            try:
                encoded = self._encoder.encode([request for request, _, _ in pending])
            except Exception as error:
                self._answer([(future, error) for _, _, future in pending])
                encoded, pending = [], []
            encoded_items: list[EncodedRequest] = []
            refusals: list[tuple[asyncio.Future[Reply], Reply]] = []
            for (_, timeout, future), item in zip(pending, encoded, strict=True):
                if isinstance(item, Fault):
                    refusals.append((future, Reply(error=item)))
                else:
                    item.future, item.timeout = future, timeout
                    encoded_items.append(item)
            self._pool.put(encoded_items)
            self._answer(refusals)
            if batch[-1] is None:
                return

    def _answer(self, replies: Answers) -> None:
        """Pass replies, or errors in their place, to the event loop in one call."""

        def resolve() -> None:
            for future, reply in replies:
                if future is None or future.done():
                    continue
                if isinstance(reply, Exception):
                    future.set_exception(reply)
                else:
                    future.set_result(reply)

        if replies and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(resolve)
