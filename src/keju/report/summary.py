"""What a results document says, typed, once for the terminal and the page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keju.report.format import money, shorten
from keju.report.strings import Strings
from keju.types import OUTCOMES, Outcome

Bounds = tuple[float, float]

LEFT_OUT: tuple[Outcome, ...] = ("error", "ungraded")
"""Outcomes outside the denominator of the accuracy."""

DISAGREEMENTS_SHOWN = 20

WORST, BEST = "accuracy_worst", "accuracy_best"
_ASIDE = (WORST, BEST, "chance")
"""Metrics that are shown beside the means, not among them."""

_OF_A_KIND = re.compile(r"(?P<metric>[^\[]+)\[(?P<kind>[^=]+)=(?P<value>.*)\]", re.DOTALL)
"""A metric of one kind of question, e.g. ``accuracy[category=Genomics]``."""

_EXAMPLE_LENGTH = 200

NO_GOLD = "none"
"""What `Summary.gold` says where nothing could be scored for lack of gold answers."""

GUESSING = "random guessing"
"""Published figures that stand with the whole exam; a subset's own chance is computed."""


@dataclass(frozen=True)
class Estimate:
    """A metric with its interval and how it came about."""

    name: str
    title: str
    value: float | None
    ci95: Bounds | None
    n: int | None
    method: str = ""
    clusters: int | None = None
    deff: float | None = None
    partial: bool = False


@dataclass(frozen=True)
class Row:
    """One subset or group."""

    name: str
    title: str
    n: int
    accuracy: float | None
    ci95: Bounds | None
    chance: float | None
    outcomes: Mapping[Outcome, int]
    micro: float | None = None
    """For a group: the mean over its questions, beside `accuracy` over its subsets."""
    references: tuple[float | None, ...] = ()
    """In the order of the `subset_references` of the summary."""

    @property
    def label(self) -> str:
        """The title with the name behind it where they differ."""
        return f"{self.title} ({self.name})" if self.title not in ("", self.name) else self.name


@dataclass(frozen=True)
class Breakdown:
    """One metric by kind of question: what is named ``metric[kind=value]``."""

    kind: str
    metric: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Errors:
    """Why there was no usable reply: counts by kind, and one of the commonest."""

    kinds: Mapping[str, int]
    example: str


@dataclass(frozen=True)
class Reference:
    """Published figures of a whole exam, by metric name."""

    name: str
    overall: Mapping[str, float]


@dataclass(frozen=True)
class Summary:
    """One entry of ``benchmarks``."""

    name: str
    protocol: str
    version: str
    reader: str
    model: str
    n: int
    headline: Estimate
    others: tuple[Estimate, ...]
    breakdowns: tuple[Breakdown, ...]
    outcomes: Mapping[Outcome, int]
    errors: Errors | None
    bounds: Bounds | None
    chance: float | None
    references: tuple[Reference, ...]
    subset_references: tuple[str, ...]
    """Names of the published figures that are known for single subsets."""
    subsets: tuple[Row, ...]
    groups: tuple[Row, ...]
    warnings: tuple[str, ...]
    errata: int
    """How many of the questions asked are known to be faulty."""
    gold: str
    """Which gold answers counted, where there was a choice; ``none`` if there are none at all."""
    gold_differs: int
    """How many predictions carry another gold answer than the current one."""
    judge: Mapping[str, Any]
    """Who judged, what and at which cost; empty where nobody did."""
    usage: Mapping[str, Any]
    timing: Mapping[str, Any]

    @property
    def titles(self) -> dict[str, str]:
        """What the metrics are, by name."""
        named = {row.name: row.title or row.name for row in self.groups}
        return named | {e.name: e.title for e in (self.headline, *self.others)}

    @property
    def left_out(self) -> int:
        """How many answers are outside the accuracy's denominator, where there is an accuracy."""
        if self.gold == NO_GOLD:
            return 0
        return sum(self.outcomes[outcome] for outcome in LEFT_OUT)

    @property
    def protocol_line(self) -> str:
        """Protocol and version as one word, e.g. ``paper@1``."""
        return f"{self.protocol}@{self.version}" if self.version else self.protocol


def summarise(results: Mapping[str, Any], strings: Strings) -> list[Summary]:
    """The entries of a results document in their order."""
    model = str(results.get("model") or "")
    return [_summary(entry, model, strings) for entry in results.get("benchmarks", ())]


