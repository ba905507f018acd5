"""A tally read by ranges of items, into counts whose size does not grow with the exam.

What became of an item is three small numbers: how many of its repeats are recorded, graded and
correct. A `Cell` counts the items of each kind, so that a million questions need no more memory
than a hundred, and every metric is a function of the kinds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from keju.engine.tally import CODE, PENDING
from keju.stats.estimate import Gathered
from keju.types import OUTCOMES, UNGRADED, Outcome

if TYPE_CHECKING:
    from keju.benchmarks.base import Exam, Subset
    from keju.engine.tally import Tally

_BLOCK = 8192
"""Items looked at together, to bound the memory of their patterns."""
_ABSENT, _RIGHT, _WRONG, _OUT = range(4)
_KIND = {PENDING: _ABSENT, CODE["correct"]: _RIGHT} | {CODE[o]: _OUT for o in UNGRADED}
_KINDS = bytes(_KIND.get(code, _WRONG) for code in range(256))
"""The kind of each code of the tally, for `bytes.translate`."""


class ItemState(NamedTuple):
    """What the repeats of one item came to."""

    recorded: int
    graded: int
    correct: int

    @property
    def share(self) -> float | None:
        """The item's score: right among graded repeats; None if none is graded."""
        return self.correct / self.graded if self.graded else None

    @property
    def worst(self) -> float | None:
        """The score if everything without a grade were wrong."""
        return self.correct / self.recorded if self.recorded else None

    @property
    def best(self) -> float | None:
        """The score if everything without a grade were right."""
        lost = self.recorded - self.graded
        return (self.correct + lost) / self.recorded if self.recorded else None


@dataclass(frozen=True)
class Cell:
    """What a set of items came to."""

    outcomes: Counter[Outcome]
    """By unit: every repeat of every item counts."""
    states: Counter[tuple[str, ItemState]]
    """How many items of each cluster and kind; the cluster is empty in unclustered exams."""
    clustered: bool

    @property
    def items(self) -> int:
        """Items with at least one record."""
        return sum(many for (_, state), many in self.states.items() if state.recorded)

    @property
    def units(self) -> int:
        """Records: items times the repeats that are in."""
        return sum(self.outcomes.values())

    def outcome_counts(self) -> dict[Outcome, int]:
        """Counts of all seven outcomes, zeros included."""
        return {outcome: self.outcomes[outcome] for outcome in OUTCOMES}

    def gather(self, value: Callable[[ItemState], float | None]) -> Gathered:
        """Collect a value of each item; items for which it is None are left out."""
        gathered = Gathered(clustered=self.clustered)
        for (group, state), many in self.states.items():
            worth = value(state)
            if worth is not None:
                gathered.add(worth, group, many=many, draws=state.graded)
        return gathered

    def shares(self) -> Gathered:
        """The items' scores."""
        return self.gather(lambda state: state.share)

    def minus(self, other: Cell) -> Cell:
        """This cell without the items of `other`, which must be part of it."""
        return Cell(
            self.outcomes - other.outcomes, self.states - other.states, clustered=self.clustered
        )


def join(cells: Iterable[Cell], *, clustered: bool) -> Cell:
    """Several cells as one."""
    outcomes: Counter[Outcome] = Counter()
    states: Counter[tuple[str, ItemState]] = Counter()
    for cell in cells:
        outcomes.update(cell.outcomes)
        states.update(cell.states)
    return Cell(outcomes, states, clustered)


def read_subset(exam: Exam, tally: Tally, subset: Subset) -> Cell:
    """What the samples of one subset came to."""
    if exam.clustered:
        return read_items(exam, tally, range(subset.start, subset.stop))
    epochs = tally.epochs
    start, stop = subset.start * epochs, subset.stop * epochs
    counted = Counter({o: tally.outcomes.count(CODE[o], start, stop) for o in OUTCOMES})
    states: Counter[tuple[str, ItemState]] = Counter()
    if epochs == 1:
        lost, right = sum(counted[o] for o in UNGRADED), counted["correct"]
        states["", ItemState(1, 1, 1)] = right
        states["", ItemState(1, 1, 0)] = counted.total() - lost - right
        states["", ItemState(1, 0, 0)] = lost
    else:
        for low in range(start, stop, _BLOCK * epochs):
            block = bytes(tally.outcomes[low : min(stop, low + _BLOCK * epochs)].translate(_KINDS))
            patterns = Counter(block[at : at + epochs] for at in range(0, len(block), epochs))
            for pattern, many in patterns.items():
                states["", _state(pattern)] += many
    return Cell(+counted, +states, clustered=False)


def read_items(exam: Exam, tally: Tally, items: Iterable[int]) -> Cell:
    """What single samples came to, each with its cluster where the exam has any."""
    outcomes: Counter[Outcome] = Counter()
    states: Counter[tuple[str, ItemState]] = Counter()
    for item in items:
        codes = tally.outcomes[item * tally.epochs : (item + 1) * tally.epochs]
        outcomes.update(OUTCOMES[code] for code in codes if code != PENDING)
        states[cluster_of(exam, item), _state(codes.translate(_KINDS))] += 1
    return Cell(outcomes, states, exam.clustered)


def cluster_of(exam: Exam, item: int) -> str:
    """The cluster of an item, empty in unclustered exams; one without a group has its own."""
    if not exam.clustered:
        return ""
    sample = exam.samples[item]
    return sample.group or f"\0{sample.id}"


def _state(kinds: bytes | bytearray) -> ItemState:
    right = kinds.count(_RIGHT)
    return ItemState(len(kinds) - kinds.count(_ABSENT), right + kinds.count(_WRONG), right)
