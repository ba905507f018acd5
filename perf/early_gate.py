"""Gates with two endpoints on recorded verdicts: do they stop early, and with the right verdict?

`python -m perf.early_gate` takes recorded replies of two models to GSM8K, asks them in many seeded
orders, and looks where `keju gate` with two endpoints would look. The table has the verdict of all
questions, how far the interval is from the margin, what the early verdicts were, and the share of
questions asked. No model is asked.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from typing import NamedTuple

from keju.engine.queue import draw_random_order
from keju.results.gate_rule import LAST_LOOKS
from keju.results.scored_exam import scored_exams_of
from keju.stats.curtail import FullVerdict
from keju.stats.gate import Verdict, decide_no_worse
from keju.stats.paired import paired_difference
from perf.early import DATA, plain_exam

MODELS = {
    "405B at SambaNova": "Llama-3.1-405B-Inst_at_sambanova",
    "405B Turbo": "Llama-3.1-405B-Instruct-Turbo",
    "8B": "Meta-Llama-3.1-8B-Instruct",
    "gpt-4o-mini": "gpt-4o-mini-2024-07-18",
}
PAIRS = (
    ("405B at SambaNova", "8B"),
    ("405B Turbo", "8B"),
    ("405B at SambaNova", "gpt-4o-mini"),
    ("405B Turbo", "gpt-4o-mini"),
    ("405B at SambaNova", "405B Turbo"),
)
"""All of them are tested in both directions."""
MARGINS = (0.01, 0.02, 0.03)
ORDERS = 100
CLEAR = 0.005
"""A full comparison is clear if its interval is at least this far from the margin."""


class Shortened(NamedTuple):
    """One pair and one margin: the verdict of all questions, and of many orders."""

    candidate: str
    baseline: str
    margin: float
    full: Verdict
    distance: float
    """From the margin to the nearer bound of all questions; negative if the bound is beyond it."""
    early: Counter[Verdict]
    """The early verdicts."""
    orders: int
    asked_share: float

    @property
    def is_clear(self) -> bool:
        """Whether the interval of all questions is far enough from the margin."""
        return self.distance >= CLEAR

    @property
    def opposite_count(self) -> int:
        """The number of orders that stopped with another verdict than that of all questions."""
        return self.early.total() - self.early[self.full]

    def row(self) -> str:
        """The row of the table."""
        names = f"{self.candidate} against {self.baseline}"
        found = f"{self.early[self.full]} of {self.orders}"
        full = f"{self.full} ({100 * self.distance:+.1f})"
        return (
            f"| {names} | {100 * self.margin:g} | {full} | {found} | {self.opposite_count} "
            f"| {self.asked_share:.0%} |"
        )


@cache
def recorded_scores(model: str) -> dict[str, float]:
    """Return the scores of a model by question, as the published reader reads its replies."""
    path = DATA / "recorded" / "gsm8k" / f"zeroeval-{MODELS[model]}_predictions.jsonl.gz"
    (scored_exam,) = scored_exams_of(
        path, datasets="gsm8k", protocol="zeroeval", data_dir=str(DATA)
    )
    return {question.id: question.score or 0.0 for question in scored_exam}


@cache
def differences_of(candidate: str, baseline: str) -> Sequence[tuple[float, float]]:
    """Both scores of each question."""
    scores, base_scores = recorded_scores(candidate), recorded_scores(baseline)
    return [(score, base_scores[name]) for name, score in scores.items()]


def look_places(size: int, seed: int) -> tuple[list[int], list[int]]:
    """Return a random order of the questions, and after how many of them the gate looks."""
    order, ends = draw_random_order(plain_exam(["test"] * size), range(size), seed)
    late_looks = (size - max(1, size // part) for part in LAST_LOOKS)
    return order, sorted({*ends, *late_looks})


def early_verdict(
    pairs: Sequence[tuple[float, float]], full: FullVerdict, seed: int
) -> tuple[Verdict | None, int]:
    """Return the early verdict of one order, if there is one, and the number of questions asked."""
    order, looks = look_places(len(pairs), seed)
    wins = losses = start = 0
    for look in looks[:-1]:
        for item in order[start:look]:
            wins += pairs[item][0] > pairs[item][1]
            losses += pairs[item][0] < pairs[item][1]
        start = look
        if (verdict := full.sure_verdict(wins, losses, look)) is not None:
            return verdict, look
    return None, len(pairs)


def shorten(names: tuple[str, str], margin: float, orders: int = ORDERS) -> Shortened:
    """Let a gate stop early in many orders."""
    candidate, baseline = names
    pairs = differences_of(candidate, baseline)
    difference = paired_difference(pairs)
    assert difference is not None
    decision = decide_no_worse(difference, margin, binary=True)
    bounds = {"pass": decision.low + margin, "fail": -margin - decision.high}
    nearer = max(bounds.values())
    full = FullVerdict(len(pairs), margin)
    runs = [early_verdict(pairs, full, seed) for seed in range(orders)]
    early = Counter(verdict for verdict, _ in runs if verdict is not None)
    asked = sum(count for _, count in runs) / orders / len(pairs)
    distance = bounds.get(decision.verdict, nearer)
    return Shortened(candidate, baseline, margin, decision.verdict, distance, early, orders, asked)


def all_cases(margins: Sequence[float] = MARGINS) -> Iterator[tuple[tuple[str, str], float]]:
    """Yield all pairs in both directions, with each margin."""
    for margin in margins:
        for first, second in PAIRS:
            yield (first, second), margin
            yield (second, first), margin


def _shorten_case(case: tuple[tuple[str, str], float], orders: int) -> Shortened:
    return shorten(*case, orders)


def print_table(workers: int, orders: int = ORDERS) -> None:
    """Print a row for each pair and margin."""
    print("| candidate against baseline | margin | all questions | early, same | other | asked |")
    print("|---|---:|---|---:|---:|---:|")
    with ProcessPoolExecutor(workers) as pool:
        for row in pool.map(partial(_shorten_case, orders=orders), all_cases()):
            print(row.row(), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--orders", type=int, default=ORDERS)
    parser.add_argument("--workers", type=int, default=2)
    print_table(**vars(parser.parse_args()))
