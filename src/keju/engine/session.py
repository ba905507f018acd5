"""One session: asks a model the questions that a run still lacks, on its own event loop.

The loop itself is in `keju.engine.loop`. This module adds signals, bookkeeping and the display.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, AsyncExitStack, nullcontext
from functools import partial
from itertools import chain
from typing import Any, TypeVar, cast

from keju.config import TaskConfig
from keju.engine.channel import Channel, ChannelLimits
from keju.engine.job import Job
from keju.engine.limits import SpendingMeter
from keju.engine.loop import Engine, Line
from keju.engine.open_files import PER_TOOL_SLOT, release_slots, reserve_slots
from keju.engine.pool import EndpointPool, make_stored_endpoint
from keju.engine.queue import (
    ArmsRule,
    Expected,
    UnitQueue,
    Where,
    blocks,
    make_length_estimator,
)
from keju.engine.resume import ReusedUnits
from keju.engine.routing import EndpointQueues, PrefixRoutes
from keju.engine.run_sharing import SHARE
from keju.errors import Interrupted, KejuError, Notice, WriteError
from keju.messages import label_text
from keju.models.base import Model
from keju.models.registry import make_models
from keju.progress.display import ArmStatus, Display, ExamStatus, Progress
from keju.progress.watching import Follower, SessionOutline, follow
from keju.runs.journal import VERDICTS, Journal
from keju.runs.manifest import SessionLog, StoredSession, format_now
from keju.scores.stopping import LOOK_AGAIN, Pause, StoppingRule
from keju.scores.usage import UsageMeter
from keju.signals import REMOTE, call_between_steps, call_on_loop

LONG_REPLY = 60.0
"""Seconds after which Keju mentions a reply that has no token limit."""

T = TypeVar("T")


def run_session(
    config: TaskConfig,
    jobs: Sequence[Job],
    model: Model,
    journal: Journal,
    log: SessionLog,
    recalled: ReusedUnits,
    display: Display | None,
    earlier_spending: UsageMeter | None = None,
    rule: StoppingRule | ArmsRule | None = None,
) -> KejuError | None:
    """Ask all questions that are still to be asked. Return the reason that stopped it early, if
    there is one.

    `earlier_spending` is what other sessions have spent of the same budget. `rule` decides when
    enough questions were asked.
    """
    total = sum(job.units for job in jobs)
    display = display or Display()
    slots, files = 0, PER_TOOL_SLOT if any(job.acts for job in jobs) else 1
    display.start(total, recalled.count, [job.title for job in jobs])
    if recalled.damaged:
        display.note(Notice("damaged_lines_asked_again", {"lines": recalled.damaged}).message)
    try:
        if recalled.count == total and rule is None:
            return None
        is_random = rule is not None or config.order == "random"
        mask_blocks: Iterator[Sequence[bytearray] | Pause] = iter([recalled.done])
        if rule is not None:
            mask_blocks = blocks(jobs, recalled.done, rule, config.seed)
        first_block = _find_first_block(mask_blocks)
        if first_block is None:
            return None  # the rule asks for no more
        spending = _open_spending(config, journal, log, recalled, earlier_spending)
        slots = reserve_slots(_count_slots(config, model), files)
        channel, kind = _make_executor(
            _limit_slots(config, model, slots, display), model, spending, display
        )
        outline = _outline(config, journal, jobs, channel, recalled)
        session = _make_session(config, jobs, model, channel, log, display, recalled, outline)
        estimator = None if is_random else make_length_estimator(recalled.lengths)
        queues = _make_queues(config, jobs, channel, chain([first_block], mask_blocks), estimator)
        engine = kind(
            channel,
            queues,
            journal,
            on_progress=session.show,
            on_session=session.note,
            follower=session.follower,
        )
        return run_loop(lambda: session.run(engine), session.interrupt_from_outside)
    finally:
        release_slots(slots, files)
        display.finish()


def _find_first_block(
    mask_blocks: Iterator[Sequence[bytearray] | Pause],
) -> Sequence[bytearray] | None:
    """Return the first block with questions to ask, or None if there is none.

    Pauses before it need no endpoint: all their questions have stored replies.
    """
    interrupted = threading.Event()
    with call_between_steps(interrupted.set):
        for block in mask_blocks:
            if not isinstance(block, Pause):
                return block
            while not block.is_over():
                if interrupted.wait(LOOK_AGAIN):
                    raise Interrupted("interrupted")
    return None


def _open_spending(
    config: TaskConfig,
    journal: Journal,
    log: SessionLog,
    recalled: ReusedUnits,
    earlier_spending: UsageMeter | None,
) -> SpendingMeter:
    """Return the meter of the session, with what was spent before. A judge has its own budget."""
    spent_before = UsageMeter()
    spent_before.include(recalled.spent)
    spent_before.raise_to(**log.total_spent)  # interrupted episodes are not in any journal
    spent_before.include(earlier_spending or UsageMeter())
    spending = SpendingMeter(config.budget, config.price, spent_before, log.seconds)
    share = SHARE.get()
    if share is not None and share.shared_budget is not None and not _is_judge(journal):
        spending.account = share.shared_budget.open(share.run, spending)
    return spending


def _is_judge(journal: Journal) -> bool:
    """Whether the replies of a session are the verdicts of a judge."""
    return journal.path.name == VERDICTS


def _outline(
    config: TaskConfig,
    journal: Journal,
    jobs: Sequence[Job],
    channel: Line,
    recalled: ReusedUnits,
) -> SessionOutline:
    """Return the outline of the session for its watchers."""
    return SessionOutline(
        run=journal.path.parent.name,
        stage="judge" if _is_judge(journal) else "exam",
        model=config.model,
        endpoints=tuple(channel.addresses),
        jobs=jobs,
        total=sum(job.units for job in jobs),
        reused=recalled.count,
        price=config.price,
        in_flight=lambda: channel.addresses,
    )


def _make_session(
    config: TaskConfig,
    jobs: Sequence[Job],
    model: Model,
    channel: Line,
    log: SessionLog,
    display: Display,
    recalled: ReusedUnits,
    outline: SessionOutline,
) -> _RunSession:
    """Return the session of the jobs that are not complete."""
    masks = zip(jobs, recalled.done, strict=True)
    incomplete_jobs = [job for job, done_mask in masks if done_mask.count(0)]
    # A judge's replies have other settings.
    is_exam = outline.stage == "exam"
    unbounded = _exams_without_limit(incomplete_jobs) if is_exam and not model.bounded else []
    session = _RunSession(jobs, incomplete_jobs, channel, log, display, follow(outline), unbounded)
    session.checked = jobs if is_exam else ()
    session.declared = {name for endpoint in config.endpoints for name in endpoint.declared}
    return session


def _make_queues(
    config: TaskConfig,
    jobs: Sequence[Job],
    channel: Line,
    mask_blocks: Iterable[Sequence[bytearray] | Pause],
    estimator: Expected | None,
) -> Iterator[UnitQueue | EndpointQueues | Pause]:
    """Yield one queue for each block of questions, and the pauses between them."""
    warm = defaultdict[Channel, set[Where]](set)
    make_queue = partial(_make_queue, config, jobs, warm, estimator)
    routes = PrefixRoutes(channel, jobs) if isinstance(channel, EndpointPool) else None
    for done in mask_blocks:
        if isinstance(done, Pause):
            yield done
        elif routes is not None:
            yield EndpointQueues(cast(EndpointPool, channel), routes, jobs, done, make_queue)
        else:
            yield make_queue(cast(Channel, channel), done)


def _count_slots(config: TaskConfig, model: Model) -> int:
    """Return how many connections the settings allow this process, or 0 for a model inside it."""
    if config.executor == "ray" or not model.facts().get("endpoint"):
        return 0
    if len(config.endpoints) > 1:
        return sum(endpoint.concurrency or config.eval_batch_size for endpoint in config.endpoints)
    return ChannelLimits.of(config, model).concurrency


def _limit_slots(config: TaskConfig, model: Model, slots: int, display: Display) -> TaskConfig:
    """Return the settings with at most `slots` slots. Warn if that is fewer than requested."""
    requested_slots = _count_slots(config, model)
    if slots >= requested_slots:
        return config
    display.warn(Notice("few_open_files", {"slots": slots, "wanted": requested_slots}).message)
    fraction = slots / requested_slots

    def scale(limit: int) -> int:
        return max(1, int(limit * fraction))

    endpoints = [
        endpoint.model_copy(
            update={"concurrency": endpoint.concurrency and scale(endpoint.concurrency)}
        )
        for endpoint in config.endpoints
    ]
    batch_size = scale(config.eval_batch_size)
    return config.model_copy(update={"eval_batch_size": batch_size, "endpoints": endpoints})


def _make_executor(
    config: TaskConfig, model: Model, spending: SpendingMeter, display: Display
) -> tuple[Line, type[Engine]]:
    """Return the channel to ask and the engine that uses it: in this process or with actors of a
    cluster."""
    if config.executor == "ray":
        from keju.engine.cluster.engine import ClusterEngine
        from keju.engine.cluster.executor import RayExecutor

        return RayExecutor(config, model, spending, display.warn), ClusterEngine
    if len(config.endpoints) > 1:
        from keju.engine.pool_engine import PoolEngine

        return EndpointPool(config, make_models(config), spending, display.warn), PoolEngine
    return Channel(model, ChannelLimits.of(config, model), spending, seed=config.seed), Engine


def _make_queue(
    config: TaskConfig,
    jobs: Sequence[Job],
    warm: Mapping[Channel, set[Where]],
    estimator: Expected | None,
    channel: Channel,
    done_masks: Sequence[bytearray],
) -> UnitQueue:
    """Return a queue of some work. Call this when the channel is open and the model's abilities are
    known."""
    model = channel.model
    return UnitQueue(
        jobs,
        done_masks,
        seed=config.seed,
        lanes=model.slots is not None and not model.batches,
        draw_arms=config.agent.arm_order == "random",
        ahead=0 if model.batches else channel.concurrency.maximum,
        caching=lambda: channel.shares_prefixes,
        expected=estimator,
        warm=warm[channel],
    )


class _RunSession:
    """The signals, the bookkeeping and the display around an engine."""

    def __init__(
        self,
        jobs: Sequence[Job],
        incomplete_jobs: Sequence[Job],
        channel: Line,
        log: SessionLog,
        display: Display,
        follower: Follower | None,
        unbounded: list[str],
    ) -> None:
        """Create a session.

        `incomplete_jobs` are the jobs that still lack replies. `unbounded` are the exams without a
        limit on the length of a reply. The user gets a note about them at the first long reply.
        """
        self.follower = follower
        self._jobs = jobs
        self._arms = {job.arm: job.solver for job in incomplete_jobs}
        self._solvers = {job.solver: job.sampling for job in reversed(incomplete_jobs)}
        self._channel = channel
        self._log = log
        self._display = display
        self._started = format_now()
        self._endpoint = ""
        self._reported_before = self._count_reported_names()
        self._interrupts = 0
        self._shown_notices: list[Notice] = []
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
        with _handle_signals(self.interrupt, self._loop):
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
        """Open everything that the questions need. `stack` closes all of it in every case.

        Tools come before the model, so that a broken tool costs nothing. The facts about both are
        written before the first question is asked.
        """
        for solver in self._solvers:
            solver.check(self._channel.model)
        for solver in self._solvers:
            stack.push_async_callback(solver.close)
            await solver.open()
        stack.push_async_callback(self._channel.close)
        samplings = [job.sampling for job in self._jobs]
        if isinstance(self._channel, EndpointPool):
            await self._channel.open(samplings, self._check_endpoint)
        else:
            # The actors of a cluster load their own models.
            loading = self._channel.model.loading if type(self._channel) is Channel else None
            if loading is not None:
                self._display.status(loading.message)
            self._channel.on_wait = lambda notice: self._display.note(notice.message)
            await self._channel.open(samplings)
            await self._check_endpoint(self._channel)
        facts = self._channel.facts()
        self._endpoint = str(facts.get("endpoint", ""))
        self._log.note_endpoint(facts)
        for arm, solver in self._arms.items():
            if solver_facts := solver.facts():
                self._log.note_arm(arm, solver_facts)

    async def _check_endpoint(self, channel: Channel) -> None:
        """Find out what an opened endpoint cannot do."""
        for notice in channel.preflight_notices(self.declared):
            self._warn(notice)
        for solver, sampling in self._solvers.items():
            for notice in await solver.preflight(channel, sampling):
                self._warn(notice)

    def interrupt(self) -> None:
        """Let requests in flight finish at the first call, and stop at once at the second.

        Keju does not wait for a reply of a model in this process. Computing it again later costs
        less than a wait of unknown length.
        """
        self._interrupts += 1
        if self._engine is None:
            if self._preparation is not None:
                self._preparation.cancel()
        elif self._interrupts > 1:
            self._engine.abort()
        else:
            self._channel.stop(Interrupted("interrupted"))
            quits_at_once = type(self._channel) is Channel and self._channel.model.quits
            in_flight = self._channel.in_flight
            code = "stopping_now" if quits_at_once else "stopping" if in_flight else "stopping_idle"
            self._display.note(Notice(code, {"requests": in_flight}).message)
            if quits_at_once:
                self._engine.abort()

    def interrupt_from_outside(self) -> None:
        """Do the same from another thread than the loop's."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self.interrupt)

    def note(self, *, ended: bool = False) -> None:
        """Store the requests, replies and tokens of the session so far."""
        channel, spending = self._channel, self._channel.spending
        session = StoredSession(
            started=self._started,
            endpoint=self._endpoint,
            models=dict(self._count_reported_names() - self._reported_before),
            seconds=round(channel.seconds, 3),
            ended=ended,
            in_flight=channel.in_flight,
            requests=spending.requests,
            retries=channel.retries,
            input_tokens=spending.input,
            output_tokens=spending.output,
        )
        if (cost := spending.cost(spending.price)) is not None:
            session.cost = cost
        if statistics := channel.statistics():
            session.cluster = statistics
        if isinstance(channel, EndpointPool):
            session.endpoints = channel.make_stored_endpoints()
        elif isinstance(channel, Channel) and self._endpoint:  # another session may have several
            session.endpoints = [make_stored_endpoint(channel, spending, self._endpoint)]
        if (server := channel.model.server) is not None:
            session.server = server.facts()
        self._note_episodes(session)
        self._log.note_session(session)

    def _note_episodes(self, session: StoredSession) -> None:
        """Store the episodes of the session and the use of its tools, if there are any."""
        if episodes_begun := sum(solver.episodes_begun for solver in self._solvers):
            session.episodes_begun = episodes_begun
            session.episodes_finished = sum(solver.episodes_finished for solver in self._solvers)
            session.tools = {arm: solver.statistics() for arm, solver in self._arms.items()}

    def _count_reported_names(self) -> Counter[str]:
        """Return the model names in the replies that count, including those of earlier sessions."""
        return sum((job.reported_names for job in self._jobs), Counter())

    def _arm_progress(self, job: Job) -> ArmStatus:
        done, errors = job.tallies[0].done, len(job.errors)
        cost = job.meter.cost(self._channel.spending.price)
        return ArmStatus(job.title, done, job.units, job.calls, job.failed_calls, errors, cost)

    def show(self) -> None:
        """Show the progress of the session."""
        channel, spending = self._channel, self._channel.spending
        main_tallies = [job.tallies[0] for job in self._jobs]
        counts = [
            sum(column) for column in zip(*(tally.counts for tally in main_tallies), strict=True)
        ]
        correct, _, unparsed, truncated, refused, _, errors, _ = counts
        progress = Progress(
            done=sum(counts),
            total=sum(job.units for job in self._jobs),
            right=correct,
            exams=tuple(
                ExamStatus(
                    job.title,
                    tally.total,
                    tally.graded,
                    tally.epochs * job.exam.rotations,
                    self._arm_progress(job) if job.arm else None,
                )
                for job, tally in zip(self._jobs, main_tallies, strict=True)
            ),
            unparsed=unparsed,
            truncated=truncated,
            refused=refused,
            errors=errors,
            requests=spending.requests,
            input_tokens=spending.input,
            output_tokens=spending.output,
            cost=spending.cost(spending.price),
            elapsed=channel.seconds,
            in_flight=channel.in_flight,
            limit=channel.limit,
            oldest=channel.oldest,
            waiting=channel.waiting_for,
            pause=channel.pause,
            retries=channel.retries,
            actors=channel.actor_standings(),
            unasked=self._engine.unasked_count if self._engine is not None else None,
        )
        self._display.update(progress)
        if progress.oldest >= LONG_REPLY and self._unbounded:
            exams, self._unbounded = self._unbounded, []
            self._display.note(Notice("no_token_limit", {"exams": exams}).message)
        self._report_checks()
        if self.follower is not None:
            self.follower.progressed(progress)

    def _report_checks(self) -> None:
        """Report problems that the replies so far show, as long as there are questions left to pay
        for."""
        for job in self.checked:
            for notice in job.checks.new_notices() if job.missing else ():
                self._warn(notice, job.title if len(self.checked) > 1 else "")

    def _warn(self, notice: Notice, title: str = "") -> None:
        """Show a notice, once for all arms and endpoints. `title` is the exam that it concerns."""
        if notice not in self._shown_notices:
            self._shown_notices.append(notice)
            text = f"{title}: {notice.message}" if title else notice.message
            self._display.note(label_text("warning", text=text))


