"""Draw the kinds of figures: intervals, paired differences, curves, histograms, outcomes."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, get_args

from keju.errors import UsageError
from keju.messages import Language
from keju.reporting import format as fmt
from keju.reporting.curves import DifficultyScale, curve_label, draw_curve
from keju.reporting.figure import ChartSheet, CurveChart, Figure, SheetRow, series
from keju.reporting.format import Labels, count, interval, share
from keju.reporting.histograms import make_histogram, scale_for
from keju.reporting.pairs import difference_mark, difference_ticks, scale_of
from keju.results.compare import compare
from keju.results.curve import Curve
from keju.results.samples import Samples
from keju.results.schema import Comparison, ResultEntry, Results, SubsetChange, SubsetRow
from keju.results.score import current_results
from keju.runs.run import Run
from keju.stats.estimate import Ends

Kind = Literal["forest", "difference", "curve", "latency", "tokens", "outcomes"]
KINDS: tuple[Kind, ...] = get_args(Kind)


def draw(
    runs: Sequence[Run], kind: Kind, *, language: Language = "en", data_dir: str | None = None
) -> Figure:
    """Draw a figure of this kind for stored runs."""
    if kind not in KINDS:
        raise UsageError("plot_unknown_kind", kind=kind, kinds=[*KINDS])
    if kind == "latency" or kind == "tokens":
        sources = [(f"{run.manifest.model} · {run.id}", Samples(run, load=False)) for run in runs]
        return histogram(kind, sources, language)
    if kind == "difference":
        compared = compare(*runs, data_dir=data_dir)
        incomparable_pair = next(
            (pair for pair in compared.comparisons if pair.obstacle is not None), None
        )
        if incomparable_pair is not None:
            raise UsageError("plot_not_comparable", problem=incomparable_pair.conclusion)
        return differences(compared.comparisons, language)
    results = [current_results(run, data_dir) for run in runs]
    drawings = {"forest": forest, "curve": curves_of_runs, "outcomes": outcomes}
    return drawings[kind](results, language)


# Forest plots: subsets with their intervals.

_PERCENTS = [(tick / 100, f"{tick} %") for tick in (0, 25, 50, 75, 100)]


class _RunValues(NamedTuple):
    """The result of one run in one row."""

    value: float | None
    ends: Ends | None
    bounds: Ends | None
    chance: float | None
    n: int

    @classmethod
    def overall(cls, entry: ResultEntry, labels: Labels) -> _RunValues:
        """Return the headline of an entry."""
        metric, chance = fmt.display_metrics(entry, labels)[0].metric, entry.metrics.get("chance")
        level = chance.value if chance else None
        return cls(metric.value, metric.ci95, metric.bounds, level, metric.n)

    @classmethod
    def subset(cls, row: SubsetRow) -> _RunValues:
        """Return the result of a subset."""
        return cls(row.accuracy, row.ci95, row.bounds, row.chance, row.n)

    def describe(self, labels: Labels) -> str:
        """Describe the result in words."""
        ends = labels("in_brackets", text=interval(self.ends, 1)) if self.ends else ""
        figure = f"{share(self.value, self.bounds)}{ends}"
        return labels("clause_separator").join([figure, f"n {count(self.n)}"])

    def mark(self, place: int) -> dict[str, Any]:
        """Return the mark of the result in the colour of its series."""
        fields = self._asdict()
        return {"kind": "point", "class_": series(place)} | fields


_ABSENT = _RunValues(None, None, None, None, 0)


def forest(results: Sequence[Results], language: Language = "en") -> Figure:
    """Draw the headline and the subsets of runs with their intervals, on a scale from 0 to 100 %.

    An exam of several runs gets one chart, with a mark for each run.
    """
    labels = Labels(language)
    sheet = ChartSheet(labels("plot.forest"), _subtitle(results, labels), labels)
    sheet.legend([_run_title(run_results) for run_results in results])
    for title, entries in _entries_by_title(results).items():
        sheet.heading(title)
        first_entry = next(entry for entry in entries if entry is not None)
        headlines = [_RunValues.overall(entry, labels) if entry else _ABSENT for entry in entries]
        title = fmt.display_metrics(first_entry, labels)[0].title
        rows = [_row(title, headlines, labels, strong=True)]
        names: dict[str, str] = {}
        figures_by_subset: list[dict[str, _RunValues]] = []
        for entry in entries:
            answered = fmt.answered_rows(entry.subsets) if entry else []
            names |= {row.name: labels.row(row) for row in answered}
            figures_by_subset.append({row.name: _RunValues.subset(row) for row in answered})
        for name, label in names.items():
            rows.append(
                _row(
                    label,
                    [subset_figures.get(name, _ABSENT) for subset_figures in figures_by_subset],
                    labels,
                )
            )
        sheet.rows(rows, _PERCENTS, 0.0)
    return sheet.figure()


def _row(
    label: str, figures: Sequence[_RunValues], labels: Labels, *, strong: bool = False
) -> SheetRow:
    marks = [figure.mark(place) for place, figure in enumerate(figures)]
    words = [fmt.UNKNOWN if figure is _ABSENT else figure.describe(labels) for figure in figures]
    return SheetRow(label, marks, words, strong)


def _entries_by_title(results: Sequence[Results]) -> dict[str, list[ResultEntry | None]]:
    """Group the entries by exam, protocol, reader and arm; None if a run has no entry."""
    entries_by_title: dict[str, list[ResultEntry | None]] = {}
    for place, run_results in enumerate(results):
        for entry in run_results.benchmarks:
            title = f"{entry.full_name} · {fmt.protocol_line(entry)} · {entry.reader}"
            entries_by_title.setdefault(title, [None] * len(results))[place] = entry
    if not entries_by_title:
        raise UsageError("plot_nothing")
    return entries_by_title


def _run_title(results: Results) -> str:
    return f"{results.model} · {results.run}" if results.run != results.model else results.run


def _subtitle(results: Sequence[Results], labels: Labels) -> str:
    """Return the subtitle: the run, if there is only one, and the legend."""
    run_titles = [_run_title(results[0])] if len(results) == 1 else []
    return " · ".join([*run_titles, labels("plot.legend")])


# Accuracy against difficulty.

CHARTS_PER_ROW = 3
"""The number of charts of subsets in a row."""


def curves_of_runs(results: Sequence[Results], language: Language = "en") -> Figure:
    """Draw accuracy against difficulty of runs on one scale: the whole exam, then each subset."""
    labels = Labels(language)
    curves_by_key = _curves_by_key(results)
    if not curves_by_key:
        raise UsageError("plot_no_curve")
    is_single = len(results) == 1
    subtitle = labels("curve.legend" if is_single else "curve.legend_several")
    sheet = ChartSheet(labels("curve.title"), subtitle, labels)
    sheet.legend([_run_title(run_results) for run_results in results])
    for key, run_curves in curves_by_key.items():
        sheet.heading(" · ".join([*key, *([_run_title(results[0])] if is_single else [])]))
        _draw_curves(sheet, run_curves, labels)
    return sheet.figure()


def _curves_by_key(
    results: Sequence[Results],
) -> dict[tuple[str, str, str], list[Curve | None]]:
    """Return the curve of each run by exam, protocol and reader; None where a run has none."""
    curves_by_key: dict[tuple[str, str, str], list[Curve | None]] = {}
    for place, run_results in enumerate(results):
        for curve in run_results.curves:
            key = (curve.exam, curve.protocol, curve.reader)
            curves_by_key.setdefault(key, [None] * len(results))[place] = curve
    return curves_by_key


def _draw_curves(sheet: ChartSheet, run_curves: Sequence[Curve | None], labels: Labels) -> None:
    """Draw the curves of an exam, then the curves of each subset on the same scale."""
    curves = [curve for curve in run_curves if curve]
    levels = [point.difficulty for curve in curves for point in curve.points]
    scale = DifficultyScale.of(curves)
    ticks = [(scale.place(level), f"{level:g}") for level in sorted(set(levels))]
    sheet.curves([_chart(run_curves, scale, labels)], ticks, top=scale.top, per_row=1)
    names = dict.fromkeys(subset.subset for curve in curves for subset in curve.subsets)
    charts = [
        _chart([_subset(curve, name) if curve else None for curve in run_curves], scale, labels)
        for name in (names if len(names) > 1 else ())
    ]
    sheet.curves(charts, ticks, top=scale.top, per_row=CHARTS_PER_ROW)


def _subset(curve: Curve, name: str) -> Curve | None:
    return next(
        (subset for subset in curve.subsets if subset.subset == name and subset.points), None
    )


def _chart(
    run_curves: Sequence[Curve | None], scale: DifficultyScale, labels: Labels
) -> CurveChart:
    label = labels("pair_separator").join(
        curve_label(curve, labels) for curve in run_curves if curve
    )
    title = next((curve.subset or curve.exam for curve in run_curves if curve), "")
    return CurveChart(
        title, label, [draw_curve(curve, scale) if curve else None for curve in run_curves]
    )


# Outcomes of the replies by subset.


def outcomes(results: Sequence[Results], language: Language = "en") -> Figure:
    """Draw the shares of the outcomes by subset, which show how reliable each number is."""
    labels = Labels(language)
    sheet = ChartSheet(labels("plot.outcomes"), "", labels)
    for run_results in results:
        for entry in run_results.benchmarks:
            name = f"{entry.full_name} · {fmt.protocol_line(entry)} · {entry.reader}"
            sheet.heading(f"{name} · {_run_title(run_results)}")
            rows = [
                SheetRow(
                    labels.row(row),
                    [{"kind": "parts", "outcomes": row.outcomes}],
                    [
                        " · ".join(
                            fmt.describe_outcomes(
                                row.outcomes, labels, cut_right=row.cut_right, zeros=()
                            )
                        )
                    ],
                )
                for row in fmt.answered_rows(entry.subsets)
            ]
            sheet.rows(rows, _PERCENTS, 0.0)
    return sheet.figure()


# Paired differences.


def differences(comparisons: Sequence[Comparison], language: Language = "en") -> Figure:
    """Draw how two runs or arms differ on the same questions, in total and by subset."""
    labels = Labels(language)
    if not comparisons:
        raise UsageError("plot_no_pairs")
    sheet = ChartSheet(labels("plot.difference"), labels("plot.difference_legend"), labels)
    for pair in comparisons:
        sheet.heading(f"{pair.exam} · {pair.reader} · {pair.arm} − {pair.base}")
        if pair.difference is None:
            continue
        chart_rows: list[tuple[str, Comparison | SubsetChange, float | None]] = [
            (labels("plot.all"), pair, pair.p),
            *((s.name, s, s.p_adjusted) for s in pair.subsets),
        ]
        scale = scale_of(row for _, row, _ in chart_rows)
        rows = [
            SheetRow(name, [difference_mark(row, p, scale)], [_points(row)], strong=row is pair)
            for name, row, p in chart_rows
        ]
        sheet.rows(rows, difference_ticks(scale), 0.5)
    return sheet.figure()


def _points(row: Any) -> str:
    ends = f" ({100 * row.ci95[0]:+.1f} to {100 * row.ci95[1]:+.1f})" if row.ci95 else ""
    return f"{100 * row.difference:+.1f}{ends}, n {count(row.n)}"


# Histograms of the time and the tokens of replies.


def histogram(
    kind: Literal["latency", "tokens"],
    runs: Sequence[tuple[str, Samples]],
    language: Language = "en",
) -> Figure:
    """Draw a histogram of latencies or token counts for each run, all on one scale."""
    labels = Labels(language)
    runs_with_amounts = []
    for name, samples in runs:
        rows = (row for row in samples if row.error is None)
        amounts = array(
            "d", (row.seconds if kind == "latency" else row.output_tokens for row in rows)
        )
        if not amounts:
            raise UsageError("plot_nothing")
        runs_with_amounts.append((name, sorted(amounts)))
    top = scale_for(*(values for _, values in runs_with_amounts))
    sheet = ChartSheet(labels(f"plot.{kind}"), labels("plot.histogram_legend"), labels)
    for place, (name, values) in enumerate(runs_with_amounts):
        spread = make_histogram(values, top)
        title = labels("named", name=name, text=spread.describe(labels))
        sheet.heading(title)
        sheet.columns(spread.heights, spread.places, spread.ticks, title, series(place))
    return sheet.figure()
