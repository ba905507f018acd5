"""Who of several endpoints is asked what, in a time of its own: affinity, balance, outages."""

from __future__ import annotations

import heapq
import random
from collections import Counter, defaultdict
from collections.abc import Sequence

import pytest

from keju.benchmarks.base import Subset
from keju.config import Budget, Endpoint, TaskConfig
from keju.engine.channel import Channel
from keju.engine.job import Job
from keju.engine.limits import SpendingMeter
from keju.engine.pool import EndpointPool
from keju.engine.queue import Unit, UnitQueue, WaitForPrefix
from keju.engine.routing import EndpointQueues, PrefixRoutes
from keju.models.scripted import ScriptedModel
from keju.types import Prefix, Prompt, Sample, Sampling
from tests.results.fake_exam import FakeExam, make_sample

SLOTS = 8


class Prefixed(FakeExam):
    """Each subset has a prefix of its own."""

    def __init__(self, sizes: Sequence[int]) -> None:
        samples: list[Sample] = []
        subsets: list[Subset] = []
        for number, size in enumerate(sizes):
            name = f"s{number}"
            subsets.append(Subset(name, len(samples), len(samples) + size))
            samples += [make_sample(name, index) for index in range(size)]
        super().__init__(samples, subsets)

    def render(self, sample: Sample) -> Prompt:
        return Prompt(Prefix(lead=sample.subset), str(sample.index))


