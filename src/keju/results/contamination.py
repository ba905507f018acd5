"""Compare published questions with fresh ones of the same kinds, to detect memorised questions.

The two sides have different questions, so nothing is paired. Each subset is compared with its
counterpart, and the exam is compared over its subsets. As for pairs (`keju.results.compare`), Keju
first checks that both sides are asked and read in the same way. Their worked examples always
differ; a notice mentions this.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, Literal

import msgspec

from keju.benchmarks import registry
from keju.benchmarks.prepare import share_prepared_exams
from keju.errors import Notice, UsageError
from keju.results.compare import mismatch_notices
from keju.results.schema import DATA, SCHEMA, Mismatch
from keju.results.scored_exam import ScoredExam, Source, scored_exams_of
from keju.stats.estimate import Ends
from keju.stats.intervals import Interval
from keju.stats.paired import SIGNIFICANT, benjamini_hochberg
from keju.stats.unpaired import GroupDifference, ScoreGroup, group_difference, stratified_difference

INHERENT_DIFFERENCES = frozenset(
    {"exam", "seed", "difficulty", "lang", "generator", "fresh", "shuffle"}
)
"""Conditions that always differ between published and fresh questions."""
CHOOSING = frozenset({"subset_list", "sample", "seed", "limit", "total", "ids"})
"""Circumstances that only choose questions."""
PUBLISHED_DIFFICULTY = 1.0


class SubsetGap(msgspec.Struct, frozen=True, kw_only=True):
    """One subset: how much higher the model scores on the published questions."""

    name: str
    published_n: int
    fresh_n: int
    published: float
    fresh: float
    difference: float
    ci95: Ends
    p: float
    """One-sided; from Fisher's exact test if scores are only right or wrong."""
    p_adjusted: float
    """`p` adjusted for all subsets, so that the rate of false discoveries is controlled."""


