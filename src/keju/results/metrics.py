"""The metrics of an exam: over items, over subsets and tasks, and over repeats.

A tally is read by ranges of items, into counts whose size does not grow with the exam. What became
of an item is a few small numbers: how many of its repeats are recorded, graded and right, and the
sum of their scores. A `Cell` counts the items of each kind, so that a million questions need no
more memory than a hundred, and every metric is a function of the kinds. The exam's own metrics are
merged last (see `metrics_of`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from keju.benchmarks.base import Mean, mean_over
from keju.benchmarks.grading import GRADED, LOST, PASS
from keju.engine.tally import CODE, PENDING
from keju.results.schema import BEST, CUT_AS_WRONG, MACRO, WHOLE_SET, WORST, Metric
from keju.stats.agreement import self_consistency
from keju.stats.estimate import Bounded, Estimate, Gathered, Stratum, estimate, micro_weights
from keju.stats.repeats import ladder, pass_all_k, pass_at_k, variance_parts
from keju.stats.votes import majority_vote
from keju.types import ALL_OUTCOMES, UNGRADED, Outcome, Sample, complete_counts

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
    cut_right: int = 0
    """Repeats that were cut off and are right all the same."""

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
    def graded(self) -> int:
        """Items with at least one record that has a grade."""
        return sum(many for (_, state), many in self.states.items() if state.graded)

    @property
    def units(self) -> int:
        """Records: items times the repeats that are in."""
        return sum(self.outcomes.values())

    def outcome_counts(self) -> dict[Outcome, int]:
        """Counts by outcome, zeros included."""
        return complete_counts(self.outcomes)

    @property
    def is_graded(self) -> bool:
        """Whether any record has a grade."""
        return any(state.graded for _, state in self.states)

    @property
    def cut_right(self) -> int:
        """Records of replies that were cut off and are right all the same."""
        return sum(state.cut_right * many for (_, state), many in self.states.items())

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
    recorded = lost = graded = right = cut_right = 0
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
            if code == _CUT:
                cut += score
                cut_right += score >= PASS
    return ItemState(recorded, lost, graded, right, total, cut, cut_right=cut_right)


CHANCE_SAMPLES = 20_000
"""The most samples looked at for the chance level; evenly spaced in a larger exam."""


def metrics_of(
    exam: Exam,
    tally: Tally,
    cells: Mapping[str, Cell],
    overall: Cell,
    chances: Mapping[str, Chance],
) -> dict[str, Metric]:
    """All metrics of one exam under one reader, in the order in which they are shown."""
    metrics = {"accuracy": overall.accuracy()}
    if any(overall.outcomes[outcome] for outcome in UNGRADED):
        for name, score in ((WORST, attrgetter("worst")), (BEST, attrgetter("best"))):
            metric = overall.gather(score, attrgetter("gradable")).estimate()
            if metric.n:
                metrics[name] = metric
    if tally.for_judge and (value := metrics["accuracy"].value) is not None:
        worst, _ = metrics["accuracy"].bounds or (value, value)
        ceiling = overall.gather(attrgetter("ceiling")).moments()
        assert ceiling is not None  # a value is there
        metrics["accuracy"] = replace(metrics["accuracy"], bounds=(worst, ceiling.mean))
    if any(state.cut for _, state in overall.states):
        cut = overall.gather(attrgetter("cut_as_wrong")).estimate()
        metrics[CUT_AS_WRONG] = cut.within(*overall.bounds())
    metrics |= _mean_metrics(exam, cells)
    if tally.epochs > 1:
        counts = [(state.graded, state.right, n) for (_, state), n in overall.states.items()]
        if parts := variance_parts(counts):
            metrics["accuracy"] = replace(
                metrics["accuracy"],
                within_variance=parts.within,
                between_variance=max(0.0, parts.between),
            )
        metrics |= _repeat_metrics(exam, tally, overall)
    if chances:
        known = [each for each in chances.values() if each.answered] or [*chances.values()]
        n = sum(chance.n for chance in known)
        metrics["chance"] = Metric(sum(chance.total for chance in known) / n, None, n)
    if not overall.all_or_nothing:  # the name that 0.1 gave it
        metrics["mean_score"] = metrics["accuracy"]
    return metrics | dict(exam.metrics(tally))


class Chance(NamedTuple):
    """The scores of a blind guess over the samples for which they are defined."""

    total: float
    n: int
    answered: bool
    """Whether they are those that are answered; else all, since none is answered yet."""


def chance_levels(exam: Exam, tally: Tally) -> dict[str, Chance]:
    """The expected score of a blind guess, for each subset that has one.

    It is that of the answered questions, and of all where none is answered yet.
    """
    stride = max(1, -(-len(exam.samples) // CHANCE_SAMPLES))
    chances: dict[str, Chance] = {}
    for subset in exam.subsets:
        items: Iterable[int] = range(subset.start, subset.stop)
        answered = any(map(tally.has_record, items))
        if answered and tally.done < len(tally.outcomes):
            items = (item for item in items if tally.has_record(item))
        samples = (exam.samples[item] for item in islice(items, 0, None, stride))
        levels = [level for s in samples if (level := exam.chance(s)) is not None]
        if levels:
            chances[subset.name] = Chance(sum(levels), len(levels), answered)
    return chances


# Means over subsets and tasks, each subset a fixed stratum.


class Scored(NamedTuple):
    """One subset's scores."""

    stratum: Stratum | None
    """None if nothing in it is graded."""
    bounds: tuple[float | None, float | None]
    """Its mean score with everything that lacks a grade wrong, and right."""


