"""Group results into tables that can be ranked: same exam, settings and number of questions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from keju.messages import field_word, value_word
from keju.reporting.format import Labels
from keju.results.schema import LONGEST_FACT, quote_fact
from keju.runs.resume_compat import agree_by_subset
from keju.viewer.summary import RunSummary


class Leaderboard(NamedTuple):
    """Results that can be ranked, the best first."""

    group: tuple[str, ...]
    """Exam, protocol, reader and metric, and the title of the metric."""
    differing: list[tuple[str, str]]
    """The names and values of the settings that differ from the exam's other tables."""
    rows: list[RunSummary]
    """Runs that answered only some of the questions come last and are not ranked."""


def leaderboards(
    run_summaries: Sequence[RunSummary], labels: Labels
) -> Iterator[tuple[str, list[Leaderboard]]]:
    """Yield the tables of each exam."""
    exams: dict[str, dict[tuple[str, ...], dict[bytes, list[RunSummary]]]] = {}
    for run_summary in run_summaries:
        group = (*run_summary.group, labels.metric(run_summary.group[3], run_summary.title))
        settings_key = msgspec.json.encode(dict(run_summary.exam_settings), order="deterministic")
        tables = exams.setdefault(run_summary.group[0], {}).setdefault(group, {})
        tables.setdefault(settings_key, []).append(run_summary)
    for exam, groups in sorted(exams.items()):
        yield (
            exam,
            [
                Leaderboard(group, differing, sorted(rows, key=lambda g: g.rank))
                for group, tables in groups.items()
                for differing, rows in _with_differences(tables.values(), labels)
            ],
        )


def _with_differences(
    tables: Iterable[list[RunSummary]], labels: Labels
) -> Iterator[tuple[list[tuple[str, str]], list[RunSummary]]]:
    """Yield the tables of one protocol, reader and metric, those with the most questions first."""
    largest_first = sorted(tables, key=lambda rows: -max(run_summary.total for run_summary in rows))
    yield from zip(_differing_settings(largest_first, labels), largest_first, strict=True)


def _differing_settings(
    tables: Sequence[Sequence[RunSummary]], labels: Labels
) -> list[list[tuple[str, str]]]:
    """Return, for each table of one protocol, reader and metric, the settings that differ."""
    settings_by_table = [rows[0].exam_settings for rows in tables]
    names = dict.fromkeys(name for settings in settings_by_table for name in settings)
    differing_names = [
        n
        for n in names
        if any(
            _differs(n, candidate_settings, settings_by_table[0])
            for candidate_settings in settings_by_table
        )
    ]
    language = labels.language
    return [
        [
            (field_word(name, language), value_word(_full_value(row_settings.get(name)), language))
            for name in differing_names
        ]
        for row_settings in settings_by_table
    ]


def _full_value(value: Any) -> str:
    """Format a value without cutting it: a tooltip has space for a whole prompt."""
    words = quote_fact(value)
    if len(words) <= LONGEST_FACT:
        return words
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _differs(
    name: str, left_settings: Mapping[str, Any], right_settings: Mapping[str, Any]
) -> bool:
    """Return whether a setting differs; per-subset values are compared only for shared subsets."""
    chosen_otherwise = left_settings.get("subset_list") != right_settings.get("subset_list")
    if chosen_otherwise and agree_by_subset(left_settings.get(name), right_settings.get(name)):
        return False
    return bool(left_settings.get(name) != right_settings.get(name))
