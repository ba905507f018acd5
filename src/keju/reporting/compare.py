"""Print comparisons in the terminal: first the tables, then the notes, and the conclusion last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TextIO

from keju.messages import current_language
from keju.reporting import pairs as words
from keju.reporting.assertions import pair_assertion_table
from keju.reporting.format import Labels, percent, shorten
from keju.reporting.pairs import pair_title
from keju.reporting.table import Cell, TableColumn, TerminalScreen
from keju.results.compare import Compared, ComparisonDifferences
from keju.results.schema import Comparison

FLIPS_SHOWN, FLIPS_SHOWN_OF_MANY = 10, 3
"""The number of gains and of losses that the table shows; ``--json`` has all of them."""
_ANSWER_WIDTH = 30
_SPARE_COLUMNS = {"arm_only": 3, "base_only": 3, "detectable": 2, "interval": 1}
"""Columns of the subset table that a narrow screen can drop, the largest number first."""


def render_compared(
    compared_runs: Compared, *, diff: str = "", file: TextIO | None = None, width: int | None = None
) -> None:
    """Print comparisons to `file` (stdout by default), and the command that shows what differs."""
    labels, screen = Labels(current_language()), TerminalScreen(file, width)
    _print_pairs(screen, compared_runs.comparisons, labels)
    has_several_pairs = len(compared_runs.comparisons) > 1
    flip_limit = FLIPS_SHOWN_OF_MANY if has_several_pairs else FLIPS_SHOWN
    for pair in compared_runs.comparisons:
        if pair.obstacle is None:
            _print_subsets(
                screen, pair, labels, pair_title(pair, labels) if has_several_pairs else ""
            )
            _print_flips(screen, pair, labels, flip_limit)
    _print_assertions(screen, compared_runs.comparisons, labels)
    _print_resources(screen, compared_runs.comparisons, labels)
    _print_notes_and_conclusions(screen, compared_runs, labels)
    if diff:
        screen.line(labels("next"))
        screen.commands([(diff, labels("compare.diff"))])
    screen.flush()


def _print_notes_and_conclusions(
    screen: TerminalScreen, compared_runs: Compared, labels: Labels
) -> None:
    """Print the notes about the differences and the conclusions; print each sentence once.

    If several pairs tie, one sentence names them all. The table has their numbers.
    """
    titles_by_note: dict[str, list[str]] = {}
    for pair in compared_runs.comparisons:
        for line in words.comparison_notes(pair, labels):
            titles_by_note.setdefault(line, []).append(pair_title(pair, labels))
    for line, titles in titles_by_note.items():
        applies_to_all = len(titles) == len(compared_runs.comparisons)
        names = labels("list_separator").join(titles)
        screen.line(line if applies_to_all else labels("named", name=names, text=line))
    notices = [notice for pair in compared_runs.comparisons for notice in pair.notices]
    for text in dict.fromkeys(
        warning.text(labels.language) for warning in (*notices, *compared_runs.notices)
    ):
        screen.line(labels("warning", text=text), style="yellow")
    ties = [pair for pair in compared_runs.comparisons if pair.conclusion.code == "compare_tie"]
    for pair in compared_runs.comparisons:
        if len(ties) < 2 or pair not in ties:
            screen.line(pair.conclusion.text(labels.language), style="bold")
    if len(ties) > 1:
        names = labels("list_separator").join(pair_title(pair, labels) for pair in ties)
        screen.line(labels("compare.ties", pairs=names), style="bold")


def _columns(
    labels: Labels, *names: str, spared: Mapping[str, int] = MappingProxyType({})
) -> list[TableColumn]:
    first_name, *other_names = names
    return [
        TableColumn(labels(f"compare.{first_name}")),
        *(
            TableColumn(labels(f"compare.{n}"), "right", spare=spared.get(n, 0))
            for n in other_names
        ),
    ]


def _print_pairs(screen: TerminalScreen, pairs: Sequence[Comparison], labels: Labels) -> None:
    """Print all pairs in one table; a single pair has its title and reader above the table."""
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


def _print_subsets(screen: TerminalScreen, pair: Comparison, labels: Labels, title: str) -> None:
    if not pair.subsets:
        return
    names = "subset", "n", "base_rate", "arm_rate", "points", "interval", "p_adjusted"
    columns = _columns(labels, *names, "arm_only", "base_only", "detectable", spared=_SPARE_COLUMNS)
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
            words.detectable_points(row),
        ]
        for row in pair.subsets
    ]
    screen.table(columns, rows, title=title)
    screen.line()


def _print_flips(screen: TerminalScreen, pair: Comparison, labels: Labels, flip_limit: int) -> None:
    """Print the first questions that were gained and lost, with both answers."""
    if not pair.flips:
        return
    gained_flips, lost_flips = (
        words.first_gains(pair.flips, flip_limit),
        words.first_losses(pair.flips, flip_limit),
    )
    names = ("question", "change", "target", "base_answer", "arm_answer")
    columns = [TableColumn(labels(f"compare.{name}"), id=name == "question") for name in names]
    rows: list[list[Cell]] = []
    for flip in (*gained_flips, *lost_flips):
        change = labels("compare.gain" if flip.arm > flip.base else "compare.loss")
        answer_texts = (shorten(text, _ANSWER_WIDTH) for text in words.answers(flip, labels))
        rows.append([flip.id, change, shorten(flip.target, _ANSWER_WIDTH), *answer_texts])
    key = (
        "compare.flips" if max(pair.arm_only, pair.base_only) > flip_limit else "compare.flips_all"
    )
    values = {"pair": pair_title(pair, labels), "gained": pair.arm_only, "lost": pair.base_only}
    title = labels(key, **values, shown=flip_limit)
    screen.table(columns, rows, title=title)
    screen.line()


def _print_assertions(screen: TerminalScreen, pairs: Sequence[Comparison], labels: Labels) -> None:
    """Print the scores of assertions in both, and their differences."""
    table = pair_assertion_table(pairs, labels)
    if table.rows:
        columns = [
            TableColumn(title, "left" if place < 2 else "right")
            for place, title in enumerate(table.titles)
        ]
        screen.table(columns, [[*row] for row in table.rows])
        screen.line()


def _print_resources(screen: TerminalScreen, pairs: Sequence[Comparison], labels: Labels) -> None:
    """Print the tokens, the cost and the time per question."""
    rows: list[list[Cell]] = []
    for pair in pairs:
        title = f"{pair_title(pair, labels)}: " if len(pairs) > 1 else ""
        rows += [[title + name, *values] for name, *values in words.resource_rows(pair, labels)]
    if rows:
        names = "taken", "base_rate", "arm_rate", "change", "interval"
        screen.table(_columns(labels, *names), rows)
        screen.line()


def render_unlike(
    differences: Sequence[ComparisonDifferences],
    *,
    file: TextIO | None = None,
    width: int | None = None,
) -> None:
    """Print the settings in which runs differ."""
    labels, screen = Labels(current_language()), TerminalScreen(file, width)
    for difference in differences:
        field, decisive = labels("compare.field"), labels("compare.decisive")
        columns: list[TableColumn | str] = [field, difference.first, difference.second, decisive]
        rows: list[list[Cell]] = [
            [
                words.field_name(mismatch, labels),
                *words.field_values(mismatch, labels),
                labels("compare.decides" if mismatch.decisive else "compare.said"),
            ]
            for mismatch in difference.unlike
        ]
        title = f"{difference.exam} · {difference.first} / {difference.second}"
        if rows:
            screen.table(columns, rows, title=title)
        else:
            screen.line(labels("named", name=title, text=labels("compare.same")))
        screen.line()
    screen.flush()