class Contamination(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The result of ``keju compare --contamination``."""

    exam: str
    fresh_exam: str
    published_run: str
    fresh_run: str
    model: str
    protocol: str
    reader: str
    published: float | None
    """The scores, with the same weights of subsets as in the difference."""
    fresh: float | None
    difference: float | None
    ci95: Ends | None
    p: float | None
    """One-sided: the chance of such a large difference if the model has memorised nothing."""
    subsets: tuple[SubsetGap, ...] = ()
    left_out: int = 0
    """The number of questions without a grade, in subsets that both sides have."""
    faulty: int = 0
    """The number of published questions in these subsets that are left out because they are
    faulty."""
    uncompared: tuple[str, ...] = ()
    """The subsets that only one side has."""
    unlike: tuple[Mismatch, ...] = ()
    """Further differences between the two sides; a decisive one makes them incomparable."""
    notices: tuple[Notice, ...] = ()

    @property
    def obstacle(self) -> Mismatch | None:
        """The most important difference that makes the sides incomparable; None if there is
        none."""
        return next((mismatch for mismatch in self.unlike if mismatch.decisive), None)

    @property
    def verdict(self) -> Literal["higher", "not shown", "nothing", "not comparable"]:
        """Whether the published questions are shown to be easier for the model."""
        if self.obstacle is not None:
            return "not comparable"
        if self.p is None:
            return "nothing"
        return "higher" if self.p < SIGNIFICANT else "not shown"

    @property
    def by_heart(self) -> Ends | None:
        """The share of memorised published questions that would explain the difference."""
        if self.ci95 is None or self.fresh is None or self.fresh >= 1:
            return None
        low, high = (max(0.0, min(1.0, end / (1 - self.fresh))) for end in self.ci95)
        return low, high

    @property
    def conclusions(self) -> tuple[Notice, ...]:
        """Sentences that say what the comparison shows and what it does not show."""
        names: dict[str, Any] = {"exam": self.exam, "model": self.model}
        if obstacle := self.obstacle:
            names = {"base": self.published_run, "arm": self.fresh_run}
            return (Notice(*obstacle.told("compare_unlike", **names)),)
        if self.difference is None or self.ci95 is None:
            return (Notice("contamination_nothing", names),)
        low, high = self.ci95
        values = names | {"points": 100 * self.difference, "p": self.p}
        values |= {"low": 100 * low, "high": 100 * high}
        code = "contamination_higher" if self.verdict == "higher" else "contamination_not_shown"
        notices = [Notice(code, values)]
        if self.verdict == "higher" and self.by_heart is not None:
            low_share, high_share = (100 * end for end in self.by_heart)
            notices.append(Notice("contamination_by_heart", {"low": low_share, "high": high_share}))
        notices.append(Notice("contamination_meaning"))
        return tuple(notices)

    @property
    def document(self) -> dict[str, Any]:
        """The plain document, as ``--json`` prints it."""
        fields: dict[str, Any] = msgspec.to_builtins(self)
        return {
            "schema": SCHEMA,
            **fields,
            "comparable": self.obstacle is None,
            "verdict": self.verdict,
            "by_heart": self.by_heart,
            "conclusions": [notice.text() for notice in self.conclusions],
            "warnings": [notice.text() for notice in self.notices],
        }


@share_prepared_exams()
def contamination(
    published: Source,
    fresh: Source,
    *,
    reader: str | None = None,
    data_dir: str | None = None,
    work_dir: str | None = None,
) -> Contamination:
    """Compare a model's run on a published exam with its run on fresh questions of that kind."""
    published_exams, fresh_exams = (
        scored_exams_of(source, reader=reader, data_dir=data_dir, work_dir=work_dir)
        for source in (published, fresh)
    )
    published_exam, fresh_exam = _match_exams(published_exams, fresh_exams, published, fresh)
    exam_mismatches = tuple(_find_mismatches(published_exam, fresh_exam))
    shared_fields: dict[str, Any] = {
        "exam": published_exam.exam.benchmark,
        "fresh_exam": fresh_exam.exam.benchmark,
        "published_run": published_exam.name,
        "fresh_run": fresh_exam.name,
        "model": published_exam.model,
        "protocol": published_exam.protocol,
        "reader": published_exam.reader,
        "unlike": exam_mismatches,
    }
    if any(mismatch.decisive for mismatch in exam_mismatches):
        empty_figures: Any = dict.fromkeys(("published", "fresh", "difference", "ci95", "p"))
        return Contamination(**shared_fields, **empty_figures)
    published_scores, fresh_scores = _group_scores(published_exam), _group_scores(fresh_exam)
    sides = published_scores, fresh_scores
    names = dict.fromkeys((*published_scores.scores, *fresh_scores.scores))
    groups = {
        name: (
            ScoreGroup.of(published_scores.scores[name]),
            ScoreGroup.of(fresh_scores.scores[name]),
        )
        for name in names
        if all(name in side.scores for side in sides)
    }
    shared_subsets = published_scores.subsets & fresh_scores.subsets
    overall = stratified_difference(list(groups.values()))
    rates = _average_groups(list(groups.values()))
    return Contamination(
        **shared_fields,
        published=rates[0],
        fresh=rates[1],
        **_figures_of(overall),
        subsets=tuple(_compare_subsets(groups)),
        left_out=sum(side.left_out[name] for side in sides for name in shared_subsets),
        faulty=sum(published_scores.faulty[name] for name in shared_subsets),
        uncompared=tuple(name for name in names if name not in groups),
        notices=tuple(_notices(published_exam, fresh_exam, exam_mismatches)),
    )


def _figures_of(overall: GroupDifference | None) -> dict[str, Any]:
    """Return the difference with its interval and p value; None for each if there is none."""
    if overall is None:
        return dict.fromkeys(("difference", "ci95", "p"))
    return {"difference": overall.value, "ci95": _ends(overall.interval), "p": overall.p}


def _match_exams(
    published_exams: Sequence[ScoredExam],
    fresh_exams: Sequence[ScoredExam],
    published: Source,
    fresh: Source,
) -> tuple[ScoredExam, ScoredExam]:
    """Return the published exam, and the fresh exam of the same kind and difficulty."""
    names = {"published": str(published), "fresh": str(fresh)}
    pairs = [pair for pair in product(published_exams, fresh_exams) if _is_same_kind(*pair)]
    if not pairs:
        raise UsageError("contamination_no_pair", **names)
    equally_hard_pairs = [
        pair for pair in pairs if _find_difficulty(pair[1]) == PUBLISHED_DIFFICULTY
    ]
    if not equally_hard_pairs:
        raise UsageError("contamination_difficulty", **names)
    if len(equally_hard_pairs) > 1:
        arms = [exam.arm for pair in equally_hard_pairs for exam in pair if exam.arm]
        raise UsageError("contamination_arms", arms=[*dict.fromkeys(arms)], **names)
    return equally_hard_pairs[0]


def _is_same_kind(published_exam: ScoredExam, fresh_exam: ScoredExam) -> bool:
    """Whether one exam is published and the other holds fresh questions of its kind."""
    if _is_fresh(published_exam) or not _is_fresh(fresh_exam):
        return False
    name = fresh_exam.exam.benchmark
    return published_exam.exam.benchmark in (name, registry.get(name).fresh_of or None)


def _is_fresh(scored_exam: ScoredExam) -> bool:
    return _find_difficulty(scored_exam) is not None


def _find_difficulty(scored_exam: ScoredExam) -> float | None:
    """Return the difficulty of fresh questions; None for published ones."""
    if scored_exam.exam.difficulty is not None:
        return scored_exam.exam.difficulty
    fresh_settings: dict[str, float] = scored_exam.exam.settings.get("fresh") or {}
    return fresh_settings.get("difficulty")


def _find_mismatches(published_exam: ScoredExam, fresh_exam: ScoredExam) -> Iterator[Mismatch]:
    """Yield the differences between two exams that are not due to one being fresh."""
    partial = published_exam.partial or fresh_exam.partial
    language = fresh_exam.exam.settings.get("lang", "en")
    if language != "en":
        yield Mismatch("lang", "en", language, True)
    for published_facts, fresh_facts, decisive in (
        (published_exam.conditions, fresh_exam.conditions, True),
        (published_exam.circumstances, fresh_exam.circumstances, False),
    ):
        for name in dict.fromkeys([*published_facts, *fresh_facts]):
            is_known_of_both = name in published_facts and name in fresh_facts
            if name in INHERENT_DIFFERENCES | CHOOSING or name.startswith(DATA):
                continue
            values = published_facts.get(name), fresh_facts.get(name)
            if values[0] != values[1] and (is_known_of_both or not partial):
                yield Mismatch(name, *values, decisive or name == "model")


class _SubsetScores(msgspec.Struct):
    """The scores of one exam by subset, and the number of questions that do not count."""

    scores: dict[str, list[float]] = {}
    left_out: Counter[str] = msgspec.field(default_factory=Counter)
    faulty: Counter[str] = msgspec.field(default_factory=Counter)

    @property
    def subsets(self) -> set[str]:
        """The subsets with at least one question asked."""
        return {*self.scores, *self.left_out, *self.faulty}


def _group_scores(scored_exam: ScoredExam) -> _SubsetScores:
    """Return the scores of an exam by subset, without questions that are known to be faulty."""
    subset_scores = _SubsetScores()
    for question in scored_exam:
        if question.id in scored_exam.exam.errata:
            subset_scores.faulty[question.subset] += 1
        elif question.score is not None:
            subset_scores.scores.setdefault(question.subset, []).append(question.score)
        elif question.outcome is not None:
            subset_scores.left_out[question.subset] += 1
    return subset_scores


def _average_groups(
    groups: Sequence[tuple[ScoreGroup, ScoreGroup]],
) -> tuple[float | None, float | None]:
    """Return the mean scores of both sides, with the weights of subsets used for the difference."""
    weights = [
        published_group.n * fresh_group.n / (published_group.n + fresh_group.n)
        for published_group, fresh_group in groups
    ]
    if not sum(weights):
        return None, None
    published_rate, fresh_rate = (
        sum(weight * pair[side].mean for weight, pair in zip(weights, groups, strict=True))
        / sum(weights)
        for side in (0, 1)
    )
    return published_rate, fresh_rate


def _compare_subsets(groups: dict[str, tuple[ScoreGroup, ScoreGroup]]) -> Iterator[SubsetGap]:
    differences: dict[str, GroupDifference] = {}
    for name, pair in groups.items():
        if (difference := group_difference(*pair)) is not None:
            differences[name] = difference
    adjusted = benjamini_hochberg([difference.p for difference in differences.values()])
    for (name, difference), p in zip(differences.items(), adjusted, strict=True):
        published_group, fresh_group = groups[name]
        yield SubsetGap(
            name=name,
            published_n=published_group.n,
            fresh_n=fresh_group.n,
            published=published_group.mean,
            fresh=fresh_group.mean,
            difference=difference.value,
            ci95=_ends(difference.interval),
            p=difference.p,
            p_adjusted=p,
        )


def _ends(interval: Interval) -> Ends:
    return interval.low, interval.high


def _notices(
    published_exam: ScoredExam, fresh_exam: ScoredExam, exam_mismatches: Sequence[Mismatch]
) -> Iterator[Notice]:
    """Yield the notices about anything that could mislead about the comparison."""
    yield from mismatch_notices(exam_mismatches)
    for scored_exam in (published_exam, fresh_exam):
        if scored_exam.partial:
            yield Notice("compare_partly_known", {"name": scored_exam.name})
    if published_exam.exam.settings.get("few_shot_num"):
        yield Notice("contamination_examples")
