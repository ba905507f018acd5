"""The actors of a run: how many there are, how they start, and what replaces one that is lost.

A place is one of the numbered actors. When its actor is lost another one is hired for it, as long
as that makes sense: five actors in a row that never answered anything are enough. The run goes on
with the places that are left, and ends, resumable, when there are none.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from math import ceil
from time import monotonic
from typing import Any, Protocol

from keju.config import TaskConfig
from keju.engine.channel import Channel, Exchange, Limits
from keju.engine.cluster.actor import orders_of, versions
from keju.engine.cluster.nodes import Lost, Need, Nodes, require_ray
from keju.engine.cluster.wire import Opened, Report, decode_opened, encode
from keju.engine.display import ActorStanding, Pause
from keju.engine.job import Job
from keju.engine.limits import Spending
from keju.engine.sharing import SHARE
from keju.engine.solver import Solver
from keju.engine.watching import WORK
from keju.errors import ConfigError, KejuError, Notice, RunIncomplete, UsageError, joined
from keju.models.base import Model
from keju.models.registry import LOCAL, kind_of
from keju.runs.manifest import FIXED_FACTS
from keju.types import Reply, Request, Sampling

MOST_FAILURES = 5
"""Actors of one place that are lost one after the other without an answer."""
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 15.0
"""Seconds before another actor is hired for a place; doubled with each that is lost at once."""
BLOCK = 100
"""Questions that an actor is given at once, at most."""


class Hired(Protocol):
    """The driver's end of an actor."""

    async def hello(self) -> dict[str, str]: ...
    def stream(self, method: str, argument: bytes) -> AsyncIterator[bytes]: ...
    def stop(self) -> None: ...
    def dismiss(self) -> None: ...


class Hand:
    """An actor in its place, and what it last told of itself."""

    def __init__(self, place: int, hired: Hired) -> None:
        self.place = place
        self.hired = hired
        self.node = self.node_id = ""
        self.opened: Opened | None = None
        self.answered = 0
        self.last = Report([], [], 0, 0, 0)

    @property
    def limit(self) -> int:
        """The most requests it has in flight."""
        return self.opened.limit if self.opened is not None else 1

    def streams(self, lanes: bool) -> int:
        """How many blocks it works on at once, so that none of its slots waits for the next block.

        With lanes each of its slots stays on one prefix.
        """
        return self.limit if lanes else 1 + ceil(2 * self.limit / BLOCK)

    def least(self, lanes: bool) -> int:
        """So many questions in each block keep all its slots at work while a block is fetched."""
        return 1 if lanes else ceil(self.limit / (self.streams(lanes) - 1))


