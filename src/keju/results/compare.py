"""Compare scored exams question by question. All paired comparisons are made here.

`compare` takes runs, logs of other tools and files of predictions. `compare_arms` takes the arms of
one run. Each pair gives one `Comparison` of the later scored exam with the earlier one, on the
questions that have a score in both. Repeats of a question are averaged first. A question without a
grade in either scored exam is left out and counted.

Before that, Keju checks whether two scored exams are comparable. If they are not, it shows both
scores without ranking them.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, combinations, islice
from typing import Any, Unpack

import msgspec
from msgspec.structs import replace

from keju.benchmarks.prepare import share_prepared_exams
from keju.config import Price
from keju.errors import Notice, UsageError
from keju.files import MappedSequence
from keju.results.assertions import assertion_changes
from keju.results.comparability import TOOLS
from keju.results.metrics import accuracy_of
from keju.results.pairs import ChangedQuestions, SharedQuestions, load_flip_texts, pairs_of
from keju.results.schema import (
    LISTED,
    SCHEMA,
    ChangedQuestion,
    Comparison,
    CostChange,
    InNotebook,
    Mismatch,
    SubsetChange,
)
from keju.results.scored_exam import (
    ScoredExam,
    Source,
    SourceOptions,
    Taken,
    mismatches,
    refuse_unused,
    scored_exams_of,
    varied_settings,
)
from keju.runs.manifest import FIXED_FACTS
from keju.scores.exam_scores import ExamScores
from keju.stats.estimate import MOST_UNGRADED
from keju.stats.intervals import FEW_CLUSTERS, mean, student_t_quantile
from keju.stats.paired import (
    PairedDifference,
    benjamini_hochberg,
    holm,
    is_binary,
    paired_difference,
)
from keju.stats.power import (
    detectable_mean,
    items_needed_exactly,
    minimal_detectable_effect,
    planned_items,
)

PLAIN = frozenset({"model", "questions", "complete", "keju", "arm", "limit", "total", "ids"})
"""Circumstances that need no notice: the compared models, and the choice of questions."""
WEIGHTS = "sha256"
UNREAD = 0.01
"""The share of replies without a readable answer above which a notice reports it."""


class Compared(InNotebook, msgspec.Struct, frozen=True, kw_only=True):
    """The result of ``keju compare``: one comparison for each exam and pair."""

    comparisons: tuple[Comparison, ...]
    notices: tuple[Notice, ...] = ()
    """Notices about exams that could not be compared at all."""

    @property
    def comparable(self) -> bool:
        """Whether every pair is comparable."""
        return all(pair.obstacle is None for pair in self.comparisons)

    @property
    def document(self) -> dict[str, Any]:
        """The plain document, as ``--json`` prints it."""
        return {
            "schema": SCHEMA,
            "comparable": self.comparable,
            "comparisons": [
                msgspec.to_builtins(replace(pair, flips=()))
                | ({"flips": MappedSequence(pair.flips, _drop_texts)} if pair.flips else {})
                | {
                    "comparable": pair.obstacle is None,
                    "verdict": pair.verdict,
                    "conclusion": pair.conclusion.text(),
                    "warnings": [notice.text() for notice in pair.notices],
                }
                for pair in self.comparisons
            ],
            "notices": [msgspec.to_builtins(notice) for notice in self.notices],
            "warnings": [notice.text() for notice in self.notices],
        }


def _drop_texts(flip: ChangedQuestion) -> dict[str, Any]:
    """Return a flip without its texts: questions are licensed and must not be copied everywhere."""
    flip_without_texts = replace(flip, question="", choices=(), base_reply="", arm_reply="")
    return dict(msgspec.to_builtins(flip_without_texts))


@share_prepared_exams()
def compare(*sources: Source, texts: int = 0, **options: Unpack[SourceOptions]) -> Compared:
    """Compare runs, logs of other tools and files of predictions; the first is the base.

    For a single run, compare its arms. `texts` is the number of questions with different scores, in
    each direction, whose texts are returned.

    Further options are `datasets` (the exam of predictions, or one exam of runs), `reader` (of all
    answers), `data_dir` and `work_dir`; for predictions alone also `gold`, `protocol` and
    `dataset_args` (the settings of the exam).
    """
    groups = [scored_exams_of(source, **options) for source in sources]
    refuse_unused(chain.from_iterable(groups), **options)
    if len(sources) == 1:
        comparisons = _compare_within_run(groups[0], texts=texts) if groups else []
        if not comparisons:
            levels = groups and len(groups[0]) > 1 and groups[0][0].exam.arm
            raise UsageError("compare_levels" if levels else "compare_one", source=sources[0])
        return Compared(comparisons=tuple(comparisons))
    if not sources:
        raise UsageError("compare_nothing")
    names = [str(getattr(source, "folder", source)) for source in sources]
    return compare_groups(groups, names, texts)


def compare_groups(
    groups: Sequence[Sequence[ScoredExam]], sources: Sequence[str], texts: int = 0
) -> Compared:
    """Compare the exams of several sources.

    `sources` names the sources if several have the same name.
    """
    names = [group[0].name for group in groups]
    if len(set(names)) < len(names):
        names = list(sources)
    comparisons: list[Comparison] = []
    notices: list[Notice] = []
    for (base_name, base_group), (arm_name, arm_group) in combinations(
        zip(names, groups, strict=True), 2
    ):
        pairs, unmatched_exams = match_exams(base_group, arm_group)
        for base, arm in pairs:
            labels = _label(base_name, base), _label(arm_name, arm)
            pair = compare_pair(base, arm, *labels, detailed=True, texts=texts)
            comparisons.append(replace(pair, base_is_first=base_name == names[0]))
        values = {"base": base_name, "arm": arm_name}
        notices += [Notice("compare_alone", {"exam": exam, **values}) for exam in unmatched_exams]
    exams = dict.fromkeys(pair.exam for pair in comparisons)
    adjusted = (
        _adjust_for_pairs([pair for pair in comparisons if pair.exam == exam]) for exam in exams
    )
    return Compared(comparisons=tuple(chain.from_iterable(adjusted)), notices=tuple(notices))


def _label(name: str, scored_exam: ScoredExam) -> str:
    return f"{name} · {scored_exam.arm}" if scored_exam.arm else name


def match_exams(
    base: Sequence[ScoredExam], arm: Sequence[ScoredExam]
) -> tuple[list[tuple[ScoredExam, ScoredExam]], list[str]]:
    """Return the pairs of exams to compare, and the names of exams that only one source has.

    Exams are paired if they are the same exam in the same arm. If each source has only one arm,
    these two are paired, even if their names differ. If the sources share no exam, their first
    exams are paired, so that the comparison reports the difference.
    """
    pairs, unmatched_exams = [], []
    for exam in dict.fromkeys(scored_exam.exam.benchmark for scored_exam in (*base, *arm)):
        base_arms, arm_arms = _by_arm(base, exam), _by_arm(arm, exam)
        matches = [(base_arms[name], arm_arms[name]) for name in base_arms if name in arm_arms]
        if not matches and len(base_arms) == len(arm_arms) == 1:
            matches = [*zip(base_arms.values(), arm_arms.values(), strict=True)]
        pairs += matches
        if len(matches) < max(len(base_arms), len(arm_arms)):
            unmatched_exams.append(exam)
    if pairs:
        return pairs, unmatched_exams
    compared_exams = {base[0].exam.benchmark, arm[0].exam.benchmark}
    return [(base[0], arm[0])], [exam for exam in unmatched_exams if exam not in compared_exams]


def compare_arms(
    jobs: Sequence[ExamScores],
    price: Price | None = None,
    run: str = "",
    *,
    with_first_only: bool = False,
) -> list[Comparison]:
    """Compare every pair of arms of each exam under the headline's reader.

    The earlier arm is the base. `run` is the name of the run in suggested commands. With
    `with_first_only`, each arm is compared only with the first.
    """
    arms = [ScoredExam(name="", model="", job=job, price=price, command=run) for job in jobs]
    return _compare_within_run(arms, detailed=False, with_first_only=with_first_only)


def _compare_within_run(
    scored_exams: Sequence[ScoredExam],
    *,
    detailed: bool = True,
    texts: int = 0,
    with_first_only: bool = False,
) -> list[Comparison]:
    """Compare every pair of arms of each exam of one run, or each arm with the first one.

    Arms that an exam's settings create have different questions, so they are not compared.
    """
    by_exam: dict[tuple[str, str], list[ScoredExam]] = {}
    for scored_exam in scored_exams:
        exam = scored_exam.exam
        by_exam.setdefault((exam.benchmark, exam.arm), []).append(scored_exam)
    comparisons = []
    for arms in by_exam.values():
        exam_comparisons = [
            replace(
                compare_pair(base, arm, base.arm, arm.arm, detailed=detailed, texts=texts),
                base_is_first=base is arms[0],
                base_model="",
                arm_model="",
                unlike=(),
            )
            for base, arm in combinations(arms, 2)
            if base is arms[0] or not with_first_only
        ]
        comparisons += _adjust_for_pairs(exam_comparisons)
    return comparisons


def _adjust_for_pairs(pairs: Sequence[Comparison]) -> list[Comparison]:
    """Return the pairs of an exam with p adjusted for the number of pairs (Holm)."""
    p_values = [pair.p for pair in pairs if pair.p is not None]
    if len(p_values) < 2:
        return list(pairs)
    adjusted = iter(holm(p_values))
    return [pair if pair.p is None else replace(pair, p_holm=next(adjusted)) for pair in pairs]


def _by_arm(scored_exams: Sequence[ScoredExam], exam: str) -> dict[str, ScoredExam]:
    """Return the arms of one exam by their names."""
    arms = [scored_exam for scored_exam in scored_exams if scored_exam.exam.benchmark == exam]
    return {scored_exam.arm: scored_exam for scored_exam in arms}


def compare_pair(
    base: ScoredExam,
    arm: ScoredExam,
    base_name: str,
    arm_name: str,
    *,
    detailed: bool = False,
    texts: int = 0,
) -> Comparison:
    """Compare two scored exams; with `detailed`, include every question with different scores.

    `texts` is the number of these questions, in each direction, that include the question and both
    replies.
    """
    exam_mismatches = mismatches(base, arm)
    shared_fields: dict[str, Any] = {
        "exam": base.exam.benchmark,
        "headline": base.exam.other_headline,
        "reader": base.reader,
        "base": base_name,
        "arm": arm_name,
        "base_model": base.model,
        "arm_model": arm.model,
        "unlike": tuple(exam_mismatches),
    }
    if any(mismatch.decisive for mismatch in exam_mismatches):
        return _report_incomparable(shared_fields, base, arm)
    pairs = pairs_of(base, arm)
    difference = paired_difference(pairs.scores, pairs.clusters)
    table = Counter(pairs.scores)
    binary = is_binary(table)
    flips = ChangedQuestions(base, arm, pairs)
    if texts:
        flips.texts = load_flip_texts(base, arm, flips, texts)
    arm_better, base_better = (
        sum(
            count
            for (arm_score, base_score), count in table.items()
            if sign * (arm_score - base_score) > 0
        )
        for sign in (1, -1)
    )
    gained_ids, lost_ids = (
        tuple(islice((flip.id for flip in flips if sign * (flip.arm - flip.base) > 0), LISTED))
        for sign in (1, -1)
    )
    comparison = Comparison(
        **shared_fields,
        n=len(pairs.scores),
        left_out=pairs.left_out.total(),
        left_out_why=dict(pairs.left_out),
        only_in_base=pairs.only_in_base,
        only_in_arm=pairs.only_in_arm,
        bounds=pairs.bounds,
        base_rate=mean(pairs.scores.base),
        arm_rate=mean(pairs.scores.arm),
        difference=difference.value if difference else None,
        ci95=_interval_ends(difference),
        p=difference.p if difference else None,
        p_log10=difference.p_log10 if difference else None,
        se=difference.se if difference else None,
        deff=difference.deff if difference else 1.0,
        clusters=difference.clusters if difference else None,
        both=table[1.0, 1.0] if binary else None,
        arm_only=arm_better,
        base_only=base_better,
        neither=table[0.0, 0.0] if binary else None,
        detectable=_find_detectable_difference(difference, binary=binary),
        needed=_count_needed_questions(difference, binary=binary),
        subsets=tuple(_compare_subsets(base, pairs)),
        gained=gained_ids,
        lost=lost_ids,
        flips=flips if texts or detailed else (),
        tokens=_compare_usage(base, arm, pairs, "tokens"),
        cost=_compare_usage(base, arm, pairs, "cost"),
        seconds=_compare_usage(base, arm, pairs, "seconds"),
        assertions=tuple(assertion_changes(base, arm)),
    )
    return replace(comparison, notices=tuple(_notices(base, arm, pairs, comparison)))


def _report_incomparable(
    shared_fields: dict[str, Any], base: ScoredExam, arm: ScoredExam
) -> Comparison:
    """Return two incomparable scores, each over all questions of its exam."""
    notices = [
        notice
        for name, scored_exam in ((shared_fields["base"], base), (shared_fields["arm"], arm))
        for notice in (*doubt_notices(scored_exam, name), *unfinished_notices(scored_exam, name))
    ]
    if {mismatch.field for mismatch in shared_fields["unlike"] if mismatch.decisive} <= {
        "reader",
        "reader version",
    }:
        notices.append(Notice("compare_read_alike", {"reader": shared_fields["reader"]}))
    rates = [
        accuracy_of(scored_exam.exam, scored_exam.job.tallies[scored_exam.place]).value
        for scored_exam in (base, arm)
    ]
    return Comparison(
        **shared_fields,
        notices=tuple(notices),
        n=0,
        left_out=0,
        base_rate=rates[0],
        arm_rate=rates[1],
        difference=None,
        ci95=None,
        p=None,
        both=None,
        arm_only=0,
        base_only=0,
        neither=None,
    )


def _interval_ends(difference: PairedDifference | None) -> tuple[float, float] | None:
    if difference is None or difference.interval is None:
        return None
    return difference.interval.low, difference.interval.high


def _find_detectable_difference(
    difference: PairedDifference | None, *, binary: bool
) -> float | None:
    """Return the smallest difference that this many questions can show.

    For graded scores it follows from their standard error.
    """
    if difference is None or not difference.first_only + difference.second_only:
        return None
    if not binary:
        return None if difference.se is None else detectable_mean(difference.se)
    discordance = (difference.first_only + difference.second_only) / difference.n
    return minimal_detectable_effect(difference.n, discordance, deff=difference.deff)


def _count_needed_questions(difference: PairedDifference | None, *, binary: bool) -> int | None:
    """Return how many questions the test of a difference needs (McNemar's test, if it applies)."""
    if difference is None or not difference.value:
        return None
    arm_share = difference.first_only / difference.n
    base_share = difference.second_only / difference.n
    if binary and difference.clusters is None:
        return items_needed_exactly(arm_share, base_share)
    if difference.se is None:
        return None
    return planned_items(difference.value, difference.se**2 * difference.n)


def _compare_subsets(base: ScoredExam, pairs: SharedQuestions) -> Iterator[SubsetChange]:
    """Yield the comparison of each subset, with p adjusted for the number of subsets."""
    exam, tested_subsets = base.exam, []
    for subset in exam.subsets if len(exam.subsets) > 1 else ():
        ends = (bisect_left(pairs.base, place) for place in (subset.start, subset.stop))
        subset_slice = slice(*ends)
        scores = pairs.scores[subset_slice]
        clusters = pairs.clusters and pairs.clusters[subset_slice]
        if (difference := paired_difference(scores, clusters)) is not None:
            tested_subsets.append((subset.name, difference, scores))
    adjusted = benjamini_hochberg([difference.p for _, difference, _ in tested_subsets])
    for (name, difference, scores), p in zip(tested_subsets, adjusted, strict=True):
        binary = is_binary(scores)
        yield SubsetChange(
            name=name,
            n=difference.n,
            difference=difference.value,
            arm_only=difference.first_only,
            base_only=difference.second_only,
            p=difference.p,
            p_log10=difference.p_log10,
            p_adjusted=p,
            base_rate=mean(scores.base),
            arm_rate=mean(scores.arm),
            ci95=_interval_ends(difference),
            detectable=_find_detectable_difference(difference, binary=binary),
        )


def _compare_usage(
    base: ScoredExam, arm: ScoredExam, pairs: SharedQuestions, name: Taken
) -> CostChange | None:
    """Return how much more an arm uses per question, with Student's interval over the questions.

    None if one of the two exams does not report it.
    """
    arm_amounts, base_amounts = arm.usage_of(name, pairs.arm), base.usage_of(name, pairs.base)
    if not any(arm_amounts) or not any(base_amounts):
        return None
    increases = array(
        "d",
        (
            arm_amount - base_amount
            for arm_amount, base_amount in zip(arm_amounts, base_amounts, strict=True)
        ),
    )
    average = math.fsum(increases) / len(increases)
    ends = None
    if len(increases) > 1:
        spread = math.fsum((increase - average) ** 2 for increase in increases) / (
            len(increases) - 1
        )
        half = student_t_quantile(0.975, len(increases) - 1) * math.sqrt(spread / len(increases))
        ends = (average - half, average + half)
    return CostChange(mean(base_amounts) or 0.0, mean(arm_amounts) or 0.0, average, ends)


def unfinished_notices(scored_exam: ScoredExam, name: str) -> Iterator[Notice]:
    """Yield notices of missing replies, and of stopping rules that a fixed-size test ignores."""
    job = scored_exam.job
    if scored_exam.changed_file:
        facts = {"file": scored_exam.changed_file, "part": job.tallies[0].done}
        yield Notice("compare_data_changed", {"run": name} | facts)
    elif job.missing and (answered := job.tallies[0].done):
        yield Notice("compare_unfinished", {"run": name, "part": answered, "whole": job.units})
    elif job.missing:
        yield Notice("compare_no_replies", {"run": name})
    if job.stopped_early:
        yield Notice("compare_stopped", {"run": name})


def doubt_notices(scored_exam: ScoredExam, name: str) -> Iterator[Notice]:
    """Yield the notices that make the score of an exam doubtful, each with the exam's name."""
    for notice in scored_exam.find_doubts():
        yield Notice(
            "compare_doubt", {"run": name, "exam": scored_exam.exam.benchmark, "notice": notice}
        )


def unread_notices(scored_exam: ScoredExam, name: str) -> Iterator[Notice]:
    """Yield a notice if many replies of an exam have no readable answer; they count as wrong."""
    outcomes = scored_exam.job.tallies[scored_exam.place].outcome_counts()
    part, total = outcomes["unparsed"], sum(outcomes.values())
    if part > UNREAD * total:
        values = {"name": name, "part": part, "whole": total, "share": part / total}
        if scored_exam.command:
            yield Notice("compare_unread", values | {"run": scored_exam.command})
        else:
            yield Notice("compare_unread_of_file", values)


def mismatch_notices(exam_mismatches: Sequence[Mismatch]) -> Iterator[Notice]:
    """Yield notices that list the differences between two scored exams.

    The values are in the mismatches themselves. A difference in weights is not listed if the models
    have different names, and endpoints often report nothing about their weights.
    """
    models_differ = any(mismatch.field == "model" for mismatch in exam_mismatches)
    unlisted = {*PLAIN, *([WEIGHTS] if models_differ else [])}
    differing: list[str | Notice] = []
    one_sided: list[str | Notice] = []
    for mismatch in exam_mismatches:
        if mismatch.field not in unlisted:
            values = mismatch.first, mismatch.second
            is_one_sided = mismatch.field in FIXED_FACTS and None in values
            (one_sided if is_one_sided else differing).append(mismatch.words)
    if differing:
        yield Notice("compare_otherwise", {"fields": differing})
    if one_sided and not models_differ:
        yield Notice("compare_known_of_one", {"fields": one_sided})


def _notices(
    base: ScoredExam, arm: ScoredExam, pairs: SharedQuestions, comparison: Comparison
) -> Iterator[Notice]:
    """Yield the notices about anything that could mislead about a comparison."""
    one_run = base.is_same_source(arm)
    if base.name and base.arm == arm.arm and one_run:
        yield Notice("compare_itself", {"base": comparison.base})
    # Arms of one run are compared because their tools differ.
    expected = {TOOLS} if one_run else set()
    yield from mismatch_notices(
        [mismatch for mismatch in comparison.unlike if mismatch.field not in expected]
    )
    yield from _exam_notices(base, comparison.base)
    yield from _exam_notices(arm, comparison.arm)
    if pairs.other_gold and not varied_settings(base, arm):
        yield Notice("compare_gold", {"n": pairs.other_gold})
    yield from _selection_notices(comparison)


def _selection_notices(comparison: Comparison) -> Iterator[Notice]:
    """Yield notices about questions that do not count, and about few clusters."""
    part, total = comparison.left_out, comparison.n + comparison.left_out
    if part > MOST_UNGRADED * total:
        yield Notice("compare_selection", {"part": part, "whole": total})
    if comparison.clusters is not None and comparison.clusters < FEW_CLUSTERS:
        yield Notice("few_clusters", {"clusters": comparison.clusters})


class ComparisonDifferences(msgspec.Struct, frozen=True, kw_only=True):
    """The differences between two scored exams."""

    exam: str
    first: str
    second: str
    unlike: tuple[Mismatch, ...]


def find_mismatches(
    left_source: Source, right_source: Source, **options: Unpack[SourceOptions]
) -> list[ComparisonDifferences]:
    """Return the differences between two sources for each exam; `options` as for `compare`."""
    left_exams = scored_exams_of(left_source, **options)
    right_exams = scored_exams_of(right_source, **options)
    refuse_unused((*left_exams, *right_exams), **options)
    pairs, _ = match_exams(left_exams, right_exams)
    return [
        ComparisonDifferences(
            exam=base.exam.benchmark,
            first=f"{base.name} · {base.arm}" if base.arm else base.name,
            second=f"{arm.name} · {arm.arm}" if arm.arm else arm.name,
            unlike=tuple(mismatches(base, arm)),
        )
        for base, arm in pairs
    ]


def _exam_notices(scored_exam: ScoredExam, name: str) -> Iterator[Notice]:
    """Yield the notices about one of the two sources."""
    if scored_exam.partial:
        yield Notice("compare_partly_known", {"name": name})
    yield from doubt_notices(scored_exam, name)
    yield from unfinished_notices(scored_exam, name)
    yield from unread_notices(scored_exam, name)
