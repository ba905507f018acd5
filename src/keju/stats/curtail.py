"""Early verdicts of a gate: is the verdict of all questions already sure?

The questions of an exam are a known set of N. After n of them, drawn at random, the verdict of all
N is not known, but most sets of N that would lead to another verdict no longer fit what was seen.
The gate may stop when none of them fits.

How well a set fits is a likelihood ratio: the prior over the posterior of the set (Waudby-Smith and
Ramdas 2020). For the true set this ratio is a martingale: it ever exceeds 1/α with a probability of
at most α, however often one looks. So in at most one of 1/α runs the early verdict differs from the
verdict of all questions. Items must come in random order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from keju.stats.gate import LEVEL, Verdict, decide_counts
from keju.stats.intervals import Moments, student_t_quantile
from keju.stats.sequential import anytime_factor

DOUBT = 0.01
"""The share of runs in which an early verdict may differ from the verdict of all questions."""
PRIOR = (1.0, 1.0, 10.0)
"""Weights of wins, losses and ties before the first question: typically a sixth differ. They change
how soon a verdict is sure, not how often it errs."""
TIGHTEST_UNITS = 300
"""The number of units at which the interval for graded scores is tightest."""


@dataclass(eq=False)
class FullVerdict:
    """The verdict of the gate after all `size` questions, as far as some of them tell."""

    size: int
    margin: float
    level: float = LEVEL
    doubt: float = DOUBT
    _most_not_passed: dict[int, int] = field(default_factory=dict)
    """By losses: the largest number of wins that does not pass."""
    _fewest_not_failed: dict[int, int] = field(default_factory=dict)
    """By losses: the smallest number of wins that does not fail."""

    def verdict(self, wins: int, losses: int) -> Verdict:
        """Return the verdict if all questions were asked, with these wins and losses."""
        return decide_counts(wins, losses, self.size, self.margin, self.level)

    def sure_verdict(self, wins: int, losses: int, seen_count: int) -> Verdict | None:
        """Return pass or fail if it is sure that all questions give this verdict, else None.

        `wins` and `losses` are those among the `seen_count` questions asked so far.
        """
        candidate = self._likely_verdict(wins, losses, seen_count)
        if candidate is None:
            return None
        fit = _SetFit(self.size, wins, losses, seen_count)
        threshold = math.log(1 / self.doubt)
        most_likely_losses = round(losses * self.size / seen_count)
        for step in (1, -1):
            all_losses = most_likely_losses + min(step, 0)
            while losses <= all_losses <= self.size - seen_count + losses:
                likely_wins = fit.most_likely_wins(all_losses)
                if fit.evidence_against(likely_wins, all_losses) >= threshold:
                    break  # sets with even more, or even fewer, losses fit worse
                all_wins = self._nearest_other(candidate, all_losses, likely_wins)
                if fit.evidence_against(all_wins, all_losses) < threshold:
                    return None
                all_losses += step
        return candidate

    def _likely_verdict(self, wins: int, losses: int, seen_count: int) -> Verdict | None:
        """Return the verdict if the other questions were like those seen; None if it is neither
        pass nor fail."""
        all_wins = round(wins * self.size / seen_count)
        all_losses = min(round(losses * self.size / seen_count), self.size - all_wins)
        verdict = self.verdict(all_wins, all_losses)
        return None if verdict == "inconclusive" else verdict

    def _nearest_other(self, verdict: Verdict, losses: int, likely_wins: int) -> int:
        """Return the wins with another verdict that are nearest to the most likely ones."""
        if verdict == "pass":
            return min(self._find_most_not_passed(losses), likely_wins)
        return max(self._find_fewest_not_failed(losses), likely_wins)

    def _find_most_not_passed(self, losses: int) -> int:
        if losses not in self._most_not_passed:
            low, high = -1, self.size - losses + 1
            while high - low > 1:
                middle = (low + high) // 2
                if self.verdict(middle, losses) == "pass":
                    high = middle
                else:
                    low = middle
            self._most_not_passed[losses] = low
        return self._most_not_passed[losses]

    def _find_fewest_not_failed(self, losses: int) -> int:
        if losses not in self._fewest_not_failed:
            low, high = -1, self.size - losses + 1
            while high - low > 1:
                middle = (low + high) // 2
                if self.verdict(middle, losses) == "fail":
                    low = middle
                else:
                    high = middle
            self._fewest_not_failed[losses] = high
        return self._fewest_not_failed[losses]


class _SetFit:
    """How badly sets of all questions fit the questions seen."""

    def __init__(self, size: int, wins: int, losses: int, seen_count: int) -> None:
        self._size = size
        self._wins, self._losses, self._ties = wins, losses, seen_count - wins - losses
        self._logarithm = _log_draws(size, seen_count) + _log_mixture(wins, losses, self._ties)

    def most_likely_wins(self, all_losses: int) -> int:
        """Return the wins of all questions that fit best, given the losses of all questions."""
        not_lost = self._wins + self._ties
        share = self._wins / not_lost if not_lost else 0.0
        likely_wins = int(share * (self._size - all_losses + 1))
        return min(max(likely_wins, self._wins), self._size - all_losses - self._ties)

    def evidence_against(self, all_wins: int, all_losses: int) -> float:
        """Return the logarithm of the evidence against a set of all questions."""
        all_ties = self._size - all_wins - all_losses
        if all_wins < self._wins or all_losses < self._losses or all_ties < self._ties:
            return math.inf  # more were seen than there are
        return (
            self._logarithm
            - _log_draws(all_wins, self._wins)
            - _log_draws(all_losses, self._losses)
            - _log_draws(all_ties, self._ties)
        )


def _log_draws(total: int, drawn: int) -> float:
    """Return the logarithm of the number of ways to draw some of `total` items one by one."""
    return math.lgamma(total + 1) - math.lgamma(total - drawn + 1)


def _log_mixture(*counts: int) -> float:
    """Return the logarithm of the probability of a sequence with these counts, before anything is
    known."""
    return (
        sum(
            math.lgamma(weight + count) - math.lgamma(weight)
            for weight, count in zip(PRIOR, counts, strict=True)
        )
        + math.lgamma(sum(PRIOR))
        - math.lgamma(sum(PRIOR) + sum(counts))
    )


def sure_verdict_of_graded(
    unit_differences: Sequence[float],
    unit_count: int,
    margin: float,
    level: float = LEVEL,
    doubt: float = DOUBT,
) -> Verdict | None:
    """Return pass or fail if it is sure that all units give this verdict, else None.

    This is for graded scores, and for clusters, whose members' differences are averaged. The
    interval for the mean of all units is asymptotic, so one made-up win and one made-up loss are
    added to its variance: without them, equal scores so far would count as certain.
    """
    moments, n = Moments.of(unit_differences), len(unit_differences)
    if moments is None or n < 2:
        return None
    squares = math.fsum((value - moments.mean) ** 2 for value in unit_differences) + 2.0
    deviation = math.sqrt(squares / (n - 1))
    remaining_share = 1 - n / unit_count
    reach = 0.0
    if remaining_share > 0:
        worth = n / remaining_share
        reach = anytime_factor(worth, TIGHTEST_UNITS, doubt) * deviation / math.sqrt(worth)
    test_width = student_t_quantile(1 - level, unit_count - 1.0) * deviation / math.sqrt(unit_count)
    if moments.mean - reach - test_width > -margin:
        return "pass"
    return "fail" if moments.mean + reach + test_width < -margin else None
