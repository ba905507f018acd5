"""Which questions an actor gets, and how its answers are stored.

Each actor works on a few blocks at once, each a stream of reports:

    take a block   of one prefix, at most 100 questions, fewer towards the end
    reports come   an answer counts if its question is open in that block; it is journalled
    the block ends or its actor is lost: open questions go back to the front

If three actors are lost while they ask the same question, it becomes an error, since it may be the
cause. It is asked again when the run is resumed.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Iterable
from contextlib import suppress
from math import ceil
from typing import NamedTuple, Unpack

from keju.engine.channel import FINAL, ReplyWithAttempts
from keju.engine.cluster.executor import BLOCK, RayExecutor, Worker
from keju.engine.cluster.nodes import ActorLost
from keju.engine.cluster.wire import (
    LARGEST,
    ActorReport,
    RequestBlock,
    decode_answer,
    decode_report,
    encode,
    make_question,
)
from keju.engine.loop import Engine, EngineCallbacks
from keju.engine.queue import Unit, UnitQueue, WaitForPrefix
from keju.errors import KejuError
from keju.runs.journal import Journal
from keju.types import Fault, Reply, Request

MAX_LOSSES = 3
"""Actors that may be lost while they ask a question, before it is an error."""
LANES = 1 << 20
"""More lanes than an actor has."""


class PendingRequest(NamedTuple):
    """A unit and its request."""

    unit: Unit
    request: Request


class _AssignedBlock:
    """A block that an actor works on."""

    def __init__(self, entries: list[PendingRequest], reserved: list[int], width: int) -> None:
        self.open_entries = dict(enumerate(entries))
        """The entries without an answer, by key."""
        self.reserved = dict(enumerate(reserved))
        """The attempts reserved for each of them, where a budget counts requests."""
        self.keys_in_flight = list(range(min(width, len(entries))))
        """The keys that its actor is asking, according to its latest report."""
        self.has_answer = False


class ClusterEngine(Engine):
    """Lets actors solve the units of the queues, and journals every reply."""

    channel: RayExecutor

    def __init__(
        self,
        executor: RayExecutor,
        queues: Iterable[UnitQueue],
        journal: Journal,
        **callbacks: Unpack[EngineCallbacks],
    ) -> None:
        super().__init__(executor, queues, journal, **callbacks)
        self._queue: UnitQueue
        self._returned_entries: deque[PendingRequest] = deque()
        """Entries that an actor got and did not answer."""
        self._carried_entries: dict[int, PendingRequest] = {}
        """By lane: an entry that was taken but has another prefix than the block before it."""
        self._losses: Counter[Unit] = Counter()
        self._active = 0
        """The number of blocks that actors work on."""
        self._outstanding = 0
        """The number of questions that actors work on."""
        self._reserved = 0
        self._streams = 1
        self._news = asyncio.Event()
        executor.work, executor.on_change = self._serve, self._wake

    async def run(self) -> KejuError | None:
        """Work until all queues are empty. Return the reason that stopped it early, if there is
        one."""
        self._news = asyncio.Event()
        return await super().run()

    @property
    def unasked_count(self) -> int | None:
        """The number of units in the queue that no actor has, or None before the first queue."""
        unasked_count = super().unasked_count
        return (
            None
            if unasked_count is None
            else unasked_count + len(self._returned_entries) + len(self._carried_entries)
        )

    def abort(self) -> None:
        """Stop now. A resumed run asks the questions of the actors again."""
        super().abort()
        self._all_done.set()

    def _start_worker(self) -> None:
        """Let the actors work on the next queue."""
        self.channel.work_ready.set()
        self._wake()

    def _wake(self) -> None:
        """Let every stream look for work again, and check whether all is done."""
        self._news.set()
        self._news = asyncio.Event()
        self._check_all_done()

    def _check_all_done(self) -> None:
        """Check whether all is done."""
        executor = self.channel
        if executor.crash is not None:
            self._crash = self._crash or executor.crash
        if not executor.work_ready.is_set():
            return
        has_work = self._queue.remaining or self._returned_entries or self._carried_entries
        is_over = not self._active and (executor.stop_reason is not None or not has_work)
        if is_over or self._crash is not None:
            self._all_done.set()

    async def _serve(self, worker: Worker) -> None:
        """Let an actor work on some blocks at once until the run stops. Raises Lost."""
        lanes = self.channel.lanes
        streams = worker.count_streams(lanes)
        self._streams = max(self._streams, streams * self.channel.actors)
        tasks = [
            asyncio.create_task(self._run_stream(worker, worker.place * LANES + lane, int(lanes)))
            for lane in range(streams)
        ]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _run_stream(self, worker: Worker, lane: int, width: int) -> None:
        """Work on one block after the other."""
        try:
            while (block := await self._next_block(worker, lane)) is not None:
                try:
                    async for item in worker.handle.stream("ask", self._encode_block(block, width)):
                        await self._journal_report(worker, block, decode_report(item))
                    if (
                        block.open_entries
                        and not block.has_answer
                        and self.channel.stop_reason is None
                    ):
                        raise ActorLost("it ended a block without an answer")
                except ActorLost:
                    await self._count_loss(block)
                    raise
                finally:
                    self._put_back(block)
        finally:
            if (entry := self._carried_entries.pop(lane, None)) is not None:
                self._returned_entries.append(entry)
            self._wake()

    # Blocks

    async def _next_block(self, worker: Worker, lane: int) -> _AssignedBlock | None:
        """Return the next block of a stream when there is one, or None when the run stops."""
        while self.channel.stop_reason is None:
            news = self._news
            if (block := self._make_block(worker, lane)) is not None:
                return block
            self._check_all_done()
            with suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await news.wait()
        return None

    def _make_block(self, worker: Worker, lane: int) -> _AssignedBlock | None:
        """Return a block of units with one prefix, or None where there are none at present."""
        lanes = self.channel.lanes
        entries: list[PendingRequest] = []
        reserved: list[int] = []
        size = 0
        # Towards the end blocks are small, so that all actors end at about the same time.
        proportional_size = max(
            worker.min_block_size(lanes), ceil(self._queue.remaining / (2 * self._streams))
        )
        max_entries = min(BLOCK, proportional_size)
        while len(entries) < max_entries and size < LARGEST:
            attempts = self._affordable_attempts()
            if attempts is None or (entry := self._next_entry(lane)) is None:
                break
            # A question that may have ended an actor is alone in its block.
            is_suspect = self._losses[entry.unit]
            if entries and (is_suspect or not _share_prefix(entries[0].request, entry.request)):
                self._carried_entries[lane] = entry
                break
            if is_suspect:
                max_entries = 1
            entries.append(entry)
            reserved.append(attempts)
            self._reserved += attempts
            self._outstanding += 1
            size += make_question(0, entry.request).size
        if not entries:
            return None
        self._active += 1
        return _AssignedBlock(entries, reserved, 1 if lanes else worker.limit)

    def _next_entry(self, lane: int) -> PendingRequest | None:
        """Return the next entry to ask."""
        if (carried_entry := self._carried_entries.pop(lane, None)) is not None:
            return carried_entry
        if self._returned_entries:
            return self._returned_entries.popleft()
        unit = self._queue.take(lane)
        if unit is None or isinstance(unit, WaitForPrefix):
            return None
        return PendingRequest(unit, unit.job.request(unit.number))

    def _affordable_attempts(self) -> int | None:
        """Return how many attempts the budget pays for one more request, or None for none at
        present.

        The attempts that actors may still spend on their questions count as spent.
        """
        executor, spending, max_attempts = (
            self.channel,
            self.channel.spending,
            self.channel.limits.attempts,
        )
        if not spending.limited:
            return max_attempts
        spending.requests += self._reserved
        exhausted = spending.exhausted(self._outstanding, executor.seconds)
        remaining_requests = spending.remaining_requests
        spending.requests -= self._reserved
        if exhausted is None:
            return (
                max_attempts
                if remaining_requests is None
                else min(max_attempts, remaining_requests)
            )
        if not self._outstanding:
            executor.stop(exhausted)
        return None

    def _encode_block(self, block: _AssignedBlock, width: int) -> bytes:
        first_request = block.open_entries[0].request
        questions = []
        for key, entry in block.open_entries.items():
            question = make_question(key, entry.request)
            if block.reserved[key] < self.channel.limits.attempts:
                question.attempts = block.reserved[key]
            questions.append(question)
        sampling = self.channel.samplings.index(first_request.sampling)
        prefix = first_request.prompt.prefix
        return encode(RequestBlock(sampling, prefix.messages, prefix.lead, width, questions))

    # Answers

    async def _journal_report(
        self, worker: Worker, block: _AssignedBlock, report: ActorReport
    ) -> None:
        """Journal the answers of a report. An answer whose question is not open in this block is
        ignored."""
        self.channel.note_report(worker, report)
        block.keys_in_flight = report.begun
        answered: list[tuple[Unit, Request, ReplyWithAttempts]] = []
        for data in report.answers:
            answer = decode_answer(data)
            if (entry := block.open_entries.pop(answer.key, None)) is None:
                continue
            block.has_answer = True
            exchange = ReplyWithAttempts(answer.reply, answer.faults, seconds=answer.seconds)
            self.channel.notify_follower(entry.unit.job, entry.request, exchange)
            if self._settle(block, answer.key, exchange):
                exchange = await self._read_long_reply(entry.unit, exchange)
                answered.append((entry.unit, entry.request, exchange))
            else:
                self._returned_entries.append(entry)
        if answered:
            await self._write_soon(answered)
        if report.answers:
            self._wake()

    def _settle(self, block: _AssignedBlock, key: int, exchange: ReplyWithAttempts) -> bool:
        """Count the cost of an answer. Return whether it is final, and not the result of a small
        budget."""
        spending, reply = self.channel.spending, exchange.reply
        sent_count = sum(fault.sent for fault in exchange.faults)
        sent_count += reply.error is None or reply.error.sent
        spending.requests += sent_count
        spending.add(reply.usage, replies=reply.error is None)
        allowed, fault = self._release(block, key), reply.error
        max_attempts = self.channel.limits.attempts
        return fault is None or fault.kind in FINAL or allowed >= max_attempts

    def _release(self, block: _AssignedBlock, key: int) -> int:
        allowed = block.reserved.pop(key)
        self._reserved -= allowed
        self._outstanding -= 1
        return allowed

    async def _count_loss(self, block: _AssignedBlock) -> None:
        """Count the loss of an actor with this block. The questions it was asking were sent at
        least once."""
        failed: list[tuple[Unit, Request, ReplyWithAttempts]] = []
        for key in [key for key in block.keys_in_flight if key in block.open_entries]:
            self.channel.spending.requests += 1
            entry = block.open_entries[key]
            self._losses[entry.unit] += 1
            if self._losses[entry.unit] >= MAX_LOSSES:
                fault = Fault("server", f"{MAX_LOSSES} actors were lost with this request")
                failed.append((entry.unit, entry.request, ReplyWithAttempts(Reply(error=fault))))
                del block.open_entries[key]
                self._release(block, key)
        if failed:
            await self._write_soon(failed)

    def _put_back(self, block: _AssignedBlock) -> None:
        """Return the open entries of a block. They come before all other work."""
        self._active -= 1
        for key in [*block.open_entries]:
            self._release(block, key)
        self._returned_entries.extendleft(reversed(block.open_entries.values()))
        block.open_entries = {}
        self._wake()


def _share_prefix(left_request: Request, right_request: Request) -> bool:
    """Whether two requests can be in one block."""
    left_prefix, right_prefix = left_request.prompt.prefix, right_request.prompt.prefix
    return left_request.sampling is right_request.sampling and (
        left_prefix is right_prefix or left_prefix.digest == right_prefix.digest
    )
