"""Sittings compared question by question: the one place where pairs are made.

`compare` takes runs, other tools' logs and files of predictions, `compare_arms` the arms of a run.
Every pair is one `Comparison`: the later sitting against the earlier one, on the questions that
have a score in both. Repeats of a question are averaged first. A question without a grade in either
sitting is left out of the pair and counted: it says nothing of the two. Whether two sittings are
comparable at all is asked first; those that are not are shown side by side, and not ranked.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, combinations, islice
from typing import Any

import msgspec
from msgspec.structs import replace

from keju.config import Price
from keju.engine.job import Job
from keju.errors import Notice, UsageError
from keju.files import Made
from keju.results.conditions import TOOLS
from keju.results.metrics import accuracy_of
from keju.results.pairs import Flips, Pairs, pairs_of, told
from keju.results.predictions import Gold
from keju.results.schema import (
    LISTED,
    SCHEMA,
    Change,
    Comparison,
    Flip,
    InNotebook,
    SubsetChange,
    Unlike,
)
from keju.results.sittings import (
    Sitting,
    Source,
    Taken,
    refuse_unused,
    sittings_of,
    unlikes,
    varied_conditions,
)
from keju.runs.manifest import FIXED_FACTS
from keju.stats.estimate import MOST_UNGRADED
from keju.stats.intervals import FEW_CLUSTERS, mean, student_t_quantile
from keju.stats.paired import Difference, benjamini_hochberg, holm, paired_difference
from keju.stats.power import (
    detectable_mean,
    items_needed_exactly,
    minimal_detectable_effect,
    planned_items,
)

PLAIN = frozenset({"model", "questions", "complete", "keju", "arm", "limit", "total", "ids"})
"""Circumstances that need no word: what is compared, and which questions were chosen."""
WEIGHTS = "sha256"
UNREAD = 0.01
"""Share of replies in which no answer was found above which that is said."""


class Compared(InNotebook, msgspec.Struct, frozen=True, kw_only=True):
    """What ``keju compare`` finds: one comparison for each exam and pair."""

    comparisons: tuple[Comparison, ...]
    notices: tuple[Notice, ...] = ()
    """What could not be compared at all."""

    @property
    def comparable(self) -> bool:
        """Whether every pair is."""
        return all(pair.obstacle is None for pair in self.comparisons)

    @property
    def document(self) -> dict[str, Any]:
        """The plain document, as ``--json`` prints it."""
        return {
            "schema": SCHEMA,
            "comparable": self.comparable,
            "comparisons": [
                msgspec.to_builtins(replace(pair, flips=()))
                | ({"flips": Made(pair.flips, _bare)} if pair.flips else {})
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


def _bare(flip: Flip) -> dict[str, Any]:
    """Without its texts: questions are licensed, and must not find their way everywhere."""
    bare = replace(flip, question="", choices=(), base_reply="", arm_reply="")
    return dict(msgspec.to_builtins(bare))


def compare(
    *sources: Source,
    datasets: str | None = None,
    reader: str | None = None,
    gold: Gold | None = None,
    protocol: str | None = None,
    dataset_args: dict[str, Any] | None = None,
    data_dir: str | None = None,
    work_dir: str | None = None,
    texts: int = 0,
) -> Compared:
    """Compare runs, other tools' logs and files of predictions; the first is the base.

    Of one run alone the arms are compared. `datasets` names the exam of predictions, and chooses
    one exam of runs; `reader` reads all of them; `gold`, `protocol` and `dataset_args`, the
    settings of the exam, say how predictions are read. So many `texts` of questions that score
    otherwise come with them, each way.
    """
    how: dict[str, Any] = {
        "datasets": datasets,
        "reader": reader,
        "gold": gold,
        "protocol": protocol,
        "dataset_args": dataset_args,
        "data_dir": data_dir,
        "work_dir": work_dir,
    }
    groups = [sittings_of(source, **how) for source in sources]
    refuse_unused(chain.from_iterable(groups), **how)
    if len(sources) == 1:
        found = _within(groups[0], texts=texts) if groups else []
        if not found:
            levels = groups and len(groups[0]) > 1 and groups[0][0].exam.arm
            raise UsageError("compare_levels" if levels else "compare_one", source=sources[0])
        return Compared(comparisons=tuple(found))
    if not sources:
        raise UsageError("compare_nothing")
    names = [str(getattr(source, "folder", source)) for source in sources]
    return compare_sittings(groups, names, texts)


def compare_sittings(
    groups: Sequence[Sequence[Sitting]], sources: Sequence[str], texts: int = 0
) -> Compared:
    """Compare the sittings of several sources, which are called so where they share a name."""
    names = [own[0].name for own in groups]
    if len(set(names)) < len(names):
        names = list(sources)
    found: list[Comparison] = []
    notices: list[Notice] = []
    for (first, base), (second, other) in combinations(zip(names, groups, strict=True), 2):
        pairs, alone = matched(base, other)
        for one, two in pairs:
            labels = [
                f"{name} · {own.arm}" if own.arm else name
                for name, own in ((first, one), (second, two))
            ]
            pair = compare_pair(one, two, *labels, detailed=True, texts=texts)
            found.append(replace(pair, base_is_first=first == names[0]))
        for exam in alone:
            notices.append(Notice("compare_alone", {"exam": exam, "base": first, "arm": second}))
    exams = dict.fromkeys(pair.exam for pair in found)
    own = (_adjusted([pair for pair in found if pair.exam == exam]) for exam in exams)
    return Compared(comparisons=tuple(chain.from_iterable(own)), notices=tuple(notices))


def matched(
    base: Sequence[Sitting], other: Sequence[Sitting]
) -> tuple[list[tuple[Sitting, Sitting]], list[str]]:
    """The sittings of two sources that are compared, and what only one of them has.

    That is the same exam in the same arm. One arm is compared with one of another name where each
    source has no other; without an exam in common the first ones show that.
    """
    pairs, alone = [], []
    exams = dict.fromkeys(sitting.exam.benchmark for sitting in (*base, *other))
    for exam in exams:
        one, two = ([own for own in each if own.exam.benchmark == exam] for each in (base, other))
        arms = {sitting.arm: sitting for sitting in two}
        found = [(own, arms[own.arm]) for own in one if own.arm in arms]
        if not found and len(one) == len(two) == 1:
            found = [(one[0], two[0])]
        pairs += found
        if len(found) < max(len(one), len(two)):
            alone.append(exam)
    if pairs:
        return pairs, alone
    shown = {base[0].exam.benchmark, other[0].exam.benchmark}
    return [(base[0], other[0])], [exam for exam in alone if exam not in shown]


def compare_arms(
    jobs: Sequence[Job], price: Price | None = None, run: str = ""
) -> list[Comparison]:
    """Every pair of arms of each exam, the earlier arm as the base, under the headline's reader.

    `run` is what commands call the run that they are of.
    """
    arms = [Sitting(name="", model="", job=job, price=price, command=run) for job in jobs]
    return _within(arms, detailed=False)


def _within(
    sittings: Sequence[Sitting], *, detailed: bool = True, texts: int = 0
) -> list[Comparison]:
    """Every pair of arms of each exam of one run.

    Arms that an exam's own settings ask for have questions of their own: there are no pairs.
    """
    by_exam: dict[tuple[str, str], list[Sitting]] = {}
    for sitting in sittings:
        exam = sitting.exam
        by_exam.setdefault((exam.benchmark, exam.arm), []).append(sitting)
    found = []
    for arms in by_exam.values():
        own = [
            replace(
                compare_pair(base, arm, base.arm, arm.arm, detailed=detailed, texts=texts),
                base_is_first=base is arms[0],
                base_model="",
                arm_model="",
                unlike=(),
            )
            for base, arm in combinations(arms, 2)
        ]
        found += _adjusted(own)
    return found


def _adjusted(pairs: Sequence[Comparison]) -> list[Comparison]:
    """The pairs of an exam with p that allow for looking at all of them."""
    ps = [pair.p for pair in pairs if pair.p is not None]
    if len(ps) < 2:
        return list(pairs)
    adjusted = iter(holm(ps))
    return [pair if pair.p is None else replace(pair, p_holm=next(adjusted)) for pair in pairs]


def compare_pair(
    base: Sitting,
    arm: Sitting,
    base_name: str,
    arm_name: str,
    *,
    detailed: bool = False,
    texts: int = 0,
) -> Comparison:
    """One sitting against another; `detailed` has every question that scores otherwise.

    So many of them as `texts` says, each way, come with the question and both replies.
    """
    unlike = unlikes(base, arm)
    named: dict[str, Any] = {
        "exam": base.exam.benchmark,
        "headline": base.exam.other_headline,
        "reader": base.reader,
        "base": base_name,
        "arm": arm_name,
        "base_model": base.model,
        "arm_model": arm.model,
        "unlike": tuple(unlike),
    }
    if any(own.decisive for own in unlike):
        return _side_by_side(named, base, arm)
    pairs = pairs_of(base, arm)
    apart = paired_difference(pairs.scores, pairs.clusters)
    table = Counter(pairs.scores)
    binary = all(score in (0.0, 1.0) for scores in table for score in scores)
    flips = Flips(base, arm, pairs)
    if texts:
        flips.texts = told(base, arm, flips, texts)
    above, below = (
        sum(many for (own, other), many in table.items() if sign * (own - other) > 0)
        for sign in (1, -1)
    )
    gained, lost = (
        tuple(islice((f.id for f in flips if sign * (f.arm - f.base) > 0), LISTED))
        for sign in (1, -1)
    )
    comparison = Comparison(
        **named,
        n=len(pairs.scores),
        left_out=pairs.left_out.total(),
        left_out_why=dict(pairs.left_out),
        only_in_base=pairs.only_in_base,
        only_in_arm=pairs.only_in_arm,
        bounds=pairs.bounds,
        base_rate=mean(pairs.scores.other),
        arm_rate=mean(pairs.scores.own),
        difference=apart.value if apart else None,
        ci95=_ends(apart),
        p=apart.p if apart else None,
        p_log10=apart.p_log10 if apart else None,
        se=apart.se if apart else None,
        deff=apart.deff if apart else 1.0,
        clusters=apart.clusters if apart else None,
        both=table[1.0, 1.0] if binary else None,
        arm_only=above,
        base_only=below,
        neither=table[0.0, 0.0] if binary else None,
        detectable=_detectable(apart, binary=binary),
        needed=_needed(apart, binary=binary),
        subsets=tuple(_subsets(base, pairs)),
        gained=gained,
        lost=lost,
        flips=flips if texts or detailed else (),
        tokens=_change(base, arm, pairs, "tokens"),
        cost=_change(base, arm, pairs, "cost"),
        seconds=_change(base, arm, pairs, "seconds"),
    )
    return replace(comparison, notices=tuple(_notices(base, arm, pairs, comparison)))


def _side_by_side(named: dict[str, Any], base: Sitting, arm: Sitting) -> Comparison:
    """Two scores that are not comparable: each on its own questions, and nothing beside them."""
    notices = [
        notice
        for name, own in ((named["base"], base), (named["arm"], arm))
        for notice in (*doubts(own, name), *unfinished(own, name))
    ]
    if {own.field for own in named["unlike"] if own.decisive} <= {"reader", "reader version"}:
        notices.append(Notice("compare_read_alike", {"reader": named["reader"]}))
    rates = [accuracy_of(own.exam, own.job.tallies[own.place]).value for own in (base, arm)]
    return Comparison(
        **named,
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


def _ends(apart: Difference | None) -> tuple[float, float] | None:
    if apart is None or apart.interval is None:
        return None
    return apart.interval.low, apart.interval.high


def _detectable(apart: Difference | None, *, binary: bool) -> float | None:
    """The smallest difference that so many questions show; by their spread where it is graded."""
    if apart is None or not apart.first_only + apart.second_only:
        return None
    if not binary:
        return None if apart.se is None else detectable_mean(apart.se)
    discordance = (apart.first_only + apart.second_only) / apart.n
    return minimal_detectable_effect(apart.n, discordance, deff=apart.deff)


def _needed(apart: Difference | None, *, binary: bool) -> int | None:
    """How many questions the test of a difference needs: McNemar's where it is that one."""
    if apart is None or not apart.value:
        return None
    one, other = apart.first_only / apart.n, apart.second_only / apart.n
    if binary and apart.clusters is None:
        return items_needed_exactly(one, other)
    if apart.se is None:
        return None
    return planned_items(apart.value, apart.se**2 * apart.n)


