"""Compare two runs of a model, with and without a chain of thought: is it knowledge or reasoning?

A subject that gains from a chain of thought tests reasoning. A subject that does not gain tests
knowledge. Only questions that both runs graded count, and they are compared one by one. A subject
may have only a dozen questions, so each difference has an interval.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from keju.benchmarks import registry
from keju.benchmarks.base import Exam
from keju.benchmarks.prepare import share_prepared_exams
from keju.errors import Notice, UsageError
from keju.results.scored_exam import ScoredExam, read_run, scored_exam_of
from keju.results.summarise import WARN_ABOVE
from keju.runs.run import command_name, list_runs
from keju.stats.intervals import Interval, Moments, student_t_quantile
from keju.stats.paired import clip_difference, paired_difference
from keju.types import Outcome

if TYPE_CHECKING:
    from keju.benchmarks.base import Benchmark
    from keju.benchmarks.metadata import ThinkingModes
    from keju.runs.manifest import Manifest, StoredExam
    from keju.runs.run import Run

OVERALL = "all"


class ModesRow(NamedTuple):
    """One subject, one category or all questions, in both modes; shares are in [0, 1]."""

    subject: str
    title: str
    """The title of the subject or category."""
    n: int
    """The number of questions that both runs graded."""
    answer_only: float
    cot: float
    difference: float
    """Chain of thought minus answer-only."""
    ci95: Interval | None
    """The interval of the difference; None if it cannot be estimated."""
    apart: bool
    """Whether the interval excludes 0, so that the difference is more than noise."""
    robust: ModesRow | None = None
    """The same replies under the secondary reader; None if there is none."""

    @property
    def is_due_to_format(self) -> bool:
        """Whether the form of the answers, not ability, makes the difference.

        This is the case if the difference is more than noise, but the secondary reader finds no
        difference or the opposite one.
        """
        robust_row = self.robust
        if robust_row is None or not self.apart:
            return False
        return not robust_row.apart or (robust_row.difference > 0) != (self.difference > 0)


class ModesComparison(NamedTuple):
    """Two runs compared question by question."""

    overall: ModesRow
    subjects: list[ModesRow]
    """In the published order."""
    categories: list[ModesRow]
    """The means over the subjects of each category; only categories with all their subjects."""
    unread: tuple[Notice, ...] = ()
    """Notices about runs in which the headline's reader finds no answer in many replies."""

    def with_robust(self, robust_comparison: ModesComparison) -> ModesComparison:
        """Return this comparison with the rows of another reader added to its rows."""
        rows = {
            row.subject: row for row in (*robust_comparison.subjects, *robust_comparison.categories)
        }
        subjects, categories = (
            [row._replace(robust=rows.get(row.subject)) for row in row_group]
            for row_group in (self.subjects, self.categories)
        )
        overall = self.overall._replace(robust=robust_comparison.overall)
        return ModesComparison(overall, subjects, categories, self.unread)

    def notices(self) -> list[Notice]:
        """Return the notices about anything that could mislead about the difference."""
        headline_row, robust_row = self.overall, self.overall.robust
        if robust_row is None or not headline_row.is_due_to_format:
            return [*self.unread]
        points = {"points": 100 * headline_row.difference, "robust": 100 * robust_row.difference}
        return [Notice("modes_by_format", points), *self.unread]


class ModesExam(NamedTuple):
    """An exam of a run that has two modes."""

    exam: StoredExam
    benchmark: Benchmark
    modes: ThinkingModes

    @property
    def mode(self) -> str:
        """The mode in which the run asked it."""
        return str(self.exam.settings.get("mode"))


def modes_exam(manifest: Manifest) -> ModesExam | None:
    """Return the first exam of a run that has two modes, if there is one."""
    for exam in manifest.benchmarks:
        benchmark = registry.get(exam.name) if exam.name in registry.names() else None
        if benchmark and benchmark.modes:
            return ModesExam(exam, benchmark, benchmark.modes)
    return None


