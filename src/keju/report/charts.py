"""The kinds of figures: intervals, paired differences, curves, histograms, outcomes."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, get_args

from keju.errors import UsageError
from keju.messages import Language
from keju.report import format as fmt
from keju.report.curves import Scale, curve_label, drawing
from keju.report.figure import CurveChart, Figure, Sheet, SheetRow, series
from keju.report.format import Labels, count, interval, share
from keju.report.pairs import difference_mark, difference_ticks, scale_of
from keju.report.spread import scale_for, spread_of
from keju.results.compare import compare
from keju.results.curve import Curve
from keju.results.samples import Samples
from keju.results.schema import Comparison, Entry, Results, Row, SubsetChange
from keju.results.score import current_results
from keju.runs.run import Run
from keju.stats.estimate import Ends

Kind = Literal["forest", "difference", "curve", "latency", "tokens", "outcomes"]
KINDS: tuple[Kind, ...] = get_args(Kind)


def draw(
    runs: Sequence[Run], kind: Kind, *, language: Language = "en", data_dir: str | None = None
) -> Figure:
    """A figure of this kind of stored runs."""
    if kind not in KINDS:
        raise UsageError("plot_unknown_kind", kind=kind, kinds=[*KINDS])
    if kind == "latency" or kind == "tokens":
        named = [(f"{run.manifest.model} · {run.id}", Samples(run, load=False)) for run in runs]
        return histogram(kind, named, language)
    if kind == "difference":
        compared = compare(*runs, data_dir=data_dir)
        unlike = next((pair for pair in compared.comparisons if pair.obstacle is not None), None)
        if unlike is not None:
            raise UsageError("plot_not_comparable", problem=unlike.conclusion)
        return differences(compared.comparisons, language)
    results = [current_results(run, data_dir) for run in runs]
    drawings = {"forest": forest, "curve": curves_of_runs, "outcomes": outcomes}
    return drawings[kind](results, language)


# Forest plots: subsets with their intervals.

_PERCENTS = [(tick / 100, f"{tick} %") for tick in (0, 25, 50, 75, 100)]


class _Found(NamedTuple):
    """What one run has of one row."""

    value: float | None
    ends: Ends | None
    bounds: Ends | None
    chance: float | None
    n: int

    @classmethod
    def overall(cls, entry: Entry, labels: Labels) -> _Found:
        """The headline."""
        metric, chance = fmt.shown_metrics(entry, labels)[0].metric, entry.metrics.get("chance")
        level = chance.value if chance else None
        return cls(metric.value, metric.ci95, metric.bounds, level, metric.n)

    @classmethod
    def subset(cls, row: Row) -> _Found:
        """A subset."""
        return cls(row.accuracy, row.ci95, row.bounds, row.chance, row.n)

    def words(self, labels: Labels) -> str:
        """The same in words."""
        ends = labels("in_brackets", text=interval(self.ends, 1)) if self.ends else ""
        figure = f"{share(self.value, self.bounds)}{ends}"
        return labels("clause_separator").join([figure, f"n {count(self.n)}"])

    def mark(self, place: int) -> dict[str, Any]:
        """The same as a mark of this series."""
        own = self._asdict()
        return {"kind": "point", "class_": series(place)} | own


_ABSENT = _Found(None, None, None, None, 0)


def forest(results: Sequence[Results], language: Language = "en") -> Figure:
    """The headline and the subsets of runs with their intervals, on the scale of all shares.

    Exams that several runs have stand in one chart, a mark for each run.
    """
    labels = Labels(language)
    sheet = Sheet(labels("plot.forest"), _under(results, labels), labels)
    sheet.legend([_named(each) for each in results])
    for title, entries in _shared(results).items():
        sheet.heading(title)
        first = next(entry for entry in entries if entry is not None)
        whole = [_Found.overall(entry, labels) if entry else _ABSENT for entry in entries]
        title = fmt.shown_metrics(first, labels)[0].title
        rows = [_row(title, whole, labels, strong=True)]
        names: dict[str, str] = {}
        parts: list[dict[str, _Found]] = []
        for entry in entries:
            answered = fmt.answered(entry.subsets) if entry else []
            names |= {row.name: labels.row(row) for row in answered}
            parts.append({row.name: _Found.subset(row) for row in answered})
        for name, label in names.items():
            rows.append(_row(label, [own.get(name, _ABSENT) for own in parts], labels))
        sheet.rows(rows, _PERCENTS, 0.0)
    return sheet.figure()


def _row(label: str, found: Sequence[_Found], labels: Labels, *, strong: bool = False) -> SheetRow:
    marks = [each.mark(place) for place, each in enumerate(found)]
    words = [fmt.UNKNOWN if each is _ABSENT else each.words(labels) for each in found]
    return SheetRow(label, marks, words, strong)


def _shared(results: Sequence[Results]) -> dict[str, list[Entry | None]]:
    """The entries of the runs by exam, protocol, reader and arm; None where a run has no such."""
    shared: dict[str, list[Entry | None]] = {}
    for place, each in enumerate(results):
        for entry in each.benchmarks:
            title = f"{entry.full_name} · {fmt.protocol_line(entry)} · {entry.reader}"
            shared.setdefault(title, [None] * len(results))[place] = entry
    if not shared:
        raise UsageError("plot_nothing")
    return shared


def _named(results: Results) -> str:
    return f"{results.model} · {results.run}" if results.run != results.model else results.run


def _under(results: Sequence[Results], labels: Labels) -> str:
    """What stands under the title: the run where it is one, and what the marks are."""
    own = [_named(results[0])] if len(results) == 1 else []
    return " · ".join([*own, labels("plot.legend")])


# Accuracy against difficulty.

BESIDE = 3
"""Charts of subsets in a row."""


def curves_of_runs(results: Sequence[Results], language: Language = "en") -> Figure:
    """Accuracy against difficulty of runs: the whole exam, then each subset, on one scale."""
    labels = Labels(language)
    shared: dict[tuple[str, str, str], list[Curve | None]] = {}
    for place, each in enumerate(results):
        for curve in each.curves:
            key = (curve.exam, curve.protocol, curve.reader)
            shared.setdefault(key, [None] * len(results))[place] = curve
    if not shared:
        raise UsageError("plot_no_curve")
    alone = len(results) == 1
    under = labels("curve.legend" if alone else "curve.legend_several")
    sheet = Sheet(labels("curve.title"), under, labels)
    sheet.legend([_named(each) for each in results])
    for key, found in shared.items():
        sheet.heading(" · ".join([*key, *([_named(results[0])] if alone else [])]))
        drawn = [curve for curve in found if curve]
        levels = [point.difficulty for curve in drawn for point in curve.points]
        scale = Scale.of(drawn)
        ticks = [(scale.place(level), f"{level:g}") for level in sorted(set(levels))]
        sheet.curves([_chart(found, scale, labels)], ticks, top=scale.top, beside=1)
        names = dict.fromkeys(own.subset for curve in drawn for own in curve.subsets)
        charts = []
        for name in names if len(names) > 1 else ():
            parts = [_subset(curve, name) if curve else None for curve in found]
            charts.append(_chart(parts, scale, labels))
        sheet.curves(charts, ticks, top=scale.top, beside=BESIDE)
    return sheet.figure()


def _subset(curve: Curve, name: str) -> Curve | None:
    return next((own for own in curve.subsets if own.subset == name and own.points), None)


def _chart(found: Sequence[Curve | None], scale: Scale, labels: Labels) -> CurveChart:
    label = labels("pair_separator").join(curve_label(curve, labels) for curve in found if curve)
    title = next((curve.subset or curve.exam for curve in found if curve), "")
    return CurveChart(title, label, [drawing(curve, scale) if curve else None for curve in found])


# Outcomes: what became of the replies, by subset.


def outcomes(results: Sequence[Results], language: Language = "en") -> Figure:
    """The shares of the outcomes by subset: how far each number can be relied on."""
    labels = Labels(language)
    sheet = Sheet(labels("plot.outcomes"), "", labels)
    for each in results:
        for entry in each.benchmarks:
            name = f"{entry.full_name} · {fmt.protocol_line(entry)} · {entry.reader}"
            sheet.heading(f"{name} · {_named(each)}")
            rows = [
                SheetRow(
                    labels.row(row),
                    [{"kind": "parts", "outcomes": row.outcomes}],
                    [
                        " · ".join(
                            fmt.outcome_words(
                                row.outcomes, labels, cut_right=row.cut_right, zeros=()
                            )
                        )
                    ],
                )
                for row in fmt.answered(entry.subsets)
            ]
            sheet.rows(rows, _PERCENTS, 0.0)
    return sheet.figure()


# Paired differences.


def differences(comparisons: Sequence[Comparison], language: Language = "en") -> Figure:
    """How two runs or arms differ, question by question: on the whole and by subset."""
    labels = Labels(language)
    if not comparisons:
        raise UsageError("plot_no_pairs")
    sheet = Sheet(labels("plot.difference"), labels("plot.difference_legend"), labels)
    for pair in comparisons:
        sheet.heading(f"{pair.exam} · {pair.reader} · {pair.arm} − {pair.base}")
        if pair.difference is None:
            continue
        found: list[tuple[str, Comparison | SubsetChange, float | None]] = [
            (labels("plot.all"), pair, pair.p),
            *((s.name, s, s.p_adjusted) for s in pair.subsets),
        ]
        scale = scale_of(row for _, row, _ in found)
        rows = [
            SheetRow(name, [difference_mark(row, p, scale)], [_points(row)], strong=row is pair)
            for name, row, p in found
        ]
        sheet.rows(rows, difference_ticks(scale), 0.5)
    return sheet.figure()


def _points(row: Any) -> str:
    ends = f" ({100 * row.ci95[0]:+.1f} to {100 * row.ci95[1]:+.1f})" if row.ci95 else ""
    return f"{100 * row.difference:+.1f}{ends}, n {count(row.n)}"


# Histograms of what replies took.


def histogram(
    kind: Literal["latency", "tokens"],
    runs: Sequence[tuple[str, Samples]],
    language: Language = "en",
) -> Figure:
    """How long replies took, or how many tokens they have: a chart for each run, on one scale."""
    labels = Labels(language)
    found = []
    for name, samples in runs:
        rows = (row for row in samples if row.error is None)
        seen = array("d", (row.seconds if kind == "latency" else row.output_tokens for row in rows))
        if not seen:
            raise UsageError("plot_nothing")
        found.append((name, sorted(seen)))
    top = scale_for(*(values for _, values in found))
    sheet = Sheet(labels(f"plot.{kind}"), labels("plot.histogram_legend"), labels)
    for place, (name, values) in enumerate(found):
        own = spread_of(values, top)
        title = labels("named", name=name, text=own.words(labels))
        sheet.heading(title)
        sheet.columns(own.heights, own.places, own.ticks, title, series(place))
    return sheet.figure()
