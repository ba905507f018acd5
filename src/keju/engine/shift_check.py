"""Whether replies answer other questions: those that were asked shortly before or after.

A proxy that mixes up its connections, or a file of predictions that lost a row, gives each question
the reply to another one. Every single reply looks fine. The answers then fit the right answers of
neighbouring questions far more often than chance allows, and those of their own questions only as
often as chance does.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from math import sqrt
from operator import itemgetter
from typing import NamedTuple

MOST = 1500
"""Answers that are kept; more do not make a shift any clearer."""
FEWEST = 20
"""Replies below which nothing is concluded."""
LAGS = 6
"""How many questions before and after are compared: requests in flight overtake each other."""
SURE = 6.0
"""Standard deviations above chance: about one false alarm in a billion."""
LEAST_EXCESS = 0.1
"""Share of all replies that has to fit another question beyond chance."""
OWN_EXCESS = 0.25
"""How many answers may fit their own questions beyond chance, for each that fits another one."""


class Fit(NamedTuple):
    """How well answers fit other questions than their own."""

    part: int
    """Answers that fit another question, beyond what chance explains."""
    right: int
    """Answers that are right."""
    whole: int


class PlacedAnswer(NamedTuple):
    """A question with its answer, in the order of the requests."""

    subset: str
    target: str
    value: str
    is_right: bool


class _Answers:
    """How often questions of a kind have an answer, whatever their neighbours are."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self.sizes: Counter[str] = Counter()

    def add(self, kind: str, value: str) -> None:
        """Count the answer to one question."""
        self.counts[kind, value] += 1
        self.sizes[kind] += 1


class _Comparisons:
    """Answers compared with the targets of other questions, by the kind of the answered one."""

    def __init__(self) -> None:
        self.pairs: Counter[tuple[str, str]] = Counter()
        self.matches: Counter[tuple[str, str]] = Counter()

    def add(self, kind: str, target: str, *, is_match: bool) -> None:
        """Count one comparison."""
        self.pairs[kind, target] += 1
        if is_match:
            self.matches[kind, target] += 1

    def expected(self, answers: _Answers) -> float:
        """Return how many fit if an answer depends on nothing but the kind of its own question.

        For each comparison, that is the share of the other questions of the kind that have the
        target as their answer.
        """
        total = 0.0
        for key, n in self.pairs.items():
            others = answers.sizes[key[0]] - 1
            if others > 0:
                total += max(0, n * answers.counts[key] - self.matches[key]) / others
        return total


class _Lag:
    """Comparisons at one distance, or at several."""

    def __init__(self) -> None:
        self.compared = self.matches = 0
        self._by_subset, self._by_target = _Comparisons(), _Comparisons()

    def add(self, placed: PlacedAnswer, target: str) -> None:
        """Compare an answer with the target of another question."""
        is_match = bool(placed.value) and placed.value == target
        self.compared += 1
        self.matches += is_match
        self._by_subset.add(placed.subset, target, is_match=is_match)
        self._by_target.add(placed.target, target, is_match=is_match)

    def excess(self, by_subset: _Answers, by_target: _Answers) -> float:
        """Return how many answers fit beyond chance; 0 unless that cannot be chance.

        Chance is also what the order of the questions explains: where right answers alternate, a
        model that is always wrong fits every neighbour.
        """
        if not self.compared:
            return 0.0
        expected = max(self._by_subset.expected(by_subset), self._by_target.expected(by_target))
        deviation = sqrt(expected * max(0.0, 1 - expected / self.compared) + 1)
        excess = self.matches - expected
        return excess if excess >= SURE * deviation else 0.0


class _Order:
    """Answers in one order, compared with the questions around them."""

    def __init__(self, placed: Iterable[PlacedAnswer]) -> None:
        self._recent: deque[PlacedAnswer] = deque(maxlen=LAGS)
        self._by_subset, self._by_target = _Answers(), _Answers()
        self._before, self._after, self._around = _Lag(), _Lag(), _Lag()
        for each in placed:
            self._place(each)

    @property
    def excess(self) -> float:
        """How many answers fit another question beyond chance; 0 unless that is beyond doubt."""
        answers = self._by_subset, self._by_target
        return max(lag.excess(*answers) for lag in (self._before, self._after, self._around))

    def _place(self, placed: PlacedAnswer) -> None:
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
    """Keeps the first answers of a run, and compares them when it is asked for."""

    def __init__(self) -> None:
        self._answers: list[tuple[float, float, PlacedAnswer]] = []

    @property
    def is_full(self) -> bool:
        """Whether no more answers are wanted."""
        return len(self._answers) >= MOST

    def add(self, sent: float, came: float, placed: PlacedAnswer) -> None:
        """Keep one answer, with the times of its request and of its reply."""
        self._answers.append((sent, came, placed))

    def fit(self) -> Fit | None:
        """Return how many answers fit other questions; None unless that is beyond doubt.

        Some servers confuse requests in the order in which they come, others replies in the order
        in which they leave.
        """
        whole = len(self._answers)
        own_excess = self._own_excess()
        if whole < FEWEST or own_excess > OWN_EXCESS * whole:
            return None
        by_request = sorted(self._answers, key=itemgetter(0))
        by_reply = sorted(self._answers, key=itemgetter(1))
        orders = (_Order(map(itemgetter(2), each)) for each in (by_request, by_reply))
        excess = max(order.excess for order in orders)
        if excess < LEAST_EXCESS * whole or own_excess > OWN_EXCESS * excess:
            return None
        right = sum(placed.is_right for _, _, placed in self._answers)
        return Fit(min(round(excess), whole), right, whole)

    def _own_excess(self) -> float:
        """Return how many answers fit their own questions beyond chance."""
        answers, own, right = _Answers(), _Comparisons(), 0
        for _, _, placed in self._answers:
            answers.add(placed.subset, placed.value)
            is_match = placed.value == placed.target
            own.add(placed.subset, placed.target, is_match=is_match)
            right += placed.is_right
        return right - own.expected(answers)


def placed_answer(subset: str, target: str, value: str | None, *, is_right: bool) -> PlacedAnswer:
    """Return an answer as it is compared."""
    return PlacedAnswer(subset, _plain(target), _plain(value or ""), is_right)


def _plain(text: str) -> str:
    """Return an answer as it is compared: ``B`` for ``(b)``."""
    return text.strip(" ().").casefold()
