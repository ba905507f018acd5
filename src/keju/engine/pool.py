"""Several endpoints of one model: which of them work, and how Keju handles those that do not.

    opening ──> works ──> down ──> works …          probed with a cheap call, and taken back
       │          │         └────> the run stops    when all are down for too long, resumable
       └──────────┴──> lost                         refuses the key, the model, every request

All must serve the same model, by the names that they report. An endpoint that reports another name
is down until it reports the right one, and its replies do not count.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from time import monotonic
from typing import Any

from keju.config import TaskConfig
from keju.engine.channel import Channel, ChannelLimits
from keju.engine.endpoint_group import EndpointGroup
from keju.engine.endpoint_health import EndpointHealth
from keju.engine.limits import RateLimits, SpendingMeter
from keju.errors import EndpointError, KejuError, Notice, RunIncomplete
from keju.messages import label_text
from keju.models.base import Model
from keju.progress.display import ActorStatus, Pause
from keju.progress.watching import Follower
from keju.runs.manifest import StoredEndpoint
from keju.scores.usage import UsageMeter
from keju.types import Sampling

TRANSIENT_CODES = (
    "endpoint_unreachable",
    "endpoint_not_ready",
    "endpoint_asks_to_wait",
    "endpoint_limited_at_start",
)
"""Errors of an endpoint at the start of a run that may go away later."""
LATE = 10.0
"""Seconds that a run waits for its other endpoints when it could begin."""
SILENCE, MUCH_LONGER = 30.0, 5.0
"""If an endpoint gives no reply for this many seconds, and this many times longer than any reply
has taken, Keju checks whether it still answers."""
WATCH_EVERY = 1.0

EndpointCheck = Callable[[Channel], Awaitable[None]]
"""The checks of an endpoint before its first question. Raises EndpointError where it cannot be
asked."""


class EndpointPool(EndpointGroup):
    """The endpoints of a session. Other modules use them as one channel."""

    is_group = True

    def __init__(
        self,
        config: TaskConfig,
        models: Sequence[Model],
        spending: SpendingMeter,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Create a pool. `models` are those at the endpoints of `config`, in their order."""
        super().__init__(RateLimits(config.rpm, config.tpm))
        self.settings = config.endpoints
        self.spending = spending
        self.on_change: Callable[[], None] = lambda: None
        """Called when an endpoint goes down, comes back or is lost."""
        self._requested_model = config.model
        self._say = say
        self._reference = ""
        """The name of the model in replies, or "" before the first reply that has one."""
        self._has_reference = False
        self._other_names: list[Counter[str]] = [Counter() for _ in models]
        """Other names that endpoints reported, and the number of replies to questions with each."""
        self._lost_reasons: dict[int, KejuError] = {}
        self._opened_at = monotonic()
        self._check_endpoint: EndpointCheck = _check_nothing
        self._checked_places: set[int] = set()
        self._down_since: float | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._silent_checks: set[Channel] = set()
        """Silent endpoints that are being checked."""
        for place, (model, endpoint) in enumerate(zip(models, self.settings, strict=True)):
            limits = replace(ChannelLimits.of(config, model), rpm=None, tpm=None).restrict_to(
                endpoint
            )
            Channel(model, limits, spending, seed=config.seed + place, group=self)

    # Opening and closing

    async def open(self, samplings: Iterable[Sampling], check_endpoint: EndpointCheck) -> None:
        """Open all endpoints. Return when the first works and the others had time to.

        Raise EndpointError if none does.
        """
        self._check_endpoint, sampling_list = check_endpoint, list(samplings)
        openings = [
            self._start_task(self._open(place, sampling_list))
            for place in range(len(self.channels))
        ]
        pending: set[asyncio.Task[None]] = set(openings)
        while pending and not self.working_places:
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            _raise_first(done)
        if pending:
            done, _ = await asyncio.wait(pending, timeout=LATE)
            _raise_first(done)
        self._choose_reference()
        if not self.working_places:
            first_reason = next(
                (self._lost_reasons[place] for place in sorted(self._lost_reasons)), None
            )
            values = {
                "n": len(self.channels),
                "problems": [*map(self._describe_outage, self.channels)],
            }
            raise first_reason or EndpointError("no_endpoint_answers", **values)
        self._opened_at = monotonic()
        self._start_task(self._watch())

    def _start_task(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _open(self, place: int, samplings: Sequence[Sampling]) -> None:
        """Open one endpoint. A problem takes out this endpoint alone."""
        channel = self.channels[place]
        try:
            await channel.open(samplings)
            if not await self.can_be_asked(channel):
                channel.take_out(Notice("endpoint_reports", {"name": self._reported_name(channel)}))
        except EndpointError as error:
            if error.code in TRANSIENT_CODES:
                channel.take_out(error)
            else:
                self.lose(channel, error)

    async def close(self) -> None:
        """Close all endpoints."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for channel in self.channels:
            await channel.close()

    # Which endpoints work

    @property
    def working_places(self) -> list[int]:
        """The places of the endpoints that answer at present."""
        return [place for place, channel in enumerate(self.channels) if channel.usable]

    def accepts_work(self, place: int) -> bool:
        """Whether an endpoint may get work: it answers, or none does and this one may answer
        again."""
        channel = self.channels[place]
        return channel.usable or (channel.stop_reason is None and not self.working_places)

    def estimate_speed(self, place: int) -> float:
        """Return the replies per second, as far as is known.

        All slots are busy, each for the duration of a reply. An endpoint without replies counts as
        fast as the others.
        """
        channel = self.channels[place]
        seconds = channel.pace.seconds
        if seconds is None:
            known_seconds = [
                measured.pace.seconds
                for measured in self.channels
                if measured.pace.seconds is not None
            ]
            seconds = sum(known_seconds) / len(known_seconds) if known_seconds else 1.0
        speed = min(channel.concurrency.limit / max(seconds, 1e-6), channel.rate_limit.rate)
        return min(speed, channel.limits.rpm / 60) if channel.limits.rpm else speed

    def can_reroute(self, channel: Channel) -> bool:
        """Whether another channel can take over the requests that wait at this one."""
        return any(candidate.usable for candidate in self.channels if candidate is not channel)

    def has_unlimited_peer(self, channel: Channel) -> bool:
        """Whether another channel accepts requests while this one refuses them."""
        other_channels = (candidate for candidate in self.channels if candidate is not channel)
        return any(
            other_channel.usable and not other_channel.rate_limit.is_closed
            for other_channel in other_channels
        )

    def limited_too_long(self, channel: Channel) -> KejuError | None:
        """Return the reason to end the session if all endpoints refused every request for too
        long."""
        working = [self.channels[place] for place in self.working_places]
        reasons = [
            super(EndpointPool, self).limited_too_long(working_channel)
            for working_channel in working
        ]
        return reasons[0] if reasons and None not in reasons else None

    def handle_change(self, channel: EndpointHealth) -> None:
        """Handle that a channel went down or is back."""
        any_usable = bool(self.working_places)
        self._down_since = None if any_usable else self._down_since or monotonic()
        if channel.stop_reason is None:
            down_code = "endpoint_down" if any_usable else "endpoint_down_all"
            code = down_code if channel.breaker.since is not None else "endpoint_back"
            values = {"url": self._name(channel), "problem": channel.problem}
            self._say(Notice(code, values).message)
        self.on_change()

    def lose(self, channel: Channel, reason: KejuError) -> None:
        """Mark an endpoint as unusable. The session ends with the last one."""
        if channel.stop_reason is not None:
            return
        self._lost_reasons[self.channels.index(channel)] = reason
        channel.stop(reason)
        values = {"url": self._name(channel), "problem": reason}
        self._say(Notice("endpoint_lost", values).message)
        if all(member.stop_reason is not None for member in self.channels):
            self.stop(reason)
        else:
            self.handle_change(channel)

    def stop(self, reason: KejuError) -> None:
        """Send nothing more."""
        super().stop(reason)
        self.on_change()

    def down_too_long(self, channel: EndpointHealth) -> KejuError | None:
        """Return the reason to end the session if all endpoints are down for too long."""
        seconds = channel.breaker.give_up_after
        if self._down_since is None or monotonic() - self._down_since <= seconds:
            return None
        return RunIncomplete("endpoints_stayed_down", n=len(self.channels), seconds=seconds)

    def _may_check(self, channel: Channel) -> bool:
        """Whether a silent endpoint is not checked yet, and others could take its work."""
        is_checked = channel in self._silent_checks
        return not is_checked and channel.usable and self.can_reroute(channel)

    async def _watch(self) -> None:
        """Find endpoints that have become silent: neither a reply nor a fault comes back."""
        while True:
            await asyncio.sleep(WATCH_EVERY)
            longest = max(channel.pace.longest for channel in self.channels)
            limit = max(SILENCE, MUCH_LONGER * longest)
            for channel in self.channels:
                is_silent = channel.in_flight and monotonic() - channel.last_heard > limit
                if is_silent and self._may_check(channel):
                    self._start_task(self._check_silent(channel))
                if channel.rate_limit.is_closed and self.has_unlimited_peer(channel):
                    channel.line.wake()

    async def _check_silent(self, channel: Channel) -> None:
        """Find out whether a silent endpoint answers. If not, its requests go to other
        endpoints."""
        self._silent_checks.add(channel)
        try:
            await channel.call_preflight()
            channel.last_heard = monotonic()
        except Exception:  # any exception means that the endpoint does not answer
            channel.take_out(Notice("endpoint_silent"))
            channel.break_off()
        finally:
            self._silent_checks.discard(channel)

    # Whether they serve the same model

    def _choose_reference(self) -> None:
        """Choose the name of the model: the requested one, else the one that most endpoints
        report."""
        names = [self._reported_name(self.channels[place]) for place in self.working_places]
        undeclared = [
            name
            for name, place in zip(names, self.working_places, strict=True)
            if name and name not in self.settings[place].declared
        ]
        if undeclared:
            most_common = Counter(undeclared).most_common(1)[0][0]
            self._reference = (
                self._requested_model if self._requested_model in undeclared else most_common
            )
        self._has_reference = True
        for place in self.working_places:
            channel, name = self.channels[place], self._reported_name(self.channels[place])
            if not self.accepts(channel, name, from_reply=False):
                channel.take_out(Notice("endpoint_reports", {"name": name}))

    def _reported_name(self, channel: EndpointHealth) -> str:
        return str(channel.model.facts().get("reported_model") or "")

    def accepts(self, channel: Channel, name: str, *, from_reply: bool = True) -> bool:
        """Whether a reply, or an endpoint, may come from a model with this name."""
        if not name or name == self._reference or not self._has_reference:
            return True
        place = self.channels.index(channel)
        endpoint = self.settings[place]
        if name in endpoint.declared:
            return True
        if not self._reference and not endpoint.reports:
            self._reference = name
        if name == self._reference:
            return True
        self._other_names[place][name] += from_reply
        return False

    async def can_be_asked(self, channel: EndpointHealth) -> bool:
        """Whether an endpoint that answers can be asked: the model is the same and the preflight is
        done."""
        place = next(n for n, member in enumerate(self.channels) if member is channel)
        pool_channel = self.channels[place]
        if not self.accepts(pool_channel, self._reported_name(pool_channel), from_reply=False):
            return False
        if place not in self._checked_places:
            await self._check_endpoint(pool_channel)
            self._checked_places.add(place)
        return True

    # The pool as one channel, for other modules

    @property
    def seconds(self) -> float:
        """Seconds since the endpoints were opened."""
        return monotonic() - self._opened_at

    @property
    def model(self) -> Model:
        """The model at the first endpoint."""
        return self.channels[0].model

    @property
    def address(self) -> str:
        """All addresses, without credentials."""
        return ", ".join(channel.address for channel in self.channels)

    @property
    def addresses(self) -> dict[str, int]:
        """The number of requests in flight, by address."""
        return {self._name(channel): channel.in_flight for channel in self.channels}

    @property
    def retries(self) -> int:
        """Attempts that repeat failed ones."""
        return sum(channel.retries for channel in self.channels)

    @property
    def limit(self) -> int:
        """The most requests in flight at present."""
        return sum(self.channels[place].concurrency.limit for place in self.working_places)

    @property
    def follower(self) -> Follower | None:
        """Called with every attempt."""
        return self.channels[0].follower

    @follower.setter
    def follower(self, follower: Follower | None) -> None:
        for channel in self.channels:
            channel.follower = follower

    @property
    def pause(self) -> Pause | None:
        """The reason why the endpoints get no more requests, if there is one."""
        if not self.working_places and self.stop_reason is None:
            return "down"
        pauses = [self.channels[place].pause for place in self.working_places]
        return next((pause for pause in pauses if pause is not None), None)

    @property
    def oldest(self) -> float:
        """Seconds since the oldest request in flight was sent, or 0 if there is none."""
        return max(channel.oldest for channel in self.channels)

    @property
    def waiting_for(self) -> str:
        """The reason for waiting as text, or "" if there is none."""
        n, down = len(self.channels), len(self.channels) - len(self.working_places)
        if self.stop_reason is not None:
            return self.channels[0].waiting_for
        if down == n:
            seconds = monotonic() - (self._down_since or monotonic())
            return Notice("endpoints_all_down", {"n": n, "seconds": seconds}).message
        explanations = [self.channels[place].waiting_for for place in self.working_places]
        parts = [Notice("endpoints_down", {"down": down, "n": n}).message] if down else []
        return label_text("pair_separator").join(
            [*parts, *dict.fromkeys(filter(None, explanations))]
        )

    def _name(self, channel: EndpointHealth) -> str:
        place = next(n for n, member in enumerate(self.channels) if member is channel)
        endpoint = self.settings[place]
        return (
            f"{endpoint.display_url} ({endpoint.model})" if endpoint.model else endpoint.display_url
        )

    def _describe_outage(self, channel: EndpointHealth) -> Notice:
        """Return why an endpoint is down, with its address."""
        problem = channel.problem
        if isinstance(problem, EndpointError):  # its sentence has the address once more
            problem = problem.values.get("problem", problem)
        return Notice("endpoint_is_down", {"url": self._name(channel), "problem": problem})

    def facts(self) -> dict[str, Any]:
        """Return the facts about the endpoints: those that they share, and those of each one."""
        channel_facts = [channel.facts() for channel in self.channels]
        shared_facts = {
            name: value
            for name, value in channel_facts[0].items()
            if all(name in facts and facts[name] == value for facts in channel_facts)
        }
        endpoint_facts = [
            {n: v for n, v in facts.items() if n not in shared_facts} for facts in channel_facts
        ]
        return shared_facts | {"endpoints": endpoint_facts}

    def actor_standings(self) -> tuple[ActorStatus, ...]:
        """Return nothing: this process asks the endpoints, without actors."""
        return ()

    def statistics(self) -> dict[str, Any]:
        """Return nothing: the endpoints have no further statistics."""
        return {}

    def make_stored_endpoints(self) -> list[StoredEndpoint]:
        """Return the counts of each endpoint, for the manifest."""
        return [self._make_stored_endpoint(place) for place in range(len(self.channels))]

    def _make_stored_endpoint(self, place: int) -> StoredEndpoint:
        channel = self.channels[place]
        stored = make_stored_endpoint(channel, channel.meter, self._name(channel))
        stored.declared = self.settings[place].declared
        stored.other_models = dict(self._other_names[place])
        if (problem := self._lost_reasons.get(place)) is not None:
            stored.lost = problem.notice
        return stored


def make_stored_endpoint(channel: Channel, meter: UsageMeter, address: str) -> StoredEndpoint:
    """Return the counts of an endpoint, for the manifest."""
    return StoredEndpoint(
        address=address,
        requests=meter.requests,
        replies=meter.replies,
        moved=channel.moved_count,
        outages=channel.outages,
        down_seconds=round(channel.down_seconds, 3),
        odd_wait=channel.odd_wait,
        input_tokens=meter.input,
        cached_tokens=meter.cached,
        output_tokens=meter.output,
        seconds=round(channel.pace.total, 3),
        reported=str(channel.model.facts().get("reported_model") or ""),
    )


async def _check_nothing(channel: Channel) -> None:
    """Check nothing."""


def _raise_first(done: Iterable[asyncio.Task[None]]) -> None:
    for task in done:
        task.result()
