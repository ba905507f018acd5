"""Metrics of exams in which every item was asked several times."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

from keju.engine.tally import CODE, PENDING
from keju.results.cells import UNGRADED, Cell, ItemState, cluster_of
from keju.results.estimates import Gathered, Metric
from keju.stats.agreement import self_consistency
from keju.stats.repeats import ladder, majority_vote, pass_all_k, pass_at_k, variance_parts
from keju.types import Sample

if TYPE_CHECKING:
    from keju.benchmarks.base import Exam
    from keju.engine.tally import Tally

_NO_GRADE = {PENDING, *(CODE[outcome] for outcome in UNGRADED)}


def repeat_metrics(exam: Exam, tally: Tally, overall: Cell) -> dict[str, Metric]:
    """pass@k, pass^k (for one sample the same), majority votes and the agreement of repeats."""
    metrics: dict[str, Metric] = {}
    rungs = ladder(tally.epochs)
    for k in rungs:
        metrics[f"pass@{k}"] = overall.gather(partial(_pass_at, k=k)).metric()
    for k in rungs[1:]:
        metrics[f"pass^{k}"] = overall.gather(partial(_pass_all, k=k)).metric()
    if tally.answers is None:
        agreement = overall.gather(
            lambda state: self_consistency((state.correct, state.graded - state.correct))
        )
        return metrics | {"agreement": agreement.metric(of="scores")}
    return metrics | _vote_metrics(exam, tally)


def spread_of_repeats(overall: Cell) -> dict[str, float]:
    """Where the variance of item means lies: between items, or within their repeats."""
    items = [(state.graded, state.correct, many) for (_, state), many in overall.states.items()]
    parts = variance_parts(items)
    if parts is None:
        return {}
    return {"within_variance": parts.within, "between_variance": max(0.0, parts.between)}


def option_identity(sample: Sample, answer: str) -> str:
    """The option behind an answer, whatever letter it was shown under."""
    shown = sample.labels.find(answer) if len(answer) == 1 else -1
    return f"option {sample.order[shown]}" if sample.order and shown >= 0 else answer


class ItemVotes:
    """The votes of one item's graded repeats on the options' identity."""

    def __init__(self, sample: Sample, codes: bytearray, answers: list[str | None]) -> None:
        self.votes: Counter[str] = Counter()
        self.right: set[str] = set()
        self.graded = 0
        for code, answer in zip(codes, answers, strict=True):
            if code in _NO_GRADE:
                continue
            self.graded += 1
            if answer is None:
                continue
            option = option_identity(sample, answer)
            self.votes[option] += 1
            if code == CODE["correct"]:
                self.right.add(option)

    def majority(self, k: int) -> float:
        """The expected score of the majority among `k` graded repeats."""
        right = [votes for option, votes in self.votes.items() if option in self.right]
        wrong = [votes for option, votes in self.votes.items() if option not in self.right]
        return majority_vote(right, wrong, self.graded - self.votes.total(), k)


def _vote_metrics(exam: Exam, tally: Tally) -> dict[str, Metric]:
    epochs, answers = tally.epochs, tally.answers or []
    sizes = [k for k in ladder(epochs) if 1 < k < epochs]
    smaller = {k: Gathered(clustered=exam.clustered) for k in sizes}
    full = Gathered(clustered=exam.clustered)
    agreement = Gathered(clustered=exam.clustered)
    for item in range(tally.samples):
        units = slice(item * epochs, (item + 1) * epochs)
        sample = exam.samples[item]
        ballot = ItemVotes(sample, tally.outcomes[units], answers[units])
        if not ballot.graded:
            continue
        group = cluster_of(sample) if exam.clustered else ""
        full.add(ballot.majority(ballot.graded), group, draws=ballot.graded)
        for k, gathered in smaller.items():
            if ballot.graded >= k:
                gathered.add(ballot.majority(k), group, draws=ballot.graded)
        same = self_consistency(ballot.votes.values())
        if same is not None:
            agreement.add(same, group, draws=ballot.graded)
    metrics = {f"majority_vote@{k}": gathered.metric() for k, gathered in smaller.items()}
    metrics["majority_vote"] = full.metric()
    return metrics | {"agreement": agreement.metric(of="answers")}


def _pass_at(state: ItemState, k: int) -> float | None:
    return pass_at_k(state.graded, state.correct, k) if state.graded >= k else None


def _pass_all(state: ItemState, k: int) -> float | None:
    return pass_all_k(state.graded, state.correct, k) if state.graded >= k else None
