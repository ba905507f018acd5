"""The metrics of an exam: over items, over subsets and tasks, and over repeats.

A tally is read in ranges of items. The result is a set of counts whose size does not depend on the
size of the exam. An item is described by a few small numbers: how many of its repeats are recorded,
graded and right, and the sum of their scores. A `ItemSetScore` counts the items of each kind, so
that a million questions need as little memory as a hundred. Every metric is a function of these
kinds. The metrics that the exam defines are added last (see `metrics_of`).
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
from keju.results.schema import BEST, CUT_AS_WRONG, MACRO, WHOLE_SET, WORST, Metric
from keju.scores.tally import CODE, PENDING
from keju.stats.agreement import self_consistency
from keju.stats.estimate import (
    BoundedValues,
    Estimate,
    ItemValues,
    Stratum,
    estimate,
    micro_weights,
)
from keju.stats.repeats import pass_all_k, pass_at_k, reported_ks, variance_parts
from keju.stats.votes import majority_vote
from keju.types import ALL_OUTCOMES, UNGRADED, Outcome, Sample, complete_counts

if TYPE_CHECKING:
    from keju.benchmarks.base import Exam, Subset
    from keju.scores.tally import Tally


_BLOCK = 8192
"""The number of units that are read together, which bounds the memory of their patterns."""
_CUT = CODE["truncated"]


class ItemRepeats(NamedTuple):
    """The results of all repeats of one item."""

    recorded: int
    ungraded: int
    """The number of repeats that lack a grade."""
    graded: int
    right: int
    total: float
    """The sum of the scores of graded repeats."""
    cut: float
    """The part of this sum that comes from replies that were cut off."""
    for_judge: int = 0
    """The number of repeats that are wrong only for lack of a judge."""
    cut_right: int = 0
    """The number of repeats that were cut off but are right."""

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
        """The number of repeats that have a grade or lack one."""
        return self.graded + self.ungraded

    @property
    def worst(self) -> float | None:
        """The score if everything without a grade were wrong."""
        return self.total / self.gradable if self.gradable else None

    @property
    def best(self) -> float | None:
        """The score if everything without a grade were right."""
        return (self.total + self.ungraded) / self.gradable if self.gradable else None

    @property
    def ceiling(self) -> float | None:
        """The best score if, in addition, a judge found right everything that is left to one."""
        highest_total = self.total + self.ungraded + self.for_judge
        return highest_total / self.gradable if self.gradable else None


@dataclass(frozen=True)
class ItemSetScore:
    """The results of a set of items."""

    outcomes: Counter[Outcome]
    """By unit: every repeat of every item counts."""
    states: Counter[tuple[str, ItemRepeats]]
    """The number of items by cluster and kind; the cluster is empty in exams without clusters."""
    clustered: bool

    @property
    def item_count(self) -> int:
        """The number of items with at least one record."""
        return sum(count for (_, state), count in self.states.items() if state.recorded)

    @property
    def graded(self) -> int:
        """The number of items with at least one record that has a grade."""
        return sum(count for (_, state), count in self.states.items() if state.graded)

    @property
    def units(self) -> int:
        """The number of records: items times the repeats that are recorded."""
        return sum(self.outcomes.values())

    def outcome_counts(self) -> dict[Outcome, int]:
        """Return the number of units by outcome, including zeros."""
        return complete_counts(self.outcomes)

    @property
    def is_graded(self) -> bool:
        """Whether any record has a grade."""
        return any(state.graded for _, state in self.states)

    @property
    def cut_right(self) -> int:
        """The number of records whose reply was cut off but is right."""
        return sum(state.cut_right * count for (_, state), count in self.states.items())

    @cached_property
    def all_or_nothing(self) -> bool:
        """Whether no answer is partly right, so that the answers to an item are yes-or-no draws."""
        return all(state.total == state.right for _, state in self.states)

    def gather(
        self,
        value: Callable[[ItemRepeats], float | None],
        draws: Callable[[ItemRepeats], int] = attrgetter("graded"),
    ) -> ItemValues:
        """Collect a value of each item, based on `draws` answers; leave out items with None."""
        gathered = ItemValues(clustered=self.clustered)
        for (group, state), count in self.states.items():
            item_value = value(state)
            if item_value is not None:
                answers = draws(state) if self.all_or_nothing else 0
                gathered.add(item_value, group, count=count, draws=answers)
        return gathered

    def shares(self) -> ItemValues:
        """Return the scores of the items."""
        return self.gather(lambda state: state.share)

    def bounds(self) -> tuple[float | None, float | None]:
        """Return the mean score if everything without a grade were wrong, and if it were right."""
        ends = (self.gather(score).moments() for score in (_WORST, _BEST))
        worst, best = (moments.mean if moments else None for moments in ends)
        return worst, best

    def accuracy(self) -> Estimate:
        """Return the mean score over items, within its bounds."""
        return self.shares().estimate().with_bounds(*self.bounds())

    def minus(self, part: ItemSetScore) -> ItemSetScore:
        """Return this cell without the items of `part`, which must be included in it."""
        return ItemSetScore(
            self.outcomes - part.outcomes, self.states - part.states, clustered=self.clustered
        )


_WORST, _BEST = attrgetter("worst"), attrgetter("best")


def join(cells: Iterable[ItemSetScore], *, clustered: bool) -> ItemSetScore:
    """Return several cells as one."""
    outcomes: Counter[Outcome] = Counter()
    states: Counter[tuple[str, ItemRepeats]] = Counter()
    for cell in cells:
        outcomes.update(cell.outcomes)
        states.update(cell.states)
    return ItemSetScore(outcomes, states, clustered)


def read_subset(exam: Exam, tally: Tally, subset: Subset) -> ItemSetScore:
    """Return the results of the samples of one subset."""
    if exam.clustered or tally.for_judge:
        return read_items(exam, tally, range(subset.start, subset.stop))
    epochs = tally.epochs
    outcomes: Counter[Outcome] = Counter()
    states: Counter[tuple[str, ItemRepeats]] = Counter()
    size = max(1, _BLOCK // epochs) * epochs
    for low in range(subset.start * epochs, subset.stop * epochs, size):
        block = slice(low, min(subset.stop * epochs, low + size))
        units = zip(tally.outcomes[block], tally.values[block], strict=True)
        for pattern, count in Counter(zip(*[units] * epochs, strict=True)).items():
            states["", _count_repeats(pattern)] += count
        for code, count in Counter(tally.outcomes[block]).items():
            if code != PENDING:
                outcomes[ALL_OUTCOMES[code]] += count
    return ItemSetScore(outcomes, states, clustered=False)


def read_items(exam: Exam, tally: Tally, positions: Iterable[int]) -> ItemSetScore:
    """Return the results of single samples, each with its cluster if the exam has clusters."""
    outcomes: Counter[Outcome] = Counter()
    states: Counter[tuple[str, ItemRepeats]] = Counter()
    for position in positions:
        units = slice(position * tally.epochs, (position + 1) * tally.epochs)
        codes = tally.outcomes[units]
        outcomes.update(ALL_OUTCOMES[code] for code in codes if code != PENDING)
        state = _count_repeats(zip(codes, tally.values[units], strict=True))
        if tally.for_judge:
            judge_count = len(tally.for_judge.intersection(range(units.start, units.stop)))
            state = state._replace(for_judge=judge_count)
        states[cluster_of(exam, position), state] += 1
    return ItemSetScore(outcomes, states, exam.clustered)


def accuracy_of(exam: Exam, tally: Tally) -> Estimate:
    """Return the mean score over the questions of an exam."""
    cells = (read_subset(exam, tally, subset) for subset in exam.subsets)
    return join(cells, clustered=exam.clustered).accuracy()


def cluster_of(exam: Exam, position: int) -> str:
    """Return the cluster of an item; empty in exams without clusters.

    An item without a group is a cluster by itself.
    """
    if not exam.clustered:
        return ""
    sample = exam.samples[position]
    return sample.group or f"\0{sample.id}"


def _count_repeats(units: Iterable[tuple[int, float]]) -> ItemRepeats:
    """Return the state of one item; `units` has the outcome's code and the score of each repeat."""
    recorded = ungraded = graded = right = cut_right = 0
    total = cut = 0.0
    for code, value in units:
        recorded += code != PENDING
        ungraded += code in LOST
        if code in GRADED:
            # Seven digits restore a score from before it was stored in single precision.
            score = float(f"{value:.7g}")
            graded += 1
            right += score >= PASS
            total += score
            if code == _CUT:
                cut += score
                cut_right += score >= PASS
    return ItemRepeats(recorded, ungraded, graded, right, total, cut, cut_right=cut_right)