@share_prepared_exams()
def compare_runs(direct: Run, reasoned: Run) -> ModesComparison:
    """Compare a run that answered directly with a run that reasoned; UsageError if impossible."""
    direct_exam = _check_mode(direct, is_direct=True)
    _check_mode(reasoned, is_direct=False)
    if difference := difference_of(direct.manifest, reasoned.manifest):
        raise UsageError("modes_differ", **difference._asdict())
    direct_scores = _load_scores(direct, direct_exam.exam.name)
    reasoned_scores = _load_scores(reasoned, direct_exam.exam.name)
    comparison = compare_modes(direct_exam.modes, direct_scores.headline, reasoned_scores.headline)
    unread = [*direct_scores.unread_notices(direct), *reasoned_scores.unread_notices(reasoned)]
    comparison = comparison._replace(unread=tuple(unread))
    if not direct_scores.secondary or not reasoned_scores.secondary:
        return comparison
    return comparison.with_robust(
        compare_modes(direct_exam.modes, direct_scores.secondary, reasoned_scores.secondary)
    )


class ModesPair(NamedTuple):
    """Two runs that can be compared."""

    exam: str
    direct: Run
    reasoned: Run


def _check_mode(run: Run, *, is_direct: bool) -> ModesExam:
    """Return the exam of a run in one of the two modes; raise UsageError for another run."""
    if run.manifest.config.get("arms"):
        raise UsageError("modes_arms", run=run.id)
    run_exam = modes_exam(run.manifest)
    if run_exam is None:
        names = [n for n in registry.names() if registry.get(n).modes is not None]
        raise UsageError("modes_no_exam", run=run.id, benchmarks=names)
    expected_mode = run_exam.modes.direct if is_direct else run_exam.modes.reasoned
    if run_exam.mode != expected_mode:
        values = {"benchmark": run_exam.exam.name, "mode": run_exam.mode, "wanted": expected_mode}
        raise UsageError("modes_order", run=run.id, **values)
    return run_exam


def counterpart(run: Run) -> ModesPair | None:
    """Return a run and the newest complete run in the same folder that differs only in the mode."""
    run_exam = modes_exam(run.manifest)
    if run_exam is None or run_exam.mode not in (run_exam.modes.direct, run_exam.modes.reasoned):
        return None
    is_direct = run_exam.mode == run_exam.modes.direct
    expected_mode = run_exam.modes.reasoned if is_direct else run_exam.modes.direct
    for candidate in reversed(list_runs(str(run.folder.parent))):
        candidate_exam = modes_exam(candidate.manifest) if candidate.manifest.complete else None
        if candidate_exam is None:
            continue
        mode_and_exam = candidate_exam.mode, candidate_exam.exam.name
        if mode_and_exam != (expected_mode, run_exam.exam.name):
            continue
        if difference_of(run.manifest, candidate.manifest) is None:
            direct, reasoned = (run, candidate) if is_direct else (candidate, run)
            return ModesPair(run_exam.benchmark.title, direct, reasoned)
    return None


class SettingDifference(NamedTuple):
    """A setting other than the mode in which two runs differ."""

    name: str
    first: Any
    second: Any


def difference_of(left_manifest: Manifest, right_manifest: Manifest) -> SettingDifference | None:
    """Return the first difference between two runs other than the mode."""
    left_conditions = _collect_conditions(left_manifest)
    right_conditions = _collect_conditions(right_manifest)
    for name in dict.fromkeys([*left_conditions, *right_conditions]):
        if left_conditions.get(name) != right_conditions.get(name):
            return SettingDifference(name, left_conditions.get(name), right_conditions.get(name))
    return None


def _collect_conditions(manifest: Manifest) -> dict[str, Any]:
    """Return the settings that two runs must share, the most important first."""
    run_exam = modes_exam(manifest)
    assert run_exam is not None
    settings = {
        k: value for k, value in run_exam.exam.settings.items() if k not in run_exam.modes.differ
    }
    names = (run_exam.exam.name, *run_exam.benchmark.aliases)
    args = manifest.config.get("dataset_args", {})
    shuffles = any(args[name].get("shuffle") for name in names if name in args)
    is_random = shuffles or settings.get("shuffle_choices") or settings.get("few_shot_random")
    return {
        "model": manifest.model,
        **settings,
        "protocol": run_exam.exam.protocol.name,
        "shuffle": shuffles,
        "seed": manifest.config.get("seed") if is_random else None,
    }


