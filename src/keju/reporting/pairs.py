"""Describe comparisons in words and marks for the terminal, the page and the viewer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Protocol

from keju.messages import field_word, format_p, value_word
from keju.reporting.format import UNKNOWN, Labels, count, decimals
from keju.results.gate_rows import GateRow
from keju.results.schema import (
    SIGNIFICANT,
    ChangedQuestion,
    Comparison,
    CostChange,
    Mismatch,
    SubsetChange,
    quote_fact,
)
from keju.stats.estimate import Ends

RESOURCES = ("tokens", "cost", "seconds")
SUBSETS_NAMED = 5
"""The number of subsets that a sentence names."""
_SCALES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8)


def pair_title(pair: Comparison, labels: Labels) -> str:
    """Return the exam and the names of both sides."""
    return f"{pair.exam} · {labels('arms.against', arm=pair.arm, base=pair.base)}"


def pair_readers(pair: Comparison) -> str:
    """Return the reader of a pair, or both readers if they make the pair incomparable."""
    for mismatch in pair.unlike:
        if mismatch.field == "reader":
            return f"{quote_fact(mismatch.first)} / {quote_fact(mismatch.second)}"
    return pair.reader


def field_name(mismatch: Mismatch, labels: Labels) -> str:
    """Return the name of a setting in which two runs differ."""
    name, language = mismatch.name, labels.language
    return field_word(name, language) if isinstance(name, str) else name.text(language)


def field_values(mismatch: Mismatch, labels: Labels) -> tuple[str, str]:
    """Return both values of such a setting in a few words."""
    left_value, right_value = (
        value_word(quote_fact(value), labels.language)
        for value in (mismatch.first, mismatch.second)
    )
    return left_value, right_value


def points(value: float | None, digits: int | None = None) -> str:
    """Format a difference in percentage points: ``+6.94``."""
    digits = decimals() if digits is None else digits
    return UNKNOWN if value is None else f"{100 * value:+.{digits}f}"


def point_ends(ends: Ends | None, digits: int | None = None) -> str:
    """Format the interval of a difference in percentage points: ``+3.56 … +10.30``."""
    return UNKNOWN if ends is None else " … ".join(points(end, digits) for end in ends)


def detectable_points(pair: Comparison | SubsetChange, digits: int | None = None) -> str:
    """Return the smallest difference that the questions could detect, in percentage points."""
    digits = decimals() if digits is None else digits
    return UNKNOWN if pair.detectable is None else f"{100 * pair.detectable:.{digits}f}"


def p_value(value: float | None) -> str:
    """Format p with three digits, and smaller values as ``< 0.001``."""
    return UNKNOWN if value is None else format_p(value, 3)


def first_gains(flips: Iterable[ChangedQuestion], limit: int) -> list[ChangedQuestion]:
    """Return the first questions that score more than in the base."""
    return list(islice((flip for flip in flips if flip.arm > flip.base), limit))


def first_losses(flips: Iterable[ChangedQuestion], limit: int) -> list[ChangedQuestion]:
    """Return the first questions that score less than in the base."""
    return list(islice((flip for flip in flips if flip.arm < flip.base), limit))


def answers(flip: ChangedQuestion, labels: Labels) -> tuple[str, str]:
    """Return the answers of the base and of the arm; the outcome replaces a missing answer."""
    return (
        flip.base_answer or labels(f"outcome.{flip.base_outcome}"),
        flip.arm_answer or labels(f"outcome.{flip.arm_outcome}"),
    )


def resource_rows(pair: Comparison, labels: Labels) -> Iterator[tuple[str, str, str, str, str]]:
    """Yield the tokens, cost and time per question: name, base, arm, difference, interval."""
    for name in RESOURCES:
        change: CostChange | None = getattr(pair, name)
        if change is not None:
            ends = change.ci95
            yield (
                labels(f"compare.{name}"),
                f"{change.base:,.4g}",
                f"{change.arm:,.4g}",
                f"{change.difference:+,.4g}",
                UNKNOWN if ends is None else f"{ends[0]:+,.4g} … {ends[1]:+,.4g}",
            )


def describe_tested_mean(tested_row: Comparison | GateRow, labels: Labels) -> str:
    """Describe which mean is tested if the exam's headline is another metric; otherwise empty."""
    if not tested_row.headline:
        return ""
    title = labels.metric(tested_row.headline, "")
    return labels("compare.mean", exam=tested_row.exam, headline=title)


