"""The rows of the viewer's first page: one for each run, with a column for each exam."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from keju.reporting import format as fmt
from keju.reporting.format import Labels
from keju.reporting.titles import title_of
from keju.viewer.leaderboard import leaderboards
from keju.viewer.summary import RunSummary

FULL_SHARE: Final = 0.9
"""A run with at least this share of the most questions of an exam counts as full."""
_Column = tuple[str, ...]


class HomeColumn(NamedTuple):
    """A column of scores that can be ranked: one exam, protocol, reader and metric."""

    exam: str
    detail: str
    """The protocol, reader and metric, if the exam has several columns."""
    about: str
    """Protocol, reader and metric in full."""


class HomeScore(NamedTuple):
    """A score in a cell; the arms of a run have one each."""

    arm: str
    figure: str
    margin: str
    value: float | None


class HomeRow(NamedTuple):
    """One run."""

    run: str
    model: str
    created: str
    state: str
    is_early: bool
    differing: str
    """The settings in which its questions or requests differ from those of most runs."""
    cells: list[list[HomeScore]]
    """The scores in each column; empty where the run does not have the exam."""
    n: int
    cost: str
    cost_value: float
    answered: int
    total: int
    is_full: bool

    @property
    def search_text(self) -> str:
        """The words by which the run can be found."""
        return f"{self.run} {self.model} {self.differing}".casefold()


class HomeTable(NamedTuple):
    """The rows of the first page."""

    columns: list[HomeColumn]
    live: list[HomeRow]
    full: list[HomeRow]
    partial: list[HomeRow]
    """Runs with only some of the questions."""


def home_table(run_summaries: Sequence[RunSummary], labels: Labels, query: str = "") -> HomeTable:
    """Return the runs whose name, model or settings contain the words of `query`."""
    columns = _columns(run_summaries, labels)
    largest: dict[str, int] = {}
    for run_summary in run_summaries:
        exam = run_summary.part.exam
        largest[exam] = max(largest.get(exam, 0), run_summary.answered)
    differing = _differing_words(run_summaries, labels)
    rows = [
        _row(summaries, list(columns), largest, differing, labels)
        for summaries in _by_run(run_summaries).values()
    ]
    words = query.casefold().split()
    rows = [row for row in rows if all(word in row.search_text for word in words)]
    live = [row for row in rows if row.state == "running"]
    return HomeTable(
        list(columns.values()),
        live,
        [row for row in rows if row.is_full and row not in live],
        [row for row in rows if not row.is_full and row not in live],
    )


def _by_run(run_summaries: Iterable[RunSummary]) -> dict[str, list[RunSummary]]:
    summaries_by_run: dict[str, list[RunSummary]] = {}
    for run_summary in run_summaries:
        summaries_by_run.setdefault(run_summary.run, []).append(run_summary)
    return summaries_by_run


def _columns(run_summaries: Sequence[RunSummary], labels: Labels) -> dict[_Column, HomeColumn]:
    """Return the columns: by exam, the most used exam first."""
    uses: dict[_Column, int] = {}
    exam_uses: dict[str, int] = {}
    for run_summary in run_summaries:
        uses[run_summary.group] = uses.get(run_summary.group, 0) + 1
        exam_uses[run_summary.group[0]] = exam_uses.get(run_summary.group[0], 0) + 1
    ordered = sorted(uses, key=lambda group: (-exam_uses[group[0]], group[0], -uses[group]))
    groups_by_exam: dict[str, list[_Column]] = {}
    for group in ordered:
        groups_by_exam.setdefault(group[0], []).append(group)
    return {
        group: HomeColumn(
            title_of(group[0]),
            " · ".join(_distinct_parts(group, groups_by_exam[group[0]])),
            " · ".join(
                (
                    f"{labels('protocol')} {group[1]}",
                    f"{labels('reader')} {group[2]}",
                    labels.metric(group[3], ""),
                )
            ),
        )
        for group in ordered
    }


def _distinct_parts(group: _Column, groups: Sequence[_Column]) -> Iterator[str]:
    """Yield the protocol, reader or metric of a column, if the exam's other columns differ."""
    for place in range(1, len(group)):
        if len({other_group[place] for other_group in groups}) > 1:
            yield group[place]


def _differing_words(
    run_summaries: Sequence[RunSummary], labels: Labels
) -> dict[tuple[str, str], str]:
    """Return, by run and exam, the settings that keep a score from the ranking of most runs."""
    words: dict[tuple[str, str], str] = {}
    for exam, tables in leaderboards(run_summaries, labels):
        seen_groups: set[tuple[str, ...]] = set()
        for table in tables:
            if table.group in seen_groups:
                text = " · ".join(f"{name} {value}" for name, value in table.differing)
                words |= {(run_summary.run, exam): text for run_summary in table.rows}
            seen_groups.add(table.group)
    return words


def _row(
    summaries: Sequence[RunSummary],
    columns: Sequence[_Column],
    largest: Mapping[str, int],
    differing: Mapping[tuple[str, str], str],
    labels: Labels,
) -> HomeRow:
    head = summaries[0]
    words = dict.fromkeys(
        text for g in summaries if (text := differing.get((g.run, g.part.exam), ""))
    )
    cost, cost_value = _cost(summaries, labels)
    return HomeRow(
        run=head.run,
        model=fmt.printable(head.model, one_line=True),
        created=head.created,
        state=head.state,
        is_early=any(g.early for g in summaries),
        differing=" · ".join(words),
        cells=[
            [
                HomeScore(g.part.arm, g.figure, g.margin, g.row.accuracy)
                for g in summaries
                if g.group == column
            ]
            for column in columns
        ],
        n=sum(g.row.n for g in summaries),
        cost=cost,
        cost_value=cost_value,
        answered=sum(g.answered for g in summaries),
        total=sum(g.total for g in summaries),
        is_full=any(_is_full(g, largest) for g in summaries),
    )


def _is_full(run_summary: RunSummary, largest: Mapping[str, int]) -> bool:
    """Return whether a run has nearly as many replies of an exam as any run."""
    return run_summary.answered >= FULL_SHARE * largest[run_summary.part.exam]


def _cost(summaries: Sequence[RunSummary], labels: Labels) -> tuple[str, float]:
    """Return the cost of a run in words and as a number; without prices, its tokens."""
    usages = [g.entry.usage for g in summaries if g.entry is not None]
    costs = [usage.cost for usage in usages if isinstance(usage.cost, float)]
    if costs:
        return fmt.money(sum(costs)), sum(costs)
    tokens = sum(usage.input_tokens + usage.output_tokens for usage in usages)
    return (labels("page.tokens", n=fmt.compact(tokens)) if tokens else "", float(tokens))
