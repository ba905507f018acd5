"""How much of the prompts a server finds in its cache, with the queue's order and with others.

A server is simulated in a time of its own: it works on a number of requests at once and keeps the
last tokens that it computed, of shared prefixes and of single questions alike; the least recently
used go first. It shares a prefix as soon as its first request has begun, or only when that has
ended. The best possible order computes every prefix once.
"""

from __future__ import annotations

import heapq
import random
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from pydantic import SecretStr

from perf.exam import data_dir
from perf.measure import NotMeasured, Row, in_child

EXAMS: dict[str, dict[str, Any]] = {
    "C-Eval": {"datasets": ["ceval"], "protocol": "tutorial"},
    "BBH": {"datasets": ["bbh"]},
    "MMLU-Pro": {"datasets": ["mmlu_pro"]},
}
IN_FLIGHT = (16, 64)
SLOTS, SIZE = 4, 24
CACHE = 32_000
"""Tokens that the server keeps."""
LIMIT = 0.03


class Prompted(NamedTuple):
    """A request: what it shares, and the tokens of both parts."""

    group: int
    shared: int
    own_tokens: int


Take = Callable[[float], int | float | None]
"""The next request at a time; a float where nothing is to be had until then."""


def measure() -> Iterator[Row]:
    """Hit rates of the real queue against the best possible, and random order beside them."""
    folder = data_dir()
    if folder is None:
        raise NotMeasured("the data of the exams is not there (KEJU_DATA_DIR)")
    for title, settings in EXAMS.items():
        job, prompts = exam_prompts(settings | {"data_dir": str(folder)})
        for slots in IN_FLIGHT:
            for at_once in (True, False):
                rate = queue_rate(job, prompts, slots, at_once=at_once)
                shuffled_order = list(range(len(prompts)))
                random.Random(1).shuffle(shuffled_order)
                by_chance = simulate(prompts, fixed_order(shuffled_order), slots, at_once=at_once)
                best = best_rate(prompts)
                when = "at once" if at_once else "after its request"
                yield Row(
                    f"order: {title}, {slots} in flight, shared {when}",
                    f"{rate:.3f}",
                    f"{LIMIT} below {best:.3f}; random {by_chance:.3f}",
                    rate / best,
                    rate >= best - LIMIT,
                )
    rate, best = in_child(real_server).value
    yield Row(
        f"order: llama.cpp's server, {SLOTS} slots, {SIZE} questions of each of six subsets",
        f"{rate:.3f}",
        f"{LIMIT} below {best:.3f}",
        rate / best,
        rate >= best - LIMIT,
    )


