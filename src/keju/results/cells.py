"""A tally read by ranges of items, into counts whose size does not grow with the exam.

What became of an item is a few small numbers: how many of its repeats are recorded, graded and
right, and the sum of their scores. A `Cell` counts the items of each kind, so that a million
questions need no more memory than a hundred, and every metric is a function of the kinds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from keju.benchmarks.grading import GRADED, LOST, PASS
from keju.engine.tally import CODE, PENDING
from keju.stats.estimate import Estimate, Gathered
from keju.types import ALL_OUTCOMES, Outcome, counted_outcomes

if TYPE_CHECKING:
    from keju.benchmarks.base import Exam, Subset
    from keju.engine.tally import Tally

_BLOCK = 8192
"""Units looked at together, to bound the memory of their patterns."""
_CUT = CODE["truncated"]


class ItemState(NamedTuple):
    """What the repeats of one item came to."""

    recorded: int
    lost: int
    """Repeats that lack a grade."""
    graded: int
    right: int
    total: float
    """The sum of the scores of graded repeats."""
    cut: float
    """Of this sum, what replies that were cut off have."""
    for_judge: int = 0
    """Repeats that are wrong only for lack of a judge."""

    @property
    def share(self) -> float | None:
        """The item's score: the mean of its graded repeats; None if none is graded."""
        return self.total / self.graded if self.graded else None

    @property
    def cut_as_wrong(self) -> float | None:
        """The score if every reply that was cut off were wrong."""
        return (self.total - self.cut) / self.graded if self.graded else None

    @property
    def gradable(self) -> int:
        """Repeats that have a grade or lack one."""
        return self.graded + self.lost

    @property
    def worst(self) -> float | None:
        """The score if everything without a grade were wrong."""
        return self.total / self.gradable if self.gradable else None

    @property
    def best(self) -> float | None:
        """The score if everything without a grade were right."""
        return (self.total + self.lost) / self.gradable if self.gradable else None

    @property
    def ceiling(self) -> float | None:
        """The best score if a judge also found everything right that is left to one."""
        most = self.total + self.lost + self.for_judge
        return most / self.gradable if self.gradable else None


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
        """Counts by outcome, zeros included."""
        return counted_outcomes(self.outcomes)

    @cached_property
    def all_or_nothing(self) -> bool:
        """Whether no answer is partly right, so that an item is so many answers of yes or no."""
        return all(state.total == state.right for _, state in self.states)

    def gather(
        self,
        value: Callable[[ItemState], float | None],
        draws: Callable[[ItemState], int] = attrgetter("graded"),
    ) -> Gathered:
        """Collect a value of each item, made of `draws` answers; without items where it is None."""
        gathered = Gathered(clustered=self.clustered)
        for (group, state), many in self.states.items():
            worth = value(state)
            if worth is not None:
                answers = draws(state) if self.all_or_nothing else 0
                gathered.add(worth, group, many=many, draws=answers)
        return gathered

    def shares(self) -> Gathered:
        """The items' scores."""
        return self.gather(lambda state: state.share)

    def bounds(self) -> tuple[float | None, float | None]:
        """The mean score if everything without a grade were wrong, and if it were right."""
        ends = (self.gather(score).moments() for score in (_WORST, _BEST))
        worst, best = (moments.mean if moments else None for moments in ends)
        return worst, best

    def accuracy(self) -> Estimate:
        """The mean score over items, within its bounds."""
        return self.shares().estimate().within(*self.bounds())

    def minus(self, other: Cell) -> Cell:
        """This cell without the items of `other`, which must be part of it."""
        return Cell(
            self.outcomes - other.outcomes, self.states - other.states, clustered=self.clustered
        )


_WORST, _BEST = attrgetter("worst"), attrgetter("best")


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
    if exam.clustered or tally.for_judge:
        return read_items(exam, tally, range(subset.start, subset.stop))
    epochs = tally.epochs
    outcomes: Counter[Outcome] = Counter()
    states: Counter[tuple[str, ItemState]] = Counter()
    size = max(1, _BLOCK // epochs) * epochs
    for low in range(subset.start * epochs, subset.stop * epochs, size):
        block = slice(low, min(subset.stop * epochs, low + size))
        units = zip(tally.outcomes[block], tally.values[block], strict=True)
        for pattern, many in Counter(zip(*[units] * epochs, strict=True)).items():
            states["", _state(pattern)] += many
        for code, many in Counter(tally.outcomes[block]).items():
            if code != PENDING:
                outcomes[ALL_OUTCOMES[code]] += many
    return Cell(outcomes, states, clustered=False)


def read_items(exam: Exam, tally: Tally, items: Iterable[int]) -> Cell:
    """What single samples came to, each with its cluster where the exam has any."""
    outcomes: Counter[Outcome] = Counter()
    states: Counter[tuple[str, ItemState]] = Counter()
    for item in items:
        units = slice(item * tally.epochs, (item + 1) * tally.epochs)
        codes = tally.outcomes[units]
        outcomes.update(ALL_OUTCOMES[code] for code in codes if code != PENDING)
        state = _state(zip(codes, tally.values[units], strict=True))
        if tally.for_judge:
            many = len(tally.for_judge.intersection(range(units.start, units.stop)))
            state = state._replace(for_judge=many)
        states[cluster_of(exam, item), state] += 1
    return Cell(outcomes, states, exam.clustered)


def accuracy_of(exam: Exam, tally: Tally) -> Estimate:
    """The mean score over the questions of an exam."""
    cells = (read_subset(exam, tally, subset) for subset in exam.subsets)
    return join(cells, clustered=exam.clustered).accuracy()


def cluster_of(exam: Exam, item: int) -> str:
    """The cluster of an item, empty in unclustered exams; one without a group has its own."""
    if not exam.clustered:
        return ""
    sample = exam.samples[item]
    return sample.group or f"\0{sample.id}"


def _state(units: Iterable[tuple[int, float]]) -> ItemState:
    """What repeats of one item came to: the code of the outcome and the score of each."""
    recorded = lost = graded = right = 0
    total = cut = 0.0
    for code, value in units:
        recorded += code != PENDING
        lost += code in LOST
        if code in GRADED:
            # Seven digits: a score as it was before it was stored in single precision.
            score = float(f"{value:.7g}")
            graded += 1
            right += score >= PASS
            total += score
            cut += score if code == _CUT else 0.0
    return ItemState(recorded, lost, graded, right, total, cut)
