"""The words and marks of a comparison, once for the terminal, the page and the viewer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Protocol

from keju.messages import field_word, format_p, value_word
from keju.report.format import UNKNOWN, Labels, count
from keju.results.gate_rows import GateRow
from keju.results.schema import SIGNIFICANT, Change, Comparison, Flip, SubsetChange, Unlike, shown
from keju.stats.estimate import Ends

TAKEN = ("tokens", "cost", "seconds")
NAMED = 5
"""Subsets that a sentence names."""
_SCALES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8)


def pair_title(pair: Comparison, labels: Labels) -> str:
    """The exam, and who is compared with whom."""
    return f"{pair.exam} · {labels('arms.against', arm=pair.arm, base=pair.base)}"


def pair_readers(pair: Comparison) -> str:
    """Who read the answers of a pair; both where that is why it is not comparable."""
    for own in pair.unlike:
        if own.field == "reader":
            return f"{shown(own.first)} / {shown(own.second)}"
    return pair.reader


def field_name(own: Unlike, labels: Labels) -> str:
    """What two sittings have otherwise, in words; a setting by its own name."""
    name, language = own.name, labels.language
    return field_word(name, language) if isinstance(name, str) else name.text(language)


def field_values(own: Unlike, labels: Labels) -> tuple[str, str]:
    """What each of them has there, in a few words."""
    first, second = (value_word(shown(each), labels.language) for each in (own.first, own.second))
    return first, second


def points(value: float | None) -> str:
    """A difference in points: ``+6.94``."""
    return UNKNOWN if value is None else f"{100 * value:+.2f}"


def point_ends(ends: Ends | None) -> str:
    """The interval of a difference in points: ``+3.56 … +10.30``."""
    return UNKNOWN if ends is None else f"{100 * ends[0]:+.2f} … {100 * ends[1]:+.2f}"


def detectable(pair: Comparison | SubsetChange) -> str:
    """The difference that the questions could have shown, in points."""
    return UNKNOWN if pair.detectable is None else f"{100 * pair.detectable:.2f}"


def p_value(value: float | None) -> str:
    """A p in three digits, ``< 0.001`` for smaller ones."""
    return UNKNOWN if value is None else format_p(value, 3)


def gained(flips: Iterable[Flip], most: int) -> list[Flip]:
    """The first questions that score more than in the base."""
    return list(islice((flip for flip in flips if flip.arm > flip.base), most))


def lost(flips: Iterable[Flip], most: int) -> list[Flip]:
    """The first questions that score less than in the base."""
    return list(islice((flip for flip in flips if flip.arm < flip.base), most))


def answers(flip: Flip, labels: Labels) -> tuple[str, str]:
    """What was read in the base and in the other; the outcome where nothing was."""
    return (
        flip.base_answer or labels(f"outcome.{flip.base_outcome}"),
        flip.arm_answer or labels(f"outcome.{flip.arm_outcome}"),
    )


def taken(pair: Comparison, labels: Labels) -> Iterator[tuple[str, str, str, str, str]]:
    """What a question takes: tokens, money, time; name, base, other, difference, interval."""
    for name in TAKEN:
        change: Change | None = getattr(pair, name)
        if change is not None:
            ends = change.ci95
            yield (
                labels(f"compare.{name}"),
                f"{change.base:,.4g}",
                f"{change.arm:,.4g}",
                f"{change.difference:+,.4g}",
                UNKNOWN if ends is None else f"{ends[0]:+,.4g} … {ends[1]:+,.4g}",
            )


def mean_words(own: Comparison | GateRow, labels: Labels) -> str:
    """Which mean is tested, where the headline of the exam is another one; else empty."""
    if not own.headline:
        return ""
    title = labels.metric(own.headline, "")
    return labels("compare.mean", exam=own.exam, headline=title)


def at_the_edge(pair: Comparison, labels: Labels) -> str:
    """Which one decides where the interval and p say otherwise of a pair; empty where they agree.

    They are made by different methods. See `Comparison.verdict`.
    """
    p = pair.p if pair.p_holm is None else pair.p_holm
    if pair.obstacle is not None or pair.ci95 is None or p is None:
        return ""
    apart = not pair.ci95[0] <= 0 <= pair.ci95[1]
    if apart == (p < SIGNIFICANT):
        return ""
    if not apart:
        return labels("compare.edge_interval", p=p_value(p))
    adjusted = pair.p is not None and pair.p < SIGNIFICANT
    return labels("compare.edge_holm" if adjusted else "compare.edge_p", p=p_value(p))


def beside(pair: Comparison, labels: Labels) -> Iterator[str]:
    """What stands beside a difference: what decides, which subsets differ, what it leaves out."""
    if words := mean_words(pair, labels):
        yield words
    if edge := at_the_edge(pair, labels):
        yield edge
    clear = [row for row in pair.subsets if row.p_adjusted < SIGNIFICANT]
    if clear:
        first = sorted(clear, key=lambda row: row.p_adjusted)[:NAMED]
        listed = labels("list_separator").join(
            f"{row.name} {100 * row.difference:+.1f}" for row in first
        )
        counts = {"n": len(clear), "whole": len(pair.subsets)}
        key = "compare.subsets_first" if len(clear) > len(first) else "compare.subsets"
        yield labels(key, listed=listed, **counts)
    elif pair.subsets:
        yield labels("compare.no_subsets", whole=len(pair.subsets))
    if pair.only_in_base or pair.only_in_arm:
        counts_alone = {"base": count(pair.only_in_base), "arm": count(pair.only_in_arm)}
        yield labels("compare.unshared", **counts_alone)
    if pair.left_out:
        why = labels("list_separator").join(
            f"{labels(f'outcome.{outcome}')} {n}" for outcome, n in pair.left_out_why.items()
        )
        yield labels("compare.left_out", n=count(pair.left_out), why=why)
    if pair.bounds:
        low, high = (100 * end for end in pair.bounds)
        yield labels("compare.bounds", low=low, high=high)


# Differences as marks on a scale that has 0 in its middle.


class Differing(Protocol):
    """What has a difference and its interval: a pair, a subset."""

    @property
    def difference(self) -> float | None: ...
    @property
    def ci95(self) -> Ends | None: ...


def scale_of(rows: Iterable[Differing]) -> float:
    """How far the scale goes on both sides: a round number that holds every interval."""
    ends = (
        abs(end)
        for row in rows
        if row.difference is not None
        for end in (row.difference, *(row.ci95 or ()))
    )
    furthest = max(ends, default=0.0)
    return next((scale for scale in _SCALES if scale >= furthest), 1.0)


def difference_ticks(scale: float) -> list[tuple[float, str]]:
    """Places on the scale and what stands there."""
    ends = (-scale, -scale / 2, 0.0, scale / 2, scale)
    return [((end + scale) / (2 * scale), f"{100 * end:+.3g}" if end else "0") for end in ends]


def difference_mark(row: Differing, p: float | None, scale: float) -> dict[str, Any]:
    """A difference and its interval, coloured where it is more than noise."""

    def place(value: float) -> float:
        return (value + scale) / (2 * scale)

    told = p is not None and p < SIGNIFICANT
    above = (row.difference or 0.0) > 0
    ends: Sequence[float] | None = row.ci95
    return {
        "kind": "point",
        "value": None if row.difference is None else place(row.difference),
        "ends": tuple(map(place, ends)) if ends else None,
        "bounds": None,
        "chance": None,
        "class_": ("above" if above else "below") if told else "tie",
    }


# A comparison made ready for templates (``templates/pairs.html.j2``).


def shown_pairs(pairs: Sequence[Comparison], labels: Labels) -> dict[str, Any]:
    """Comparisons in words and marks, and the scale of all of them together.

    `href` of a subset is for the page to fill in.
    """
    scale = scale_of(pairs)
    shown = [
        _shown_pair(pair, labels, number) | {"overview": _overview(pair, scale)}
        for number, pair in enumerate(pairs)
    ]
    return {"pairs": shown, "overview_ticks": difference_ticks(scale)}


def _overview(pair: Comparison, scale: float) -> dict[str, Any]:
    p = pair.p if pair.p_holm is None else pair.p_holm
    return {
        "words": f"{points(pair.difference)} ({point_ends(pair.ci95)})",
        "mark": difference_mark(pair, p, scale),
    }


def _shown_pair(pair: Comparison, labels: Labels, number: int) -> dict[str, Any]:
    language = labels.language
    scale = scale_of(pair.subsets)
    key = "compare.asked" if pair.obstacle is None else "compare.asked_apart"
    return {
        "pair": pair,
        "number": number,
        "anchor": f"pair-{number}",
        "title": pair_title(pair, labels),
        "reader": pair_readers(pair),
        "asked": labels(key, n=pair.n, exam=pair.exam, reader=pair.reader),
        "conclusion": pair.conclusion.text(language),
        "notices": [notice.text(language) for notice in pair.notices],
        "class_": pair.verdict if pair.verdict in ("above", "below") else "tie",
        "difference": points(pair.difference),
        "interval": point_ends(pair.ci95),
        "p": p_value(pair.p),
        "p_holm": p_value(pair.p_holm),
        "models": len({pair.base_model, pair.arm_model}) > 1,
        "sides": [
            (pair.base, pair.base_model, pair.base_rate, pair.base_only),
            (pair.arm, pair.arm_model, pair.arm_rate, pair.arm_only),
        ],
        "beside": list(beside(pair, labels)),
        "taken": list(taken(pair, labels)),
        "ticks": difference_ticks(scale),
        "subsets": [_shown_subset(row, scale) for row in pair.subsets],
        "unlike": [
            (field_name(own, labels), *field_values(own, labels), own.decisive)
            for own in pair.unlike
        ],
    }


def _shown_subset(row: SubsetChange, scale: float) -> dict[str, Any]:
    return {
        "name": row.name,
        "href": "",
        "n": row.n,
        "base_rate": row.base_rate,
        "arm_rate": row.arm_rate,
        "points": points(row.difference),
        "ends": point_ends(row.ci95),
        "words": f"{points(row.difference)} ({point_ends(row.ci95)})",
        "p": p_value(row.p_adjusted),
        "told": row.p_adjusted < SIGNIFICANT,
        "gained": row.arm_only,
        "lost": row.base_only,
        "detectable": detectable(row),
        "mark": difference_mark(row, row.p_adjusted, scale),
    }
