"""Stopping early: how often the rules err, and how much they ask, with Keju's own code.

`python -m perf.early` lets ``--until-decided`` run on pairs that are mixed out of the recorded
replies of two models to MMLU-Pro: at every question both sides take the reply of the one or the
other model by lot, so that the true difference over the 12,032 questions is 0, 3, 4 or 6 points.
A made-up pair differs on as many as 40 % of the questions. ``--until-ci`` runs made-up exams. Every
run has another order. `make simulate` runs it too; a tenth is in the tests.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple, cast

from keju.benchmarks.base import DataSource, Exam, Protocol, Subset
from keju.engine.job import Job
from keju.engine.queue import draw_random_order
from keju.results.stopping_rule import PrecisionRule, evidence_of
from keju.scores.tally import Tally
from keju.stats.sequential import LEVEL
from keju.types import Answer, Reading, Sample, Score

DATA = Path(os.environ.get("KEJU_DATA_DIR") or Path(__file__).parents[2] / "shared" / "data")
MODELS = ("Meta-Llama-3_1-8B-Instruct", "Mistral-7B-v0.1")
POINTS = (0.0, 0.03, 0.04, 0.06)
EXACT = 0.0002
"""How near a mixed pair comes to its difference."""
ORDERS = 500
PROTOCOL = Protocol(name="plain", version="1", reader="robust", about="made for simulations")


class Pair(NamedTuple):
    """Two sides of one exam: what they score more or less, question by question."""

    name: str
    exam: Exam
    differences: list[float]

    @property
    def difference(self) -> float:
        """The true difference."""
        return sum(self.differences) / len(self.differences)

    @property
    def discordance(self) -> float:
        """The share of questions on which they differ."""
        return sum(difference != 0 for difference in self.differences) / len(self.differences)


class Decided(NamedTuple):
    """How often and how soon a pair was decided."""

    pair: Pair
    asked_share: float
    """Share of the questions, on average."""
    decided: float
    wrong: float
    """Share of runs that were decided in the wrong direction; at no difference in any."""

    runs: int = ORDERS

    def row(self) -> str:
        """The row of the table."""
        title = f"`--until-decided`: {self.pair.name}"
        verdict = f"decided {self.decided:.1%}, wrongly {self.wrong:.1%}"
        return f"| {title} | {self.runs} | {self.asked_share:.1%} | {verdict} |"


def plain_exam(subsets: Sequence[str]) -> Exam:
    """An exam without prompts; `subsets` names that of each question, in order."""
    samples = [
        Sample(id=str(place), subset=name, index=place, text="", target="A")
        for place, name in enumerate(subsets)
    ]
    parts, start = [], 0
    for name in dict.fromkeys(subsets):
        stop = start + subsets.count(name)
        parts.append(Subset(name, start, stop))
        start = stop
    return Exam(
        benchmark="simulated",
        protocol=PROTOCOL,
        samples=samples,
        subsets=parts,
        readers={},
        data=DataSource({}),
    )


@cache
def recorded() -> tuple[Exam, list[tuple[float, float]]]:
    """The exam, and what both models scored on each of its questions."""
    with gzip.open(DATA / "mmlu_pro" / "test.jsonl.gz", "rt", encoding="utf-8") as rows:
        subsets = {row["question_id"]: row["category"] for row in map(json.loads, rows)}
    scores: dict[int, list[float]] = {}
    for model in MODELS:
        path = DATA / "golden" / "mmlu_pro" / f"{model}_predictions.jsonl.gz"
        with gzip.open(path, "rt", encoding="utf-8") as rows:
            for row in map(json.loads, rows):
                right = float(row["pred"] == row["answer"])
                scores.setdefault(row["question_id"], []).append(right)
    order = sorted(scores, key=lambda number: subsets[number])
    exam = plain_exam([subsets[number] for number in order])
    return exam, [(scores[number][0], scores[number][1]) for number in order]


@cache
def mixed(points: float) -> Pair:
    """Two sides that take either model's reply by lot, so that they are `points` apart."""
    exam, scores = recorded()
    gap = sum(first_score - second_score for first_score, second_score in scores) / len(scores)
    tilt = points / gap / 2
    for seed in range(100_000):
        chance = random.Random(seed)
        differences = [
            pair[chance.random() > 0.5 + tilt] - pair[chance.random() > 0.5 - tilt]
            for pair in scores
        ]
        if abs(sum(differences) / len(differences) - points) <= EXACT:
            return Pair(f"{100 * points:g} points, replies mixed", exam, differences)
    raise AssertionError("no seed mixes such a pair")