def explain_borderline(pair: Comparison, labels: Labels) -> str:
    """Explain which criterion decides if the interval and p of a pair disagree; otherwise empty.

    They come from different methods. See `Comparison.verdict`.
    """
    p = pair.p if pair.p_holm is None else pair.p_holm
    if pair.obstacle is not None or pair.ci95 is None or p is None:
        return ""
    excludes_zero = not pair.ci95[0] <= 0 <= pair.ci95[1]
    if excludes_zero == (p < SIGNIFICANT):
        return ""
    if not excludes_zero:
        return labels("compare.edge_interval", p=p_value(p))
    adjusted = pair.p is not None and pair.p < SIGNIFICANT
    return labels("compare.edge_holm" if adjusted else "compare.edge_p", p=p_value(p))


def comparison_notes(pair: Comparison, labels: Labels) -> Iterator[str]:
    """Yield notes: the decisive criterion, the subsets that differ, the questions left out."""
    if words := describe_tested_mean(pair, labels):
        yield words
    if edge := explain_borderline(pair, labels):
        yield edge
    if subset_words := _describe_subset_changes(pair, labels):
        yield subset_words
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


def _describe_subset_changes(pair: Comparison, labels: Labels) -> str:
    """Name the subsets that differ most; empty without subsets."""
    significant_subsets = [row for row in pair.subsets if row.p_adjusted < SIGNIFICANT]
    if not significant_subsets:
        return labels("compare.no_subsets", whole=len(pair.subsets)) if pair.subsets else ""
    clearest = sorted(significant_subsets, key=lambda row: row.p_adjusted)[:SUBSETS_NAMED]
    listed = labels("list_separator").join(
        f"{row.name} {100 * row.difference:+.1f}" for row in clearest
    )
    counts = {"n": len(significant_subsets), "whole": len(pair.subsets)}
    has_more = len(significant_subsets) > len(clearest)
    return labels(
        "compare.subsets_first" if has_more else "compare.subsets", listed=listed, **counts
    )


# Differences as marks on a scale with 0 in the middle.


class HasDifference(Protocol):
    """An object that has a difference and its interval, such as a pair or a subset."""

    @property
    def difference(self) -> float | None: ...
    @property
    def ci95(self) -> Ends | None: ...


def scale_of(rows: Iterable[HasDifference]) -> float:
    """Return the length of the scale on both sides: a round number that covers every interval."""
    ends = (
        abs(end)
        for row in rows
        if row.difference is not None
        for end in (row.difference, *(row.ci95 or ()))
    )
    furthest = max(ends, default=0.0)
    return next((scale for scale in _SCALES if scale >= furthest), 1.0)


def difference_ticks(scale: float) -> list[tuple[float, str]]:
    """Return places on the scale and their labels."""
    ends = (-scale, -scale / 2, 0.0, scale / 2, scale)
    return [((end + scale) / (2 * scale), f"{100 * end:+.3g}" if end else "0") for end in ends]


def difference_mark(row: HasDifference, p: float | None, scale: float) -> dict[str, Any]:
    """Return the mark of a difference and its interval, with a colour if it is significant."""

    def place(value: float) -> float:
        return (value + scale) / (2 * scale)

    is_significant = p is not None and p < SIGNIFICANT
    above = (row.difference or 0.0) > 0
    ends: Sequence[float] | None = row.ci95
    return {
        "kind": "point",
        "value": None if row.difference is None else place(row.difference),
        "ends": tuple(map(place, ends)) if ends else None,
        "bounds": None,
        "chance": None,
        "class_": ("above" if above else "below") if is_significant else "tie",
    }
