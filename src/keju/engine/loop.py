"""The loop: workers take units from the queue, ask the model, and hand replies to the journal.

A worker sends while fewer requests are in flight than the limit of the moment, so a slot is
refilled as soon as it frees. A failed attempt goes back to the queue with a time before
which it is not tried again; no slot sleeps on it. Replies that arrive within a millisecond are
scored and written together, and their slots send again after that.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic

from keju.engine.limits import Breaker, Concurrency, Rate, Spending
from keju.engine.queue import Queue, Task
from keju.errors import EndpointError, KejuError, RunIncomplete
from keju.models.base import Model
from keju.runs.journal import Journal
from keju.types import Fault, FaultKind, Reply, Request

FINAL: frozenset[FaultKind] = frozenset({"bad_request", "context_length", "content_filter"})
"""Faults that another attempt cannot mend: the outcome of that sample."""
REFUSALS: frozenset[FaultKind] = frozenset({"auth", "not_found"})
"""Faults that stop the run when they repeat: no sample is to blame for them."""
OVERLOADS: frozenset[FaultKind] = frozenset({"rate_limit", "timeout"})
GATEWAY_STATUS = frozenset({502, 503, 504})

REFUSALS_TO_STOP = 3
BAD_REQUESTS_TO_STOP = 20
BACKOFF_MOST = 60.0
SYNC_EVERY, PROGRESS_EVERY = 1.0, 0.2
GATHER = 0.001
"""Seconds for which replies are gathered before they are scored and written together."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What the user allows the engine to do."""

    concurrency: int
    timeout: float
    attempts: int
    give_up_after: float
    retry_interval: float = 0.5
    rpm: float | None = None
    tpm: float | None = None