@cache
def made_up(points: float, discordance: float = 0.4, size: int = 12_032) -> Pair:
    """Two sides that differ on many questions of fourteen subsets, in some more than in others."""
    subsets = sorted(f"s{place % 14:02}" for place in range(size))
    wins = round(size * (discordance + points) / 2)
    losses = round(size * discordance) - wins
    differences = [1.0] * wins + [-1.0] * losses + [0.0] * (size - wins - losses)
    chance = random.Random(1)
    tilt = {name: chance.uniform(0, 1) for name in subsets}
    places = sorted(range(size), key=lambda place: tilt[subsets[place]] + chance.gauss(0, 1))
    by_place = [0.0] * size
    for place, difference in zip(places, sorted(differences), strict=True):
        by_place[place] = difference
    name = f"{100 * points:g} points, differing on {discordance:.0%}"
    return Pair(name, plain_exam(subsets), by_place)


def decide(pair: Pair, seed: int) -> tuple[int, float]:
    """How many questions one run asks, and the difference where it stops; 0 if undecided."""
    order, ends = draw_random_order(pair.exam, range(len(pair.differences)), seed)
    start, difference_counts = 0, Counter[float]()
    for end in ends:
        difference_counts.update([pair.differences[item] for item in order[start:end]])
        if evidence_of(difference_counts) >= 1 / LEVEL:
            return end, float(difference_counts[1.0] - difference_counts[-1.0])
        start = end
    return len(order), 0.0


def decided(pair: Pair, orders: int = ORDERS) -> Decided:
    """Run a pair in many orders."""
    runs = [decide(pair, seed) for seed in range(orders)]
    true = pair.difference if abs(pair.difference) > EXACT else 0.0
    return Decided(
        pair,
        sum(question_count for question_count, _ in runs) / orders / len(pair.differences),
        sum(stop != 0 for _, stop in runs) / orders,
        sum(stop != 0 and stop * true <= 0 for _, stop in runs) / orders,
        orders,
    )


class Known(NamedTuple):
    """An exam that is asked until its score is known."""

    size: int
    strata: int
    share: float
    half: float

    @property
    def name(self) -> str:
        """The exam in a few words."""
        return f"{self.size:,} questions, {self.strata} subsets, {self.share:.0%} right"


def known_grid() -> Iterator[Known]:
    """Exams of several sizes, scores and half-widths."""
    for size, strata in ((500, 1), (1346, 52), (6511, 27), (12_032, 14)):
        for share in (0.05, 0.3, 0.5, 0.9):
            for half in (0.02, 0.05):
                yield Known(size, strata, share, half)


class Stand(NamedTuple):
    """What a rule looks at of a job."""

    exam: Exam
    tallies: list[Tally]


def missed(exam: Known, seed: int) -> tuple[int, bool]:
    """How many questions one run asks, and whether the interval at its end misses the score."""
    chance = random.Random(f"{exam.name}:{seed}")
    subsets = sorted(f"s{place % exam.strata:02}" for place in range(exam.size))
    tilt = {name: chance.betavariate(10 * exam.share, 10 * (1 - exam.share)) for name in subsets}
    plain = plain_exam(subsets)
    tally = Tally(exam.size)
    for place, name in enumerate(subsets):
        right = chance.random() < tilt[name]
        outcome = Score(float(right), "correct" if right else "incorrect", "rule")
        tally.add(place, Reading("robust", Answer("A"), outcome))
    truth, rule = tally.total / exam.size, PrecisionRule(exam.half, seed)
    job = cast(Job, Stand(plain, [tally]))
    order, ends = draw_random_order(plain, rule.usable_samples(job), seed)
    for looks, end in enumerate(ends, 1):
        stopping = rule.evaluate(job, order[:end], exam.size, looks)
        if stopping.met:
            low, high = stopping.interval or (0.0, 1.0)
            return end, not low - 1e-9 <= truth <= high + 1e-9
    return exam.size, False


def coverage_of(exam: Known, runs: int) -> tuple[float, float]:
    """The share of questions that is asked, and how often the interval misses."""
    outcomes = [missed(exam, seed) for seed in range(runs)]
    return (
        sum(question_count for question_count, _ in outcomes) / runs / exam.size,
        sum(miss for _, miss in outcomes) / runs,
    )


def print_table(workers: int, orders: int = ORDERS, runs: int = 200) -> None:
    """Print a row for each pair and each exam."""
    print("\n| what | runs | questions asked | error |\n|---|---|---|---|")
    pairs = [make_pair(points) for make_pair in (mixed, made_up) for points in POINTS]
    exams = list(known_grid())
    with ProcessPoolExecutor(workers) as pool:
        for result in pool.map(partial(decided, orders=orders), pairs):
            print(result.row(), flush=True)
        coverages = pool.map(partial(coverage_of, runs=runs), exams)
        for exam, (asked_share, miss) in zip(exams, coverages, strict=True):
            title = f"`--until-ci {exam.half}`: {exam.name}"
            print(f"| {title} | {runs} | {asked_share:.1%} | missed {miss:.1%} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--orders", type=int, default=ORDERS)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--workers", type=int, default=2)
    print_table(**vars(parser.parse_args()))
