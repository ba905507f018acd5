"""One sitting: a model is asked what a run still lacks, on a loop of its own."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from keju.config import TaskConfig
from keju.engine.job import Job
from keju.engine.limits import Meter, Spending
from keju.engine.loop import Engine, Limits
from keju.engine.queue import Queue
from keju.engine.resume import Recalled
from keju.errors import Interrupted, KejuError, Notice
from keju.models.base import Model
from keju.runs.journal import Journal
from keju.runs.manifest import SessionLog, StoredSession, now
from keju.types import Sampling

if TYPE_CHECKING:
    from keju.engine.display import Display


T = TypeVar("T")


class Session:
    """One sitting of a run: the engine, the signals and the display around it."""

    def __init__(
        self,
        config: TaskConfig,
        jobs: Sequence[Job],
        model: Model,
        journal: Journal,
        ledger: SessionLog,
        recalled: Recalled,
        display: Display | None,
        already: Meter | None = None,
    ) -> None:
        """`already` is what others have spent of the same budget."""
        self._config = config
        self._jobs = jobs
        self._model = model
        self._journal = journal
        self._ledger = ledger
        self._recalled = recalled
        self._display = display
        self._already = already or Meter()
        self._interrupts = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._preparing: asyncio.Task[Any] | None = None
        self._engine: Engine | None = None

    def run(self) -> KejuError | None:
        """Ask what is still to be asked; return what stopped it early."""
        if self._display is not None:
            total = sum(job.units for job in self._jobs)
            names = [job.exam.benchmark for job in self._jobs]
            self._display.start(total, self._recalled.count, names)
            if self._recalled.damaged:
                lines = self._recalled.damaged
                self._display.note(Notice("damaged_lines", {"lines": lines}).text())
        try:
            return run_loop(self._run, self.interrupt_from_outside)
        finally:
            if self._display is not None:
                self._display.finish()

    async def _run(self) -> KejuError | None:
        config = self._config
        queue = Queue(
            self._jobs,
            self._recalled.done,
            seed=config.seed,
            lanes=self._model.slots is not None and not self._model.batches,
        )
        if not queue.left:
            return None
        already = Meter()
        already.include(self._already)
        already.include(self._recalled.spent)
        spending = Spending(config.budget, config.price, already, self._ledger.seconds)
        started = now()
        engine = Engine(
            self._model,
            queue,
            self._journal,
            spending,
            self._limits(),
            seed=config.seed,
            on_progress=self._show if self._display is not None else None,
            on_session=lambda engine: self._note(started, engine, ended=False),
        )
        with _signals(self.interrupt):
            try:
                if (stopped := await self._prepare()) is not None:
                    return stopped
                self._engine = engine
                stop = await engine.run()
            finally:
                await self._model.close()
        self._note(started, engine, ended=True)
        return stop

    async def _prepare(self) -> KejuError | None:
        """Start the model and show that it works; Ctrl-C ends that at once."""
        self._loop = asyncio.get_running_loop()
        self._preparing = asyncio.current_task()
        try:
            await self._model.start()
            for sampling in _distinct(job.sampling for job in self._jobs):
                await self._model.preflight(sampling)
        except asyncio.CancelledError:
            if not self._interrupts:
                raise
            if self._preparing is not None:
                self._preparing.uncancel()
            return Interrupted("interrupted before the first question")
        finally:
            self._preparing = None
        self._ledger.note_endpoint(self._model.facts())
        return None

    def _limits(self) -> Limits:
        config, slots = self._config, self._model.slots
        most = config.eval_batch_size
        if slots is not None:
            most = slots if self._model.batches else min(most, slots)
        return Limits(
            concurrency=most,
            timeout=config.timeout,
            attempts=config.attempts,
            give_up_after=config.give_up_after,
            retry_interval=config.retry_interval,
            rpm=config.rpm,
            tpm=config.tpm,
        )

    def _note(self, started: str, engine: Engine, *, ended: bool) -> None:
        spent = engine.spending
        session = StoredSession(
            started=started,
            seconds=round(engine.seconds, 3),
            ended=ended,
            in_flight=engine.in_flight,
            requests=spent.requests,
            retries=engine.retries,
            input_tokens=spent.input,
            output_tokens=spent.output,
        )
        if (cost := spent.cost(spent.price)) is not None:
            session.cost = cost
        self._ledger.note_session(session)

    def interrupt(self) -> None:
        """The first call lets what is in flight finish, the second stops at once."""
        self._interrupts += 1
        engine = self._engine
        if engine is None:
            if self._preparing is not None:
                self._preparing.cancel()
            return
        if self._interrupts > 1:
            engine.abort()
            return
        engine.drain(Interrupted("interrupted"))
        if self._display is not None:
            self._display.note(Notice("stopping", {"requests": engine.in_flight}).text())

    def interrupt_from_outside(self) -> None:
        """The same, from another thread than the loop's."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self.interrupt)

    def _show(self, engine: Engine) -> None:
        from keju.engine.display import Progress

        assert self._display is not None
        heads = [job.tallies[0] for job in self._jobs]
        counts = [sum(column) for column in zip(*(tally.counts for tally in heads), strict=True)]
        _, _, unparsed, truncated, refused, _, errors = counts
        spent = engine.spending
        self._display.update(
            Progress(
                done=sum(tally.done for tally in heads),
                total=sum(job.units for job in self._jobs),
                correct_sum=sum(tally.total for tally in heads),
                graded=sum(tally.graded for tally in heads),
                unparsed=unparsed,
                truncated=truncated,
                refused=refused,
                errors=errors,
                requests=spent.requests,
                input_tokens=spent.input,
                output_tokens=spent.output,
                cost=spent.cost(spent.price),
                elapsed=engine.seconds,
                in_flight=engine.in_flight,
                limit=engine.concurrency.limit,
                waiting=engine.waiting_for,
                retries=engine.retries,
            )
        )


def _distinct(samplings: Iterable[Sampling]) -> list[Sampling]:
    seen: list[Sampling] = []
    for sampling in samplings:
        if sampling not in seen:
            seen.append(sampling)
    return seen


def run_loop(
    main: Callable[[], Coroutine[Any, Any, T]], interrupt: Callable[[], None] | None = None
) -> T:
    """Run a coroutine to its end on a loop of its own, also where a loop already runs.

    There it works in a thread, and Ctrl-C, which only the main thread hears, calls `interrupt`.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _run_here(main)
    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(_run_here, main)
        while True:
            try:
                return working.result()
            except KeyboardInterrupt:
                if interrupt is None:
                    raise
                interrupt()


def _run_here(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    factory = None
    with suppress(ImportError):
        import uvloop

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(main())


@contextmanager
def _signals(call: Callable[[], None]) -> Iterator[None]:
    """While it is open, Ctrl-C and SIGTERM call a function instead of ending the process."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGINT, signal.SIGTERM)
    for number in numbers:
        loop.add_signal_handler(number, call)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