def _subsets(base: Sitting, pairs: Pairs) -> Iterator[SubsetChange]:
    """The same for each subset; the p are adjusted, since many subsets are looked at."""
    exam, found = base.exam, []
    for subset in exam.subsets if len(exam.subsets) > 1 else ():
        ends = (bisect_left(pairs.base, place) for place in (subset.start, subset.stop))
        inside = slice(*ends)
        scores, clusters = pairs.scores[inside], pairs.clusters and pairs.clusters[inside]
        if (apart := paired_difference(scores, clusters)) is not None:
            found.append((subset.name, apart, scores))
    adjusted = benjamini_hochberg([apart.p for _, apart, _ in found])
    for (name, apart, scores), p in zip(found, adjusted, strict=True):
        binary = all(score in (0.0, 1.0) for pair in scores for score in pair)
        yield SubsetChange(
            name=name,
            n=apart.n,
            difference=apart.value,
            arm_only=apart.first_only,
            base_only=apart.second_only,
            p=apart.p,
            p_log10=apart.p_log10,
            p_adjusted=p,
            base_rate=mean(scores.other),
            arm_rate=mean(scores.own),
            ci95=_ends(apart),
            detectable=_detectable(apart, binary=binary),
        )


def _change(base: Sitting, arm: Sitting, pairs: Pairs, name: Taken) -> Change | None:
    """How much more an arm takes for a question, with Student's interval over the questions.

    None where one of the two does not tell.
    """
    own, other = arm.taken(name, pairs.arm), base.taken(name, pairs.base)
    if not any(own) or not any(other):
        return None
    apart = array("d", (one - two for one, two in zip(own, other, strict=True)))
    middle = math.fsum(apart) / len(apart)
    ends = None
    if len(apart) > 1:
        spread = math.fsum((each - middle) ** 2 for each in apart) / (len(apart) - 1)
        half = student_t_quantile(0.975, len(apart) - 1) * math.sqrt(spread / len(apart))
        ends = (middle - half, middle + half)
    return Change(mean(other) or 0.0, mean(own) or 0.0, middle, ends)