def _exams_without_limit(jobs: Sequence[Job]) -> list[str]:
    """Return the exams without a limit on the length of a reply."""
    exam_names: dict[str, None] = {}
    for job in jobs:
        if job.sampling.decode == "generate" and job.token_limit is None:
            exam_names[job.exam.benchmark] = None
    return list(exam_names)


def run_loop(
    main: Callable[[], Coroutine[Any, Any, T]], interrupt: Callable[[], None] | None = None
) -> T:
    """Run a coroutine to its end on its own event loop, even where a loop already runs.

    In that case it works in a thread. Ctrl-C reaches only the main thread, which then calls
    `interrupt`.
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
    # Threads end before the loop closes, in a wait that a second Ctrl-C can interrupt.
    with asyncio.Runner(loop_factory=_new_loop) as runner, ThreadPoolExecutor() as threads:
        runner.get_loop().set_default_executor(threads)
        return runner.run(main())


def _new_loop() -> asyncio.AbstractEventLoop:
    """Return a loop of uvloop if it is installed."""
    try:
        from uvloop import Loop
    except ImportError:
        return asyncio.new_event_loop()

    class Quiet(Loop):
        """Leaves its threads to `_run_here`.

        uvloop waits for them in another thread, which ends in a traceback if the loop is closed
        meanwhile.
        """

        async def shutdown_default_executor(self, timeout: float | None = None) -> None:
            pass

    return Quiet()


def _handle_signals(
    call: Callable[[], None], loop: asyncio.AbstractEventLoop
) -> AbstractContextManager[None]:
    """While it is open, call `handler` on signals. Threads other than the main one use their
    remote."""
    if threading.current_thread() is threading.main_thread():
        return call_on_loop(call, loop)
    remote = REMOTE.get()
    return remote.call_on_loop(call, loop) if remote is not None else nullcontext()
