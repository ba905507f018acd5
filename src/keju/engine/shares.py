"""Which of several endpoints is asked what: equal prefixes go to one, and none of them is idle.

Every prefix has a home, by rendezvous hashing: each endpoint draws a number for it that depends on
nothing but the two, and the highest one wins. So a prefix goes to the same endpoint in every run,
and where an endpoint is gone only its own prefixes move.

Each endpoint has a queue of its own and takes from it as fast as it answers. One whose queue is
empty takes over what another would reach last: a whole group, so that its prefix is computed once;
a part of one only where no group fits into what is left for it to do. How much that is follows
from how fast the endpoints are: all are to end at the same time.
"""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from functools import cache

from keju.engine.channel import Channel
from keju.engine.job import Job
from keju.engine.pool import Pool
from keju.engine.queue import Held, Queue, Unit, Where

CALM = 0.02
"""The share of the time so far within which another endpoint may finish its own work: it keeps it,
and its prefixes, since little can be won."""

MANY = 10_000
"""Units that no endpoints answer while another one answers a single request."""

Order = Callable[[Channel, Sequence[bytearray]], Queue]
"""The order in which an endpoint is asked all that is not done."""


class Homes:
    """Where each prefix is at home."""

    def __init__(self, pool: Pool, jobs: Sequence[Job]) -> None:
        self._names = [f"{each.display_url} {each.model or ''}" for each in pool.settings]
        self._weights = [settings.weight for settings in pool.settings]
        self._exams = {id(job.exam): job for job in jobs}

    @cache  # noqa: B019 (it lives as long as a session)
    def _digest(self, where: Where) -> bytes:
        """What the prompts of a subset share, as a number of bytes."""
        exam, name = where
        job = self._exams[exam]
        subset = next(each for each in job.exam.subsets if each.name == name)
        return job.exam.render(job.exam.samples[subset.start]).prefix.digest

    def of(self, where: Where, places: Iterable[int]) -> int:
        """The one of these endpoints, by their places, that a prefix goes to."""
        return max(places, key=lambda place: self._draw(where, place))

    @cache  # noqa: B019
    def _draw(self, where: Where, place: int) -> float:
        """The number that an endpoint draws for a prefix, the higher the heavier it weighs."""
        name = self._names[place].encode()
        drawn = hashlib.blake2b(self._digest(where) + name, digest_size=8).digest()
        share = (int.from_bytes(drawn) + 1) / (2**64 + 1)  # between 0 and 1
        return -self._weights[place] / math.log(share)


def where_of(unit: Unit) -> Where:
    """The subset of a unit."""
    index = unit.number // unit.job.epochs
    subset = next(s for s in unit.job.exam.subsets if s.start <= index < s.stop)
    return id(unit.job.exam), subset.name


