"""Comparisons in the terminal: what is shown, then what it rests on; the conclusion comes last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TextIO

from keju.messages import spoken
from keju.report import pairs as words
from keju.report.format import Labels, percent, shorten
from keju.report.pairs import pair_title
from keju.report.table import Cell, Column, Screen
from keju.results.compare import Compared, Differing
from keju.results.schema import Comparison

SHOWN, SHOWN_OF_MANY = 10, 3
"""Questions each way that the table of flips shows; ``--json`` has all."""
_ANSWER_WIDTH = 30
_SPARED = {"arm_only": 3, "base_only": 3, "detectable": 2, "interval": 1}
"""What a narrow table of subsets can spare, the largest first: the adjusted p tells them apart."""


def render_compared(
    found: Compared, *, diff: str = "", file: TextIO | None = None, width: int | None = None
) -> None:
    """Print comparisons to `file` (stdout by default), and the command that shows what differs."""
    labels, screen = Labels(spoken()), Screen(file, width)
    _pairs(screen, found.comparisons, labels)
    several = len(found.comparisons) > 1
    most = SHOWN_OF_MANY if several else SHOWN
    for pair in found.comparisons:
        if pair.obstacle is None:
            _subsets(screen, pair, labels, pair_title(pair, labels) if several else "")
            _flips(screen, pair, labels, most)
    _taken(screen, found.comparisons, labels)
    _said(screen, found, labels)
    if diff:
        screen.line(labels("next"))
        screen.commands([(diff, labels("compare.diff"))])
    screen.flush()


def _said(screen: Screen, found: Compared, labels: Labels) -> None:
    """What stands beside the differences, and what they show; nothing is said twice.

    Several ties are one sentence: the table has their numbers.
    """
    beside: dict[str, list[str]] = {}
    for pair in found.comparisons:
        for line in words.beside(pair, labels):
            beside.setdefault(line, []).append(pair_title(pair, labels))
    for line, titles in beside.items():
        of_all = len(titles) == len(found.comparisons)
        names = labels("list_separator").join(titles)
        screen.line(line if of_all else labels("named", name=names, text=line))
    notices = [notice for pair in found.comparisons for notice in pair.notices]
    for text in dict.fromkeys(each.text(labels.language) for each in (*notices, *found.notices)):
        screen.line(labels("warning", text=text), style="yellow")
    ties = [pair for pair in found.comparisons if pair.conclusion.code == "compare_tie"]
    for pair in found.comparisons:
        if len(ties) < 2 or pair not in ties:
            screen.line(pair.conclusion.text(labels.language), style="bold")
    if len(ties) > 1:
        names = labels("list_separator").join(pair_title(pair, labels) for pair in ties)
        screen.line(labels("compare.ties", pairs=names), style="bold")


def _columns(
    labels: Labels, *names: str, spared: Mapping[str, int] = MappingProxyType({})
) -> list[Column]:
    first, *others = names
    return [
        Column(labels(f"compare.{first}")),
        *(Column(labels(f"compare.{n}"), "right", spare=spared.get(n, 0)) for n in others),
    ]


def _pairs(screen: Screen, pairs: Sequence[Comparison], labels: Labels) -> None:
    """All pairs in a table, each with its reader; a single one has both above it."""
    names = "pair", "reader", "n", "base_rate", "arm_rate", "points", "interval", "p", "p_holm"
    columns = _columns(labels, *names, "arm_only", "base_only", "verdict")
    columns[1] = replace(columns[1], align="left")
    rows: list[list[Cell]] = [
        [
            pair_title(pair, labels),
            words.pair_readers(pair),
            pair.n if pair.obstacle is None else None,
            percent(pair.base_rate),
            percent(pair.arm_rate),
            words.points(pair.difference),
            words.point_ends(pair.ci95),
            words.p_value(pair.p),
            words.p_value(pair.p_holm),
            pair.arm_only if pair.n else None,
            pair.base_only if pair.n else None,
            labels(f"compare.verdict.{pair.verdict}"),
        ]
        for pair in pairs
    ]
    if len(pairs) == 1 and pairs[0].obstacle is None:
        (pair,) = pairs
        read_by = labels("read_by", reader=words.pair_readers(pair))
        title = f"{pair_title(pair, labels)} · {read_by}"
        screen.table(columns[2:], [rows[0][2:]], title=title)
    else:
        screen.table(columns, rows)
    screen.line()


def _subsets(screen: Screen, pair: Comparison, labels: Labels, title: str) -> None:
    if not pair.subsets:
        return
    names = "subset", "n", "base_rate", "arm_rate", "points", "interval", "p_adjusted"
    columns = _columns(labels, *names, "arm_only", "base_only", "detectable", spared=_SPARED)
    columns[-1] = replace(columns[-1], meaning=labels("compare.detectable_means"))
    rows: list[list[Cell]] = [
        [
            row.name,
            row.n,
            percent(row.base_rate),
            percent(row.arm_rate),
            words.points(row.difference),
            words.point_ends(row.ci95),
            words.p_value(row.p_adjusted),
            row.arm_only,
            row.base_only,
            words.detectable(row),
        ]
        for row in pair.subsets
    ]
    screen.table(columns, rows, title=title)
    screen.line()


def _flips(screen: Screen, pair: Comparison, labels: Labels, most: int) -> None:
    """The first questions gained and lost, with both answers."""
    if not pair.flips:
        return
    gained, lost = words.gained(pair.flips, most), words.lost(pair.flips, most)
    names = ("question", "change", "target", "base_answer", "arm_answer")
    columns = [Column(labels(f"compare.{name}"), id=name == "question") for name in names]
    rows: list[list[Cell]] = []
    for flip in (*gained, *lost):
        change = labels("compare.gain" if flip.arm > flip.base else "compare.loss")
        read = (shorten(text, _ANSWER_WIDTH) for text in words.answers(flip, labels))
        rows.append([flip.id, change, shorten(flip.target, _ANSWER_WIDTH), *read])
    key = "compare.flips" if max(pair.arm_only, pair.base_only) > most else "compare.flips_all"
    values = {"pair": pair_title(pair, labels), "gained": pair.arm_only, "lost": pair.base_only}
    title = labels(key, **values, shown=most)
    screen.table(columns, rows, title=title)
    screen.line()


def _taken(screen: Screen, pairs: Sequence[Comparison], labels: Labels) -> None:
    """What a question takes: tokens, money, time."""
    rows: list[list[Cell]] = []
    for pair in pairs:
        title = f"{pair_title(pair, labels)}: " if len(pairs) > 1 else ""
        rows += [[title + name, *others] for name, *others in words.taken(pair, labels)]
    if rows:
        names = "taken", "base_rate", "arm_rate", "change", "interval"
        screen.table(_columns(labels, *names), rows)
        screen.line()


def render_unlike(
    found: Sequence[Differing], *, file: TextIO | None = None, width: int | None = None
) -> None:
    """Print in what sittings differ."""
    labels, screen = Labels(spoken()), Screen(file, width)
    for each in found:
        field, decisive = labels("compare.field"), labels("compare.decisive")
        columns: list[Column | str] = [field, each.first, each.second, decisive]
        rows: list[list[Cell]] = [
            [
                words.field_name(own, labels),
                *words.field_values(own, labels),
                labels("compare.decides" if own.decisive else "compare.said"),
            ]
            for own in each.unlike
        ]
        title = f"{each.exam} · {each.first} / {each.second}"
        if rows:
            screen.table(columns, rows, title=title)
        else:
            screen.line(labels("named", name=title, text=labels("compare.same")))
        screen.line()
    screen.flush()