class Crew(Channel):
    """All actors of a run, in the place of the one channel of a run without them.

    What holds requests back or repeats them is in the actors' own channels; the budget is here.
    """

    def __init__(
        self,
        config: TaskConfig,
        model: Model,
        spending: Spending,
        say: Callable[[str], None] = lambda _: None,
        nodes: Nodes | None = None,
    ) -> None:
        super().__init__(model, Limits.of(config, model), spending, seed=config.seed)
        self._config = config
        self._say = say
        self._nodes = nodes or Nodes(config.ray)
        self._need = Need(0.0, 0.0)
        self.samplings: list[Sampling] = []
        """Those of the run; blocks name them by number."""
        self._places: list[asyncio.Task[None]] = []
        self._hands: dict[int, Hand] = {}
        self._answers_of: Counter[int] = Counter()
        self._first: asyncio.Future[None] | None = None
        """Done when the first actor is ready."""
        self._facts: dict[str, Any] = {}
        self._gone_retries = 0
        self._last_placed = monotonic()
        """When an actor was last known to have a place."""
        self.actors = 0
        """How many there are to be."""
        self.lost = 0
        """How many were lost so far."""
        self.nodes_used: set[str] = set()
        self.work: Callable[[Hand], Awaitable[None]] | None = None
        """Has an actor work until there is nothing more to do; raises Lost."""
        self.begun = asyncio.Event()
        """Set when there is work."""
        self.changed: Callable[[], None] = lambda: None
        """Called when nothing more is to be sent, or a part of the program has broken down."""
        self.crash: BaseException | None = None

    # Opening

    async def open(self, samplings: Iterable[Sampling]) -> None:
        """Join the cluster and have actors start; return when the first one is ready."""
        for sampling in samplings:
            if sampling not in self.samplings:
                self.samplings.append(sampling)
        await self._nodes.open()
        nodes = await self._nodes.resources()
        self._need = need_of(self._config, nodes)
        self.actors = self._number(nodes)
        self._last_placed = monotonic()
        self._first = asyncio.get_running_loop().create_future()
        for place in range(self.actors):
            task = asyncio.create_task(self._tend(place))
            task.add_done_callback(self._left)
            self._places.append(task)
        await self._first
        self._opened = monotonic()

    def _number(self, nodes: list[dict[str, float]]) -> int:
        places, wanted = self._need.places(nodes), self._config.ray.actors
        if not places and self._nodes.address == "local":
            raise ConfigError("ray_no_room", **self._lack(nodes))
        endpoint = not kind_of(self._config.model).local
        actors = wanted or places or 1
        if endpoint:  # each needs at least one request in flight
            actors = min(actors, self._config.eval_batch_size)
        if self._need.named and actors > places:
            self._say(Notice("ray_fewer_places", {"places": places, "actors": actors}).said)
        return actors

    def _lack(self, nodes: list[dict[str, float]]) -> dict[str, str]:
        """What an actor needs, and what the nodes have of it, in words."""
        names = self._need.named or {"CPU": 0.0}
        there = [_amounts({name: node.get(name, 0.0) for name in names}) for node in nodes]
        own = joined("joined_by_semicolon", there or [_amounts({"CPU": 0.0})])
        return {"need": _amounts(names), "nodes": own}

    # One place

    async def _tend(self, place: int) -> None:
        """Keep an actor at work in a place."""
        failures = 0
        while self.stop_reason is None:
            hand = self._hands[place] = Hand(place, self._nodes.hire(self._need))
            try:
                problem = await self._employ(hand)
            finally:
                self._let_go(hand)
            if problem is None:
                return
            failures = 1 if hand.answered else failures + 1
            if failures == MOST_FAILURES:
                self._give_up(problem)
                return
            values = {"place": place + 1, "node": hand.node or "?", "problem": problem}
            self._say(Notice("ray_actor_lost", values).said)
            await asyncio.sleep(min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (failures - 1)))

    async def _employ(self, hand: Hand) -> str | None:
        """Have an actor start and work until all is done; why it cannot go on, where it cannot."""
        try:
            await self._admit(hand)
            await self.begun.wait()
            assert self.work is not None
            await self.work(hand)
        except Lost as lost:
            self.lost += 1
            return str(lost)
        except KejuError as error:
            if self._refuse(error) or self.stop_reason is not None:
                return None
            if not isinstance(error, RunIncomplete):
                return str(error)  # the first actors could start; another node may be better
            self.stop(error)
        return None

    def _refuse(self, error: BaseException) -> bool:
        """Let the opening fail, if it has not ended yet."""
        if self._first is None or self._first.done():
            return False
        self._first.set_exception(error)
        return True

    def _let_go(self, hand: Hand) -> None:
        hand.hired.dismiss()
        del self._hands[hand.place]
        if hand.node:
            self._last_placed = monotonic()
        self._gone_retries += hand.last.retries
        self.tally()

    def _give_up(self, problem: str) -> None:
        """A place is given up; with the last one the run ends."""
        own = asyncio.current_task()
        if all(task.done() for task in self._places if task is not own):
            error = RunIncomplete("ray_no_actors", problem=problem)
            self._refuse(error)
            self.stop(error)

    async def _admit(self, hand: Hand) -> None:
        """Wait until an actor has a place and its model is ready."""
        told = await self._placed(hand)
        hand.node, hand.node_id = told["node"], told.get("id", "")
        for name, own in versions().items():
            if told[name] != own:
                values = {"node": hand.node, "name": name, "there": told[name], "here": own}
                raise UsageError("ray_other_version", **values)
        threads = int(self._need.cpus) if kind_of(self._config.model).extra is LOCAL else 0
        orders = orders_of(self._config, self.samplings, hand.place, self.actors, threads)
        opened = None
        async for item in hand.hired.stream("open", encode(orders)):
            opened = decode_opened(item) if item else None
        if opened is None:
            raise Lost("it ended before its model was ready")
        if opened.trouble is not None:
            error = opened.trouble.error
            if isinstance(error, UsageError):  # another node may have what this one lacks
                raise UsageError("ray_node_refuses", node=hand.node, problem=error)
            raise error
        self._take_facts(hand, opened)

    async def _placed(self, hand: Hand) -> dict[str, str]:
        """What an actor says first; it may wait for a place as long as others work."""
        greeting, patience = asyncio.ensure_future(hand.hired.hello()), self._config.ray.patience
        try:
            while not greeting.done():
                await asyncio.wait({greeting}, timeout=min(1.0, patience))
                if any(each.node for each in self._hands.values()):
                    self._last_placed = monotonic()
                elif monotonic() - self._last_placed > patience and not greeting.done():
                    nodes = await self._nodes.resources()
                    raise RunIncomplete("ray_no_place", **self._lack(nodes))
            return greeting.result()
        finally:
            greeting.cancel()

    def _take_facts(self, hand: Hand, opened: Opened) -> None:
        """Enter what an actor tells of its model, which must be the model of all others."""
        if not self._facts:
            self._facts = opened.facts
            self.model.slots, self.model.batches = opened.slots, opened.batches
        for fact, words in FIXED_FACTS.items():
            if fact in self._facts and opened.facts.get(fact) != self._facts[fact]:
                error = UsageError("ray_nodes_differ", node=hand.node, fact=words)
                self.stop(error)
                raise error
        hand.opened = opened
        hand.last.limit = opened.limit
        self.nodes_used.add(hand.node_id)
        self.tally()
        if self._first is not None and not self._first.done():
            self._first.set_result(None)

    def _left(self, task: asyncio.Task[None]) -> None:
        """A place has ended; one that broke down ends the run."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self._refuse(error)
            self.crash = self.crash or error
        self.changed()

    # What the actors tell

    def note_report(self, hand: Hand, report: Report) -> None:
        """Take note of a report."""
        hand.last = report
        self.odd_wait = report.odd_wait or self.odd_wait
        hand.answered += len(report.answers)
        self._answers_of[hand.place] += len(report.answers)
        self.tally()
        if report.trouble is not None:
            self.stop(report.trouble.error)

    def tell(self, job: Job, request: Request, exchange: Exchange) -> None:
        """Tell whoever follows of the attempts behind an answer."""
        self.shares_prefixes |= exchange.reply.usage.cached > 0
        if self.follower is not None:
            WORK.set(job)
            failed = [Reply(error=fault) for fault in exchange.faults]
            for number, reply in enumerate((*failed, exchange.reply), 1):
                self._told(self.follower, request, reply, reply.seconds, number)

    def tally(self) -> None:
        """Add up what the actors last told."""
        last = [hand.last for hand in self._hands.values()]
        self.in_flight = sum(each.in_flight for each in last)
        self.retries = self._gone_retries + sum(each.retries for each in last)
        self.concurrency.limit = max(1, sum(each.limit for each in last))
        opened = [hand.opened.limit for hand in self._hands.values() if hand.opened]
        self.concurrency.most = max(self.concurrency.most, sum(opened))

    def facts(self) -> dict[str, Any]:
        """What determines the replies, as the first actor told it."""
        return self._facts

    def standings(self) -> tuple[ActorStanding, ...]:
        """The places, for the eye."""
        nodes = {place: hand.node_id for place, hand in self._hands.items() if hand.opened}
        places = range(self.actors)
        return tuple(ActorStanding(nodes.get(n, ""), self._answers_of[n]) for n in places)

    def statistics(self) -> dict[str, Any]:
        """What the session was like beside its requests, for the manifest."""
        told = {"actors": self.actors, "nodes": len(self.nodes_used), "lost": self.lost}
        return {"executor": "ray", **told}

    @property
    def lanes(self) -> bool:
        """Whether each slot of a model stays on one prefix."""
        return self.model.slots is not None and not self.model.batches

    @property
    def pause(self) -> Pause | None:
        """What keeps most of the actors that send no more from doing so."""
        if self.stop_reason is not None:
            return "stopping"
        pauses = Counter(hand.last.pause for hand in self._hands.values() if hand.last.pause)
        return pauses.most_common(1)[0][0] if pauses else None

    @property
    def oldest(self) -> float:
        """Seconds since the oldest request in flight was sent, as the actors last told."""
        return max((hand.last.oldest for hand in self._hands.values()), default=0.0)

    @property
    def obstacle(self) -> Notice | None:
        """The same with its values; actors tell theirs as codes, whatever language they speak."""
        if self.stop_reason is not None:
            in_flight = self.in_flight
            return Notice("waiting_stopping", {"requests": in_flight}) if in_flight else None
        ready = [hand.last for hand in self._hands.values() if hand.opened]
        if not ready:
            return Notice("waiting_actor")
        told = [last.waiting for last in ready if last.waiting and last.pause == self.pause]
        if not told:
            return None
        return Notice("waiting_actors", {"n": len(told), "whole": len(ready), "why": told[0]})

    # The end

    def stop(self, reason: KejuError) -> None:
        """Send nothing more; what is in flight comes in."""
        first = self.stop_reason is None
        super().stop(reason)
        for hand in self._hands.values() if first else ():
            if hand.opened is not None:
                hand.hired.stop()
        self.changed()

    async def close(self) -> None:
        """End the actors and leave the cluster."""
        for task in self._places:
            task.cancel()
        await asyncio.gather(*self._places, return_exceptions=True)
        await self._nodes.close()


def _amounts(amounts: dict[str, float]) -> str:
    """Amounts in words: ``2 CPU, 1 GPU``."""
    return joined("joined_by_comma", [f"{amount:g} {name}" for name, amount in amounts.items()])


def check_executor(config: TaskConfig, jobs: Iterable[Job]) -> None:
    """ConfigError or MissingExtra where no cluster can work on a task."""
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


def need_of(config: TaskConfig, nodes: list[dict[str, float]]) -> Need:
    """What an actor takes: as the settings say, else by the kind of model."""
    asked, kind = config.ray, kind_of(config.model)
    if kind.extra is None:  # no weights, no arithmetic
        return Need(asked.cpus or 0.0, asked.gpus or 0.0, asked.resources)
    gpus = asked.gpus
    if gpus is None:
        gpus = 1.0 if any(node.get("GPU") for node in nodes) else 0.0
    cpus = asked.cpus
    if cpus is None:
        threads = config.model_args.get("threads")
        smallest = min((node["CPU"] for node in nodes if node.get("CPU")), default=1.0)
        cpus = float(threads) if isinstance(threads, int) else 1.0 if gpus else float(int(smallest))
    return Need(cpus, gpus, asked.resources)
