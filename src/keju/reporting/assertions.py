"""Show the scores of assertions about tools and state, for the terminal and for pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from keju.reporting.arms import TitledTable
from keju.reporting.format import Labels, count, interval, percent
from keju.reporting.pairs import p_value, pair_title, point_ends, points
from keju.results.assertions import in_order
from keju.results.gate_rows import GateRow
from keju.results.schema import AssertionChange, Comparison, Results
from keju.types import Score


def assertion_title(name: str, labels: Labels) -> str:
    """Return the title of an assertion: ``tools called``."""
    return labels.get(f"assertion.{name}", name)


def assertion_table(results: Results, labels: Labels, digits: int = 2) -> TitledTable:
    """Return a row for each arm with tools and assertion, with its score; empty without them."""
    titles = [labels(f"arms.{name}") for name in ("arm", "assertion", "rate", "interval", "n")]
    rows = [
        [
            entry.full_name,
            assertion_title(name, labels),
            percent(metric.value, digits),
            interval(metric.ci95, digits),
            count(metric.n),
        ]
        for entry in results.benchmarks
        for name in in_order(entry.metrics)
        if entry.tools is not None and (metric := entry.metrics[name]).n
    ]
    return TitledTable(titles, rows)


def assertion_rows(pair: Comparison, labels: Labels, digits: int = 2) -> list[list[str]]:
    """Return a row for each assertion of a comparison, as `change_titles` names its columns."""
    return [_change_cells(change, labels, digits) for change in pair.assertions]


def change_titles(labels: Labels) -> list[str]:
    """Return the titles of the columns of `assertion_rows`."""
    names = "assertion", "n", "base_rate", "arm_rate", "points", "interval", "p"
    return [labels("arms.assertion"), *(labels(f"compare.{name}") for name in names[1:])]


def _change_cells(change: AssertionChange, labels: Labels, digits: int) -> list[str]:
    return [
        assertion_title(change.name, labels),
        count(change.n),
        percent(change.base_rate, digits),
        percent(change.arm_rate, digits),
        points(change.difference, digits),
        point_ends(change.ci95, digits),
        p_value(change.p),
    ]


def pair_assertion_table(pairs: Sequence[Comparison], labels: Labels) -> TitledTable:
    """Return a row for each pair and assertion; empty without assertions."""
    rows = [
        [pair_title(pair, labels), *cells]
        for pair in pairs
        for cells in assertion_rows(pair, labels)
    ]
    return TitledTable([labels("compare.pair"), *change_titles(labels)], rows)


def gate_assertion_table(rows: Sequence[GateRow], labels: Labels) -> TitledTable:
    """Return a row for each assertion of a gated exam. Assertions do not decide."""
    names = "baseline", "score", "points", "interval"
    titles = [labels("arms.assertion"), labels("n")]
    titles += [labels(f"gate.{names[0]}"), labels(f"gate.{names[1]}")]
    titles += [labels(f"compare.{name}") for name in names[2:]]
    cells = []
    is_alone = sum(bool(row.assertions) for row in rows) == 1
    for row in rows:
        exam = f"{row.exam} · {row.arm}" if row.arm else row.exam
        for change in row.assertions:
            title = assertion_title(change.name, labels)
            is_compared = change.difference is not None
            score_ends = interval(change.score_ci95, 1)
            cells.append(
                [
                    title if is_alone else labels("named", name=exam, text=title),
                    count(change.n),
                    percent(change.base_rate, 1),
                    percent(change.arm_rate, 1),
                    points(change.difference, 1),
                    point_ends(change.ci95, 1) if is_compared else score_ends,
                ]
            )
    return TitledTable(titles, cells)


def describe_assertions(score: Score, labels: Labels) -> Iterator[str]:
    """Yield which assertions about a reply hold, and which do not."""
    names = in_order(score.parts)
    for key, is_right in (("hold", True), ("fail", False)):
        titles = [
            assertion_title(name, labels) for name in names if bool(score.parts[name]) == is_right
        ]
        if titles:
            yield labels(f"assertion.{key}", names=labels("list_separator").join(titles))