def how_it_ended(results: Mapping[str, Any], strings: Strings) -> str:
    """Why the run is not complete, in one line; empty if it is."""
    if results.get("stopped"):
        return strings("stopped", why=results["stopped"])
    return strings("incomplete") if results.get("complete") is False else ""


def by_benchmark(summaries: Iterable[Summary]) -> list[list[Summary]]:
    """Entries of the same benchmark and protocol together: one for each reader."""
    together: dict[tuple[str, str, str], list[Summary]] = {}
    for summary in summaries:
        key = (summary.name, summary.protocol_line, summary.model)
        together.setdefault(key, []).append(summary)
    return list(together.values())


def outcome_words(outcomes: Mapping[Outcome, int], strings: Strings) -> list[str]:
    """Counts in words; the zero ones only for correct and incorrect."""
    return [
        strings(f"counts.{outcome}", n=f"{outcomes[outcome]:,}")
        for outcome in OUTCOMES
        if outcomes[outcome] or outcome in ("correct", "incorrect")
    ]


def error_words(errors: Errors | None, strings: Strings) -> str:
    """The kinds of errors in one line, the commonest first; empty if there were none."""
    if errors is None or not errors.kinds:
        return ""
    ranked = sorted(errors.kinds.items(), key=lambda item: -item[1])
    kinds = [strings("error_kind", kind=kind, n=f"{n:,}") for kind, n in ranked]
    if errors.example:
        kinds[0] = strings("error_example", kind=kinds[0], example=errors.example)
    return strings("errors_line", kinds=strings("list_separator").join(kinds))


def judge_words(judge: Mapping[str, Any], strings: Strings) -> str:
    """Who judged how many answers, and what that cost, in one line; empty where nobody did."""
    if not judge:
        return ""
    counts = {name: f"{judge.get(name) or 0:,}" for name in ("judged", "ungraded")}
    line = strings("judge_line", model=str(judge.get("model")), **counts)
    if judge.get("cost") is None:
        return line
    return line + strings("judge_cost", cost=money(judge["cost"]))


def gold_words(summary: Summary, strings: Strings) -> str:
    """Which gold answers counted, in one line; empty where there was no choice."""
    if summary.gold in ("", NO_GOLD):
        return ""
    line = strings("gold_line", which=strings.known(f"gold.{summary.gold}", summary.gold))
    if not summary.gold_differs:
        return line
    return line + strings("gold_differs", n=f"{summary.gold_differs:,}")


def estimate_notes(estimate: Estimate, strings: Strings) -> list[str]:
    """How an estimate was made, each in a few words."""
    notes: list[str] = []
    if estimate.method:
        notes.append(strings("interval_method", method=estimate.method))
    if estimate.clusters is not None and estimate.deff is not None:
        notes.append(strings("clusters", clusters=estimate.clusters, deff=f"{estimate.deff:.2f}"))
    elif estimate.clusters is not None:
        notes.append(strings("clusters_only", clusters=estimate.clusters))
    if estimate.partial:
        notes.append(strings("partial"))
    return notes


def _summary(entry: Mapping[str, Any], model: str, strings: Strings) -> Summary:
    metrics: Mapping[str, Any] = entry.get("metrics") or {}
    estimates = {name: _estimate(name, m, strings) for name, m in metrics.items()}
    headline = _headline(entry, estimates, strings)
    groups = tuple(_row(g, strings) for g in entry.get("groups") or ())
    breakdowns, broken_down = _breakdowns(estimates, strings)
    shown_elsewhere = {headline.name, *_ASIDE, *(group.name for group in groups), *broken_down}
    references: Sequence[Mapping[str, Any]] = entry.get("reference") or ()
    by_subset = [r for r in references if r.get("subsets") and r["name"] != GUESSING]
    return Summary(
        name=str(entry["name"]),
        protocol=str(entry.get("protocol") or ""),
        version=str(entry.get("protocol_version") or ""),
        reader=str(entry.get("reader") or ""),
        model=str(entry.get("model") or model),
        n=int(entry.get("n") or 0),
        headline=headline,
        others=tuple(e for name, e in estimates.items() if name not in shown_elsewhere),
        breakdowns=breakdowns,
        outcomes=_outcomes(entry.get("outcomes")),
        errors=_errors(entry.get("errors")),
        bounds=_bounds(estimates),
        chance=_number(metrics.get("chance", entry.get("chance"))),
        references=tuple(Reference(_named(r, strings), r.get("overall") or {}) for r in references),
        subset_references=tuple(_named(r, strings) for r in by_subset),
        subsets=tuple(_row(s, strings, by_subset) for s in entry.get("subsets") or ()),
        groups=groups,
        warnings=tuple(strings.warning(str(w)) for w in entry.get("warnings") or ()),
        errata=int((entry.get("errata") or {}).get("n", 0)),
        gold=str(entry.get("gold") or ""),
        gold_differs=int(entry.get("gold_differs") or 0),
        judge=entry.get("judge") or {},
        usage=entry.get("usage") or {},
        timing=entry.get("timing") or {},
    )


