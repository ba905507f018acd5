"""The contexts of comparisons for templates (``templates/pairs.html.j2``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from keju.reporting.assertions import assertion_rows, change_titles
from keju.reporting.compare_summary import SideNames
from keju.reporting.findings import capitalised, finding_of
from keju.reporting.format import Labels, count
from keju.reporting.page_numbers import join_sentences
from keju.reporting.pairs import (
    comparison_notes,
    detectable_points,
    difference_mark,
    difference_ticks,
    field_name,
    field_values,
    p_value,
    pair_readers,
    pair_title,
    point_ends,
    points,
    resource_rows,
    scale_of,
)
from keju.reporting.row_tables import ORDERS
from keju.reporting.titles import title_of
from keju.results.schema import SIGNIFICANT, Comparison, SubsetChange

DIGITS = 1
"""The decimals of percentage points on pages."""


def pairs_context(
    pairs: Sequence[Comparison], labels: Labels, *, is_static: bool = False
) -> dict[str, Any]:
    """Return the context of comparisons and the scale that all of them share.

    The page sets `href` of each subset. A static page gets the subsets in every order.
    """
    scale = scale_of(pairs)
    pair_contexts = [
        _pair_context(pair, labels, number, is_static)
        | {"overview": _overview(pair, scale), "runs": (original.base, original.arm)}
        for number, (original, pair) in enumerate(zip(pairs, name_sides(pairs), strict=True))
    ]
    return {"pairs": pair_contexts, "overview_ticks": difference_ticks(scale)}


def name_sides(pairs: Sequence[Comparison]) -> list[Comparison]:
    """Return the pairs with the names of models, or of runs where two models are alike, and with
    the titles of exams."""
    if not pairs:
        return []
    names = SideNames(pairs)
    return [
        replace(pair, base=names.base(pair), arm=names.arm(pair), exam=title_of(pair.exam))
        for pair in pairs
    ]


def _overview(pair: Comparison, scale: float) -> dict[str, Any]:
    p = pair.p if pair.p_holm is None else pair.p_holm
    return {
        "words": f"{points(pair.difference, DIGITS)} ({point_ends(pair.ci95, DIGITS)})",
        "mark": difference_mark(pair, p, scale),
    }


def _pair_context(pair: Comparison, labels: Labels, number: int, is_static: bool) -> dict[str, Any]:
    language = labels.language
    scale = scale_of(pair.subsets)
    key = "compare.asked" if pair.obstacle is None else "compare.asked_apart"
    subsets = [_subset_context(row, scale) for row in pair.subsets]
    return {
        "pair": pair,
        "number": number,
        "anchor": f"pair-{number}",
        "title": pair_title(pair, labels),
        "reader": pair_readers(pair),
        "summary": join_sentences(
            [
                labels(key, n=count(pair.n), exam=pair.exam, reader=pair.reader),
                _conclusion(pair, labels),
            ],
            labels,
        ),
        "verdict": describe_verdict(pair, labels),
        "notices": [finding_of(notice, notice.text(language), labels) for notice in pair.notices],
        "class_": pair.verdict if pair.verdict in ("above", "below") else "tie",
        "difference": points(pair.difference, DIGITS),
        "interval": point_ends(pair.ci95, DIGITS),
        "p": p_value(pair.p),
        "p_holm": p_value(pair.p_holm),
        "models": len({pair.base_model, pair.arm_model}) > 1,
        "sides": [
            (pair.base, pair.base_model, pair.base_rate, pair.base_only),
            (pair.arm, pair.arm_model, pair.arm_rate, pair.arm_only),
        ],
        "notes": list(comparison_notes(pair, labels)),
        "resources": list(resource_rows(pair, labels)),
        "assertion_titles": change_titles(labels),
        "assertions": assertion_rows(pair, labels, DIGITS),
        "ticks": difference_ticks(scale),
        "subsets": subsets,
        "subset_orders": _orders(subsets) if is_static else [(ORDERS[0], subsets)],
        "mismatches": [
            (field_name(mismatch, labels), *field_values(mismatch, labels), mismatch.decisive)
            for mismatch in pair.unlike
        ],
    }


def describe_verdict(pair: Comparison, labels: Labels) -> str:
    """Return which side is better in one short sentence."""
    return labels(f"page.verdict_line.{pair.verdict}", arm=pair.arm, base=pair.base)


def _conclusion(pair: Comparison, labels: Labels) -> str:
    """Return the conclusion as a sentence; a name at its beginning keeps its case."""
    text = pair.conclusion.text(labels.language)
    text = text if text.startswith((pair.arm, pair.base)) else capitalised(text)
    return text if text.endswith(labels("page.full_stop")) else text + labels("page.full_stop")


def _orders(subsets: list[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return the subsets in every order."""
    if len(subsets) < 2:
        return [(ORDERS[0], subsets)]
    rising = sorted(subsets, key=lambda row: float(row["difference"]))
    return list(zip(ORDERS, (subsets, rising, rising[::-1]), strict=True))


def _subset_context(row: SubsetChange, scale: float) -> dict[str, Any]:
    return {
        "name": row.name,
        "href": "",
        "n": row.n,
        "difference": row.difference,
        "base_rate": row.base_rate,
        "arm_rate": row.arm_rate,
        "points": points(row.difference, DIGITS),
        "ends": point_ends(row.ci95, DIGITS),
        "words": f"{points(row.difference, DIGITS)} ({point_ends(row.ci95, DIGITS)})",
        "p_adjusted": row.p_adjusted,
        "p": p_value(row.p_adjusted),
        "significant": row.p_adjusted < SIGNIFICANT,
        "gained": row.arm_only,
        "lost": row.base_only,
        "detectable": detectable_points(row, DIGITS),
        "mark": difference_mark(row, row.p_adjusted, scale),
    }