CHANCE_SAMPLES = 20_000
"""The largest number of samples used for the chance level; evenly spaced in a larger exam."""


def metrics_of(
    exam: Exam,
    tally: Tally,
    cells: Mapping[str, ItemSetScore],
    overall: ItemSetScore,
    chances: Mapping[str, ChanceScores],
) -> dict[str, Metric]:
    """Return all metrics of one exam under one reader, in the order in which they are shown."""
    metrics = {"accuracy": overall.accuracy()}
    if any(overall.outcomes[outcome] for outcome in UNGRADED):
        for name, score in ((WORST, attrgetter("worst")), (BEST, attrgetter("best"))):
            metric = overall.gather(score, attrgetter("gradable")).estimate()
            if metric.n:
                metrics[name] = metric
    if tally.for_judge and (value := metrics["accuracy"].value) is not None:
        worst, _ = metrics["accuracy"].bounds or (value, value)
        ceiling = overall.gather(attrgetter("ceiling")).moments()
        assert ceiling is not None  # There is a value, so there is a mean.
        metrics["accuracy"] = replace(metrics["accuracy"], bounds=(worst, ceiling.mean))
    if any(state.cut for _, state in overall.states):
        cut = overall.gather(attrgetter("cut_as_wrong")).estimate()
        metrics[CUT_AS_WRONG] = cut.with_bounds(*overall.bounds())
    metrics |= _compute_mean_metrics(exam, cells)
    if tally.epochs > 1:
        counts = [(state.graded, state.right, n) for (_, state), n in overall.states.items()]
        if parts := variance_parts(counts):
            metrics["accuracy"] = replace(
                metrics["accuracy"],
                within_variance=parts.within,
                between_variance=max(0.0, parts.between),
            )
        metrics |= _compute_repeat_metrics(exam, tally, overall)
    if chances:
        counted_chances = [chance for chance in chances.values() if chance.answered] or [
            *chances.values()
        ]
        n = sum(chance.n for chance in counted_chances)
        metrics["chance"] = Metric(sum(chance.total for chance in counted_chances) / n, None, n)
    if not overall.all_or_nothing:  # The name that version 0.1 used.
        metrics["mean_score"] = metrics["accuracy"]
    return metrics | dict(exam.metrics(tally))


