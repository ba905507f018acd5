"""One session: a model is asked what a run still lacks, on a loop of its own.

The loop itself is in `keju.engine.loop`; here is what stands around it: signals, the books, the
display.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, AsyncExitStack, nullcontext
from functools import partial
from itertools import chain
from typing import Any, TypeVar

from keju.config import TaskConfig
from keju.engine.channel import Channel, Limits
from keju.engine.display import ArmStanding, Display, Progress, Standing
from keju.engine.job import Job
from keju.engine.limits import Meter, Spending
from keju.engine.loop import Engine, Line
from keju.engine.open_files import PER_TOOL_SLOT, release_slots, reserve_slots
from keju.engine.pool import Pool, book_of
from keju.engine.queue import (
    Expected,
    Queue,
    Rule,
    Where,
    blocks,
    expected_lengths,
)
from keju.engine.resume import Recalled
from keju.engine.shares import Homes, Shares
from keju.engine.sharing import SHARE
from keju.engine.watching import Follower, SessionFacts, follow
from keju.errors import Interrupted, KejuError, Notice, WriteError
from keju.messages import said
from keju.models.base import Model
from keju.models.registry import make_models
from keju.runs.journal import VERDICTS, Journal
from keju.runs.manifest import SessionLog, StoredSession, now
from keju.signals import REMOTE, calling

LONG_REPLY = 60.0
"""Seconds after which a reply that nothing bounds is worth a word."""

T = TypeVar("T")


def run_session(
    config: TaskConfig,
    jobs: Sequence[Job],
    model: Model,
    journal: Journal,
    log: SessionLog,
    recalled: Recalled,
    display: Display | None,
    already: Meter | None = None,
    rule: Rule | None = None,
) -> KejuError | None:
    """Ask what is still to be asked; return what stopped it early.

    `already` is what others have spent of the same budget; `rule` says when enough was asked.
    """
    total = sum(job.units for job in jobs)
    display = display or Display()
    slots, files = 0, 1
    display.start(total, recalled.count, [job.title for job in jobs])
    if recalled.damaged:
        display.note(Notice("damaged_lines_asked_again", {"lines": recalled.damaged}).said)
    try:
        if recalled.count == total and rule is None:
            return None
        asked = iter([recalled.done])
        if rule is not None:
            asked = blocks(jobs, recalled.done, rule, config.seed)
        first = next(asked, None)
        if first is None:
            return None  # the rule asks for no more
        spent = Meter()
        spent.include(recalled.spent)
        spent.raise_to(**log.spent)  # episodes that were broken off are in no journal
        spent.include(already or Meter())
        spending = Spending(config.budget, config.price, spent, log.seconds)
        share = SHARE.get()
        if share is not None and share.purse is not None and journal.path.name != VERDICTS:
            spending.account = share.purse.open(share.run, spending)
        files = PER_TOOL_SLOT if any(job.acts for job in jobs) else 1
        slots = reserve_slots(_slots_of(config, model), files)
        channel, kind = _executor(_bounded(config, model, slots, display), model, spending, display)
        lacking = [job for job, known in zip(jobs, recalled.done, strict=True) if known.count(0)]
        facts = SessionFacts(
            run=journal.path.parent.name,
            stage="judge" if journal.path.name == VERDICTS else "exam",
            model=config.model,
            endpoints=tuple(channel.addresses),
            jobs=jobs,
            total=total,
            known=recalled.count,
            price=config.price,
            in_flight=lambda: channel.addresses,
        )
        # A judge's replies have settings of their own.
        unbounded = _unbounded(lacking) if facts.stage == "exam" and not model.bounded else []
        session = _Session(jobs, lacking, channel, log, display, follow(facts), unbounded)
        session.checked = jobs if facts.stage == "exam" else ()
        session.declared = {name for each in config.endpoints for name in each.declared}
        random_order = rule is not None or config.order == "random"
        expected = None if random_order else expected_lengths(recalled.lengths)
        order = partial(_order, config, jobs, defaultdict[Channel, set[Where]](set), expected)
        works: Iterable[Queue | Shares]
        if isinstance(channel, Pool):
            homes = Homes(channel, jobs)
            works = (Shares(channel, homes, jobs, done, order) for done in chain([first], asked))
        else:
            works = map(partial(order, channel), chain([first], asked))
        engine = kind(
            channel,
            works,
            journal,
            on_progress=session.show,
            on_session=session.note,
            follower=session.follower,
        )
        return run_loop(lambda: session.run(engine), session.interrupt_from_outside)
    finally:
        release_slots(slots, files)
        display.finish()


def _slots_of(config: TaskConfig, model: Model) -> int:
    """Return how many connections the settings allow this process; 0 for a model inside it."""
    if config.executor == "ray" or not model.facts().get("endpoint"):
        return 0
    if len(config.endpoints) > 1:
        return sum(each.concurrency or config.eval_batch_size for each in config.endpoints)
    return Limits.of(config, model).concurrency


def _bounded(config: TaskConfig, model: Model, slots: int, display: Display) -> TaskConfig:
    """Return the settings with at most so many slots; a smaller number than asked for is shown."""
    wanted = _slots_of(config, model)
    if slots >= wanted:
        return config
    display.warn(Notice("few_open_files", {"slots": slots, "wanted": wanted}).said)
    share = slots / wanted

    def part(most: int) -> int:
        return max(1, int(most * share))

    endpoints = [
        each.model_copy(update={"concurrency": each.concurrency and part(each.concurrency)})
        for each in config.endpoints
    ]
    most = part(config.eval_batch_size)
    return config.model_copy(update={"eval_batch_size": most, "endpoints": endpoints})


def _executor(
    config: TaskConfig, model: Model, spending: Spending, display: Display
) -> tuple[Line, type[Engine]]:
    """Who asks, and the loop that has it asked: this process, or the actors of a cluster."""
    if config.executor == "ray":
        from keju.engine.cluster.crew import Crew
        from keju.engine.cluster.engine import ClusterEngine

        return Crew(config, model, spending, display.warn), ClusterEngine
    if len(config.endpoints) > 1:
        from keju.engine.pooled import PoolEngine

        return Pool(config, make_models(config), spending, display.warn), PoolEngine
    return Channel(model, Limits.of(config, model), spending, seed=config.seed), Engine


def _order(
    config: TaskConfig,
    jobs: Sequence[Job],
    warm: Mapping[Channel, set[Where]],
    expected: Expected | None,
    channel: Channel,
    done: Sequence[bytearray],
) -> Queue:
    """The order of some work; made when the channel is open, and its model tells what it can do."""
    model = channel.model
    return Queue(
        jobs,
        done,
        seed=config.seed,
        lanes=model.slots is not None and not model.batches,
        draw_arms=config.agent.arm_order == "random",
        ahead=0 if model.batches else channel.concurrency.most,
        caching=lambda: channel.shares_prefixes,
        expected=expected,
        warm=warm[channel],
    )


class _Session:
    """The signals, the books and the display around an engine."""

    def __init__(
        self,
        jobs: Sequence[Job],
        lacking: Sequence[Job],
        channel: Line,
        log: SessionLog,
        display: Display,
        follower: Follower | None,
        unbounded: list[str],
    ) -> None:
        """`lacking` are the jobs that still lack replies; `unbounded` the exams whose replies may
        be as long as the model likes, which the user is told at the first long one."""
        self.follower = follower
        self._jobs = jobs
        self._arms = {job.arm: job.solver for job in lacking}
        self._solvers = {job.solver: job.sampling for job in reversed(lacking)}
        self._channel = channel
        self._log = log
        self._display = display
        self._started = now()
        self._endpoint = ""
        self._reported_before = self._reported()
        self._interrupts = 0
        self._said: list[Notice] = []
        self._unbounded = unbounded
        self.declared: Collection[str] = ()
        """Names that the settings allow endpoints to report for the model."""
        self.checked: Sequence[Job] = ()
        """The jobs whose replies are checked while the session runs."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._preparation: asyncio.Task[Any] | None = None
        self._engine: Engine | None = None

    async def run(self, engine: Engine) -> KejuError | None:
        stop: KejuError | None = None
        try:
            stop = await self._run(engine)
        except KejuError as error:
            stop = error
            raise
        finally:
            if self.follower is not None:
                self.follower.ended(stop)
        return stop

    async def _run(self, engine: Engine) -> KejuError | None:
        self._loop = asyncio.get_running_loop()
        self._preparation = asyncio.current_task()
        with _signals(self.interrupt, self._loop):
            try:
                async with AsyncExitStack() as stack:
                    await self._prepare(stack)
                    self._preparation = None
                    self._engine = engine
                    stop = await engine.run()
            except asyncio.CancelledError:
                if self._preparation is None or not self._interrupts:
                    raise
                self._preparation.uncancel()
                return Interrupted("interrupted_at_once")
            finally:
                self._preparation = None
        try:
            self.note(ended=True)
        except WriteError as error:
            stop = stop or error.incomplete()
        return stop

    async def _prepare(self, stack: AsyncExitStack) -> None:
        """Open whatever the questions need; `stack` closes all of it, whatever happens.

        Tools come before the model, so that a broken one costs nothing. What is known of both is
        written before the first question is asked.
        """
        for solver in self._solvers:
            solver.check(self._channel.model)
        for solver in self._solvers:
            stack.push_async_callback(solver.close)
            await solver.open()
        stack.push_async_callback(self._channel.close)
        samplings = [job.sampling for job in self._jobs]
        if isinstance(self._channel, Pool):
            await self._channel.open(samplings, self._greet)
        else:
            # The actors of a cluster load models of their own.
            loading = self._channel.model.loading if type(self._channel) is Channel else None
            if loading is not None:
                self._display.note(loading.said)
            self._channel.on_wait = lambda notice: self._display.note(notice.said)
            await self._channel.open(samplings)
            await self._greet(self._channel)
        facts = self._channel.facts()
        self._endpoint = str(facts.get("endpoint", ""))
        self._log.note_endpoint(facts)
        for arm, solver in self._arms.items():
            if told := solver.facts():
                self._log.note_arm(arm, told)

    async def _greet(self, channel: Channel) -> None:
        """Find out what an endpoint that was opened cannot do."""
        for notice in channel.preflight_notices(self.declared):
            self._warn(notice)
        for solver, sampling in self._solvers.items():
            for notice in await solver.knock(channel, sampling):
                self._warn(notice)

    def interrupt(self) -> None:
        """The first call lets what is in flight finish, the second stops at once.

        A reply of a model in this process is not waited for: that it is computed again when the
        run goes on costs less than a user who waits without knowing for how long.
        """
        self._interrupts += 1
        if self._engine is None:
            if self._preparation is not None:
                self._preparation.cancel()
        elif self._interrupts > 1:
            self._engine.abort()
        else:
            self._channel.stop(Interrupted("interrupted"))
            quits = type(self._channel) is Channel and self._channel.model.quits
            requests = self._channel.in_flight
            code = "stopping_now" if quits else "stopping" if requests else "stopping_idle"
            self._display.note(Notice(code, {"requests": requests}).said)
            if quits:
                self._engine.abort()

    def interrupt_from_outside(self) -> None:
        """The same, from another thread than the loop's."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self.interrupt)

    def note(self, *, ended: bool = False) -> None:
        """Write down what the session has taken and spent so far."""
        channel, spent = self._channel, self._channel.spending
        session = StoredSession(
            started=self._started,
            endpoint=self._endpoint,
            models=dict(self._reported() - self._reported_before),
            seconds=round(channel.seconds, 3),
            ended=ended,
            in_flight=channel.in_flight,
            requests=spent.requests,
            retries=channel.retries,
            input_tokens=spent.input,
            output_tokens=spent.output,
        )
        if (cost := spent.cost(spent.price)) is not None:
            session.cost = cost
        if told := channel.statistics():
            session.cluster = told
        if isinstance(channel, Pool):
            session.endpoints = channel.books()
        elif isinstance(channel, Channel) and self._endpoint:  # another session may have several
            session.endpoints = [book_of(channel, spent, self._endpoint)]
        if (server := channel.model.server) is not None:
            session.server = server.facts()
        if begun := sum(solver.begun for solver in self._solvers):
            session.episodes_begun = begun
            session.episodes_finished = sum(solver.finished for solver in self._solvers)
            session.tools = {arm: solver.statistics() for arm, solver in self._arms.items()}
        self._log.note_session(session)

    def _reported(self) -> Counter[str]:
        """What the model was called in the replies that count, earlier sessions' among them."""
        return sum((job.reported for job in self._jobs), Counter())

    def _arm(self, job: Job) -> ArmStanding:
        done, errors = job.tallies[0].done, len(job.errors)
        cost = job.meter.cost(self._channel.spending.price)
        return ArmStanding(job.title, done, job.units, job.calls, job.failed_calls, errors, cost)

    def show(self) -> None:
        """Show how far the session is."""
        channel, spent = self._channel, self._channel.spending
        heads = [job.tallies[0] for job in self._jobs]
        counts = [sum(column) for column in zip(*(tally.counts for tally in heads), strict=True)]
        right, _, unparsed, truncated, refused, _, errors, _ = counts
        progress = Progress(
            done=sum(counts),
            total=sum(job.units for job in self._jobs),
            right=right,
            exams=tuple(
                Standing(
                    job.title,
                    tally.total,
                    tally.graded,
                    tally.epochs * job.exam.rotations,
                    self._arm(job) if job.arm else None,
                )
                for job, tally in zip(self._jobs, heads, strict=True)
            ),
            unparsed=unparsed,
            truncated=truncated,
            refused=refused,
            errors=errors,
            requests=spent.requests,
            input_tokens=spent.input,
            output_tokens=spent.output,
            cost=spent.cost(spent.price),
            elapsed=channel.seconds,
            in_flight=channel.in_flight,
            limit=channel.limit,
            oldest=channel.oldest,
            waiting=channel.waiting_for,
            pause=channel.pause,
            retries=channel.retries,
            actors=channel.standings(),
            unasked=self._engine.unasked if self._engine is not None else None,
        )
        self._display.update(progress)
        if progress.oldest >= LONG_REPLY and self._unbounded:
            exams, self._unbounded = self._unbounded, []
            self._display.note(Notice("no_token_limit", {"exams": exams}).said)
        self._report_checks()
        if self.follower is not None:
            self.follower.progressed(progress)

    def _report_checks(self) -> None:
        """Report what the replies so far show, as long as there are questions left to pay for."""
        for job in self.checked:
            for notice in job.checks.news() if job.missing else ():
                self._warn(notice, job.title if len(self.checked) > 1 else "")

    def _warn(self, notice: Notice, title: str = "") -> None:
        """Show a notice, once for all arms and endpoints; `title` is the exam that it concerns."""
        if notice not in self._said:
            self._said.append(notice)
            text = f"{title}: {notice.said}" if title else notice.said
            self._display.note(said("warning", text=text))