def unfinished(own: Sitting, name: str) -> Iterator[Notice]:
    """That a sitting has not all its replies, and what that means for a test of a fixed size."""
    job = own.job
    if own.changed:
        facts = {"file": own.changed, "part": job.tallies[0].done}
        yield Notice("compare_data_changed", {"run": name} | facts)
    elif job.missing and (done := job.tallies[0].done):
        yield Notice("compare_unfinished", {"run": name, "part": done, "whole": job.units})
    elif job.missing:
        yield Notice("compare_no_replies", {"run": name})
    if job.stopping is not None and job.stopping.early:
        yield Notice("compare_stopped", {"run": name})


def doubts(own: Sitting, name: str) -> Iterator[Notice]:
    """Yield the notices of a sitting that make its number doubtful, each with its name."""
    for notice in own.doubts():
        yield Notice("compare_doubt", {"run": name, "exam": own.exam.benchmark, "notice": notice})


def unread(own: Sitting, name: str) -> Iterator[Notice]:
    """That in many replies of a sitting no answer was found, which counts as wrong."""
    outcomes = own.job.tallies[own.place].outcome_counts()
    part, whole = outcomes["unparsed"], sum(outcomes.values())
    if part > UNREAD * whole:
        values = {"name": name, "part": part, "whole": whole, "share": part / whole}
        if own.command:
            yield Notice("compare_unread", values | {"run": own.command})
        else:
            yield Notice("compare_unread_of_file", values)