class Simulated:
    """Endpoints that take so many seconds for a reply, in virtual time."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        sizes: Sequence[int],
        seconds: Sequence[float],
        *,
        weights: Sequence[float] | None = None,
        ports: Sequence[int] | None = None,
    ) -> None:
        self.now = 0.0
        monkeypatch.setattr("keju.engine.pool.monotonic", lambda: self.now)
        numbers = ports or range(8000, 8000 + len(seconds))
        endpoint_weights = weights or [1.0] * len(seconds)
        urls = [
            Endpoint(url=f"http://h:{port}/v1", weight=weight)
            for port, weight in zip(numbers, endpoint_weights, strict=True)
        ]
        config = TaskConfig(model="m", datasets=["demo"], endpoints=urls, eval_batch_size=SLOTS)
        models = [ScriptedModel() for _ in seconds]
        self.pool = EndpointPool(config, models, SpendingMeter(Budget(), None))
        for channel in self.pool.channels:
            channel._has_answered = True
        self.job = Job(Prefixed(sizes), Sampling(), [], model="m")
        self.seconds = seconds
        self.prefix_routes = PrefixRoutes(self.pool, [self.job])
        self.shares = EndpointQueues(
            self.pool, self.prefix_routes, [self.job], [bytearray(self.job.units)], self.order
        )
        self.asked_units: list[tuple[Unit, int]] = []

    def order(self, channel: Channel, answered: Sequence[bytearray]) -> UnitQueue:
        clock = lambda: self.now  # noqa: E731
        return UnitQueue([self.job], answered, seed=1, ahead=SLOTS, clock=clock)

    def run(self, events: Sequence[tuple[float, int, bool]] = ()) -> float:
        """Ask everything; at given times an endpoint goes down or up. The time that it took."""
        happening = list(events)
        busy: list[tuple[float, int, int, Unit | None]] = []
        free = {place: list(range(SLOTS)) for place in range(len(self.seconds))}
        number, end = 0, 0.0
        down: set[int] = set()
        while True:
            for place, lanes in free.items():
                while lanes and place not in down:
                    unit = self.shares.take(place, lanes[-1])
                    if unit is None or isinstance(unit, WaitForPrefix):
                        break
                    number += 1
                    lanes.pop()
                    heapq.heappush(busy, (self.now + self.seconds[place], number, place, unit))
            coming = [event[0] for event in busy[:1]] + [event[0] for event in happening[:1]]
            if not coming:
                assert not self.shares.remaining
                return end
            self.now = min(coming)
            if happening and happening[0][0] <= self.now:
                _, place, up = happening.pop(0)
                if up:
                    down.discard(place)
                    self.pool.channels[place].breaker.since = None
                else:
                    down.add(place)
                    self.pool.channels[place].breaker.since = self.now
                    for entry in [event for event in busy if event[2] == place]:
                        busy.remove(entry)
                        free[place].append(0)
                        self.shares.give_back(entry[3], place)  # type: ignore[arg-type]
                    heapq.heapify(busy)
                    self.shares.leave(place)
                continue
            _, _, place, finished_unit = heapq.heappop(busy)
            assert finished_unit is not None
            free[place].append(0)
            self.asked_units.append((finished_unit, place))
            self.shares.note_reply(finished_unit)
            self.pool.channels[place].pace.record_reply(self.seconds[place], SLOTS)
            end = self.now

    def affinity(self) -> float:
        """The share of the questions that went where most of their subset went."""
        places: dict[str, Counter[int]] = defaultdict(Counter)
        for unit, place in self.asked_units:
            places[self.job.exam.samples[unit.number].subset][place] += 1
        return sum(max(counts.values()) for counts in places.values()) / len(self.asked_units)

    def ideal(self) -> float:
        """The time if every question went to the slot that ends it first."""
        slots = [(latency, latency) for latency in self.seconds for _ in range(SLOTS)]
        heapq.heapify(slots)
        end = 0.0
        for _ in range(self.job.units):
            end, latency = slots[0]
            heapq.heapreplace(slots, (end + latency, latency))
        return end


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_prefixes_stay_together_and_endpoints_are_used_for_what_they_can_do(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    sizes = [chance.randint(150, 250) for _ in range(27)]
    seconds = [0.2 * chance.uniform(0.5, 2) for _ in range(4)]
    ports = [chance.randint(1000, 9999) for _ in seconds]
    simulated = Simulated(monkeypatch, sizes, seconds, ports=ports)
    run_seconds = simulated.run()
    assert sorted(unit.number for unit, _ in simulated.asked_units) == list(range(sum(sizes)))
    assert simulated.affinity() > 0.95
    assert run_seconds < 1.1 * simulated.ideal()


def test_very_different_endpoints_end_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    simulated = Simulated(monkeypatch, [100] * 27, [0.1, 0.2, 0.4, 1.6])
    seconds = simulated.run()
    assert seconds < 1.1 * simulated.ideal()
    assert simulated.affinity() > 0.95


def test_one_large_subset_is_shared_by_all(monkeypatch: pytest.MonkeyPatch) -> None:
    simulated = Simulated(monkeypatch, [4000], [0.1, 0.1, 0.2, 0.4])
    assert simulated.run() < 1.1 * simulated.ideal()


def test_an_endpoint_that_dies_and_returns_costs_nothing_but_its_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    simulated = Simulated(monkeypatch, [100] * 27, [0.1, 0.2, 0.2, 0.4])
    calm = simulated.ideal()
    seconds = simulated.run([(3.0, 1, False), (6.0, 1, True)])
    assert sorted(unit.number for unit, _ in simulated.asked_units) == list(range(2700))
    lost_seconds = (
        3.0 * (1 / 0.2) / (1 / 0.1 + 1 / 0.2 + 1 / 0.2 + 1 / 0.4)
    )  # of all that they can do
    assert seconds < 1.1 * (calm + lost_seconds)
    assert simulated.affinity() > 0.9
    after = {place for unit, place in simulated.asked_units[-500:]}
    assert after == {0, 1, 2, 3}


def test_homes_depend_on_the_prefix_and_the_address_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def prefix_routes(ports: Sequence[int], weights: Sequence[float] | None = None) -> list[int]:
        simulation = Simulated(
            monkeypatch, [1] * 200, [1.0] * len(ports), ports=ports, weights=weights
        )
        places = range(len(ports))
        wheres = [(id(simulation.job.exam), subset.name) for subset in simulation.job.exam.subsets]
        return [
            ports[simulation.prefix_routes.choose_home(home_key, places)] for home_key in wheres
        ]

    before = prefix_routes([1, 2, 3, 4])
    assert prefix_routes([4, 2, 1, 3]) == before
    after = prefix_routes([1, 2, 4])
    assert all(now == then for now, then in zip(after, before, strict=True) if then != 3)
    assert all(30 < count < 70 for count in Counter(before).values())
    heavy = Counter(prefix_routes([1, 2], [3.0, 1.0]))
    assert 2 < heavy[1] / heavy[2] < 4.5
