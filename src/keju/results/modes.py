"""Knowledge or reasoning? Two runs of a model, one with a chain of thought, side by side.

A subject that gains from a chain of thought is one of reasoning; one that does not, or loses, is
one of knowledge. Only questions that both runs graded count, and they are compared one by one:
a subject may have only a dozen questions, so the difference has an interval.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from keju.benchmarks import registry
from keju.benchmarks.base import Exam
from keju.errors import Notice, UsageError
from keju.results.sittings import Sitting, read_run, sitting_of
from keju.results.summarise import WARN_ABOVE
from keju.runs.run import command_name, list_runs
from keju.stats.intervals import Interval, Moments, student_t_quantile
from keju.stats.paired import clip_difference, paired_difference
from keju.types import Outcome

if TYPE_CHECKING:
    from keju.benchmarks.base import Benchmark
    from keju.benchmarks.facts import Modes
    from keju.runs.manifest import Manifest, StoredExam
    from keju.runs.run import Run

OVERALL = "all"


class ModesRow(NamedTuple):
    """One subject, one category or everything, sat in both modes; shares in [0, 1]."""

    subject: str
    title: str
    """What a subject or category is called."""
    n: int
    """Questions that both runs graded."""
    answer_only: float
    cot: float
    difference: float
    """Chain of thought minus answer-only."""
    ci95: Interval | None
    """Of the difference; None where it has no spread to tell by."""
    apart: bool
    """Whether the interval leaves out 0, so that the difference is more than noise."""
    robust: ModesRow | None = None
    """The same replies as the reader beside the headline's reads them; None if nobody did."""

    @property
    def by_format(self) -> bool:
        """Whether the form of the answers, not ability, makes the difference.

        It does where the difference is more than noise, and the other reader sees none, or the
        opposite one.
        """
        other = self.robust
        if other is None or not self.apart:
            return False
        return not other.apart or (other.difference > 0) != (self.difference > 0)


class Comparison(NamedTuple):
    """Two runs, question by question."""

    overall: ModesRow
    subjects: list[ModesRow]
    """In the published order."""
    categories: list[ModesRow]
    """Means over their subjects; only those of which all subjects are there."""
    unread: tuple[Notice, ...] = ()
    """Runs whose replies hold no answer that the headline's reader can find."""

    def with_robust(self, other: Comparison) -> Comparison:
        """This comparison with that of another reader beside each of its rows."""
        rows = {row.subject: row for row in (*other.subjects, *other.categories)}
        subjects, categories = (
            [row._replace(robust=rows.get(row.subject)) for row in own]
            for own in (self.subjects, self.categories)
        )
        overall = self.overall._replace(robust=other.overall)
        return Comparison(overall, subjects, categories, self.unread)

    def notices(self) -> list[Notice]:
        """What could mislead about the difference."""
        own, other = self.overall, self.overall.robust
        if other is None or not own.by_format:
            return [*self.unread]
        points = {"points": 100 * own.difference, "robust": 100 * other.difference}
        return [Notice("modes_by_format", points), *self.unread]


class ModesExam(NamedTuple):
    """An exam of a run that has two modes."""

    exam: StoredExam
    benchmark: Benchmark
    modes: Modes

    @property
    def mode(self) -> str:
        """The mode in which the run sat it."""
        return str(self.exam.settings.get("mode"))


def modes_exam(manifest: Manifest) -> ModesExam | None:
    """The first exam of a run that has two modes, if there is one."""
    for exam in manifest.benchmarks:
        benchmark = registry.get(exam.name) if exam.name in registry.names() else None
        if benchmark and benchmark.modes:
            return ModesExam(exam, benchmark, benchmark.modes)
    return None


def compare_runs(direct: Run, reasoned: Run) -> Comparison:
    """Compare the run that answered at once with the one that reasoned; UsageError says why not."""
    first, second = (modes_exam(run.manifest) for run in (direct, reasoned))
    for run, own in ((direct, first), (reasoned, second)):
        if run.manifest.config.get("arms"):
            raise UsageError("modes_arms", run=run.id)
        if own is None:
            names = [n for n in registry.names() if registry.get(n).modes is not None]
            raise UsageError("modes_no_exam", run=run.id, benchmarks=names)
        wanted = own.modes.direct if run is direct else own.modes.reasoned
        if own.mode != wanted:
            values = {"benchmark": own.exam.name, "mode": own.mode, "wanted": wanted}
            raise UsageError("modes_order", run=run.id, **values)
    assert first is not None
    if unlike := difference_of(direct.manifest, reasoned.manifest):
        raise UsageError("modes_differ", **unlike._asdict())
    one, other = (_scores(run, first.exam.name) for run in (direct, reasoned))
    comparison = compare_modes(first.modes, one.own, other.own)
    unread = [*one.unread(direct), *other.unread(reasoned)]
    comparison = comparison._replace(unread=tuple(unread))
    if not one.beside or not other.beside:
        return comparison
    return comparison.with_robust(compare_modes(first.modes, one.beside, other.beside))


class Pair(NamedTuple):
    """Two runs that can be compared."""

    exam: str
    direct: Run
    reasoned: Run