def real_server() -> list[float]:
    """The share of prompt tokens that a real server took from its slots, and the best possible."""
    from tests.support.llama_server import LlamaEndpoint
    from tests.support.local_model import real_weights

    from keju.config import TaskConfig
    from keju.runs.run import open_run
    from keju.task import run_exams

    started = LlamaEndpoint(real_weights(), key="k", alias="m", context=8192, slots=SLOTS)
    with tempfile.TemporaryDirectory() as folder, started as server:
        finished = run_exams(
            TaskConfig(
                model="m",
                api_url=server.url,
                api_key=SecretStr("k"),
                datasets=["demo"],
                protocol="letters",
                dataset_args={"demo": {"size": SIZE}},
                work_dir=folder,
            ),
            report=False,
        )
        assert finished.exit_code == 0, finished.message
        replies = [(record.id, record.reply) for _, record in open_run(finished.folder).answers()]
    total_input = sum(reply.usage.input for _, reply in replies)
    # What the questions of a subset share is about the least that any of them found in a cache,
    # the first ones aside.
    shared: dict[str, list[int]] = {}
    for name, reply in replies:
        shared.setdefault(name.rpartition("_")[0], []).append(reply.usage.cached)
    best = sum(sorted(cached)[len(cached) // 2] * (len(cached) - 1) for cached in shared.values())
    return [sum(reply.usage.cached for _, reply in replies) / total_input, best / total_input]


def exam_prompts(settings: dict[str, Any]) -> tuple[Any, list[Prompted]]:
    """The job of an exam, and its requests in the order of their units."""
    from keju.config import TaskConfig
    from keju.engine.job import make_jobs

    (job,) = make_jobs(TaskConfig(model="m", api_url="http://127.0.0.1:9", **settings))
    groups: dict[int, int] = {}
    prompts = []
    for unit in range(job.units):
        prompt = job.request(unit).prompt
        shared = "".join(message.content for message in prompt.prefix.messages) + prompt.prefix.lead
        group = groups.setdefault(id(prompt.prefix), len(groups))
        prompts.append(Prompted(group, tokens(shared), tokens(prompt.tail)))
    return job, prompts


def tokens(text: str) -> int:
    """About how many tokens a text has: four letters each, or two thirds of a Chinese one."""
    ascii_letters = sum(map(str.isascii, text))
    return round(ascii_letters / 4 + (len(text) - ascii_letters) / 1.5)


def queue_rate(job: Any, prompts: Sequence[Prompted], slots: int, *, at_once: bool) -> float:
    """The hit rate of the queue of the engine."""
    from keju.engine.queue import Unit, UnitQueue, WaitForPrefix, make_length_estimator

    clock = [0.0]
    queue = UnitQueue(
        [job],
        [bytearray(job.units)],
        seed=42,
        ahead=slots,
        caching=lambda: True,  # the server reports cached tokens
        expected=make_length_estimator({}),
        clock=lambda: clock[0],
    )

    def take(now: float) -> int | float | None:
        clock[0] = now
        unit = queue.take(0)
        if isinstance(unit, WaitForPrefix):
            return now + unit.seconds
        return None if unit is None else unit.number

    def on_reply(number: int) -> None:
        queue.note_reply(Unit(job, number))

    return simulate(prompts, take, slots, at_once=at_once, on_reply=on_reply)


def fixed_order(order: Sequence[int]) -> Take:
    """Requests in a fixed order."""
    remaining = iter(order)
    return lambda _: next(remaining, None)


def best_rate(prompts: Sequence[Prompted]) -> float:
    """The share of tokens that a server need not compute if each prefix is computed once."""
    prefix_tokens: dict[int, int] = {}
    for prompt in prompts:
        prefix_tokens.setdefault(prompt.group, prompt.shared)
    shared = sum(prompt.shared for prompt in prompts)
    return (shared - sum(prefix_tokens.values())) / sum(p.shared + p.own_tokens for p in prompts)


def simulate(
    prompts: Sequence[Prompted],
    take: Take,
    slots: int,
    *,
    at_once: bool,
    on_reply: Callable[[int], None] = lambda _: None,
) -> float:
    """The share of all tokens of prompts that came from the server's cache."""
    draw = random.Random(7)
    cached_tokens: OrderedDict[tuple[str, int], int] = OrderedDict()
    size_kept = [0]
    hits = now = 0.0
    running: list[tuple[float, int]] = []

    def keep(number: int) -> None:
        prompt = prompts[number]
        for key, size in (
            (("shared", prompt.group), prompt.shared),
            (("own", number), prompt.own_tokens),
        ):
            before = cached_tokens.pop(key, 0)
            cached_tokens[key] = size
            size_kept[0] += size - before
        while size_kept[0] > CACHE:
            size_kept[0] -= cached_tokens.popitem(last=False)[1]

    while True:
        wake = None
        while len(running) < slots:
            number = take(now)
            if number is None:
                break
            if isinstance(number, float):
                wake = number
                break
            is_cached = ("shared", prompts[number].group) in cached_tokens
            hits += prompts[number].shared * is_cached
            if is_cached:
                cached_tokens.move_to_end(("shared", prompts[number].group))
            if at_once:
                keep(number)
            # Long tails: most replies take half a second, some ten times as long.
            heapq.heappush(running, (now + draw.lognormvariate(-0.7, 0.8), number))
        if not running:
            break
        if wake is not None and wake < running[0][0]:
            now = wake
            continue
        now, number = heapq.heappop(running)
        if not at_once:
            keep(number)
        on_reply(number)
    return hits / sum(prompt.shared + prompt.own_tokens for prompt in prompts)