class _RunScores(NamedTuple):
    """The scores of each graded question of a run under the headline's and the secondary reader."""

    headline: dict[str, float]
    secondary: dict[str, float]
    outcomes: Counter[Outcome]
    """The outcomes of the replies under the headline's reader."""

    def unread_notices(self, run: Run) -> Iterator[Notice]:
        """Yield a notice if no answer was found in many replies: they count as wrong."""
        part, total = self.outcomes["unparsed"], self.outcomes.total()
        if part > WARN_ABOVE * total:
            values = {"part": part, "whole": total, "share": part / total}
            yield Notice("modes_unread", {"run": command_name(run.folder), **values})


def _load_scores(run: Run, benchmark: str) -> _RunScores:
    """Return the scores of a run; errors and replies without a grade are left out."""
    job = next(job for job in read_run(run).jobs if job.exam.benchmark == benchmark)
    readers = [reader.name for reader in job.readers]
    has_secondary = Exam.beside in readers[1:]
    headline, secondary = (
        _average_rotations(scored_exam_of(job, run.manifest, name))
        for name in (readers[0], Exam.beside if has_secondary else readers[0])
    )
    return _RunScores(
        headline, secondary if has_secondary else {}, Counter(job.tallies[0].outcome_counts())
    )


def _average_rotations(scored_exam: ScoredExam) -> dict[str, float]:
    """Return the score of each question: the mean over its rotations.

    ``law_3`` and ``law_3#rot1`` are rotations of one question.
    """
    scores: dict[str, list[float]] = defaultdict(list)
    for question in scored_exam:
        if question.score is not None:
            scores[question.id.partition("#")[0]].append(question.score)
    return {
        name: sum(rotation_scores) / len(rotation_scores)
        for name, rotation_scores in scores.items()
    }


def compare_modes(
    modes: ThinkingModes, answer_only: Mapping[str, float], cot: Mapping[str, float]
) -> ModesComparison:
    """Compare the scores of two runs by sample id."""
    by_subject: dict[str | None, list[tuple[float, float]]] = defaultdict(list)
    for name, score in answer_only.items():
        if name in cot:
            by_subject[modes.subject_of(name)].append((score, cot[name]))
    shared_pairs = {name: by_subject[name] for name in modes.subjects if name in by_subject}
    if not shared_pairs:
        raise UsageError("modes_nothing_shared")
    groups = {
        name: [shared_pairs[subject] for subject in subjects]
        for name, subjects in modes.groups.items()
        if shared_pairs.keys() >= {*subjects}
    }
    return ModesComparison(
        _build_row(OVERALL, "all shared questions", [[*chain(*shared_pairs.values())]]),
        [_build_row(name, modes.subjects[name], [pairs]) for name, pairs in shared_pairs.items()],
        [_build_row(name, modes.titles.get(name, name), group) for name, group in groups.items()],
    )


def _build_row(name: str, title: str, strata: Sequence[Sequence[tuple[float, float]]]) -> ModesRow:
    """Return the mean over `strata`, which have equal weights."""
    direct_mean, reasoned_mean = (
        math.fsum(math.fsum(pair[side] for pair in stratum) / len(stratum) for stratum in strata)
        / len(strata)
        for side in (0, 1)
    )
    difference = reasoned_mean - direct_mean
    if len(strata) == 1:
        paired = paired_difference(
            [(reasoned_score, direct_score) for direct_score, reasoned_score in strata[0]]
        )
        interval = paired.interval if paired else None
    else:
        interval = _strata_interval(difference, strata)
    return ModesRow(
        subject=name,
        title=title,
        n=sum(len(stratum) for stratum in strata),
        answer_only=direct_mean,
        cot=reasoned_mean,
        difference=difference,
        ci95=interval,
        apart=interval is not None and not interval.low <= 0 <= interval.high,
    )


def _strata_interval(
    difference: float, strata: Sequence[Sequence[tuple[float, float]]]
) -> Interval | None:
    """Return the interval of a mean difference, with the standard error of fixed strata."""
    spreads = [
        Moments.of(reasoned_score - direct_score for direct_score, reasoned_score in stratum)
        for stratum in strata
    ]
    variances = [
        moments.variance / moments.n
        for moments in spreads
        if moments and moments.variance is not None
    ]
    if len(variances) < len(strata) or not any(variances):
        return None
    error = math.sqrt(sum(variances)) / len(strata)
    half = error * student_t_quantile(0.975, sum(len(stratum) - 1 for stratum in strata))
    return clip_difference(Interval(difference - half, difference + half))
