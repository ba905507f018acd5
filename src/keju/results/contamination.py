"""Published questions against fresh ones of the same kinds: does a model know the published ones?

No question is paired: both sides have their own. Each subset is compared with its counterpart, and
the exam over its subsets. That the two sides are put and read alike is asked first, as for pairs
(`keju.results.compare`); worked examples are other ones by their nature, which is said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, Literal

import msgspec

from keju.benchmarks import registry
from keju.errors import Notice, UsageError
from keju.results.compare import differences_said
from keju.results.schema import DATA, SCHEMA, Unlike
from keju.results.sittings import Sitting, Source, sittings_of
from keju.stats.estimate import Ends
from keju.stats.intervals import Interval
from keju.stats.paired import SIGNIFICANT, benjamini_hochberg
from keju.stats.unpaired import Apart, Group, group_difference, stratified_difference

OWN = frozenset({"exam", "seed", "difficulty", "lang", "generator", "fresh", "shuffle"})
"""Conditions that published and fresh questions have otherwise by their nature."""
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
    """One-sided: Fisher's exact one where scores are right or wrong."""
    p_adjusted: float
    """With the rate of false discoveries over all subsets controlled."""


class Contamination(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What ``keju compare --contamination`` finds."""

    exam: str
    fresh_exam: str
    published_run: str
    fresh_run: str
    model: str
    protocol: str
    reader: str
    published: float | None
    """The scores, with subsets weighed as in the difference."""
    fresh: float | None
    difference: float | None
    ci95: Ends | None
    p: float | None
    """One-sided: the chance of so large a difference for a model without a memory."""
    subsets: tuple[SubsetGap, ...] = ()
    left_out: int = 0
    """Questions without a grade, in subsets that both sides have."""
    faulty: int = 0
    """Published questions of these that are known to be faulty, and are left out."""
    uncompared: tuple[str, ...] = ()
    """Subsets that only one side has."""
    unlike: tuple[Unlike, ...] = ()
    """In what the two differ beyond their nature; one that is decisive makes them incomparable."""
    notices: tuple[Notice, ...] = ()

    @property
    def obstacle(self) -> Unlike | None:
        """The weightiest thing that makes them incomparable."""
        return next((own for own in self.unlike if own.decisive), None)

    @property
    def verdict(self) -> Literal["higher", "not shown", "nothing", "not comparable"]:
        """Whether the published questions are shown to go better."""
        if self.obstacle is not None:
            return "not comparable"
        if self.p is None:
            return "nothing"
        return "higher" if self.p < SIGNIFICANT else "not shown"

    @property
    def by_heart(self) -> Ends | None:
        """The share of published questions that, known by heart, would make the difference."""
        if self.ci95 is None or self.fresh is None or self.fresh >= 1:
            return None
        low, high = (max(0.0, min(1.0, end / (1 - self.fresh))) for end in self.ci95)
        return low, high

    @property
    def conclusions(self) -> tuple[Notice, ...]:
        """What the comparison shows, and what it does not, in words."""
        names: dict[str, Any] = {"exam": self.exam, "model": self.model}
        if unlike := self.obstacle:
            names = {"base": self.published_run, "arm": self.fresh_run}
            return (Notice(*unlike.told("compare_unlike", **names)),)
        if self.difference is None or self.ci95 is None:
            return (Notice("contamination_nothing", names),)
        low, high = self.ci95
        values = names | {"points": 100 * self.difference, "p": self.p}
        values |= {"low": 100 * low, "high": 100 * high}
        code = "contamination_higher" if self.verdict == "higher" else "contamination_not_shown"
        found = [Notice(code, values)]
        if self.verdict == "higher" and self.by_heart is not None:
            least, most = (100 * end for end in self.by_heart)
            found.append(Notice("contamination_by_heart", {"low": least, "high": most}))
        found.append(Notice("contamination_meaning"))
        return tuple(found)

    @property
    def document(self) -> dict[str, Any]:
        """The plain document, as ``--json`` prints it."""
        own: dict[str, Any] = msgspec.to_builtins(self)
        return {
            "schema": SCHEMA,
            **own,
            "comparable": self.obstacle is None,
            "verdict": self.verdict,
            "by_heart": self.by_heart,
            "conclusions": [notice.text() for notice in self.conclusions],
            "warnings": [notice.text() for notice in self.notices],
        }


def contamination(
    published: Source,
    fresh: Source,
    *,
    reader: str | None = None,
    data_dir: str | None = None,
    work_dir: str | None = None,
) -> Contamination:
    """Compare a model's run on a published exam with its run on fresh questions of that kind."""
    first, second = (
        sittings_of(source, reader=reader, data_dir=data_dir, work_dir=work_dir)
        for source in (published, fresh)
    )
    one, two = _matched(first, second, published, fresh)
    unlike = tuple(_unlikes(one, two))
    named: dict[str, Any] = {
        "exam": one.exam.benchmark,
        "fresh_exam": two.exam.benchmark,
        "published_run": one.name,
        "fresh_run": two.name,
        "model": one.model,
        "protocol": one.protocol,
        "reader": one.reader,
        "unlike": unlike,
    }
    if any(own.decisive for own in unlike):
        nothing: Any = dict.fromkeys(("published", "fresh", "difference", "ci95", "p"))
        return Contamination(**named, **nothing)
    ours, theirs = _scores(one), _scores(two)
    groups = {
        name: (Group.of(ours.scores[name]), Group.of(theirs.scores[name]))
        for name in ours.scores
        if name in theirs.scores
    }
    shared = ours.subsets & theirs.subsets
    alone = [name for name in (*ours.scores, *theirs.scores) if name not in groups]
    whole, rates = stratified_difference(list(groups.values())), _rates(list(groups.values()))
    return Contamination(
        **named,
        published=rates[0],
        fresh=rates[1],
        difference=None if whole is None else whole.value,
        ci95=None if whole is None else _ends(whole.interval),
        p=None if whole is None else whole.p,
        subsets=tuple(_gaps(groups)),
        left_out=sum(side.left_out[name] for side in (ours, theirs) for name in shared),
        faulty=sum(ours.faulty[name] for name in shared),
        uncompared=tuple(dict.fromkeys(alone)),
        notices=tuple(_notices(one, two, unlike)),
    )


def _matched(
    first: Sequence[Sitting], second: Sequence[Sitting], published: Source, fresh: Source
) -> tuple[Sitting, Sitting]:
    """The sitting of a published exam, and that of fresh questions of its kind as hard as those."""
    names = {"published": str(published), "fresh": str(fresh)}
    pairs = [
        (one, two)
        for one, two in product(first, second)
        if not _is_fresh(one)
        and _is_fresh(two)
        and one.exam.benchmark
        in (two.exam.benchmark, registry.get(two.exam.benchmark).fresh_of or None)
    ]
    if not pairs:
        raise UsageError("contamination_no_pair", **names)
    as_hard = [pair for pair in pairs if _difficulty(pair[1]) == PUBLISHED_DIFFICULTY]
    if not as_hard:
        raise UsageError("contamination_difficulty", **names)
    if len(as_hard) > 1:
        arms = [*dict.fromkeys(own.arm for pair in as_hard for own in pair if own.arm)]
        raise UsageError("contamination_arms", arms=arms, **names)
    return as_hard[0]


def _is_fresh(sitting: Sitting) -> bool:
    return _difficulty(sitting) is not None


def _difficulty(sitting: Sitting) -> float | None:
    """How hard fresh questions are; None for published ones."""
    if sitting.exam.difficulty is not None:
        return sitting.exam.difficulty
    made: dict[str, float] = sitting.exam.settings.get("fresh") or {}
    return made.get("difficulty")


def _unlikes(one: Sitting, two: Sitting) -> Iterator[Unlike]:
    """In what two sittings differ beyond what makes the one published and the other fresh."""
    partial = one.partial or two.partial
    language = two.exam.settings.get("lang", "en")
    if language != "en":
        yield Unlike("lang", "en", language, True)
    for first, second, decisive in (
        (one.conditions, two.conditions, True),
        (one.circumstances, two.circumstances, False),
    ):
        for name in dict.fromkeys([*first, *second]):
            known = name in first and name in second
            if name in OWN | CHOOSING or name.startswith(DATA) or (partial and not known):
                continue
            if first.get(name) != second.get(name):
                yield Unlike(name, first.get(name), second.get(name), decisive or name == "model")


class _Scores(msgspec.Struct):
    """By subset: the scores, and how many questions have none or do not count."""

    scores: dict[str, list[float]] = {}
    left_out: Counter[str] = msgspec.field(default_factory=Counter)
    faulty: Counter[str] = msgspec.field(default_factory=Counter)

    @property
    def subsets(self) -> set[str]:
        """Those that were asked."""
        return {*self.scores, *self.left_out, *self.faulty}


def _scores(sitting: Sitting) -> _Scores:
    """The scores of a sitting by subset, without questions that are known to be faulty."""
    found = _Scores()
    for item in sitting:
        if item.id in sitting.exam.errata:
            found.faulty[item.subset] += 1
        elif item.score is not None:
            found.scores.setdefault(item.subset, []).append(item.score)
        elif item.outcome is not None:
            found.left_out[item.subset] += 1
    return found


def _rates(groups: Sequence[tuple[Group, Group]]) -> tuple[float | None, float | None]:
    """The mean scores of both sides, with subsets weighed as in their difference."""
    weights = [one.n * two.n / (one.n + two.n) for one, two in groups]
    if not sum(weights):
        return None, None
    first, second = (
        sum(weight * pair[side].mean for weight, pair in zip(weights, groups, strict=True))
        / sum(weights)
        for side in (0, 1)
    )
    return first, second


def _gaps(groups: dict[str, tuple[Group, Group]]) -> Iterator[SubsetGap]:
    found: dict[str, Apart] = {}
    for name, pair in groups.items():
        if (own := group_difference(*pair)) is not None:
            found[name] = own
    adjusted = benjamini_hochberg([own.p for own in found.values()])
    for (name, own), p in zip(found.items(), adjusted, strict=True):
        one, two = groups[name]
        yield SubsetGap(
            name=name,
            published_n=one.n,
            fresh_n=two.n,
            published=one.mean,
            fresh=two.mean,
            difference=own.value,
            ci95=_ends(own.interval),
            p=own.p,
            p_adjusted=p,
        )


def _ends(interval: Interval) -> Ends:
    return interval.low, interval.high


def _notices(one: Sitting, two: Sitting, unlike: Sequence[Unlike]) -> Iterator[Notice]:
    """What could mislead about the comparison."""
    yield from differences_said(unlike)
    for own in (one, two):
        if own.partial:
            yield Notice("compare_partly_known", {"name": own.name})
    if one.exam.settings.get("few_shot_num"):
        yield Notice("contamination_examples")
