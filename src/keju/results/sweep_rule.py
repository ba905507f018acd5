"""Ask more questions only in the arms whose result is open, tool by tool.

All arms answer the same questions in the same random order. After each block every open arm is
compared with the first arm. The p-values are valid at every look (`keju.stats.sequential`), and
Holm's correction over all arms keeps the chance of any false alarm below 5 %. An arm also ends when
its difference is known to be small.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keju.config.sweep import SweepKind
from keju.results.metrics import read_items
from keju.results.stopping_rule import (
    anytime_difference,
    differences,
    evidence_of,
    largest_cluster,
    sum_by_cluster,
)
from keju.runs.manifest import StoredStop
from keju.scores.exam_scores import ExamScores
from keju.stats.intervals import Interval
from keju.stats.paired import holm
from keju.stats.sequential import LEVEL, always_valid_p

SMALL: float = 0.05
"""A loss, or for a tool alone a gain, below this share does not count: five percentage points."""
PSEUDO_PAIRS = (("", 1.0), ("", -1.0))
"""A question won and one lost, as in the interval of Bonett and Price. Without them, arms that
never differ would have an interval without width."""


def is_small(kind: SweepKind, interval: tuple[float, float] | None) -> bool:
    """Whether a tool is shown to matter little: nothing is lost without it, or gained with it."""
    if interval is None:
        return False
    return interval[0] > -SMALL if kind == "left_out" else interval[1] < SMALL


class SweepRule:
    """Ends an arm when its difference from the first arm is decided, or is known to be small."""

    def __init__(self, kind: SweepKind, seed: int) -> None:
        self._kind = kind
        self._seed = seed
        self._evidence: dict[ExamScores, list[float]] = {}

    def evaluate_arms(
        self,
        arms: Sequence[ExamScores],
        seen_samples: Sequence[int],
        total_samples: int,
        looks: int,
    ) -> list[StoredStop]:
        """Return the state of each arm. The first is the baseline, which ends with the last."""
        base, *compared_arms = arms
        scores = _scores_of(base, seen_samples)
        usable = [sample for sample in seen_samples if sample in scores]
        states = [self._compare(base, arm, usable, scores) for arm in compared_arms]
        # Arms that have ended keep the evidence of their last look.
        compared = [arm for arm in self._evidence if arm.exam is base.exam]
        adjusted = dict(
            zip(
                compared,
                holm([always_valid_p(self._evidence[arm]) for arm in compared]),
                strict=True,
            )
        )
        shared: dict[str, Any] = {
            "rule": "sweep",
            "asked": len(seen_samples),
            "whole": total_samples,
            "looks": looks,
            "seed": self._seed,
            "level": LEVEL,
        }
        stops = []
        for arm, (pairs, value, interval) in zip(compared_arms, states, strict=True):
            evidence = self._evidence[arm]
            stops.append(
                StoredStop(
                    **shared,
                    met=adjusted[arm] <= LEVEL or is_small(self._kind, interval),
                    value=value,
                    interval=interval,
                    baseline=base.arm,
                    wins=sum(difference > 0 for _, difference in pairs),
                    losses=sum(difference < 0 for _, difference in pairs),
                    left_out=len(seen_samples) - len(pairs),
                    e_value=evidence[-1],
                    p=always_valid_p(evidence),
                )
            )
        is_done = all(stop.met for stop in stops)
        return [StoredStop(**shared, met=is_done, value=None, interval=None), *stops]

    def _compare(
        self,
        base: ExamScores,
        arm: ExamScores,
        usable: Sequence[int],
        scores: dict[int, float],
    ) -> tuple[list[tuple[str, float]], float | None, Interval | None]:
        """Return the differences of an arm, their mean and its interval; note their evidence."""
        pairs = differences(arm, usable, scores)
        largest = largest_cluster(arm, range(len(base.exam.samples)))
        self._evidence.setdefault(arm, []).append(evidence_of(sum_by_cluster(pairs, largest)))
        value, _ = anytime_difference(pairs)
        _, interval = anytime_difference([*pairs, *PSEUDO_PAIRS])
        return pairs, value, interval


def _scores_of(job: ExamScores, samples: Sequence[int]) -> dict[int, float]:
    """Return the scores of the samples that have one."""
    scores = {}
    for sample in samples:
        cell = read_items(job.exam, job.tallies[0], [sample])
        share = next(iter(cell.states))[1].share
        if share is not None:
            scores[sample] = share
    return scores