class Shares:
    """Some work, shared between the endpoints of a pool; as a queue, but for one of them."""

    def __init__(
        self,
        pool: Pool,
        homes: Homes,
        jobs: Sequence[Job],
        done: Sequence[bytearray],
        order: Order,
    ) -> None:
        self._pool, self._homes, self._jobs, self._order = pool, homes, jobs, order
        self._queues: dict[int, Queue] = {}
        self._moved: dict[int, deque[Unit]] = defaultdict(deque)
        """Units that come from other endpoints, which did not answer them; they go first."""
        places = pool.at_work or range(len(pool.channels))
        masks = {place: [bytearray([1]) * job.units for job in jobs] for place in places}
        for number, (job, known) in enumerate(zip(jobs, done, strict=True)):
            for subset in job.exam.subsets:
                home = homes.of((id(job.exam), subset.name), places)
                units = slice(subset.start * job.epochs, subset.stop * job.epochs)
                masks[home][number][units] = known[units]
        for place, own in masks.items():
            self._queues[place] = order(pool.channels[place], own)

    def _queue(self, place: int) -> Queue:
        """The queue of an endpoint; of one that has come late, an empty one."""
        if place not in self._queues:
            nothing = [bytearray([1]) * job.units for job in self._jobs]
            self._queues[place] = self._order(self._pool.channels[place], nothing)
        return self._queues[place]

    @property
    def left(self) -> int:
        """Units that nobody has taken yet."""
        moved = sum(map(len, self._moved.values())) if self._moved else 0
        return moved + sum(queue.left for queue in self._queues.values())

    def left_at(self, place: int) -> int:
        """Those of them that wait for one endpoint."""
        return self._queue(place).left + len(self._moved[place])

    def take(self, place: int, lane: int) -> Unit | Held | None:
        """The next unit for a worker of an endpoint; None if there is none for it at present."""
        if not self._pool.works(place):
            return None
        if self._moved[place]:
            return self._moved[place].popleft()
        if self._too_slow(place):
            return None
        queue = self._queue(place)
        # In time, so that the first request with a new prefix goes ahead of the others.
        if queue.left <= self._pool.channels[place].limit:
            self._take_over(place, queue)
        return queue.take(lane)

    async def changed(self, place: int, held: Held) -> None:
        """Wait until there may be work again for an endpoint."""
        await self._queue(place).changed(held)

    def landed(self, unit: Unit) -> None:
        """A unit has its record."""
        for queue in self._queues.values():
            queue.landed(unit)

    def give_back(self, unit: Unit, place: int) -> None:
        """A unit was taken for an endpoint that did not answer it: another one is to."""
        for queue in self._queues.values():
            queue.forget(unit)
        others = [each for each in self._pool.at_work if each != place] or [place]
        self._moved[self._homes.of(where_of(unit), others)].append(unit)

    def leave(self, place: int) -> None:
        """An endpoint is down: what waits for it goes to those that work, if there are any."""
        others = [each for each in self._pool.at_work if each != place]
        if not others or place not in self._queues:
            return
        for group in self._queues[place].clear():
            self._queue(self._homes.of(group.where, others)).admit(group)
        while self._moved[place]:
            self.give_back(self._moved[place].popleft(), place)

    def _take_over(self, place: int, queue: Queue) -> None:
        """Get work of others for an endpoint that has hardly any, where that helps."""
        pool = self._pool
        if self.left == queue.left or place not in pool.at_work:
            return
        workers = [each for each in pool.at_work if each == place or not self._too_slow(each)]
        speeds = {each: pool.speed(each) for each in workers}
        share = math.ceil(self.left * pool.speed(place) / sum(speeds.values())) - queue.left

        def at_home(where: Where) -> bool:
            return self._homes.of(where, speeds) == place

        behind = {
            each: other.left / speeds.get(each, math.inf)
            for each, other in self._queues.items()
            if other.left and each != place
        }
        for other, seconds in sorted(behind.items(), key=lambda pair: -pair[1]):
            if share < 1 or not self._helps(place, other, seconds):
                continue
            theirs = self._queues[other]
            given = theirs.give(share, first=at_home) or theirs.give_part(share)
            if given is not None:
                queue.admit(given)
                return

    def _helps(self, place: int, other: int, seconds: float) -> bool:
        """Whether an endpoint ends work sooner that another one begins within so many seconds."""
        own, theirs = (self._pool.channels[each].pace.seconds for each in (place, other))
        if own is None or theirs is None or self._too_slow(other):
            return True
        return seconds + theirs - own > CALM * self._pool.seconds

    def _too_slow(self, place: int) -> bool:
        """Whether the other endpoints end all that is left before this one ends one request.

        It is so too while this one refuses requests and another one does not.
        """
        pool = self._pool
        channel = pool.channels[place]
        if channel.rate_limit.is_closed and pool.unlimited_elsewhere(channel):
            return True
        own = channel.pace.seconds
        if own is None or (left := self.left) > MANY:
            return False
        others = [each for each in pool.at_work if each != place]
        known = [pool.channels[each].pace.seconds for each in others]
        latencies = [seconds for seconds in known if seconds is not None]
        if not latencies:
            return False
        rest = min(latencies) + left / sum(pool.speed(each) for each in others)
        return own - rest > CALM * pool.seconds