class ChanceScores(NamedTuple):
    """The scores of a blind guess over the samples for which they are defined."""

    total: float
    n: int
    answered: bool
    """Whether they cover the answered samples only; otherwise all, because none is answered yet."""


def chance_levels(exam: Exam, tally: Tally) -> dict[str, ChanceScores]:
    """Return the expected score of a blind guess, for each subset that has one.

    It covers the answered questions, or all questions if none is answered yet.
    """
    stride = max(1, -(-len(exam.samples) // CHANCE_SAMPLES))
    chances: dict[str, ChanceScores] = {}
    for subset in exam.subsets:
        positions: Iterable[int] = range(subset.start, subset.stop)
        any_answered = any(map(tally.has_record, positions))
        if any_answered and tally.done < len(tally.outcomes):
            positions = (position for position in positions if tally.has_record(position))
        samples = (exam.samples[position] for position in islice(positions, 0, None, stride))
        levels = [level for sample in samples if (level := exam.chance(sample)) is not None]
        if levels:
            chances[subset.name] = ChanceScores(sum(levels), len(levels), any_answered)
    return chances


# Means over subsets and tasks. Each subset is a fixed stratum.


class SubsetItems(NamedTuple):
    """The scores of one subset."""

    stratum: Stratum | None
    """None if nothing in it is graded."""
    bounds: tuple[float | None, float | None]
    """Its mean score if everything that lacks a grade were wrong, and if it were right."""


def _compute_mean_metrics(exam: Exam, cells: Mapping[str, ItemSetScore]) -> dict[str, Metric]:
    """Return the means of the exam, a macro mean, and the mean expected on the whole set.

    The exam's first mean is always included.
    """
    subsets = {
        subset.name: SubsetItems(
            cells[subset.name].shares().stratum(subset.population), cells[subset.name].bounds()
        )
        for subset in exam.subsets
    }
    published_subsets = {name for mean in exam.means() for task in mean.tasks for name in task}
    published_subsets |= subsets.keys()
    metrics: dict[str, Metric] = {}
    for place, mean in enumerate(exam.means()):
        if metric := _compute_mean(mean, subsets, main=place == 0):
            metrics[mean.name] = metric
    if MACRO not in metrics and (macro := _compute_mean(mean_over(subsets), subsets, main=True)):
        if macro.partial or any(metric.partial for metric in metrics.values()):
            macro = replace(macro, partial=True, tasks_published=len(published_subsets))
        metrics = {MACRO: macro} | metrics
    strata = {
        name: stratum for name, scored in subsets.items() if (stratum := scored.stratum) is not None
    }
    if any(stratum.population for stratum in strata.values()):
        weights = dict(zip(strata, micro_weights(list(strata.values())), strict=True))
        title = "accuracy expected on the whole set, subsets weighted by their size"
        whole_set = replace(_weigh_subsets(weights, subsets), title=title).with_bounds(
            *_weigh_bounds(weights, subsets)
        )
        if not published_subsets <= strata.keys():  # The mean is expected on these subsets alone.
            whole_set = replace(whole_set, partial=True, strata=len(strata))
        metrics[WHOLE_SET] = whole_set
    return metrics


def _compute_mean(mean: Mean, subsets: Mapping[str, SubsetItems], *, main: bool) -> Metric | None:
    """Return the metric of one mean; None if the exam lacks some of its subsets.

    The main mean is always given, over the tasks that are present, and marked ``partial``. If a
    present subset has no grade at all, the main mean is partial and other means are undefined.
    """
    task_subsets = [name for task in mean.tasks for name in task]
    if not main and any(name not in subsets for name in task_subsets):
        return None
    graded = {
        name for name in task_subsets if name in subsets and subsets[name].stratum is not None
    }
    complete = len(graded) == len(set(task_subsets))
    asked_subsets = {
        name for name in task_subsets if name in subsets and None not in subsets[name].bounds
    }
    bounds = _weigh_bounds(_weigh_tasks(mean, asked_subsets), subsets)
    weights = _weigh_tasks(mean, graded)
    if not weights or not (complete or main):
        return Metric(None, None, 0, title=mean.title).with_bounds(*bounds)
    tasks = sum(not graded.isdisjoint(task) for task in mean.tasks)
    metric = replace(_weigh_subsets(weights, subsets), title=mean.title, tasks=tasks).with_bounds(
        *bounds
    )
    if complete:
        return metric
    return replace(metric, partial=True, tasks=tasks, tasks_published=len(mean.tasks))


def _weigh_tasks(mean: Mean, names: Collection[str]) -> dict[str, float]:
    """Return the weights of subsets: equal for all tasks, and equal for `names` within a task."""
    tasks = [[name for name in task if name in names] for task in mean.tasks]
    tasks = [task for task in tasks if task]
    weights: dict[str, float] = {}
    for task in tasks:
        for name in task:
            weights[name] = weights.get(name, 0.0) + 1 / (len(tasks) * len(task))
    return weights


def _weigh_bounds(
    weights: Mapping[str, float], subsets: Mapping[str, SubsetItems]
) -> tuple[float | None, float | None]:
    """Return the weighted means of the subsets' worst and best scores."""
    if not weights:
        return None, None
    worst, best = (
        sum(weight * (subsets[name].bounds[end] or 0.0) for name, weight in weights.items())
        for end in (0, 1)
    )
    return worst, best


def _weigh_subsets(weights: Mapping[str, float], subsets: Mapping[str, SubsetItems]) -> Metric:
    """Return the weighted mean of the subsets, with the interval that follows from fixed strata."""
    strata = [stratum for name in weights if (stratum := subsets[name].stratum) is not None]
    return estimate(strata, list(weights.values()))


# Exams in which every item was asked several times.


def _compute_repeat_metrics(exam: Exam, tally: Tally, overall: ItemSetScore) -> dict[str, Metric]:
    """Return pass@k, pass^k, majority votes and the agreement of repeats.

    With k = 1, pass@k and pass^k are the same.
    """

    def mean_chance(chance: Callable[[int, int, int], float], k: int) -> Metric:
        """Return the mean over the items that have enough graded repeats."""
        bounded = BoundedValues(clustered=overall.clustered)
        for (group, state), count in overall.states.items():
            if state.gradable >= k:
                right_counts = (state.right, state.right + state.ungraded)
                worst, best = (
                    chance(state.gradable, right_count, k) for right_count in right_counts
                )
                value = worst if worst == best else None
                if state.graded >= k:
                    value = chance(state.graded, state.right, k)
                draws = state.graded if overall.all_or_nothing else 0
                bounded.add(value, (worst, best), group, count=count, draws=draws)
        return bounded.estimate()

    rungs = reported_ks(tally.epochs)
    metrics = {f"pass@{k}": mean_chance(pass_at_k, k) for k in rungs}
    metrics |= {f"pass^{k}": mean_chance(pass_all_k, k) for k in rungs[1:]}
    if tally.answers is None:
        agreement = overall.gather(
            lambda state: self_consistency((state.right, state.graded - state.right))
        )
        return metrics | {"agreement": agreement.estimate(of="scores")}
    return metrics | _compute_vote_metrics(exam, tally, tally.answers)


def _compute_vote_metrics(
    exam: Exam, tally: Tally, answers: Sequence[str | None]
) -> dict[str, Metric]:
    epochs = tally.epochs
    sizes = [k for k in reported_ks(epochs) if 1 < k < epochs]
    votes_by_size = {k: BoundedValues(clustered=exam.clustered) for k in (*sizes, epochs)}
    agreement = ItemValues(clustered=exam.clustered)
    for position in range(tally.samples):
        units = slice(position * epochs, (position + 1) * epochs)
        sample = exam.samples[position]
        votes: Counter[str] = Counter()
        right_options: set[str] = set()
        graded = ungraded = 0
        for code, value, answer in zip(
            tally.outcomes[units], tally.values[units], answers[units], strict=True
        ):
            ungraded += code in LOST
            if code not in GRADED:
                continue
            graded += 1
            if answer is not None:
                option = option_identity(sample, answer)
                votes[option] += 1
                if value >= PASS:
                    right_options.add(option)
        ballot = VoteCounts(
            [n for option, n in votes.items() if option in right_options],
            [n for option, n in votes.items() if option not in right_options],
            graded - votes.total(),
        )
        group = cluster_of(exam, position)
        for k, bounded in votes_by_size.items():
            # All answers vote in the full vote, however many there are; a smaller vote has only k.
            size, full_size = (k, k) if k < epochs else (graded, graded + ungraded)
            if 0 < full_size <= graded + ungraded:
                share = majority_vote(*ballot, size) if 0 < size <= graded else None
                worst, best = (
                    majority_vote(*ballot_bound, full_size)
                    for ballot_bound in ballot.bounds(ungraded)
                )
                bounded.add(share, (worst, best), group, draws=graded)
        if (consistency := self_consistency(votes.values())) is not None:
            agreement.add(consistency, group, draws=graded)
    full_vote = votes_by_size.pop(epochs)
    return {f"majority_vote@{k}": bounded.estimate() for k, bounded in votes_by_size.items()} | {
        "majority_vote": full_vote.estimate(),
        "agreement": agreement.estimate(of="answers"),
    }


class VoteCounts(NamedTuple):
    """The votes for each right option and for each wrong one, and the number of abstentions."""

    right: list[int]
    wrong: list[int]
    abstained: int

    def bounds(self, ungraded: int) -> tuple[VoteCounts, VoteCounts]:
        """Return the ballots if all ungraded replies voted for one wrong or one right option."""

        def with_ungraded(votes: list[int]) -> list[int]:
            largest, *smaller = sorted(votes, reverse=True) or [0]
            return [largest + ungraded, *smaller]

        worst, best = with_ungraded(self.wrong), with_ungraded(self.right)
        return self._replace(wrong=worst), self._replace(right=best)


def option_identity(sample: Sample, answer: str) -> str:
    """Return the option behind an answer, independent of the letter under which it was shown."""
    label_place = sample.labels.find(answer) if len(answer) == 1 else -1
    return f"option {sample.order[label_place]}" if sample.order and label_place >= 0 else answer
