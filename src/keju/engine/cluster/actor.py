"""What runs in a process of the cluster: a model, a channel of its own, and blocks to ask.

Retries, rates and the breaker are those of its channel. What is answered is told as soon as there
are 16 answers or the first has waited for 0.2 seconds: so much is asked twice where an actor is
lost. At least once a second an actor says something, answers or not, so that one that hangs is
found out.
"""

from __future__ import annotations

import asyncio
import os
import platform
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import metadata
from time import monotonic
from typing import Any

from pydantic import SecretStr

from keju.config import TaskConfig
from keju.engine.channel import Channel, Limits
from keju.engine.cluster.wire import (
    LARGEST,
    Answer,
    Block,
    Opened,
    Orders,
    Report,
    Trouble,
    decode_block,
    decode_orders,
    encode,
)
from keju.engine.open_files import reserve_slots
from keju.errors import EndpointError, Interrupted, KejuError
from keju.models.registry import LOCAL, kind_of, make_model
from keju.types import Prefix, Request, Sampling

FLUSH_ANSWERS = 16
FLUSH_SECONDS = 0.2
BEAT = 1.0
"""Seconds after which an actor that has nothing to tell says so."""
KEPT_PREFIXES = 256
"""Models keep what they made of a prefix by its identity; so equal ones are one object here."""


class Actor:
    """Asks one model, or a part of what goes to an endpoint."""

    def __init__(self) -> None:
        self._channel: Channel | None = None
        self._samplings: list[Sampling] = []
        self._prefixes: dict[bytes, Prefix] = {}
        self._stopped = False

    async def hello(self) -> dict[str, str]:
        """Who this is; the first call, which shows that the actor has a place."""
        return {"node": platform.node(), "pid": str(os.getpid())} | versions()

    async def open(self, orders: bytes) -> AsyncIterator[bytes]:
        """Make the model ready: signs of life, and at last an `Opened`."""
        work = asyncio.ensure_future(self._open(decode_orders(orders)))
        while not work.done():
            await asyncio.wait({work}, timeout=BEAT)
            if not work.done():
                yield b""
        yield encode(work.result())

    async def _open(self, orders: Orders) -> Opened:
        try:
            with suppress(OSError):
                os.chdir(orders.folder)
            config = task_of(orders)
            model = make_model(config)
            limits = Limits.of(config, model)
            if model.facts().get("endpoint"):
                limits = replace(limits, concurrency=reserve_slots(limits.concurrency))
            self._channel = Channel(model, limits, seed=config.seed + orders.actor)
            self._samplings = orders.samplings
            await self._channel.open(orders.samplings)
        except KejuError as error:
            return Opened(trouble=Trouble.of(error))
        except Exception as error:  # its text may hold a secret, and Ray would log it
            problem = type(error).__name__
            return Opened(trouble=Trouble.of(EndpointError("ray_actor_broken", problem=problem)))
        most = self._channel.concurrency.most
        return Opened(model.facts(), most, model.slots, model.batches)

    async def ask(self, data: bytes) -> AsyncIterator[bytes]:
        """Ask the questions of a `Block`: one `Report` after the other."""
        assert self._channel is not None
        block = decode_block(data)
        prefix = self._known(Prefix(block.messages, block.lead))
        requests = block.requests(prefix, self._samplings[block.sampling])
        work = _Work(self._channel, block, requests)
        try:
            while not work.over:
                await work.news()
                yield encode(self._report(work))
        finally:
            work.cancel()

    def _report(self, work: _Work) -> Report:
        channel = self._channel
        assert channel is not None
        reason, trouble = channel.stop_reason, None
        if reason is not None and not self._stopped:
            trouble = Trouble.of(reason)
        return Report(
            work.answers(),
            list(work.begun),
            channel.in_flight,
            channel.concurrency.limit,
            channel.retries,
            channel.pause,
            channel.obstacle,
            trouble,
            channel.oldest,
            channel.odd_wait,
        )

    def _known(self, prefix: Prefix) -> Prefix:
        """The same prefix as it came first."""
        if len(self._prefixes) >= KEPT_PREFIXES and prefix.digest not in self._prefixes:
            del self._prefixes[next(iter(self._prefixes))]
        return self._prefixes.setdefault(prefix.digest, prefix)

    async def stop(self) -> None:
        """Send nothing more; what is in flight comes in, and is told."""
        self._stopped = True
        if self._channel is not None:
            self._channel.stop(Interrupted("interrupted"))


