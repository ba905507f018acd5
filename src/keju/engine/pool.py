"""Several endpoints of one model: which of them work, and what becomes of those that do not.

    opening ──> works ──> down ──> works …          probed with a cheap call, and taken back
       │          │         └────> the run stops    when all are down for too long, resumable
       └──────────┴──> lost                         refuses the key, the model, every request

All must serve the same model, by the names that they report. One that reports another name is down
until it reports the right one, and its replies do not count.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from time import monotonic
from typing import Any

from keju.config import TaskConfig
from keju.engine.channel import Channel, Limits
from keju.engine.company import Company
from keju.engine.display import ActorStanding, Pause
from keju.engine.limits import Meter, Rates, Spending
from keju.engine.presence import Presence
from keju.engine.watching import Follower
from keju.errors import EndpointError, KejuError, Notice, RunIncomplete
from keju.messages import said
from keju.models.base import Model
from keju.runs.manifest import StoredEndpoint
from keju.types import Sampling

PASSING = (
    "endpoint_unreachable",
    "endpoint_not_ready",
    "endpoint_asks_to_wait",
    "endpoint_limited_at_start",
)
"""Why an endpoint may not answer at the start of a run, and yet later."""
LATE = 10.0
"""Seconds for which a run that could begin waits for the rest of its endpoints."""
SILENCE, MUCH_LONGER = 30.0, 5.0
"""An endpoint of which nothing is heard for so many seconds, and so many times longer than any
reply has taken, is asked whether it is there."""
WATCH_EVERY = 1.0

Greeting = Callable[[Channel], Awaitable[None]]
"""What is to be found out of an endpoint before it is asked; EndpointError where it cannot be."""


class Pool(Company):
    """The endpoints of a session; for those around it, they are as one channel."""

    several = True

    def __init__(
        self,
        config: TaskConfig,
        models: Sequence[Model],
        spending: Spending,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`models` are those at the endpoints of `config`, in their order."""
        super().__init__(Rates(config.rpm, config.tpm))
        self.settings = config.endpoints
        self.spending = spending
        self.on_change: Callable[[], None] = lambda: None
        """Called when an endpoint went down, came back or was lost."""
        self._wanted = config.model
        self._say = say
        self._reference = ""
        """What the model is called in replies; empty while nobody has told."""
        self._agreed = False
        self._others: list[Counter[str]] = [Counter() for _ in models]
        """Other names that endpoints reported, and in how many replies to questions."""
        self._lost: dict[int, KejuError] = {}
        self._opened = monotonic()
        self._greet: Greeting = _greet_nobody
        self._greeted: set[int] = set()
        self._down_since: float | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._asked_silent: set[Channel] = set()
        """Silent ones that have been asked whether they are there."""
        for place, (model, endpoint) in enumerate(zip(models, self.settings, strict=True)):
            own = replace(Limits.of(config, model), rpm=None, tpm=None).within(endpoint)
            Channel(model, own, spending, seed=config.seed + place, company=self)

    # Opening and closing

    async def open(self, samplings: Iterable[Sampling], greet: Greeting) -> None:
        """Open all endpoints; return when the first works, and the others had time to.

        EndpointError if none does.
        """
        self._greet, wanted = greet, list(samplings)
        openings = [self._begin(self._open(place, wanted)) for place in range(len(self.channels))]
        rest: set[asyncio.Task[None]] = set(openings)
        while rest and not self.at_work:
            done, rest = await asyncio.wait(rest, return_when=asyncio.FIRST_COMPLETED)
            _raise_first(done)
        if rest:
            done, _ = await asyncio.wait(rest, timeout=LATE)
            _raise_first(done)
        self._agree()
        if not self.at_work:
            first = next((self._lost[place] for place in sorted(self._lost)), None)
            values = {"n": len(self.channels), "problems": [*map(self._why, self.channels)]}
            raise first or EndpointError("no_endpoint_answers", **values)
        self._opened = monotonic()
        self._begin(self._watch())

    def _begin(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _open(self, place: int, samplings: Sequence[Sampling]) -> None:
        """Open one endpoint; what is wrong with it takes it alone out."""
        channel = self.channels[place]
        try:
            await channel.open(samplings)
            if not await self.welcomes(channel):
                channel.take_out(Notice("endpoint_reports", {"name": self._reported(channel)}))
        except EndpointError as error:
            if error.code in PASSING:
                channel.take_out(error)
            else:
                self.lose(channel, error)

    async def close(self) -> None:
        """Let go of all endpoints."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for channel in self.channels:
            await channel.close()

    # Who works

    @property
    def at_work(self) -> list[int]:
        """The places of the endpoints that answer at present."""
        return [place for place, channel in enumerate(self.channels) if channel.usable]

    def works(self, place: int) -> bool:
        """Whether an endpoint may be given work: it answers, or nobody does, and it may again."""
        channel = self.channels[place]
        return channel.usable or (channel.stop_reason is None and not self.at_work)

    def speed(self, place: int) -> float:
        """Replies a second, as far as is known: all slots are busy, each for as long as a reply
        takes; one of which nothing is known is as fast as the others."""
        channel = self.channels[place]
        seconds = channel.pace.seconds
        if seconds is None:
            known = [each.pace.seconds for each in self.channels if each.pace.seconds is not None]
            seconds = sum(known) / len(known) if known else 1.0
        speed = min(channel.concurrency.limit / max(seconds, 1e-6), channel.rate_limit.rate)
        return min(speed, channel.limits.rpm / 60) if channel.limits.rpm else speed

    def elsewhere(self, channel: Channel) -> bool:
        """Whether another channel can take over what waits at this one."""
        return any(each.usable for each in self.channels if each is not channel)

    def unlimited_elsewhere(self, channel: Channel) -> bool:
        """Whether another channel accepts requests while this one refuses them."""
        others = (each for each in self.channels if each is not channel)
        return any(each.usable and not each.rate_limit.is_closed for each in others)

    def limited_too_long(self, channel: Channel) -> KejuError | None:
        """Return why the session ends where all endpoints refused every request for too long."""
        working = [self.channels[place] for place in self.at_work]
        reasons = [super(Pool, self).limited_too_long(each) for each in working]
        return reasons[0] if reasons and None not in reasons else None

    def changed(self, channel: Presence) -> None:
        """A channel went down, or is there again."""
        there = bool(self.at_work)
        self._down_since = None if there else self._down_since or monotonic()
        if channel.stop_reason is None:
            down = "endpoint_down" if there else "endpoint_down_all"
            code = down if channel.breaker.since is not None else "endpoint_back"
            values = {"url": self._name(channel), "problem": channel.problem}
            self._say(Notice(code, values).said)
        self.on_change()

    def lose(self, channel: Channel, reason: KejuError) -> None:
        """An endpoint cannot be used any more; with the last one the session ends."""
        if channel.stop_reason is not None:
            return
        self._lost[self.channels.index(channel)] = reason
        channel.stop(reason)
        values = {"url": self._name(channel), "problem": reason}
        self._say(Notice("endpoint_lost", values).said)
        if all(each.stop_reason is not None for each in self.channels):
            self.stop(reason)
        else:
            self.changed(channel)

    def stop(self, reason: KejuError) -> None:
        """Send nothing more."""
        super().stop(reason)
        self.on_change()

    def patience_over(self, channel: Presence) -> KejuError | None:
        """Why nobody should wait any longer: all endpoints are down for too long."""
        seconds = channel.breaker.give_up_after
        if self._down_since is None or monotonic() - self._down_since <= seconds:
            return None
        return RunIncomplete("endpoints_stayed_down", n=len(self.channels), seconds=seconds)

    async def _watch(self) -> None:
        """Find endpoints that have fallen silent: no reply, no fault, whatever is asked."""
        while True:
            await asyncio.sleep(WATCH_EVERY)
            longest = max(channel.pace.longest for channel in self.channels)
            limit = max(SILENCE, MUCH_LONGER * longest)
            for channel in self.channels:
                silent = channel.in_flight and monotonic() - channel.heard > limit
                known = channel in self._asked_silent
                if silent and not known and channel.usable and self.elsewhere(channel):
                    self._begin(self._ask_silent(channel))
                if channel.rate_limit.is_closed and self.unlimited_elsewhere(channel):
                    channel.line.wake()

    async def _ask_silent(self, channel: Channel) -> None:
        """Find out whether a silent endpoint is there; if not, its requests go elsewhere."""
        self._asked_silent.add(channel)
        try:
            await channel.answers()
            channel.heard = monotonic()
        except Exception:  # whatever it is, nobody answers
            channel.take_out(Notice("endpoint_silent"))
            channel.break_off()
        finally:
            self._asked_silent.discard(channel)

    # Whether they serve the same model

    def _agree(self) -> None:
        """Decide what the model is called: as it was asked for, else as most endpoints say."""
        names = [self._reported(self.channels[place]) for place in self.at_work]
        undeclared = [
            name
            for name, place in zip(names, self.at_work, strict=True)
            if name and name not in self.settings[place].declared
        ]
        if undeclared:
            usual = Counter(undeclared).most_common(1)[0][0]
            self._reference = self._wanted if self._wanted in undeclared else usual
        self._agreed = True
        for place in self.at_work:
            channel, name = self.channels[place], self._reported(self.channels[place])
            if not self.accepts(channel, name, reply=False):
                channel.take_out(Notice("endpoint_reports", {"name": name}))

    def _reported(self, channel: Presence) -> str:
        return str(channel.model.facts().get("reported_model") or "")

    def accepts(self, channel: Channel, name: str, *, reply: bool = True) -> bool:
        """Whether a reply, or an endpoint, may come from a model that is called so."""
        if not name or name == self._reference or not self._agreed:
            return True
        place = self.channels.index(channel)
        own = self.settings[place]
        if name in own.declared:
            return True
        if not self._reference and not own.reports:
            self._reference = name
        if name == self._reference:
            return True
        self._others[place][name] += reply
        return False

    async def welcomes(self, channel: Presence) -> bool:
        """Whether an endpoint that answers can be asked: the model is the same, and all is known
        that is to be found out before."""
        place = next(n for n, each in enumerate(self.channels) if each is channel)
        own = self.channels[place]
        if not self.accepts(own, self._reported(own), reply=False):
            return False
        if place not in self._greeted:
            await self._greet(own)
            self._greeted.add(place)
        return True

    # As one channel, for those around it

    @property
    def seconds(self) -> float:
        """Seconds since the endpoints were opened."""
        return monotonic() - self._opened

    @property
    def model(self) -> Model:
        """The model, at the first endpoint."""
        return self.channels[0].model

    @property
    def address(self) -> str:
        """All addresses, without credentials."""
        return ", ".join(channel.address for channel in self.channels)

    @property
    def addresses(self) -> dict[str, int]:
        """How many requests are in flight, by address."""
        return {self._name(channel): channel.in_flight for channel in self.channels}

    @property
    def retries(self) -> int:
        """Attempts that repeat failed ones."""
        return sum(channel.retries for channel in self.channels)

    @property
    def limit(self) -> int:
        """The most requests in flight at present."""
        return sum(self.channels[place].concurrency.limit for place in self.at_work)

    @property
    def follower(self) -> Follower | None:
        """Who is told of every attempt."""
        return self.channels[0].follower

    @follower.setter
    def follower(self, follower: Follower | None) -> None:
        for channel in self.channels:
            channel.follower = follower

    @property
    def pause(self) -> Pause | None:
        """What keeps the endpoints from being sent more."""
        if not self.at_work and self.stop_reason is None:
            return "down"
        pauses = [self.channels[place].pause for place in self.at_work]
        return next((pause for pause in pauses if pause is not None), None)

    @property
    def oldest(self) -> float:
        """Seconds since the oldest request in flight was sent; 0 without one."""
        return max(channel.oldest for channel in self.channels)

    @property
    def waiting_for(self) -> str:
        """The same in words; empty if nothing does."""
        n, down = len(self.channels), len(self.channels) - len(self.at_work)
        if self.stop_reason is not None:
            return self.channels[0].waiting_for
        if down == n:
            seconds = monotonic() - (self._down_since or monotonic())
            return Notice("endpoints_all_down", {"n": n, "seconds": seconds}).said
        told = [self.channels[place].waiting_for for place in self.at_work]
        words = [Notice("endpoints_down", {"down": down, "n": n}).said] if down else []
        return said("pair_separator").join([*words, *dict.fromkeys(filter(None, told))])

    def _name(self, channel: Presence) -> str:
        place = next(n for n, each in enumerate(self.channels) if each is channel)
        own = self.settings[place]
        return f"{own.display_url} ({own.model})" if own.model else own.display_url

    def _why(self, channel: Presence) -> Notice:
        """Why an endpoint is down, with its address."""
        problem = channel.problem
        if isinstance(problem, EndpointError):  # its sentence has the address once more
            problem = problem.values.get("problem", problem)
        return Notice("endpoint_is_down", {"url": self._name(channel), "problem": problem})

    def facts(self) -> dict[str, Any]:
        """What is known of the endpoints: what they share, and each one's own."""
        each = [channel.facts() for channel in self.channels]
        shared = {
            name: value
            for name, value in each[0].items()
            if all(name in facts and facts[name] == value for facts in each)
        }
        own = [{n: v for n, v in facts.items() if n not in shared} for facts in each]
        return shared | {"endpoints": own}

    def standings(self) -> tuple[ActorStanding, ...]:
        """No actors: endpoints are asked by this process."""
        return ()

    def statistics(self) -> dict[str, Any]:
        """Nothing beside the books."""
        return {}

    def books(self) -> list[StoredEndpoint]:
        """What each endpoint was asked and told, for the books."""
        return [self._stored(place) for place in range(len(self.channels))]

    def _stored(self, place: int) -> StoredEndpoint:
        channel = self.channels[place]
        stored = book_of(channel, channel.meter, self._name(channel))
        stored.declared = self.settings[place].declared
        stored.other_models = dict(self._others[place])
        if (problem := self._lost.get(place)) is not None:
            stored.lost = problem.notice
        return stored


def book_of(channel: Channel, meter: Meter, address: str) -> StoredEndpoint:
    """What an endpoint was asked and told, for the books."""
    return StoredEndpoint(
        address=address,
        requests=meter.requests,
        replies=meter.replies,
        moved=channel.moved,
        outages=channel.outages,
        down_seconds=round(channel.down_seconds, 3),
        odd_wait=channel.odd_wait,
        input_tokens=meter.input,
        cached_tokens=meter.cached,
        output_tokens=meter.output,
        seconds=round(channel.pace.total, 3),
        reported=str(channel.model.facts().get("reported_model") or ""),
    )


async def _greet_nobody(channel: Channel) -> None:
    """Nothing is to be found out."""


def _raise_first(done: Iterable[asyncio.Task[None]]) -> None:
    for task in done:
        task.result()
