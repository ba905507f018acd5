"""Which of several endpoints gets which questions: equal prefixes go to one, and none of them is
idle.

Every prefix has a home, chosen by rendezvous hashing. Each endpoint draws a number for the prefix
that depends only on the two, and the highest one wins. So a prefix goes to the same endpoint in
every run. If an endpoint is gone, only its prefixes move.

Each endpoint has a queue and takes from it as fast as it answers. An endpoint with an empty queue
takes over work that another would reach last. It takes a whole group, so that its prefix is
computed once. It takes a part of a group only where no whole one fits into its share of the
remaining work. The share follows from the speed of the endpoints, so that all end at the same time.
"""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from functools import cache

from keju.engine.channel import Channel
from keju.engine.job import Job
from keju.engine.pool import EndpointPool
from keju.engine.queue import Unit, UnitQueue, WaitForPrefix, Where

SMALL_GAIN = 0.02
"""If another endpoint needs at most this share of the elapsed time for its remaining work, it keeps
that work and its prefixes, since little can be gained."""

MAX_COMPARED = 10_000
"""With more units than this, an endpoint never counts as too slow. Others cannot finish them during
one request."""

Order = Callable[[Channel, Sequence[bytearray]], UnitQueue]
"""Returns the queue in which an endpoint is asked all units that are not done."""


class PrefixRoutes:
    """The home of each prefix."""

    def __init__(self, pool: EndpointPool, jobs: Sequence[Job]) -> None:
        self._names = [
            f"{endpoint.display_url} {endpoint.model or ''}" for endpoint in pool.settings
        ]
        self._weights = [settings.weight for settings in pool.settings]
        self._exams = {id(job.exam): job for job in jobs}

    @cache  # noqa: B019 (it lives as long as a session)
    def _digest(self, where: Where) -> bytes:
        """Return the digest of the prefix that the prompts of a subset share."""
        exam, name = where
        job = self._exams[exam]
        subset = next(candidate for candidate in job.exam.subsets if candidate.name == name)
        return job.exam.render(job.exam.samples[subset.start]).prefix.digest

    def choose_home(self, where: Where, places: Iterable[int]) -> int:
        """Return which of these endpoints, by their places, a prefix goes to."""
        return max(places, key=lambda place: self._draw_number(where, place))

    @cache  # noqa: B019
    def _draw_number(self, where: Where, place: int) -> float:
        """Return the number that an endpoint draws for a prefix. It grows with the endpoint's
        weight."""
        name = self._names[place].encode()
        hash_bytes = hashlib.blake2b(self._digest(where) + name, digest_size=8).digest()
        fraction = (int.from_bytes(hash_bytes) + 1) / (2**64 + 1)  # between 0 and 1
        return -self._weights[place] / math.log(fraction)


def find_subset(unit: Unit) -> Where:
    """Return the subset of a unit."""
    index = unit.number // unit.job.epochs
    subset = next(s for s in unit.job.exam.subsets if s.start <= index < s.stop)
    return id(unit.job.exam), subset.name


