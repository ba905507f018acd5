"""Whether replies answer other questions: those that were asked shortly before or after.

A proxy that mixes up its connections gives each question the reply to another one. So does a file
of predictions that lost a row. Every single reply looks fine. But the answers fit the targets of
neighbouring questions far more often than chance allows. They fit the targets of the questions they
belong to only as often as chance does.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from math import sqrt
from operator import itemgetter
from typing import NamedTuple

MAX_ANSWERS = 1500
"""Answers that are kept. More of them do not make a shift any clearer."""
FEWEST = 20
"""The fewest replies that allow a conclusion."""
LAGS = 6
"""How many questions before and after are compared, since requests in flight overtake each
other."""
MIN_DEVIATIONS = 6.0
"""Standard deviations above chance: about one false alarm in a billion."""
LEAST_EXCESS = 0.1
"""The share of all replies that must fit another question beyond chance."""
OWN_EXCESS = 0.25
"""How many answers may fit their own questions beyond chance, for each that fits another one."""


class ShiftFit(NamedTuple):
    """The number of answers that fit other questions than their own."""

    part: int
    """Answers that fit another question, beyond the number explained by chance."""
    right: int
    """Answers that are right."""
    whole: int


class PlacedAnswer(NamedTuple):
    """A question with its answer, in the order of the requests."""

    subset: str
    target: str
    value: str
    is_right: bool


class _AnswerFrequencies:
    """How often questions of a kind have an answer, regardless of their neighbours."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self.sizes: Counter[str] = Counter()

    def add(self, kind: str, value: str) -> None:
        """Count the answer to one question."""
        self.counts[kind, value] += 1
        self.sizes[kind] += 1


class _TargetComparisons:
    """Answers compared with the targets of other questions, by the kind of the answered one."""

    def __init__(self) -> None:
        self.pairs: Counter[tuple[str, str]] = Counter()
        self.matches: Counter[tuple[str, str]] = Counter()

    def add(self, kind: str, target: str, *, is_match: bool) -> None:
        """Count one comparison."""
        self.pairs[kind, target] += 1
        if is_match:
            self.matches[kind, target] += 1

    def expected(self, answers: _AnswerFrequencies) -> float:
        """Return how many fit if an answer depends only on the kind of the question.

        For each comparison, that is the share of the other questions of the kind that have the
        target as their answer.
        """
        total = 0.0
        for key, pair_count in self.pairs.items():
            other_questions = answers.sizes[key[0]] - 1
            if other_questions > 0:
                total += (
                    max(0, pair_count * answers.counts[key] - self.matches[key]) / other_questions
                )
        return total


class _LagComparisons:
    """Comparisons at one distance, or at several."""

    def __init__(self) -> None:
        self.compared = self.matches = 0
        self._by_subset, self._by_target = _TargetComparisons(), _TargetComparisons()

    def add(self, placed: PlacedAnswer, target: str) -> None:
        """Compare an answer with the target of another question."""
        is_match = bool(placed.value) and placed.value == target
        self.compared += 1
        self.matches += is_match
        self._by_subset.add(placed.subset, target, is_match=is_match)
        self._by_target.add(placed.target, target, is_match=is_match)

    def excess(self, by_subset: _AnswerFrequencies, by_target: _AnswerFrequencies) -> float:
        """Return how many answers fit beyond chance, or 0 unless that cannot be chance.

        Chance includes the effect of the order of the questions. Where right answers alternate, a
        model that is always wrong fits every neighbour.
        """
        if not self.compared:
            return 0.0
        expected = max(self._by_subset.expected(by_subset), self._by_target.expected(by_target))
        deviation = sqrt(expected * max(0.0, 1 - expected / self.compared) + 1)
        excess = self.matches - expected
        return excess if excess >= MIN_DEVIATIONS * deviation else 0.0


class _AnswerOrder:
    """Answers in one order, compared with the questions around them."""

    def __init__(self, placed: Iterable[PlacedAnswer]) -> None:
        self._recent: deque[PlacedAnswer] = deque(maxlen=LAGS)
        self._by_subset, self._by_target = _AnswerFrequencies(), _AnswerFrequencies()
        self._before, self._after, self._around = (
            _LagComparisons(),
            _LagComparisons(),
            _LagComparisons(),
        )
        for answer in placed:
            self._add_answer(answer)

    @property
    def excess(self) -> float:
        """The number of answers that fit another question beyond chance, or 0 unless that is
        certain."""
        answers = self._by_subset, self._by_target
        return max(lag.excess(*answers) for lag in (self._before, self._after, self._around))

    def _add_answer(self, placed: PlacedAnswer) -> None:
        """Compare a question with those before it, and count it."""
        for lag, earlier in enumerate(reversed(self._recent)):
            self._around.add(placed, earlier.target)
            self._around.add(earlier, placed.target)
            if lag == 0:
                self._before.add(placed, earlier.target)
                self._after.add(earlier, placed.target)
        self._recent.append(placed)
        self._by_subset.add(placed.subset, placed.value)
        self._by_target.add(placed.target, placed.value)


class ShiftTest:
    """Stores the first answers of a run and compares them."""

    def __init__(self) -> None:
        self._answers: list[tuple[float, float, PlacedAnswer]] = []

    @property
    def is_full(self) -> bool:
        """Whether no more answers are needed."""
        return len(self._answers) >= MAX_ANSWERS

    def add(self, sent_at: float, received_at: float, placed: PlacedAnswer) -> None:
        """Store one answer, with the times of its request and of its reply."""
        self._answers.append((sent_at, received_at, placed))

    def fit(self) -> ShiftFit | None:
        """Return how many answers fit other questions, or None unless that is certain.

        Some servers confuse requests in the order in which they come, others replies in the order
        in which they leave.
        """
        total = len(self._answers)
        own_excess = self._own_excess()
        if total < FEWEST or own_excess > OWN_EXCESS * total:
            return None
        by_request = sorted(self._answers, key=itemgetter(0))
        by_reply = sorted(self._answers, key=itemgetter(1))
        orders = (
            _AnswerOrder(map(itemgetter(2), sorted_answers))
            for sorted_answers in (by_request, by_reply)
        )
        excess = max(order.excess for order in orders)
        if excess < LEAST_EXCESS * total or own_excess > OWN_EXCESS * excess:
            return None
        right = sum(placed.is_right for _, _, placed in self._answers)
        return ShiftFit(min(round(excess), total), right, total)

    def _own_excess(self) -> float:
        """Return how many answers fit their own questions beyond chance."""
        answers, comparisons, correct_count = _AnswerFrequencies(), _TargetComparisons(), 0
        for _, _, placed in self._answers:
            answers.add(placed.subset, placed.value)
            is_match = placed.value == placed.target
            comparisons.add(placed.subset, placed.target, is_match=is_match)
            correct_count += placed.is_right
        return correct_count - comparisons.expected(answers)


def make_placed_answer(
    subset: str, target: str, value: str | None, *, is_right: bool
) -> PlacedAnswer:
    """Return an answer in the form used for comparisons."""
    return PlacedAnswer(subset, _normalize(target), _normalize(value or ""), is_right)


def _normalize(text: str) -> str:
    """Return a text in the form used for comparisons: ``b`` for ``(B)``."""
    return text.strip(" ().").casefold()
