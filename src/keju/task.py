"""Sitting an exam from beginning to end: the flow that every command and Python call takes."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from keju.config import TaskConfig
from keju.engine.job import Job
from keju.engine.limits import Meter, Spending
from keju.engine.loop import Engine, Limits
from keju.engine.queue import Queue
from keju.engine.resume import KEPT_FAULTS, Recalled, recall
from keju.errors import ConfigError, DataError, Interrupted, KejuError, RunIncomplete
from keju.exams import choose_readers, prepare_exams, resolve_sampling
from keju.grades import write_grades
from keju.journal import Journal
from keju.manifest import Ledger, Manifest, describe_session
from keju.models.base import Model
from keju.models.factory import make_model, model_name
from keju.outputs import build_results, write_outputs
from keju.runs import MANIFEST, find_run, now, run_folder
from keju.types import Sampling

if TYPE_CHECKING:
    from keju.judging import Judging
    from keju.report.display import Display


T = TypeVar("T")


class Finished(NamedTuple):
    """How a sitting ended."""

    results: dict[str, Any]
    folder: Path
    exit_code: int
    message: str
    """Why it ended early, in one line; empty if it did not."""
    resume_command: str
    """Empty where resuming would change nothing."""
    error: KejuError | None = None
    """What ended it early."""

    @property
    def told(self) -> str:
        """Why it ended early, and how to go on."""
        resume = f"; resume with: {self.resume_command}" if self.resume_command else ""
        return self.message + resume


def run_task(task_cfg: TaskConfig | dict[str, Any] | str | Path) -> dict[str, Any]:
    """Sit the exams of a task and return the results document.

    `task_cfg` is a TaskConfig, a mapping with its fields, or the path of a YAML or JSON file.
    Raises a KejuError that says in one line what is wrong. A run that stopped early raises
    RunIncomplete, EndpointError or Interrupted, and can be resumed under its run id.
    """
    from keju.settings import load

    if isinstance(task_cfg, TaskConfig):
        given = task_cfg.model_dump(exclude_unset=True) | {"headers": task_cfg.headers}
        if task_cfg.api_key is not None:
            given["api_key"] = task_cfg.api_key.get_secret_value()
        config = load(flags=given)
    elif isinstance(task_cfg, dict):
        config = load(flags=task_cfg)
    else:
        config = load(file=Path(task_cfg))
    finished = sit(config)
    if finished.error is not None:
        raise type(finished.error)(finished.told)
    return finished.results


def make_jobs(config: TaskConfig) -> list[Job]:
    """The exams of a run as work for the engine; refuses whatever cannot be carried out."""
    jobs = []
    for exam, args in prepare_exams(config):
        sampling = resolve_sampling(exam.protocol, config)
        if not exam.samples:
            raise ConfigError(f"{exam.benchmark}: the selection holds no question")
        if sampling.decode == "labels":
            _refuse_sampling(config, exam.benchmark)
        if sampling.form == "completion" and exam.render(exam.samples[0]).prefix.messages:
            raise ConfigError(
                f"{exam.benchmark}: protocol '{exam.protocol.name}' is a conversation and cannot "
                "be sent to a completions endpoint; use --api chat"
            )
        readers = choose_readers(exam, args.reader or config.reader)
        job = Job(
            exam,
            sampling,
            readers,
            model=model_name(config),
            epochs=config.repeats,
            filters=args.filters,
            repeat_seed=config.seed,
        )
        jobs.append(job)
    return jobs


_SAMPLED = ("temperature", "top_p", "top_k", "min_p", "max_tokens", "stop", "seed")


def _refuse_sampling(config: TaskConfig, benchmark: str) -> None:
    """Where labels are compared nothing is sampled, so settings of sampling would do nothing."""
    for name in _SAMPLED:
        if getattr(config.generation_config, name) not in (None, 0):
            raise ConfigError(
                f"generation_config.{name} has no effect on {benchmark}, which compares the "
                "log-probabilities of labels: leave it out, or take a protocol that generates"
            )


def sit(config: TaskConfig, *, display: Display | None = None, report: bool = True) -> Finished:
    """Sit the exams of `config`; resume what a run of the same id has answered already."""
    jobs = make_jobs(config)
    model = make_model(config)
    judging = judging_of(config, jobs)
    if judging is not None:
        judging.check()
    cache = find_run(config.use_cache, config.work_dir) if config.use_cache else None
    place = run_folder(config)
    folder = place.path
    try:
        with Journal(folder) as journal:
            manifest = Manifest(folder, config, jobs)
            recalled = recall(jobs, journal, trusted=manifest.trusted, cache=cache)
            if display is not None and manifest.differences:
                told = "; ".join(manifest.differences)
                display.note(f"this run goes on with other settings ({told})")
            if judging is not None and recalled.count < sum(job.units for job in jobs):
                judging.preflight()
            stop = Sitting(config, jobs, model, journal, manifest, recalled, display).run()
            judgement = None
            if judging is not None:
                ask = manifest if stop is None else None
                judgement = judging.grade(folder, ask, display=display)
                stop = stop or judgement.stop
            stop = stop or _shortfall(jobs, config.error_limit)
            results = build_results(jobs, manifest, stop, judgement)
            try:
                write_grades(folder, judgement.grades if judgement is not None else ())
                manifest.finish(complete=stop is None)
                language = config.language
                write_outputs(folder, results, jobs, manifest.document, language, report=report)
            except DataError as error:
                stop = stop or RunIncomplete(str(error))
    except KejuError:
        place.remove_if_empty()
        raise
    message = str(stop) if stop is not None else ""
    code = stop.exit_code if stop is not None else 0
    return Finished(results, folder, code, message, _resume_command(config, folder, stop), stop)


def _resume_command(config: TaskConfig, folder: Path, stop: KejuError | None) -> str:
    if isinstance(stop, FinalErrors):
        return ""
    key = ""
    if config.api_key is not None and not os.environ.get("OPENAI_API_KEY"):
        key = " --api-key YOUR_KEY"
    return f"keju eval --config {shlex.quote(str(folder / MANIFEST))} --resume{key}"


class FinalErrors(RunIncomplete):
    """Too many samples ended in an error that asking again cannot mend."""


def judging_of(config: TaskConfig, jobs: Sequence[Job]) -> Judging | None:
    """The judges of a run; None, and nothing imported, where nobody is to be asked."""
    if config.judge is None and all(job.exam.judge is None for job in jobs):
        return None
    from keju.judging import Judging

    return Judging.of(config, jobs)


class Sitting:
    """One sitting of a run: the engine, the signals and the display around it."""

    def __init__(
        self,
        config: TaskConfig,
        jobs: Sequence[Job],
        model: Model,
        journal: Journal,
        ledger: Ledger,
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
                self._display.note(f"{lines} journal lines were unreadable and are asked again")
        try:
            return run_loop(self._sit, self.interrupt_from_outside)
        finally:
            if self._display is not None:
                self._display.finish()

    async def _sit(self) -> KejuError | None:
        config = self._config
        queue = Queue(
            self._jobs,
            self._recalled.done,
            seed=config.seed,
            lanes=self._model.slots is not None and not self._model.batches,
        )
        if not queue.left:
            self._ledger.keep_endpoint()
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
        self._ledger.note_session(describe_session(started, engine, ended=ended))

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
            self._display.note(
                f"stopping: {engine.in_flight} requests in flight will finish and be saved; "
                "press Ctrl-C again to stop at once"
            )

    def interrupt_from_outside(self) -> None:
        """The same, from another thread than the loop's."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self.interrupt)

    def _show(self, engine: Engine) -> None:
        from keju.report.display import Progress

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


def _shortfall(jobs: Sequence[Job], limit: float) -> KejuError | None:
    """What is missing at the end of a sitting that nothing stopped."""
    total = sum(job.units for job in jobs)
    unanswered = total - sum(job.tallies[0].done for job in jobs)
    if unanswered:
        return RunIncomplete(f"{unanswered} of {total} samples have no record")
    faults = [fault for job in jobs for fault in job.errors.values()]
    if len(faults) <= limit * total:
        return None
    (kind, count), *_ = Counter(fault.kind for fault in faults).most_common(1)
    example = next(fault.message for fault in faults if fault.kind == kind)
    told = (
        f"{len(faults)} of {total} samples ended in an error, more than the limit of {limit:.1%} "
        f"({count} {kind}: {example})"
    )
    if all(fault.kind in KEPT_FAULTS for fault in faults):
        return FinalErrors(f"{told}; asking again would not change that")
    return RunIncomplete(told)


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
