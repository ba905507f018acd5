"""Which numbers are ranked in one table: those of one exam, put alike, on as many questions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from keju.messages import field_word, value_word
from keju.report.format import Labels
from keju.results.schema import LONGEST_FACT, quote_fact
from keju.runs.sameness import agree_by_subset
from keju.viewer.summary import Glance


class Table(NamedTuple):
    """Numbers that may be ranked, the best first."""

    group: tuple[str, ...]
    """Exam, protocol, reader and metric, and the metric in words."""
    differing: list[tuple[str, str]]
    """In what its runs differ from those of the exam's other tables: names and values."""
    rows: list[Glance]
    """Runs that answered only some of the questions come last and are not ranked."""


def leaderboards(glances: Sequence[Glance], labels: Labels) -> Iterator[tuple[str, list[Table]]]:
    """The tables of each exam."""
    exams: dict[str, dict[tuple[str, ...], dict[bytes, list[Glance]]]] = {}
    for glance in glances:
        group = (*glance.group, labels.metric(glance.group[3], glance.title))
        asked = msgspec.json.encode(dict(glance.asked), order="deterministic")
        tables = exams.setdefault(glance.group[0], {}).setdefault(group, {})
        tables.setdefault(asked, []).append(glance)
    for exam, groups in sorted(exams.items()):
        yield (
            exam,
            [
                Table(group, own, sorted(rows, key=lambda g: g.rank))
                for group, tables in groups.items()
                for own, rows in _with_differences(tables.values(), labels)
            ],
        )


def _with_differences(
    tables: Iterable[list[Glance]], labels: Labels
) -> Iterator[tuple[list[tuple[str, str]], list[Glance]]]:
    """The tables of one protocol, reader and metric, those of the most questions first."""
    largest_first = sorted(tables, key=lambda rows: -max(glance.total for glance in rows))
    yield from zip(_differing(largest_first, labels), largest_first, strict=True)


def _differing(tables: Sequence[Sequence[Glance]], labels: Labels) -> list[list[tuple[str, str]]]:
    """In what tables of one protocol, reader and metric differ, of each what it has."""
    asked = [rows[0].asked for rows in tables]
    names = dict.fromkeys(name for own in asked for name in own)
    apart = [n for n in names if any(_unlike(n, own, asked[0]) for own in asked)]
    language = labels.language
    return [
        [
            (field_word(name, language), value_word(_whole(own.get(name)), language))
            for name in apart
        ]
        for own in asked
    ]


def _whole(value: Any) -> str:
    """A fact as `shown` has it, but not cut: a title has room for a whole prompt."""
    words = quote_fact(value)
    if len(words) <= LONGEST_FACT:
        return words
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _unlike(name: str, own: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether a setting differs; one that is given for each subset only on subsets of both."""
    chosen_otherwise = own.get("subset_list") != other.get("subset_list")
    if chosen_otherwise and agree_by_subset(own.get(name), other.get(name)):
        return False
    return bool(own.get(name) != other.get(name))
