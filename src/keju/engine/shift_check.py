"""Whether replies answer other questions: those that were asked shortly before or after.

A proxy that mixes up its connections, or a file of predictions that lost a row, gives each question
the reply to another one. Every single reply looks fine. The answers then fit the right answers of
neighbouring questions far more often than chance allows, and those of their own questions only as
often as chance does.
"""

from __future__ import annotations

import heapq
from collections import Counter, deque
from itertools import count
from math import sqrt
from typing import NamedTuple

MOST = 4000
"""Replies that are looked at; more do not make a shift any clearer."""
FEWEST = 20
"""Replies below which nothing is concluded."""
LAGS = 6
"""How many questions before and after are compared: requests in flight overtake each other."""
WAITING = 64
"""Replies that wait until their place in the order of the requests is known."""
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


class _Placed(NamedTuple):
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

    def add(self, placed: _Placed, target: str) -> None:
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


class Shift:
    """Counts how often answers fit neighbouring questions."""

    def __init__(self) -> None:
        self._waiting: list[tuple[float, int, _Placed]] = []
        self._numbers = count()
        self._added = self._replies = self._right = 0
        self._recent: deque[_Placed] = deque(maxlen=LAGS)
        self._by_subset, self._by_target = _Answers(), _Answers()
        self._own = _Comparisons()
        self._before, self._after, self._around = _Lag(), _Lag(), _Lag()

    @property
    def is_full(self) -> bool:
        """Whether no more replies are wanted."""
        return self._added >= MOST

    def add(
        self, sent: float, subset: str, target: str, value: str | None, *, is_right: bool
    ) -> None:
        """Count one answer; `sent` is when its request left, as far as that is known."""
        self._added += 1
        placed = _Placed(subset, _plain(target), _plain(value or ""), is_right)
        heapq.heappush(self._waiting, (sent, next(self._numbers), placed))
        if len(self._waiting) > WAITING:
            self._place(heapq.heappop(self._waiting)[2])

    def fit(self) -> Fit | None:
        """Return how many answers fit other questions; None unless that is beyond doubt."""
        while self._waiting:
            self._place(heapq.heappop(self._waiting)[2])
        if self._replies < FEWEST:
            return None
        answers = self._by_subset, self._by_target
        excess = max(lag.excess(*answers) for lag in (self._before, self._after, self._around))
        own_excess = self._right - self._own.expected(self._by_subset)
        if excess < LEAST_EXCESS * self._replies or own_excess > OWN_EXCESS * excess:
            return None
        return Fit(min(round(excess), self._replies), self._right, self._replies)

    def _place(self, placed: _Placed) -> None:
        """Compare a question with those before it, and count it."""
        for lag, earlier in enumerate(reversed(self._recent)):
            self._around.add(placed, earlier.target)
            self._around.add(earlier, placed.target)
            if lag == 0:
                self._before.add(placed, earlier.target)
                self._after.add(earlier, placed.target)
        self._recent.append(placed)
        self._replies += 1
        self._right += placed.is_right
        self._by_subset.add(placed.subset, placed.value)
        self._by_target.add(placed.target, placed.value)
        is_match = placed.value == placed.target
        self._own.add(placed.subset, placed.target, is_match=is_match)


def _plain(text: str) -> str:
    """Return an answer as it is compared: ``B`` for ``(b)``."""
    return text.strip(" ().").casefold()