class EndpointQueues:
    """Some work, shared between the endpoints of a pool. It works like a queue with a place."""

    def __init__(
        self,
        pool: EndpointPool,
        prefix_routes: PrefixRoutes,
        jobs: Sequence[Job],
        done_masks: Sequence[bytearray],
        order: Order,
    ) -> None:
        self._pool, self._homes, self._jobs, self._order = pool, prefix_routes, jobs, order
        self._queues: dict[int, UnitQueue] = {}
        self._rerouted_units: dict[int, deque[Unit]] = defaultdict(deque)
        """Units that come from other endpoints, which did not answer them. They go first."""
        places = pool.working_places or range(len(pool.channels))
        masks = {place: [bytearray([1]) * job.units for job in jobs] for place in places}
        for number, (job, done_mask) in enumerate(zip(jobs, done_masks, strict=True)):
            for subset in job.exam.subsets:
                home = prefix_routes.choose_home((id(job.exam), subset.name), places)
                units = slice(subset.start * job.epochs, subset.stop * job.epochs)
                masks[home][number][units] = done_mask[units]
        for place, place_masks in masks.items():
            self._queues[place] = order(pool.channels[place], place_masks)

    def _queue(self, place: int) -> UnitQueue:
        """Return the queue of an endpoint. An endpoint that opened late starts with an empty
        one."""
        if place not in self._queues:
            empty_masks = [bytearray([1]) * job.units for job in self._jobs]
            self._queues[place] = self._order(self._pool.channels[place], empty_masks)
        return self._queues[place]

    @property
    def remaining(self) -> int:
        """The number of units that no worker has taken yet."""
        rerouted_count = sum(map(len, self._rerouted_units.values())) if self._rerouted_units else 0
        return rerouted_count + sum(queue.remaining for queue in self._queues.values())

    def remaining_at(self, place: int) -> int:
        """Return how many of them wait for one endpoint."""
        return self._queue(place).remaining + len(self._rerouted_units[place])

    def take(self, place: int, lane: int) -> Unit | WaitForPrefix | None:
        """Return the next unit for a worker of an endpoint, or None if there is none for it at
        present."""
        if not self._pool.accepts_work(place):
            return None
        if self._rerouted_units[place]:
            return self._rerouted_units[place].popleft()
        if self._too_slow(place):
            return None
        queue = self._queue(place)
        # Early enough that the first request with a new prefix goes ahead of the others.
        if queue.remaining <= self._pool.channels[place].limit:
            self._take_over(place, queue)
        return queue.take(lane)

    async def wait_for_change(self, place: int, hold: WaitForPrefix) -> None:
        """Wait until there may be work again for an endpoint."""
        await self._queue(place).wait_for_change(hold)

    def note_reply(self, unit: Unit) -> None:
        """Note that a unit has its record."""
        for queue in self._queues.values():
            queue.note_reply(unit)

    def give_back(self, unit: Unit, place: int) -> None:
        """Give a unit to another endpoint, because this one did not answer it."""
        for queue in self._queues.values():
            queue.forget(unit)
        other_places = [
            other_place for other_place in self._pool.working_places if other_place != place
        ] or [place]
        self._rerouted_units[self._homes.choose_home(find_subset(unit), other_places)].append(unit)

    def leave(self, place: int) -> None:
        """Move the work of an endpoint that is down to those that work, if there are any."""
        other_places = [
            other_place for other_place in self._pool.working_places if other_place != place
        ]
        if not other_places or place not in self._queues:
            return
        for group in self._queues[place].clear():
            self._queue(self._homes.choose_home(group.where, other_places)).admit(group)
        while self._rerouted_units[place]:
            self.give_back(self._rerouted_units[place].popleft(), place)

    def _take_over(self, place: int, queue: UnitQueue) -> None:
        """Get work of other endpoints for one that has hardly any, where that helps."""
        pool = self._pool
        if self.remaining == queue.remaining or place not in pool.working_places:
            return
        speeds = {
            worker: pool.estimate_speed(worker)
            for worker in pool.working_places
            if worker == place or not self._too_slow(worker)
        }
        share = self.remaining * pool.estimate_speed(place) / sum(speeds.values())
        fair_share = math.ceil(share) - queue.remaining

        def is_home(where: Where) -> bool:
            return self._homes.choose_home(where, speeds) == place

        seconds_left = {
            other_place: other_queue.remaining / speeds.get(other_place, math.inf)
            for other_place, other_queue in self._queues.items()
            if other_queue.remaining and other_place != place
        }
        for donor_place, seconds in sorted(seconds_left.items(), key=lambda pair: -pair[1]):
            if fair_share < 1 or not self._helps(place, donor_place, seconds):
                continue
            donor = self._queues[donor_place]
            group = donor.hand_over(fair_share, is_preferred=is_home)
            if (group := group or donor.hand_over_part(fair_share)) is not None:
                queue.admit(group)
                return

    def _helps(self, place: int, donor_place: int, seconds: float) -> bool:
        """Whether an endpoint ends work sooner that another one begins in `seconds` seconds."""
        own_latency, donor_latency = (
            self._pool.channels[endpoint_place].pace.seconds
            for endpoint_place in (place, donor_place)
        )
        if own_latency is None or donor_latency is None or self._too_slow(donor_place):
            return True
        return seconds + donor_latency - own_latency > SMALL_GAIN * self._pool.seconds

    def _too_slow(self, place: int) -> bool:
        """Whether the other endpoints end all remaining work before this one ends one request.

        Also true while this one refuses requests and another one does not.
        """
        pool = self._pool
        channel = pool.channels[place]
        if channel.rate_limit.is_closed and pool.has_unlimited_peer(channel):
            return True
        own_latency = channel.pace.seconds
        if own_latency is None or (remaining := self.remaining) > MAX_COMPARED:
            return False
        other_places = [other_place for other_place in pool.working_places if other_place != place]
        measured = [pool.channels[other_place].pace.seconds for other_place in other_places]
        latencies = [seconds for seconds in measured if seconds is not None]
        if not latencies:
            return False
        other_seconds = min(latencies) + remaining / sum(
            pool.estimate_speed(other_place) for other_place in other_places
        )
        return own_latency - other_seconds > SMALL_GAIN * pool.seconds
