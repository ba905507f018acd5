"""The actors of a run: their number, their start, and their replacement when one is lost.

A place is one of the numbered actors. When its actor is lost, another one is started for it, until
five actors in a row are lost without an answer. The run goes on with the remaining places. It ends,
resumable, when there are none.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from math import ceil
from time import monotonic
from typing import Any, Protocol

from keju.config import TaskConfig
from keju.engine.channel import Channel, ChannelLimits, ReplyWithAttempts
from keju.engine.cluster.actor import make_orders, read_versions
from keju.engine.cluster.nodes import ActorLost, ActorResources, RayCluster, require_ray
from keju.engine.cluster.wire import ActorReady, ActorReport, decode_opened, encode
from keju.engine.job import Job
from keju.engine.limits import SpendingMeter
from keju.engine.run_sharing import SHARE
from keju.engine.solver import Solver
from keju.errors import ConfigError, KejuError, Notice, RunIncomplete, UsageError, join_hints
from keju.models.base import Model
from keju.models.registry import LOCAL, kind_of
from keju.progress.display import ActorStatus, Pause
from keju.progress.watching import WORK
from keju.runs.manifest import FIXED_FACTS
from keju.types import Reply, Request, Sampling

MAX_FAILURES = 5
"""Actors of one place that may be lost one after the other without an answer."""
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 15.0
"""Seconds before another actor is started for a place, doubled with each that is lost at once."""
BLOCK = 100
"""The most questions that an actor gets at once."""


class ActorHandle(Protocol):
    """The driver's handle of an actor."""

    async def hello(self) -> dict[str, str]: ...
    def stream(self, method: str, argument: bytes) -> AsyncIterator[bytes]: ...
    def stop(self) -> None: ...
    def release(self) -> None: ...


class Worker:
    """An actor in its place, and its latest report."""

    def __init__(self, place: int, handle: ActorHandle) -> None:
        self.place = place
        self.handle = handle
        self.node = self.node_id = ""
        self.opened: ActorReady | None = None
        self.answered = 0
        self.last_report = ActorReport([], [], 0, 0, 0)

    @property
    def limit(self) -> int:
        """The most requests that it has in flight."""
        return self.opened.limit if self.opened is not None else 1

    def count_streams(self, lanes: bool) -> int:
        """Return how many blocks it works on at once, so that no slot waits for the next block.

        With lanes each of its slots stays on one prefix.
        """
        return self.limit if lanes else 1 + ceil(2 * self.limit / BLOCK)

    def min_block_size(self, lanes: bool) -> int:
        """Return how many questions a block needs to keep all slots at work while the next block is
        fetched."""
        return 1 if lanes else ceil(self.limit / (self.count_streams(lanes) - 1))