class Engine:
    """Asks a model every unit of the queue once, and journals every reply."""

    def __init__(
        self,
        model: Model,
        queue: Queue,
        journal: Journal,
        spending: Spending,
        limits: Limits,
        *,
        seed: int = 0,
        on_progress: Callable[[Engine], None] | None = None,
        on_session: Callable[[Engine], None] | None = None,
    ) -> None:
        """`on_progress` is called often, for the eye; `on_session` once a second, for the books."""
        self.spending = spending
        self.in_flight = 0
        self.retries = 0
        self.concurrency = Concurrency(limits.concurrency)
        self.breaker = Breaker(limits.give_up_after)
        self._model = model
        self._queue = queue
        self._journal = journal
        self._limits = limits
        self._random = random.Random(seed)
        self._on_progress = on_progress
        self._on_session = on_session
        self._crash: Exception | None = None
        self._requests = Rate(limits.rpm, burst=max(1.0, limits.rpm / 60)) if limits.rpm else None
        self._tokens = Rate(limits.tpm, burst=limits.tpm / 6) if limits.tpm else None
        self._knock = queue.sampling
        self._metered = spending.limited or bool(limits.rpm or limits.tpm)
        self._finished: list[tuple[Task, Request, Reply]] = []
        self._stop: KejuError | None = None
        self._stopping = False
        self._worked = 0
        self._refusals = 0
        self._bad_requests = 0
        self._wait_reason = ""
        self._started = monotonic()

    # What others may ask and do while the loop runs

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return monotonic() - self._started

    @property
    def waiting_for(self) -> str:
        """What keeps the engine from sending more, in words; empty if nothing does."""
        if self.breaker.since is not None:
            down = monotonic() - self.breaker.since
            return f"the endpoint is down ({down:.0f} s); the run pauses until it answers"
        if self._stopping:
            return f"{self.in_flight} requests in flight to finish"
        if self.concurrency.limit < self.concurrency.most and self.in_flight:
            return f"overload: {self.concurrency.limit} of {self.concurrency.most} slots in use"
        return self._wait_reason

    def drain(self, reason: KejuError) -> None:
        """Send nothing more; let what is in flight finish, then stop with `reason`."""
        if self._stop is None:
            self._stop = reason
        self._stopping = True
        self._wake()

    def abort(self) -> None:
        """Stop now; what is in flight is lost and will be asked again on resume."""
        self._stopping = True
        for worker in self._workers:
            worker.cancel()

    async def run(self) -> KejuError | None:
        """Work until the queue is empty; return what stopped the run early, if anything did."""
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        self._started = monotonic()
        lanes = range(min(self.concurrency.most, self._queue.left + self._queue.waiting))
        self._workers = [asyncio.create_task(self._work(worker)) for worker in lanes]
        background = [
            asyncio.create_task(self._sync_often()),
            asyncio.create_task(self._show_often()),
        ]
        self._probing: asyncio.Task[None] | None = None
        self._written: asyncio.Future[None] = self._loop.create_future()
        outcomes = await asyncio.gather(*self._workers, return_exceptions=True)
        for task in (*background, self._probing):
            if task is not None:
                task.cancel()
        await asyncio.gather(*background, return_exceptions=True)
        self._flush_soon()
        for outcome in (self._crash, *outcomes):
            if isinstance(outcome, Exception):
                raise outcome
        if self._on_progress is not None:
            self._on_progress(self)
        return self._stop

    # One worker

    async def _work(self, worker: int) -> None:
        try:
            await self._work_through(worker)
        finally:
            self._wake()

    async def _work_through(self, worker: int) -> None:
        while not self._stopping:
            held = self._metered or self.breaker.open or self.in_flight >= self.concurrency.limit
            if held and not await self._allowed():
                return
            now = monotonic()
            task = self._queue.take(worker, now)
            if task is not None:
                await self._attempt(task)
            elif (due := self._queue.due()) is not None:
                await self._sleep(due - now, f"a failed request, due in {due - now:.0f} s")
            else:
                return

    async def _allowed(self) -> bool:
        """Wait until this worker may send; False if there is nothing left to send."""
        while not self._stopping:
            if not self._queue.left and not self._queue.waiting:
                return False
            if self.breaker.open or self.in_flight >= self.concurrency.limit:
                await self._changed.wait()
                continue
            exhausted = self.spending.exhausted(self.in_flight, self.seconds)
            if exhausted and not self.in_flight:
                self.drain(RunIncomplete(f"{exhausted} is used up: give a larger one to go on"))
                return False
            if exhausted:
                await self._changed.wait()
                continue
            wait = self._rate_wait()
            if wait <= 0:
                return True
            await self._sleep(wait, "the rate limit")
        return False

    def _rate_wait(self) -> float:
        now, wait = monotonic(), 0.0
        if self._tokens is not None:
            ahead = self.spending.average_tokens() * (self.in_flight + 1)
            wait = self._tokens.wait(ahead, now)
        if self._requests is not None:
            wait = max(wait, self._requests.wait(1, now))
            if wait <= 0:
                self._requests.draw(1)
        return wait

    async def _sleep(self, seconds: float, reason: str) -> None:
        """Sleep, but wake up when something changes."""
        self._wait_reason = reason
        try:
            async with asyncio.timeout(max(0.001, seconds)):
                await self._changed.wait()
        except TimeoutError:
            pass
        self._wait_reason = ""

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    # One attempt

    async def _attempt(self, task: Task) -> None:
        request = task.job.request(task.unit)
        self.in_flight += 1
        self.spending.requests += 1
        try:
            reply = await self._model.ask(request, timeout=self._limits.timeout)
        finally:
            self.in_flight -= 1
        if reply.error is None:
            self._succeeded(task, request, reply)
        else:
            self._failed(task, request, reply, reply.error)
        if self._metered and self.in_flight < self.concurrency.most:
            self._wake()
        if self._finished:
            await self._written  # its record is on disk before the slot sends again

    def _succeeded(self, task: Task, request: Request, reply: Reply) -> None:
        self._worked += 1
        self._refusals = self._bad_requests = 0
        self._answered(overload=False)
        self._finish(task, request, reply)

    def _failed(self, task: Task, request: Request, reply: Reply, fault: Fault) -> None:
        if not fault.sent:
            self.spending.requests -= 1
        if fault.kind == "connection" or fault.status in GATEWAY_STATUS:
            self._nobody_there()
        else:
            self._answered(overload=fault.kind in OVERLOADS)
        if fault.kind in FINAL:
            self._count_bad_request(fault)
            self._finish(task, request, reply)
            return
        if fault.kind in REFUSALS and self._refused(fault):
            return
        if (fault.retry_after or 0) > self._limits.give_up_after:
            asked = f"{fault.retry_after:.0f} s"
            self.drain(RunIncomplete(f"the endpoint asks to wait {asked} ({fault.message})"))
            return
        task.faults += (fault,)
        if sum(earlier.sent for earlier in task.faults) >= self._limits.attempts:
            task.faults = task.faults[:-1]
            self._finish(task, request, reply)
            return
        self.retries += 1
        self._queue.postpone(task, monotonic() + self._backoff(task, fault))

    def _backoff(self, task: Task, fault: Fault) -> float:
        """What the endpoint asked for; else exponential. Both with jitter, so that none crowd."""
        if fault.retry_after is not None:
            return fault.retry_after * self._random.uniform(1.0, 1.25)
        doubled = self._limits.retry_interval * 2.0 ** min(len(task.faults) - 1, 20)
        return min(BACKOFF_MOST, doubled) * self._random.uniform(0.5, 1.5)

    def _answered(self, *, overload: bool) -> None:
        """Somebody is there: close the breaker, adapt the concurrency."""
        if self.breaker.since is not None or self.concurrency.saw(overload=overload):
            self._wake()
        self.breaker.worked()

    def _nobody_there(self) -> None:
        if self.breaker.failed(monotonic()):
            self._probing = self._loop.create_task(self._probe())

    def _refused(self, fault: Fault) -> bool:
        """Count a refusal of the key or model; stop the run when it is no accident."""
        self._refusals += 1
        if self._refusals < REFUSALS_TO_STOP:
            return False
        self.drain(EndpointError(f"the endpoint refuses to go on: {fault.message}"))
        return True

    def _count_bad_request(self, fault: Fault) -> None:
        self._bad_requests += 1
        hopeless = self._bad_requests >= BAD_REQUESTS_TO_STOP and not self._worked
        if fault.kind == "bad_request" and hopeless:
            self.drain(EndpointError(f"the endpoint refuses every request: {fault.message}"))

    async def _probe(self) -> None:
        """Knock with the preflight's cheap call until the endpoint answers or we give up."""
        wait = 1.0
        while self.breaker.since is not None and not self._stopping:
            if monotonic() - self.breaker.since > self.breaker.give_up_after:
                allowed = f"{self.breaker.give_up_after:g} s"
                self.drain(RunIncomplete(f"the endpoint stayed down for more than {allowed}"))
                return
            await asyncio.sleep(wait)
            wait = min(15.0, wait * 1.5)
            try:
                await self._model.preflight(self._knock)
            except EndpointError:
                continue
            self.breaker.worked()
            self._wake()

    # Results

    def _finish(self, task: Task, request: Request, reply: Reply) -> None:
        self.spending.add(reply.usage)
        if self._tokens is not None:
            self._tokens.draw(reply.usage.input + reply.usage.output)
        if not self._finished:
            self._written = self._loop.create_future()
            if self.in_flight:
                self._loop.call_later(GATHER, self._flush_soon)
            else:
                self._loop.call_soon(self._flush_soon)
        self._finished.append((task, request, reply))

    def _flush_soon(self) -> None:
        written = self._written
        try:
            self._flush()
        except Exception as error:
            self._break_off(error)
        if not written.done():
            written.set_result(None)

    def _break_off(self, error: Exception) -> None:
        """Nothing can be saved any more: stop now, and say why."""
        if isinstance(error, KejuError):
            self.drain(error)
        elif self._crash is None:
            self._crash = error
        self.abort()

    def _flush(self) -> None:
        finished, self._finished = self._finished, []
        if not finished:
            return
        records = [
            task.job.record(task.unit, request, reply, task.faults)
            for task, request, reply in finished
        ]
        self._journal.append(records)
        for (task, _, reply), record in zip(finished, records, strict=True):
            task.job.enter_readings(task.unit, reply, task.faults, record.readings)

    async def _sync_often(self) -> None:
        while True:
            await asyncio.sleep(SYNC_EVERY)
            try:
                await asyncio.to_thread(self._journal.sync)
            except KejuError as error:
                self._break_off(error)
            if self._on_session is not None:
                self._on_session(self)

    async def _show_often(self) -> None:
        while self._on_progress is not None:
            self._on_progress(self)
            await asyncio.sleep(PROGRESS_EVERY)
