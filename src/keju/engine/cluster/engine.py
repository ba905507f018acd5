"""Which questions an actor gets, and what becomes of them.

Each actor works on a few blocks at once, each a stream of reports:

    take a block   of one prefix, at most 100 questions, fewer towards the end
    reports come   an answer counts if its question is open in that block; it is journalled
    the block ends or its actor is lost: what is open goes back to the front

A question that three actors were lost with, while they were asking it, is an error: perhaps it is
what ends them. It is asked again when the run is resumed.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from math import ceil
from typing import NamedTuple

from keju.engine.channel import FINAL, Exchange
from keju.engine.cluster.crew import BLOCK, Crew, Hand
from keju.engine.cluster.nodes import Lost
from keju.engine.cluster.wire import (
    LARGEST,
    Block,
    Report,
    decode_answer,
    decode_report,
    encode,
    question_of,
)
from keju.engine.loop import Engine
from keju.engine.queue import Held, Queue, Unit
from keju.engine.watching import Follower
from keju.errors import KejuError
from keju.runs.journal import Journal
from keju.types import Fault, Reply, Request

MOST_LOSSES = 3
"""Actors that are lost while they ask a question, before it is an error."""
LANES = 1 << 20
"""More lanes than an actor has."""


class Entry(NamedTuple):
    """A unit and its request."""

    unit: Unit
    request: Request


class _Handed:
    """A block in the hands of an actor."""

    def __init__(self, entries: list[Entry], reserved: list[int], width: int) -> None:
        self.open = dict(enumerate(entries))
        """What has no answer yet, by key."""
        self.reserved = dict(enumerate(reserved))
        """The attempts that are set aside for each of them, where a budget counts requests."""
        self.begun = list(range(min(width, len(entries))))
        """What its actor is asking, as far as it has told."""
        self.answered = False


class ClusterEngine(Engine):
    """Has actors solve the units of the queues, and journals every reply."""

    channel: Crew

    def __init__(
        self,
        crew: Crew,
        queues: Iterable[Queue],
        journal: Journal,
        *,
        on_progress: Callable[[], None] = lambda: None,
        on_session: Callable[[], None] = lambda: None,
        follower: Follower | None = None,
    ) -> None:
        super().__init__(
            crew,
            queues,
            journal,
            on_progress=on_progress,
            on_session=on_session,
            follower=follower,
        )
        self._queue: Queue
        self._back: deque[Entry] = deque()
        """What an actor was given and did not answer."""
        self._over: dict[int, Entry] = {}
        """By lane: what was taken and has another prefix than the block before it."""
        self._losses: Counter[Unit] = Counter()
        self._active = 0
        """Blocks in the hands of actors."""
        self._outstanding = 0
        """Questions in the hands of actors."""
        self._reserved = 0
        self._streams = 1
        self._news = asyncio.Event()
        crew.work, crew.changed = self._serve, self._wake

    async def run(self) -> KejuError | None:
        """Work until all queues are empty; return what stopped it early, if anything did."""
        self._news = asyncio.Event()
        return await super().run()

    @property
    def unasked(self) -> int | None:
        """Units of the present queue that no actor has; None before there is one."""
        left = super().unasked
        return None if left is None else left + len(self._back) + len(self._over)

    def abort(self) -> None:
        """Stop now; what the actors have in their hands is asked again on resume."""
        super().abort()
        self._all_done.set()

    def _start_worker(self) -> None:
        """Another queue is there: the actors work on it."""
        self.channel.begun.set()
        self._wake()

    def _wake(self) -> None:
        """Let every stream look again, and see whether all is done."""
        self._news.set()
        self._news = asyncio.Event()
        self._look()

    def _look(self) -> None:
        """See whether all is done."""
        crew = self.channel
        if crew.crash is not None:
            self._crash = self._crash or crew.crash
        if not crew.begun.is_set():
            return
        left = self._queue.left or self._back or self._over
        over = not self._active and (crew.stop_reason is not None or not left)
        if over or self._crash is not None:
            self._all_done.set()

    async def _serve(self, hand: Hand) -> None:
        """Have an actor work on some blocks at once until the run stops; raises Lost."""
        lanes = self.channel.lanes
        streams = hand.streams(lanes)
        self._streams = max(self._streams, streams * self.channel.actors)
        tasks = [
            asyncio.create_task(self._stream(hand, hand.place * LANES + lane, int(lanes)))
            for lane in range(streams)
        ]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _stream(self, hand: Hand, lane: int, width: int) -> None:
        """One block after the other."""
        try:
            while (block := await self._next(hand, lane)) is not None:
                try:
                    async for item in hand.hired.stream("ask", self._encoded(block, width)):
                        await self._take_in(hand, block, decode_report(item))
                    if block.open and not block.answered and self.channel.stop_reason is None:
                        raise Lost("it ended a block without an answer")
                except Lost:
                    await self._count_loss(block)
                    raise
                finally:
                    self._put_back(block)
        finally:
            if (entry := self._over.pop(lane, None)) is not None:
                self._back.append(entry)
            self._wake()

    # Blocks

    async def _next(self, hand: Hand, lane: int) -> _Handed | None:
        """The next block of a stream, when there is one; None when the run stops."""
        while self.channel.stop_reason is None:
            news = self._news
            if (block := self._block(hand, lane)) is not None:
                return block
            self._look()
            with suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await news.wait()
        return None

    def _block(self, hand: Hand, lane: int) -> _Handed | None:
        """Units of one prefix, as many as make sense; None where there are none at present."""
        lanes = self.channel.lanes
        entries: list[Entry] = []
        reserved: list[int] = []
        size = 0
        # Towards the end blocks are small, so that all actors end at about the same time.
        guided = max(hand.least(lanes), ceil(self._queue.left / (2 * self._streams)))
        most = min(BLOCK, guided)
        while len(entries) < most and size < LARGEST:
            attempts = self._affordable()
            if attempts is None or (entry := self._pull(lane)) is None:
                break
            if entries and not _alike(entries[0].request, entry.request):
                self._over[lane] = entry
                break
            if self._losses[entry.unit]:
                most = 1  # what may end an actor stands alone
                if entries:
                    self._over[lane] = entry
                    break
            entries.append(entry)
            reserved.append(attempts)
            self._reserved += attempts
            self._outstanding += 1
            size += question_of(0, entry.request).size
        if not entries:
            return None
        self._active += 1
        return _Handed(entries, reserved, 1 if lanes else hand.limit)

    def _pull(self, lane: int) -> Entry | None:
        """What is to be asked next."""
        if (kept := self._over.pop(lane, None)) is not None:
            return kept
        if self._back:
            return self._back.popleft()
        unit = self._queue.take(lane)
        if unit is None or isinstance(unit, Held):
            return None
        return Entry(unit, unit.job.request(unit.number))

    def _affordable(self) -> int | None:
        """How many attempts the budget pays for one more request; None for none at present.

        What actors may still spend on the questions in their hands is counted as spent.
        """
        crew, spending, usual = self.channel, self.channel.spending, self.channel.limits.attempts
        if not spending.limited:
            return usual
        spending.requests += self._reserved
        exhausted = spending.exhausted(self._outstanding, crew.seconds)
        room = spending.room
        spending.requests -= self._reserved
        if exhausted is None:
            return usual if room is None else min(usual, room)
        if not self._outstanding:
            crew.stop(exhausted)
        return None

    def _encoded(self, block: _Handed, width: int) -> bytes:
        first = block.open[0].request
        questions = []
        for key, entry in block.open.items():
            question = question_of(key, entry.request)
            if block.reserved[key] < self.channel.limits.attempts:
                question.attempts = block.reserved[key]
            questions.append(question)
        sampling = self.channel.samplings.index(first.sampling)
        prefix = first.prompt.prefix
        return encode(Block(sampling, prefix.messages, prefix.lead, width, questions))

    # Answers

    async def _take_in(self, hand: Hand, block: _Handed, report: Report) -> None:
        """Journal what came; an answer whose question is not open in this block counts nothing."""
        self.channel.note_report(hand, report)
        block.begun = report.begun
        answered: list[tuple[Unit, Request, Exchange]] = []
        for data in report.answers:
            answer = decode_answer(data)
            if (entry := block.open.pop(answer.key, None)) is None:
                continue
            block.answered = True
            exchange = Exchange(answer.reply, answer.faults, seconds=answer.seconds)
            self.channel.tell(entry.unit.job, entry.request, exchange)
            if self._settle(block, answer.key, exchange):
                exchange = await self._read_aside(entry.unit, exchange)
                answered.append((entry.unit, entry.request, exchange))
            else:
                self._back.append(entry)
        if answered:
            await self._written(answered)
        if report.answers:
            self._wake()

    def _settle(self, block: _Handed, key: int, exchange: Exchange) -> bool:
        """Enter what an answer took; whether it is one, and not what a budget broke off."""
        spending, reply = self.channel.spending, exchange.reply
        sent = sum(fault.sent for fault in exchange.faults)
        sent += reply.error is None or reply.error.sent
        spending.requests += sent
        spending.add(reply.usage, replies=reply.error is None)
        allowed, fault = self._release(block, key), reply.error
        usual = self.channel.limits.attempts
        return fault is None or fault.kind in FINAL or allowed >= usual

    def _release(self, block: _Handed, key: int) -> int:
        allowed = block.reserved.pop(key)
        self._reserved -= allowed
        self._outstanding -= 1
        return allowed

    async def _count_loss(self, block: _Handed) -> None:
        """An actor was lost with this block: what it was asking has been sent at least once."""
        failed: list[tuple[Unit, Request, Exchange]] = []
        for key in [key for key in block.begun if key in block.open]:
            self.channel.spending.requests += 1
            entry = block.open[key]
            self._losses[entry.unit] += 1
            if self._losses[entry.unit] >= MOST_LOSSES:
                fault = Fault("server", f"{MOST_LOSSES} actors were lost with this request")
                failed.append((entry.unit, entry.request, Exchange(Reply(error=fault))))
                del block.open[key]
                self._release(block, key)
        if failed:
            await self._written(failed)

    def _put_back(self, block: _Handed) -> None:
        """Give back what a block has no answers to; it comes before all other work."""
        self._active -= 1
        for key in [*block.open]:
            self._release(block, key)
        self._back.extendleft(reversed(block.open.values()))
        block.open = {}
        self._wake()


def _alike(first: Request, second: Request) -> bool:
    """Whether two requests can stand in one block."""
    one, other = first.prompt.prefix, second.prompt.prefix
    return first.sampling is second.sampling and (one is other or one.digest == other.digest)