def differences_said(unlike: Sequence[Unlike]) -> Iterator[Notice]:
    """In what two sittings differ, in words; the values are in `unlike` itself.

    Other models have other weights, and one that is behind an endpoint tells little of itself:
    neither needs a word where the models have different names.
    """
    others = any(own.field == "model" for own in unlike)
    told = [
        own for own in unlike if own.field not in PLAIN and not (others and own.field == WEIGHTS)
    ]
    one_sided = [
        own for own in told if own.field in FIXED_FACTS and None in (own.first, own.second)
    ]
    if both := [own.words for own in told if own not in one_sided]:
        yield Notice("compare_otherwise", {"fields": both})
    if one_sided and not others:
        yield Notice("compare_known_of_one", {"fields": [own.words for own in one_sided]})


def _notices(base: Sitting, arm: Sitting, pairs: Pairs, found: Comparison) -> Iterator[Notice]:
    """What could mislead about a comparison."""
    one_run = base.is_of(arm)
    if base.name and base.arm == arm.arm and one_run:
        yield Notice("compare_itself", {"base": found.base})
    # Arms of one run are compared because their tools differ.
    yield from differences_said([u for u in found.unlike if not (one_run and u.field == TOOLS)])
    for name, own in ((found.base, base), (found.arm, arm)):
        if own.partial:
            yield Notice("compare_partly_known", {"name": name})
        yield from doubts(own, name)
        yield from unfinished(own, name)
        yield from unread(own, name)
    if pairs.other_gold and not varied_conditions(base, arm):
        yield Notice("compare_gold", {"n": pairs.other_gold})
    part, whole = found.left_out, found.n + found.left_out
    if part > MOST_UNGRADED * whole:
        yield Notice("compare_selection", {"part": part, "whole": whole})
    if found.clusters is not None and found.clusters < FEW_CLUSTERS:
        yield Notice("few_clusters", {"clusters": found.clusters})


class Differing(msgspec.Struct, frozen=True, kw_only=True):
    """In what two sittings differ."""

    exam: str
    first: str
    second: str
    unlike: tuple[Unlike, ...]


def differing(first: Source, second: Source, **how: Any) -> list[Differing]:
    """In what two sources differ, exam by exam; settings as those of `compare`."""
    one, other = sittings_of(first, **how), sittings_of(second, **how)
    refuse_unused((*one, *other), **how)
    pairs, _ = matched(one, other)
    return [
        Differing(
            exam=base.exam.benchmark,
            first=f"{base.name} · {base.arm}" if base.arm else base.name,
            second=f"{arm.name} · {arm.arm}" if arm.arm else arm.name,
            unlike=tuple(unlikes(base, arm)),
        )
        for base, arm in pairs
    ]