def _mean_metrics(exam: Exam, cells: Mapping[str, Cell]) -> dict[str, Metric]:
    """The means of the exam, the first always; a macro mean; what the whole set would give."""
    subsets = {
        s.name: Scored(cells[s.name].shares().stratum(s.population), cells[s.name].bounds())
        for s in exam.subsets
    }
    published = {name for mean in exam.means() for task in mean.tasks for name in task}
    published |= subsets.keys()
    metrics: dict[str, Metric] = {}
    for place, mean in enumerate(exam.means()):
        if metric := _mean_metric(mean, subsets, main=place == 0):
            metrics[mean.name] = metric
    if MACRO not in metrics and (macro := _mean_metric(mean_over(subsets), subsets, main=True)):
        if macro.partial or any(metric.partial for metric in metrics.values()):
            macro = replace(macro, partial=True, tasks_published=len(published))
        metrics = {MACRO: macro} | metrics
    strata = {name: own for name, scored in subsets.items() if (own := scored.stratum) is not None}
    if any(stratum.population for stratum in strata.values()):
        weights = dict(zip(strata, micro_weights(list(strata.values())), strict=True))
        title = "accuracy expected on the whole set, subsets weighted by their size"
        whole = replace(_weighted(weights, subsets), title=title).within(*_bounds(weights, subsets))
        if not published <= strata.keys():  # expected on these subsets alone
            whole = replace(whole, partial=True, strata=len(strata))
        metrics[WHOLE_SET] = whole
    return metrics


def _mean_metric(mean: Mean, subsets: Mapping[str, Scored], *, main: bool) -> Metric | None:
    """The metric of one mean; None if the exam lacks subsets of it.

    The main mean is given all the same, over the tasks that are there, and says ``partial``. A
    subset that is there without a single grade leaves the others undefined, and the main one
    partial.
    """
    wanted = [name for task in mean.tasks for name in task]
    if not main and any(name not in subsets for name in wanted):
        return None
    graded = {name for name in wanted if name in subsets and subsets[name].stratum is not None}
    complete = len(graded) == len(set(wanted))
    asked = {name for name in wanted if name in subsets and None not in subsets[name].bounds}
    bounds = _bounds(_task_weights(mean, asked), subsets)
    weights = _task_weights(mean, graded)
    if not weights or not (complete or main):
        return Metric(None, None, 0, title=mean.title).within(*bounds)
    tasks = sum(not graded.isdisjoint(task) for task in mean.tasks)
    metric = replace(_weighted(weights, subsets), title=mean.title, tasks=tasks).within(*bounds)
    if complete:
        return metric
    return replace(metric, partial=True, tasks=tasks, tasks_published=len(mean.tasks))


def _task_weights(mean: Mean, names: Collection[str]) -> dict[str, float]:
    """The weights of subsets: each task counts alike, and each of `names` alike inside its task."""
    tasks = [[name for name in task if name in names] for task in mean.tasks]
    tasks = [task for task in tasks if task]
    weights: dict[str, float] = {}
    for task in tasks:
        for name in task:
            weights[name] = weights.get(name, 0.0) + 1 / (len(tasks) * len(task))
    return weights


def _bounds(
    weights: Mapping[str, float], subsets: Mapping[str, Scored]
) -> tuple[float | None, float | None]:
    """The weighted means of what the subsets come to at worst and at best."""
    if not weights:
        return None, None
    worst, best = (
        sum(weight * (subsets[name].bounds[end] or 0.0) for name, weight in weights.items())
        for end in (0, 1)
    )
    return worst, best


