"""Comparisons in the terminal: what is shown, then what it rests on; the conclusion comes last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TextIO

from keju.messages import spoken
from keju.report.format import UNKNOWN, Labels, count, percent, shorten
from keju.report.table import Cell, Column, Screen
from keju.results.compare import Compared, Differing
from keju.results.schema import SIGNIFICANT, Change, Comparison, shown
from keju.stats.estimate import Ends

SHOWN = 10
"""Questions each way that the table of flips shows; ``--json`` has all."""
_ANSWER_WIDTH = 30


def render_compared(
    found: Compared, *, file: TextIO | None = None, width: int | None = None
) -> None:
    """Print comparisons to `file` (stdout by default)."""
    labels, screen = Labels(spoken()), Screen(file, width)
    _pairs(screen, found.comparisons, labels)
    for pair in found.comparisons:
        if pair.obstacle is None:
            _subsets(screen, pair, labels)
            _flips(screen, pair, labels)
    _taken(screen, found.comparisons, labels)
    for pair in found.comparisons:
        for line in _beside(pair, labels):
            screen.line(line)
        for notice in pair.notices:
            screen.line(labels("warning", text=notice.text(labels.language)), style="yellow")
    for notice in found.notices:
        screen.line(labels("warning", text=notice.text(labels.language)), style="yellow")
    for pair in found.comparisons:
        screen.line(pair.conclusion.text(labels.language), style="bold")
    screen.flush()


def _title(pair: Comparison, labels: Labels) -> str:
    return f"{pair.exam} · {labels('arms.against', arm=pair.arm, base=pair.base)}"


def _points(value: float | None) -> str:
    return UNKNOWN if value is None else f"{100 * value:+.2f}"


def _ends(ends: Ends | None) -> str:
    return UNKNOWN if ends is None else f"{100 * ends[0]:+.2f} … {100 * ends[1]:+.2f}"


def _p(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.3g}"


def _columns(labels: Labels, *names: str) -> list[Column | str]:
    first, *others = (labels(f"compare.{name}") for name in names)
    return [first, *(Column(title, "right") for title in others)]


def _pairs(screen: Screen, pairs: Sequence[Comparison], labels: Labels) -> None:
    names = "pair", "n", "base_rate", "arm_rate", "difference", "interval", "p", "p_holm"
    columns = _columns(labels, *names, "arm_only", "base_only", "detectable", "verdict")
    rows: list[list[Cell]] = [
        [
            _title(pair, labels),
            pair.n,
            percent(pair.base_rate),
            percent(pair.arm_rate),
            _points(pair.difference),
            _ends(pair.ci95),
            _p(pair.p),
            _p(pair.p_holm),
            pair.arm_only if pair.n else None,
            pair.base_only if pair.n else None,
            None if pair.detectable is None else f"{100 * pair.detectable:.2f}",
            labels(f"compare.verdict.{pair.verdict}"),
        ]
        for pair in pairs
    ]
    screen.table(columns, rows)
    screen.line()


def _subsets(screen: Screen, pair: Comparison, labels: Labels) -> None:
    if not pair.subsets:
        return
    names = "subset", "n", "base_rate", "arm_rate", "difference", "interval", "p", "p_adjusted"
    columns = _columns(labels, *names, "arm_only", "base_only", "detectable")
    rows: list[list[Cell]] = [
        [
            row.name,
            row.n,
            percent(row.base_rate),
            percent(row.arm_rate),
            _points(row.difference),
            _ends(row.ci95),
            _p(row.p),
            _p(row.p_adjusted),
            row.arm_only,
            row.base_only,
            None if row.detectable is None else f"{100 * row.detectable:.2f}",
        ]
        for row in pair.subsets
    ]
    screen.table(columns, rows, title=_title(pair, labels))
    screen.line()


def _flips(screen: Screen, pair: Comparison, labels: Labels) -> None:
    """The first questions gained and lost, with both answers."""
    if not pair.flips:
        return
    gained = [flip for flip in pair.flips if flip.arm > flip.base]
    lost = [flip for flip in pair.flips if flip.arm < flip.base]
    columns = [labels(f"compare.{n}") for n in ("question", "change", "target", "base_answer")]
    rows: list[list[Cell]] = [
        [
            flip.id,
            labels("compare.gain" if flip.arm > flip.base else "compare.loss"),
            shorten(flip.target, _ANSWER_WIDTH),
            shorten(flip.base_answer or flip.base_outcome, _ANSWER_WIDTH),
            shorten(flip.arm_answer or flip.arm_outcome, _ANSWER_WIDTH),
        ]
        for flip in (*gained[:SHOWN], *lost[:SHOWN])
    ]
    key = "compare.flips" if max(len(gained), len(lost)) > SHOWN else "compare.flips_all"
    values = {"pair": _title(pair, labels), "gained": len(gained), "lost": len(lost)}
    title = labels(key, **values, shown=SHOWN)
    screen.table([*columns, labels("compare.arm_answer")], rows, title=title)
    screen.line()


def _taken(screen: Screen, pairs: Sequence[Comparison], labels: Labels) -> None:
    """What a question takes: tokens, money, time."""
    rows: list[list[Cell]] = []
    for pair in pairs:
        for name in ("tokens", "cost", "seconds"):
            change: Change | None = getattr(pair, name)
            if change is not None:
                ends = change.ci95
                rows.append(
                    [
                        f"{_title(pair, labels)}: {labels(f'compare.{name}')}",
                        f"{change.base:.4g}",
                        f"{change.arm:.4g}",
                        f"{change.difference:+.4g}",
                        UNKNOWN if ends is None else f"{ends[0]:+.4g} … {ends[1]:+.4g}",
                    ]
                )
    if rows:
        names = "taken", "base_rate", "arm_rate", "change", "interval"
        screen.table(_columns(labels, *names), rows)
        screen.line()


def _beside(pair: Comparison, labels: Labels) -> Iterator[str]:
    """What stands beside a difference: what it leaves out, and the subsets that differ."""
    clear = [row for row in pair.subsets if row.p_adjusted < SIGNIFICANT]
    if clear:
        listed = ", ".join(f"{row.name} {100 * row.difference:+.1f}" for row in clear)
        yield labels("compare.subsets", listed=listed)
    elif pair.subsets:
        yield labels("compare.no_subsets")
    if pair.only_in_base or pair.only_in_arm:
        counts = {"base": count(pair.only_in_base), "arm": count(pair.only_in_arm)}
        yield labels("compare.unshared", **counts)
    if pair.left_out:
        why = ", ".join(
            f"{labels(f'outcome.{outcome}')} {n}" for outcome, n in pair.left_out_why.items()
        )
        yield labels("compare.left_out", n=count(pair.left_out), why=why)
    if pair.bounds:
        low, high = (100 * end for end in pair.bounds)
        yield labels("compare.bounds", low=low, high=high)


def render_unlike(
    found: Sequence[Differing], *, file: TextIO | None = None, width: int | None = None
) -> None:
    """Print in what sittings differ."""
    labels, screen = Labels(spoken()), Screen(file, width)
    for each in found:
        names = "field", "first", "second", "decisive"
        columns: list[Column | str] = [labels(f"compare.{name}") for name in names]
        rows: list[list[Cell]] = [
            [
                own.field,
                shown(own.first),
                shown(own.second),
                labels("compare.decides" if own.decisive else "compare.said"),
            ]
            for own in each.unlike
        ]
        title = f"{each.exam} · {each.first} / {each.second}"
        if rows:
            screen.table(columns, rows, title=title)
        else:
            screen.line(f"{title}: {labels('compare.same')}")
        screen.line()
    screen.flush()