def counterpart(run: Run) -> Pair | None:
    """A run and the newest complete one beside it that is alike in all but the mode."""
    own = modes_exam(run.manifest)
    if own is None or own.mode not in (own.modes.direct, own.modes.reasoned):
        return None
    is_direct = own.mode == own.modes.direct
    wanted = own.modes.reasoned if is_direct else own.modes.direct
    for other in reversed(list_runs(str(run.folder.parent))):
        theirs = modes_exam(other.manifest) if other.manifest.complete else None
        if theirs is None or (theirs.exam.name, theirs.mode) != (own.exam.name, wanted):
            continue
        if difference_of(run.manifest, other.manifest) is None:
            return Pair(own.benchmark.title, *((run, other) if is_direct else (other, run)))
    return None


class Difference(NamedTuple):
    """Something other than the mode in which two runs differ."""

    name: str
    first: Any
    second: Any


def difference_of(first: Manifest, second: Manifest) -> Difference | None:
    """The first thing beside the mode in which two runs differ."""
    one, other = _conditions(first), _conditions(second)
    for name in dict.fromkeys([*one, *other]):
        if one.get(name) != other.get(name):
            return Difference(name, one.get(name), other.get(name))
    return None


def _conditions(manifest: Manifest) -> dict[str, Any]:
    """What two runs must have in common, the weightiest first."""
    own = modes_exam(manifest)
    assert own is not None
    settings = {k: value for k, value in own.exam.settings.items() if k not in own.modes.differ}
    names = (own.exam.name, *own.benchmark.aliases)
    args = manifest.config.get("dataset_args", {})
    shuffles = any(args[name].get("shuffle") for name in names if name in args)
    draws = shuffles or settings.get("shuffle_choices") or settings.get("few_shot_random")
    return {
        "model": manifest.model,
        **settings,
        "protocol": own.exam.protocol.name,
        "shuffle": shuffles,
        "seed": manifest.config.get("seed") if draws else None,
    }


class _Scores(NamedTuple):
    """The score of each graded question of a run: the headline's, and the reader's beside it."""

    own: dict[str, float]
    beside: dict[str, float]
    outcomes: Counter[Outcome]
    """Of the replies, by the headline's reader."""

    def unread(self, run: Run) -> Iterator[Notice]:
        """The notice that answers were not found in many replies: they count as wrong."""
        part, whole = self.outcomes["unparsed"], self.outcomes.total()
        if part > WARN_ABOVE * whole:
            values = {"part": part, "whole": whole, "share": part / whole}
            yield Notice("modes_unread", {"run": command_name(run.folder), **values})


def _scores(run: Run, benchmark: str) -> _Scores:
    """The scores of a run; errors and what has no grade are left out."""
    job = next(job for job in read_run(run).jobs if job.exam.benchmark == benchmark)
    readers = [reader.name for reader in job.readers]
    beside = Exam.beside in readers[1:]
    own, other = (
        _by_question(sitting_of(job, run.manifest, name))
        for name in (readers[0], Exam.beside if beside else readers[0])
    )
    return _Scores(own, other if beside else {}, Counter(job.tallies[0].outcome_counts()))


def _by_question(sitting: Sitting) -> dict[str, float]:
    """The score of each question, the mean over its rotations: ``law_3`` and ``law_3#rot1``."""
    scores: dict[str, list[float]] = defaultdict(list)
    for item in sitting:
        if item.score is not None:
            scores[item.id.partition("#")[0]].append(item.score)
    return {name: sum(each) / len(each) for name, each in scores.items()}


def compare_modes(
    modes: Modes, answer_only: Mapping[str, float], cot: Mapping[str, float]
) -> Comparison:
    """Compare the scores of two runs by sample id."""
    pairs: dict[str | None, list[tuple[float, float]]] = defaultdict(list)
    for name, score in answer_only.items():
        if name in cot:
            pairs[modes.subject_of(name)].append((score, cot[name]))
    shared = {name: pairs[name] for name in modes.subjects if name in pairs}
    if not shared:
        raise UsageError("modes_nothing_shared")
    everything = [pair for own in shared.values() for pair in own]
    return Comparison(
        _mean_row(OVERALL, "all shared questions", [everything]),
        [_mean_row(name, modes.subjects[name], [own]) for name, own in shared.items()],
        [
            _mean_row(name, modes.titles.get(name, name), [shared[each] for each in subjects])
            for name, subjects in modes.groups.items()
            if all(subject in shared for subject in subjects)
        ],
    )


def _mean_row(name: str, title: str, strata: Sequence[Sequence[tuple[float, float]]]) -> ModesRow:
    """The mean over `strata`, which weigh the same."""
    before, after = (
        math.fsum(math.fsum(pair[side] for pair in own) / len(own) for own in strata) / len(strata)
        for side in (0, 1)
    )
    difference = after - before
    if len(strata) == 1:
        apart = paired_difference([(second, first) for first, second in strata[0]])
        interval = apart.interval if apart else None
    else:
        interval = _strata_interval(difference, strata)
    return ModesRow(
        subject=name,
        title=title,
        n=sum(len(own) for own in strata),
        answer_only=before,
        cot=after,
        difference=difference,
        ci95=interval,
        apart=interval is not None and not interval.low <= 0 <= interval.high,
    )


def _strata_interval(
    difference: float, strata: Sequence[Sequence[tuple[float, float]]]
) -> Interval | None:
    """The interval of a mean difference with the standard error that fixed strata leave."""
    spreads = [Moments.of(second - first for first, second in own) for own in strata]
    variances = [own.variance / own.n for own in spreads if own and own.variance is not None]
    if len(variances) < len(strata) or not any(variances):
        return None
    error = math.sqrt(sum(variances)) / len(strata)
    half = error * student_t_quantile(0.975, sum(len(own) - 1 for own in strata))
    return clip_difference(Interval(difference - half, difference + half))