def _named(reference: Mapping[str, Any], strings: Strings) -> str:
    name = str(reference["name"])
    return strings.known(f"reference.{name}", name)


def _headline(
    entry: Mapping[str, Any], estimates: Mapping[str, Estimate], strings: Strings
) -> Estimate:
    name = str(entry.get("headline") or "accuracy")
    if name in estimates:
        return estimates[name]
    if estimates:
        return next(iter(estimates.values()))
    return _estimate(name, {}, strings)


def _estimate(name: str, metric: Any, strings: Strings) -> Estimate:
    if not isinstance(metric, Mapping):
        metric = {"value": metric}
    method = str(metric.get("method") or "")
    return Estimate(
        name=name,
        title=strings.metric(name, str(metric.get("title") or "")),
        value=_number(metric.get("value")),
        ci95=_pair(metric.get("ci95")),
        n=metric.get("n"),
        method=strings.known(f"method.{method}", method),
        clusters=metric.get("clusters"),
        deff=_number(metric.get("deff")),
        partial=bool(metric.get("partial")),
    )


def _breakdowns(
    estimates: Mapping[str, Estimate], strings: Strings
) -> tuple[tuple[Breakdown, ...], set[str]]:
    """Metrics of kinds of questions as tables, and the names of the metrics that are in them."""
    tables: dict[tuple[str, str], list[Row]] = {}
    taken: set[str] = set()
    for name, estimate in estimates.items():
        found = _OF_A_KIND.fullmatch(name)
        if found is None:
            continue
        taken.add(name)
        row = Row(
            name=found["value"],
            title=found["value"],
            n=estimate.n or 0,
            accuracy=estimate.value,
            ci95=estimate.ci95,
            chance=None,
            outcomes=_outcomes(None),
        )
        tables.setdefault((found["kind"], found["metric"]), []).append(row)
    return tuple(
        Breakdown(
            strings.known(f"kind.{kind}", kind.replace("_", " ")),
            strings.known(metric, metric.replace("_", " ")),
            tuple(rows),
        )
        for (kind, metric), rows in tables.items()
    ), taken


def _errors(errors: Any) -> Errors | None:
    if not isinstance(errors, Mapping):
        return None
    kinds = {str(kind): int(n) for kind, n in (errors.get("kinds") or {}).items()}
    return Errors(kinds, shorten(str(errors.get("example") or ""), _EXAMPLE_LENGTH))


def _row(
    row: Mapping[str, Any],
    strings: Strings,
    references: Sequence[Mapping[str, Any]] = (),
) -> Row:
    name = str(row["name"])
    return Row(
        name=name,
        title=strings.metric(name, str(row.get("title") or name)),
        n=int(row.get("n") or 0),
        accuracy=_number(row.get("accuracy")),
        ci95=_pair(row.get("ci95")),
        chance=_number(row.get("chance")),
        outcomes=_outcomes(row.get("outcomes")),
        micro=_number(row.get("micro_accuracy")),
        references=tuple(_number(r["subsets"].get(name)) for r in references),
    )


def _outcomes(counts: Mapping[str, int] | None) -> dict[Outcome, int]:
    return {outcome: int((counts or {}).get(outcome, 0)) for outcome in OUTCOMES}


def _bounds(estimates: Mapping[str, Estimate]) -> Bounds | None:
    """The accuracy if all that is left out were wrong, and if it were right."""
    ends = [estimates[name].value for name in (WORST, BEST) if name in estimates]
    return _pair(ends) if len(ends) == 2 else None


def _number(value: Any) -> float | None:
    if isinstance(value, Mapping):
        value = value.get("value")
    return None if value is None else float(value)


def _pair(value: Any) -> Bounds | None:
    if value is None or value[0] is None or value[1] is None:
        return None
    return float(value[0]), float(value[1])
