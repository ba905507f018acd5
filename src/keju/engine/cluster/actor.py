"""The code that runs in a process of the cluster: a model, a channel, and blocks to ask.

Its channel handles retries, rates and the breaker. Answers are reported as soon as there are 16, or
when the first has waited for 0.2 seconds. If an actor is lost, only unreported questions are asked
again. An actor sends a report at least once per second, with or without answers, so that the driver
notices one that hangs.
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
from keju.engine.channel import Channel, ChannelLimits
from keju.engine.cluster.wire import (
    LARGEST,
    ActorReady,
    ActorReport,
    ActorSettings,
    BlockAnswer,
    RequestBlock,
    WireError,
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
"""Seconds after which an actor without news sends an empty report."""
KEPT_PREFIXES = 256
"""Models cache their work on a prefix by its identity, so equal prefixes are one object here."""


class Actor:
    """Asks one model, or a part of the requests to an endpoint."""

    def __init__(self) -> None:
        self._channel: Channel | None = None
        self._samplings: list[Sampling] = []
        self._prefixes: dict[bytes, Prefix] = {}
        self._stopped = False

    async def hello(self) -> dict[str, str]:
        """Return the identity of this actor. This first call shows that it has a place."""
        return {"node": platform.node(), "pid": str(os.getpid())} | read_versions()

    async def open(self, orders: bytes) -> AsyncIterator[bytes]:
        """Prepare the model. Yield signs of life, and finally an `ActorReady`."""
        work = asyncio.ensure_future(self._open(decode_orders(orders)))
        while not work.done():
            await asyncio.wait({work}, timeout=BEAT)
            if not work.done():
                yield b""
        yield encode(work.result())

    async def _open(self, orders: ActorSettings) -> ActorReady:
        try:
            with suppress(OSError):
                os.chdir(orders.folder)
            config = make_task(orders)
            model = make_model(config)
            limits = ChannelLimits.of(config, model)
            if model.facts().get("endpoint"):
                limits = replace(limits, concurrency=reserve_slots(limits.concurrency))
            self._channel = Channel(model, limits, seed=config.seed + orders.actor)
            self._samplings = orders.samplings
            await self._channel.open(orders.samplings)
        except KejuError as error:
            return ActorReady(trouble=WireError.of(error))
        except Exception as error:  # its text may hold a secret, and Ray would log it
            problem = type(error).__name__
            return ActorReady(
                trouble=WireError.of(EndpointError("ray_actor_broken", problem=problem))
            )
        slots = self._channel.concurrency.maximum
        return ActorReady(model.facts(), slots, model.slots, model.batches)

    async def ask(self, data: bytes) -> AsyncIterator[bytes]:
        """Ask the questions of a `RequestBlock`. Yield one `ActorReport` after the other."""
        assert self._channel is not None
        block = decode_block(data)
        prefix = self._shared_prefix(Prefix(block.messages, block.lead))
        requests = block.requests(prefix, self._samplings[block.sampling])
        work = _BlockWork(self._channel, block, requests)
        try:
            while not work.is_done:
                await work.wait_for_news()
                yield encode(self._report(work))
        finally:
            work.cancel()

    def _report(self, work: _BlockWork) -> ActorReport:
        channel = self._channel
        assert channel is not None
        reason, trouble = channel.stop_reason, None
        if reason is not None and not self._stopped:
            trouble = WireError.of(reason)
        return ActorReport(
            work.take_answers(),
            list(work.keys_in_flight),
            channel.in_flight,
            channel.concurrency.limit,
            channel.retries,
            channel.pause,
            channel.obstacle,
            trouble,
            channel.oldest,
            channel.odd_wait,
        )

    def _shared_prefix(self, prefix: Prefix) -> Prefix:
        """Return the first object that is equal to this prefix."""
        if len(self._prefixes) >= KEPT_PREFIXES and prefix.digest not in self._prefixes:
            del self._prefixes[next(iter(self._prefixes))]
        return self._prefixes.setdefault(prefix.digest, prefix)

    async def stop(self) -> None:
        """Send nothing more. Requests in flight finish and are reported."""
        self._stopped = True
        if self._channel is not None:
            self._channel.stop(Interrupted("interrupted"))


class _BlockWork:
    """The questions of a block on their way through a channel."""

    def __init__(self, channel: Channel, block: RequestBlock, requests: Sequence[Request]) -> None:
        self._channel = channel
        self._width = asyncio.Semaphore(block.width) if block.width else None
        self.keys_in_flight: dict[int, None] = {}
        """The keys of the questions in flight."""
        self._answers: list[bytes] = []
        self._size = 0
        self._oldest_answer = 0.0
        """The time of the oldest answer that was not reported."""
        self._changed = asyncio.Event()
        self._crash: BaseException | None = None
        self._tasks = {
            asyncio.create_task(self._ask(question.key, request, question.attempts))
            for question, request in zip(block.questions, requests, strict=True)
        }
        for task in list(self._tasks):
            task.add_done_callback(self._finish_task)

    @property
    def is_done(self) -> bool:
        """Whether all is answered, or the channel has stopped, and everything was reported."""
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
                self.keys_in_flight[key] = None
                try:
                    exchange = await channel.ask(request, attempts=attempts or None)
                finally:
                    del self.keys_in_flight[key]
        except KejuError as error:
            if error is channel.stop_reason:
                return  # the driver puts it back
            raise
        answer = encode(BlockAnswer(key, exchange.reply, exchange.faults, exchange.seconds))
        if not self._answers:
            self._oldest_answer = monotonic()
        self._answers.append(answer)
        self._size += len(answer)

    def _finish_task(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, KejuError):
            self._channel.stop(error)
        elif error is not None:
            self._crash = error
        self._changed.set()

    async def wait_for_news(self) -> None:
        """Wait until there is enough to report, or nothing was reported for a while."""
        beat_time = monotonic() + BEAT
        while self._tasks and self._crash is None:
            if len(self._answers) >= FLUSH_ANSWERS or self._size >= LARGEST:
                return
            due = (
                min(beat_time, self._oldest_answer + FLUSH_SECONDS) if self._answers else beat_time
            )
            if (wait := due - monotonic()) <= 0:
                return
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._changed.wait()

    def take_answers(self) -> list[bytes]:
        """Return the answers that were not reported yet, as many as fit in a message."""
        size = count = 0
        for answer in self._answers:
            if count and size + len(answer) > LARGEST:
                break
            size += len(answer)
            count += 1
        ready_answers, self._answers = self._answers[:count], self._answers[count:]
        self._size -= size
        return ready_answers

    def cancel(self) -> None:
        for task in self._tasks:
            task.cancel()


def read_versions() -> dict[str, str]:
    """Return the versions that must be the same in all processes of a run."""
    minor = ".".join(platform.python_version_tuple()[:2])
    return {"keju": metadata.version("keju"), "python": minor}


def make_task(orders: ActorSettings) -> TaskConfig:
    """Return the task of this actor, with its part of an endpoint's limits."""
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
        update["eval_batch_size"] = divide_slots(
            config.eval_batch_size, orders.actor, orders.actors
        )
    return config.model_copy(update=update)


def divide_slots(total: int, index: int, parts: int) -> int:
    """Return one part of a number. The parts differ by at most one: 10 in 3 parts is 4, 3 and 3."""
    return max(1, total // parts + (index < total % parts))


def make_orders(
    config: TaskConfig, samplings: Sequence[Sampling], actor: int, actors: int, threads: int
) -> ActorSettings:
    """Return the orders of an actor. The driver calls this."""
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
    return ActorSettings(settings, secrets, list(samplings), actor, actors, threads, folder)