class _Work:
    """The questions of a block on their way through a channel."""

    def __init__(self, channel: Channel, block: Block, requests: Sequence[Request]) -> None:
        self._channel = channel
        self._width = asyncio.Semaphore(block.width) if block.width else None
        self.begun: dict[int, None] = {}
        """The keys of what is being asked."""
        self._answers: list[bytes] = []
        self._size = 0
        self._first = 0.0
        """When the oldest answer that was not told came."""
        self._changed = asyncio.Event()
        self._crash: BaseException | None = None
        self._tasks = {
            asyncio.create_task(self._ask(question.key, request, question.attempts))
            for question, request in zip(block.questions, requests, strict=True)
        }
        for task in list(self._tasks):
            task.add_done_callback(self._left)

    @property
    def over(self) -> bool:
        """Whether all is answered, or the channel has stopped, and everything was told."""
        if self._crash is not None:  # its text may hold a secret, and Ray would log it
            raise RuntimeError(f"an actor broke down: {type(self._crash).__name__}")
        return not self._tasks and not self._answers

    async def _ask(self, key: int, request: Request, attempts: int) -> None:
        if self._width is not None:
            async with self._width:
                await self._ask_in_slot(key, request, attempts)
        else:
            await self._ask_in_slot(key, request, attempts)

    async def _ask_in_slot(self, key: int, request: Request, attempts: int) -> None:
        channel = self._channel
        try:
            async with channel.slot():
                self.begun[key] = None
                try:
                    exchange = await channel.ask(request, attempts=attempts or None)
                finally:
                    del self.begun[key]
        except KejuError as error:
            if error is channel.stop_reason:
                return  # the driver puts it back
            raise
        answer = encode(Answer(key, exchange.reply, exchange.faults, exchange.seconds))
        if not self._answers:
            self._first = monotonic()
        self._answers.append(answer)
        self._size += len(answer)

    def _left(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, KejuError):
            self._channel.stop(error)
        elif error is not None:
            self._crash = error
        self._changed.set()

    async def news(self) -> None:
        """Wait until there is enough to tell, or nothing was told for a while."""
        until = monotonic() + BEAT
        while self._tasks and self._crash is None:
            if len(self._answers) >= FLUSH_ANSWERS or self._size >= LARGEST:
                return
            due = min(until, self._first + FLUSH_SECONDS) if self._answers else until
            if (wait := due - monotonic()) <= 0:
                return
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._changed.wait()

    def answers(self) -> list[bytes]:
        """What was not told yet, as much as a message may hold."""
        size = count = 0
        for answer in self._answers:
            if count and size + len(answer) > LARGEST:
                break
            size += len(answer)
            count += 1
        told, self._answers = self._answers[:count], self._answers[count:]
        self._size -= size
        return told

    def cancel(self) -> None:
        for task in self._tasks:
            task.cancel()


def versions() -> dict[str, str]:
    """What must be the same in all processes of a run."""
    minor = ".".join(platform.python_version_tuple()[:2])
    return {"keju": metadata.version("keju"), "python": minor}


def task_of(orders: Orders) -> TaskConfig:
    """The task as this actor works on it: with its part of an endpoint's limits."""
    settings: dict[str, Any] = dict(orders.settings)
    kind = kind_of(settings["model"])
    if kind.extra is LOCAL and orders.threads:
        settings["model_args"] = {"threads": orders.threads} | settings.get("model_args", {})
    config = TaskConfig(**settings)
    generation = config.generation_config
    headers = orders.secrets.get("extra_headers", {})
    key = orders.secrets.get("api_key")
    update: dict[str, Any] = {
        "api_key": SecretStr(key) if key else None,
        "headers": orders.secrets.get("headers", {}),
        "generation_config": generation.model_copy(update={"extra_headers": headers}),
        "rpm": config.rpm and config.rpm / orders.actors,
        "tpm": config.tpm and config.tpm / orders.actors,
    }
    if not kind.local:
        update["eval_batch_size"] = share(config.eval_batch_size, orders.actor, orders.actors)
    return config.model_copy(update=update)


def share(whole: int, part: int, parts: int) -> int:
    """One of the parts of a number that differ by one at most: 10 in 3 parts is 4, 3 and 3."""
    return max(1, whole // parts + (part < whole % parts))


def orders_of(
    config: TaskConfig, samplings: Sequence[Sampling], actor: int, actors: int, threads: int
) -> Orders:
    """What an actor is told, by the driver."""
    settings = config.model_dump(mode="json", exclude_unset=True)
    settings.get("generation_config", {}).pop("extra_headers", None)
    for name in ("executor", "ray", "run_id", "resume", "replace", "judge", "budget"):
        settings.pop(name, None)
    secrets = {
        "api_key": config.api_key.get_secret_value() if config.api_key else None,
        "headers": dict(config.headers),
        "extra_headers": dict(config.generation_config.extra_headers),
    }
    folder = os.getcwd()  # noqa: PTH109
    return Orders(settings, secrets, list(samplings), actor, actors, threads, folder)