class RayExecutor(Channel):
    """All actors of a run. It replaces the one channel of a run without actors.

    Concurrency, rates and retries are in the actors' own channels. The budget is here.
    """

    def __init__(
        self,
        config: TaskConfig,
        model: Model,
        spending: SpendingMeter,
        say: Callable[[str], None] = lambda _: None,
        nodes: RayCluster | None = None,
    ) -> None:
        super().__init__(model, ChannelLimits.of(config, model), spending, seed=config.seed)
        self._config = config
        self._say = say
        self._nodes = nodes or RayCluster(config.ray)
        self._need = ActorResources(0.0, 0.0)
        self.samplings: list[Sampling] = []
        """The samplings of the run. Blocks refer to them by number."""
        self._places: list[asyncio.Task[None]] = []
        self._workers: dict[int, Worker] = {}
        self._answer_counts: Counter[int] = Counter()
        self._first_ready: asyncio.Future[None] | None = None
        """Done when the first actor is ready."""
        self._facts: dict[str, Any] = {}
        self._retries_of_lost = 0
        self._last_placed = monotonic()
        """The latest time at which an actor was known to have a place."""
        self.actors = 0
        """The number of actors to start."""
        self.lost = 0
        """The number of actors lost so far."""
        self.nodes_used: set[str] = set()
        self.work: Callable[[Worker], Awaitable[None]] | None = None
        """Lets an actor work until there is nothing more to do. Raises ActorLost."""
        self.work_ready = asyncio.Event()
        """Set when there is work."""
        self.on_change: Callable[[], None] = lambda: None
        """Called when nothing more is to be sent, or when a task has failed."""
        self.crash: BaseException | None = None

    # Opening

    async def open(self, samplings: Iterable[Sampling]) -> None:
        """Join the cluster and start actors. Return when the first one is ready."""
        for sampling in samplings:
            if sampling not in self.samplings:
                self.samplings.append(sampling)
        await self._nodes.open()
        nodes = await self._nodes.resources()
        self._need = find_need(self._config, nodes)
        self.actors = self._count_actors(nodes)
        self._last_placed = monotonic()
        self._first_ready = asyncio.get_running_loop().create_future()
        for place in range(self.actors):
            task = asyncio.create_task(self._supervise(place))
            task.add_done_callback(self._finish_place)
            self._places.append(task)
        await self._first_ready
        self._opened = monotonic()

    def _count_actors(self, nodes: list[dict[str, float]]) -> int:
        places, requested_actors = self._need.count_places(nodes), self._config.ray.actors
        if not places and self._nodes.address == "local":
            raise ConfigError("ray_no_room", **self._describe_lack(nodes))
        is_endpoint = not kind_of(self._config.model).local
        actors = requested_actors or places or 1
        if is_endpoint:  # each needs at least one request in flight
            actors = min(actors, self._config.eval_batch_size)
        if self._need.amounts and actors > places:
            self._say(Notice("ray_fewer_places", {"places": places, "actors": actors}).message)
        return actors

    def _describe_lack(self, nodes: list[dict[str, float]]) -> dict[str, str]:
        """Return the resources that an actor needs and the resources of the nodes, as text."""
        names = self._need.amounts or {"CPU": 0.0}
        node_amounts = [
            _format_amounts({name: node.get(name, 0.0) for name in names}) for node in nodes
        ]
        nodes_text = join_hints(
            "joined_by_semicolon", node_amounts or [_format_amounts({"CPU": 0.0})]
        )
        return {"need": _format_amounts(names), "nodes": nodes_text}

    # Places

    async def _supervise(self, place: int) -> None:
        """Keep an actor at work in a place."""
        failures = 0
        while self.stop_reason is None:
            worker = self._workers[place] = Worker(place, self._nodes.hire(self._need))
            try:
                problem = await self._start_worker(worker)
            finally:
                self._remove(worker)
            if problem is None:
                return
            failures = 1 if worker.answered else failures + 1
            if failures == MAX_FAILURES:
                self._give_up(problem)
                return
            values = {"place": place + 1, "node": worker.node or "?", "problem": problem}
            self._say(Notice("ray_actor_lost", values).message)
            await asyncio.sleep(min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (failures - 1)))

    async def _start_worker(self, worker: Worker) -> str | None:
        """Let an actor start and work until all is done. Return the problem if it cannot go on."""
        try:
            await self._admit(worker)
            await self.work_ready.wait()
            assert self.work is not None
            await self.work(worker)
        except ActorLost as lost:
            self.lost += 1
            return str(lost)
        except KejuError as error:
            if self._fail_opening(error) or self.stop_reason is not None:
                return None
            if not isinstance(error, RunIncomplete):
                return str(error)  # the first actors could start; another node may be better
            self.stop(error)
        return None

    def _fail_opening(self, error: BaseException) -> bool:
        """Let the opening fail, if it has not ended yet. Return whether it did."""
        if self._first_ready is None or self._first_ready.done():
            return False
        self._first_ready.set_exception(error)
        return True

    def _remove(self, worker: Worker) -> None:
        worker.handle.release()
        del self._workers[worker.place]
        if worker.node:
            self._last_placed = monotonic()
        self._retries_of_lost += worker.last_report.retries
        self.tally()

    def _give_up(self, problem: str) -> None:
        """Give up a place. The run ends with the last one."""
        current_task = asyncio.current_task()
        if all(task.done() for task in self._places if task is not current_task):
            error = RunIncomplete("ray_no_actors", problem=problem)
            self._fail_opening(error)
            self.stop(error)

    async def _admit(self, worker: Worker) -> None:
        """Wait until an actor has a place and its model is ready."""
        actor_facts = await self._wait_for_hello(worker)
        worker.node, worker.node_id = actor_facts["node"], actor_facts.get("id", "")
        for name, local_version in read_versions().items():
            if actor_facts[name] != local_version:
                values = {
                    "node": worker.node,
                    "name": name,
                    "there": actor_facts[name],
                    "here": local_version,
                }
                raise UsageError("ray_other_version", **values)
        threads = int(self._need.cpus) if kind_of(self._config.model).extra is LOCAL else 0
        orders = make_orders(self._config, self.samplings, worker.place, self.actors, threads)
        opened = None
        async for item in worker.handle.stream("open", encode(orders)):
            opened = decode_opened(item) if item else None
        if opened is None:
            raise ActorLost("it ended before its model was ready")
        if opened.trouble is not None:
            error = opened.trouble.error
            if isinstance(error, UsageError):  # another node may have what this one lacks
                raise UsageError("ray_node_refuses", node=worker.node, problem=error)
            raise error
        self._take_facts(worker, opened)

    async def _wait_for_hello(self, worker: Worker) -> dict[str, str]:
        """Return the first message of an actor, which may wait for a place as long as others
        work."""
        greeting, patience = asyncio.ensure_future(worker.handle.hello()), self._config.ray.patience
        try:
            while not greeting.done():
                await asyncio.wait({greeting}, timeout=min(1.0, patience))
                if any(other_worker.node for other_worker in self._workers.values()):
                    self._last_placed = monotonic()
                elif monotonic() - self._last_placed > patience and not greeting.done():
                    nodes = await self._nodes.resources()
                    raise RunIncomplete("ray_no_place", **self._describe_lack(nodes))
            return greeting.result()
        finally:
            greeting.cancel()

    def _take_facts(self, worker: Worker, opened: ActorReady) -> None:
        """Store the facts about an actor's model, which must be the same for all actors."""
        if not self._facts:
            self._facts = opened.facts
            self.model.slots, self.model.batches = opened.slots, opened.batches
        for fact, words in FIXED_FACTS.items():
            if fact in self._facts and opened.facts.get(fact) != self._facts[fact]:
                error = UsageError("ray_nodes_differ", node=worker.node, fact=words)
                self.stop(error)
                raise error
        worker.opened = opened
        worker.last_report.limit = opened.limit
        self.nodes_used.add(worker.node_id)
        self.tally()
        if self._first_ready is not None and not self._first_ready.done():
            self._first_ready.set_result(None)

    def _finish_place(self, task: asyncio.Task[None]) -> None:
        """Handle the end of a place. An exception in it ends the run."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail_opening(error)
            self.crash = self.crash or error
        self.on_change()

    # Reports of the actors

    def note_report(self, worker: Worker, report: ActorReport) -> None:
        """Store a report."""
        worker.last_report = report
        self.odd_wait = report.odd_wait or self.odd_wait
        worker.answered += len(report.answers)
        self._answer_counts[worker.place] += len(report.answers)
        self.tally()
        if report.trouble is not None:
            self.stop(report.trouble.error)

    def notify_follower(self, job: Job, request: Request, exchange: ReplyWithAttempts) -> None:
        """Call the follower with the attempts behind an answer."""
        self.shares_prefixes |= exchange.reply.usage.cached > 0
        if self.follower is not None:
            WORK.set(job)
            failed_replies = [Reply(error=fault) for fault in exchange.faults]
            for number, reply in enumerate((*failed_replies, exchange.reply), 1):
                self._notify_follower(self.follower, request, reply, reply.seconds, number)

    def tally(self) -> None:
        """Add up the latest reports of the actors."""
        reports = [worker.last_report for worker in self._workers.values()]
        self.in_flight = sum(report.in_flight for report in reports)
        self.retries = self._retries_of_lost + sum(report.retries for report in reports)
        self.concurrency.limit = max(1, sum(report.limit for report in reports))
        opened = [worker.opened.limit for worker in self._workers.values() if worker.opened]
        self.concurrency.maximum = max(self.concurrency.maximum, sum(opened))

    def facts(self) -> dict[str, Any]:
        """Return the settings that determine the replies, as the first actor reported them."""
        return self._facts

    def actor_standings(self) -> tuple[ActorStatus, ...]:
        """Return the places, for the display."""
        nodes = {place: worker.node_id for place, worker in self._workers.items() if worker.opened}
        places = range(self.actors)
        return tuple(
            ActorStatus(nodes.get(place, ""), self._answer_counts[place]) for place in places
        )

    def statistics(self) -> dict[str, Any]:
        """Return facts about the session for the manifest, in addition to its requests."""
        counts = {"actors": self.actors, "nodes": len(self.nodes_used), "lost": self.lost}
        return {"executor": "ray", **counts}

    @property
    def lanes(self) -> bool:
        """Whether each slot of a model stays on one prefix."""
        return self.model.slots is not None and not self.model.batches

    @property
    def pause(self) -> Pause | None:
        """The reason that keeps most of the paused actors from sending more."""
        if self.stop_reason is not None:
            return "stopping"
        pauses = Counter(
            worker.last_report.pause
            for worker in self._workers.values()
            if worker.last_report.pause
        )
        return pauses.most_common(1)[0][0] if pauses else None

    @property
    def oldest(self) -> float:
        """Seconds since the oldest request in flight was sent, from the latest reports."""
        return max((worker.last_report.oldest for worker in self._workers.values()), default=0.0)

    @property
    def obstacle(self) -> Notice | None:
        """The reason as a notice with values. Actors send codes, so that their language does not
        matter."""
        if self.stop_reason is not None:
            in_flight = self.in_flight
            return Notice("waiting_stopping", {"requests": in_flight}) if in_flight else None
        reports = [worker.last_report for worker in self._workers.values() if worker.opened]
        if not reports:
            return Notice("waiting_actor")
        reasons = [
            report.waiting for report in reports if report.waiting and report.pause == self.pause
        ]
        if not reasons:
            return None
        return Notice(
            "waiting_actors", {"n": len(reasons), "whole": len(reports), "why": reasons[0]}
        )

    # Closing

    def stop(self, reason: KejuError) -> None:
        """Send nothing more. Requests in flight finish."""
        is_first_stop = self.stop_reason is None
        super().stop(reason)
        for worker in self._workers.values() if is_first_stop else ():
            if worker.opened is not None:
                worker.handle.stop()
        self.on_change()

    async def close(self) -> None:
        """End the actors and leave the cluster."""
        for task in self._places:
            task.cancel()
        await asyncio.gather(*self._places, return_exceptions=True)
        await self._nodes.close()


def _format_amounts(amounts: dict[str, float]) -> str:
    """Return amounts as text: ``2 CPU, 1 GPU``."""
    return join_hints("joined_by_comma", [f"{amount:g} {name}" for name, amount in amounts.items()])


def check_executor(config: TaskConfig, jobs: Iterable[Job]) -> None:
    """Raise ConfigError or MissingExtra where no cluster can work on a task."""
    if config.executor != "ray":
        return
    require_ray()
    if SHARE.get() is not None:
        raise ConfigError("ray_not_in_plans")
    if kind_of(config.model).names_itself:
        raise ConfigError("ray_not_this_model", model=config.model)
    for job in jobs:
        if job.limits is not None and not job.acts:
            raise ConfigError("ray_no_limits", name=job.title)
        if job.acts or type(job.solver) is not Solver:
            raise ConfigError("ray_no_tools", name=job.title)


def find_need(config: TaskConfig, nodes: list[dict[str, float]]) -> ActorResources:
    """Return the resources of an actor, from the settings or the kind of model."""
    ray_settings, kind = config.ray, kind_of(config.model)
    if kind.extra is None:  # no weights, no arithmetic
        return ActorResources(
            ray_settings.cpus or 0.0, ray_settings.gpus or 0.0, ray_settings.resources
        )
    gpus, cpus = ray_settings.gpus, ray_settings.cpus
    if gpus is None:
        gpus = 1.0 if any(node.get("GPU") for node in nodes) else 0.0
    if cpus is None:
        cpus = _choose_cpus(config.model_args.get("threads"), gpus, nodes)
    return ActorResources(cpus, gpus, ray_settings.resources)


def _choose_cpus(threads: Any, gpus: float, nodes: list[dict[str, float]]) -> float:
    """Return the cores of an actor: its threads, one next to a GPU, or all of the smallest node."""
    if isinstance(threads, int):
        return float(threads)
    smallest = min((node["CPU"] for node in nodes if node.get("CPU")), default=1.0)
    return 1.0 if gpus else float(int(smallest))