def _unbounded(jobs: Sequence[Job]) -> list[str]:
    """The exams whose replies may be as long as a model likes."""
    found: dict[str, None] = {}
    for job in jobs:
        if job.sampling.decode == "generate" and job.token_limit is None:
            found[job.exam.benchmark] = None
    return list(found)


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
        work = pool.submit(_run_here, main)
        while True:
            try:
                return work.result()
            except KeyboardInterrupt:
                if interrupt is None:
                    raise
                interrupt()


def _run_here(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    # Threads end before the loop closes, in a wait that a second Ctrl-C may break off.
    with asyncio.Runner(loop_factory=_new_loop) as runner, ThreadPoolExecutor() as threads:
        runner.get_loop().set_default_executor(threads)
        return runner.run(main())


def _new_loop() -> asyncio.AbstractEventLoop:
    """A loop of uvloop where that is installed."""
    try:
        from uvloop import Loop
    except ImportError:
        return asyncio.new_event_loop()

    class Quiet(Loop):
        """Leaves its threads to `_run_here`.

        uvloop waits for them in yet another thread, which ends in a traceback if the loop is
        closed meanwhile.
        """

        async def shutdown_default_executor(self, timeout: float | None = None) -> None:
            pass

    return Quiet()


def _signals(
    call: Callable[[], None], loop: asyncio.AbstractEventLoop
) -> AbstractContextManager[None]:
    """While it is open, signals call a function; another than the main thread has its remote."""
    if threading.current_thread() is threading.main_thread():
        return calling(call, loop)
    remote = REMOTE.get()
    return remote.calling(call, loop) if remote is not None else nullcontext()