def _weighted(weights: Mapping[str, float], subsets: Mapping[str, Scored]) -> Metric:
    """The weighted mean of the subsets, with the interval that fixed strata leave."""
    strata = [own for name in weights if (own := subsets[name].stratum) is not None]
    return estimate(strata, list(weights.values()))


# Exams in which every item was asked several times.


def _repeat_metrics(exam: Exam, tally: Tally, overall: Cell) -> dict[str, Metric]:
    """pass@k, pass^k (for one sample the same), majority votes and the agreement of repeats."""

    def mean_chance(chance: Callable[[int, int, int], float], k: int) -> Metric:
        """The mean over the items of which enough repeats are graded to know it."""
        bounded = Bounded(clustered=overall.clustered)
        for (group, state), many in overall.states.items():
            if state.gradable >= k:
                right = (state.right, state.right + state.lost)
                worst, best = (chance(state.gradable, own, k) for own in right)
                value = worst if worst == best else None
                if state.graded >= k:
                    value = chance(state.graded, state.right, k)
                draws = state.graded if overall.all_or_nothing else 0
                bounded.add(value, (worst, best), group, many=many, draws=draws)
        return bounded.estimate()

    rungs = ladder(tally.epochs)
    metrics = {f"pass@{k}": mean_chance(pass_at_k, k) for k in rungs}
    metrics |= {f"pass^{k}": mean_chance(pass_all_k, k) for k in rungs[1:]}
    if tally.answers is None:
        agreement = overall.gather(
            lambda state: self_consistency((state.right, state.graded - state.right))
        )
        return metrics | {"agreement": agreement.estimate(of="scores")}
    return metrics | _vote_metrics(exam, tally, tally.answers)


def _vote_metrics(exam: Exam, tally: Tally, answers: Sequence[str | None]) -> dict[str, Metric]:
    epochs = tally.epochs
    sizes = [k for k in ladder(epochs) if 1 < k < epochs]
    voted = {k: Bounded(clustered=exam.clustered) for k in (*sizes, epochs)}
    agreement = Gathered(clustered=exam.clustered)
    for item in range(tally.samples):
        units = slice(item * epochs, (item + 1) * epochs)
        sample = exam.samples[item]
        votes: Counter[str] = Counter()
        right: set[str] = set()
        graded = lost = 0
        for code, value, answer in zip(
            tally.outcomes[units], tally.values[units], answers[units], strict=True
        ):
            lost += code in LOST
            if code not in GRADED:
                continue
            graded += 1
            if answer is not None:
                option = option_identity(sample, answer)
                votes[option] += 1
                if value >= PASS:
                    right.add(option)
        ballot = Ballot(
            [n for option, n in votes.items() if option in right],
            [n for option, n in votes.items() if option not in right],
            graded - votes.total(),
        )
        group = cluster_of(exam, item)
        for k, bounded in voted.items():
            # The whole vote is held among as many as there are, a smaller one only among k.
            size, most = (k, k) if k < epochs else (graded, graded + lost)
            if 0 < most <= graded + lost:
                share = majority_vote(*ballot, size) if 0 < size <= graded else None
                worst, best = (majority_vote(*own, most) for own in ballot.bounds(lost))
                bounded.add(share, (worst, best), group, draws=graded)
        if (same := self_consistency(votes.values())) is not None:
            agreement.add(same, group, draws=graded)
    whole = voted.pop(epochs)
    return {f"majority_vote@{k}": bounded.estimate() for k, bounded in voted.items()} | {
        "majority_vote": whole.estimate(),
        "agreement": agreement.estimate(of="answers"),
    }


class Ballot(NamedTuple):
    """The votes for each right option, for each wrong one, and how many cast none."""

    right: list[int]
    wrong: list[int]
    abstained: int

    def bounds(self, lost: int) -> tuple[Ballot, Ballot]:
        """With the votes of replies without a grade: all for one wrong option, all for a right."""

        def joined(votes: list[int]) -> list[int]:
            first, *others = sorted(votes, reverse=True) or [0]
            return [first + lost, *others]

        worst, best = joined(self.wrong), joined(self.right)
        return self._replace(wrong=worst), self._replace(right=best)


def option_identity(sample: Sample, answer: str) -> str:
    """The option behind an answer, whatever letter it was shown under."""
    shown = sample.labels.find(answer) if len(answer) == 1 else -1
    return f"option {sample.order[shown]}" if sample.order and shown >= 0 else answer
