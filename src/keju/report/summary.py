"""What a results document says, typed, once for the terminal and the page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keju.report.strings import Strings
from keju.types import OUTCOMES, Outcome

Bounds = tuple[float, float]

LEFT_OUT: tuple[Outcome, ...] = ("error", "ungraded")
"""Outcomes outside the denominator of the accuracy."""

DISAGREEMENTS_SHOWN = 20


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
    partial: bool | str = False


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
    references: tuple[float | None, ...] = ()

    @property
    def label(self) -> str:
        """The title with the name behind it where they differ."""
        return f"{self.title} ({self.name})" if self.title not in ("", self.name) else self.name


@dataclass(frozen=True)
class Reference:
    """Published figures: by metric name."""

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
    outcomes: Mapping[Outcome, int]
    bounds: Bounds | None
    chance: float | None
    references: tuple[Reference, ...]
    subsets: tuple[Row, ...]
    groups: tuple[Row, ...]
    warnings: tuple[str, ...]
    errata: Mapping[str, str]
    errata_count: int
    usage: Mapping[str, Any]
    timing: Mapping[str, Any]

    @property
    def left_out(self) -> int:
        """How many answers are outside the accuracy's denominator."""
        return sum(self.outcomes[outcome] for outcome in LEFT_OUT)

    @property
    def protocol_line(self) -> str:
        """Protocol and version as one word, e.g. ``paper@1``."""
        return f"{self.protocol}@{self.version}" if self.version else self.protocol


def summarise(results: Mapping[str, Any], strings: Strings) -> list[Summary]:
    """The entries of a results document in their order."""
    model = str(results.get("model") or "")
    return [_summary(entry, model, strings) for entry in results.get("benchmarks", ())]


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


def estimate_notes(estimate: Estimate, strings: Strings) -> list[str]:
    """How an estimate was made, each in a few words."""
    notes: list[str] = []
    if estimate.method:
        notes.append(strings("interval_method", method=estimate.method))
    if estimate.clusters is not None and estimate.deff is not None:
        notes.append(strings("clusters", clusters=estimate.clusters, deff=f"{estimate.deff:.2f}"))
    elif estimate.clusters is not None:
        notes.append(strings("clusters_only", clusters=estimate.clusters))
    if isinstance(estimate.partial, str) and estimate.partial:
        notes.append(strings("partial_why", why=estimate.partial))
    elif estimate.partial:
        notes.append(strings("partial"))
    return notes


def _summary(entry: Mapping[str, Any], model: str, strings: Strings) -> Summary:
    metrics: Mapping[str, Any] = entry.get("metrics") or {}
    estimates = {name: _estimate(name, m, strings) for name, m in metrics.items()}
    headline = _headline(entry, estimates, strings)
    outcomes = _outcomes(entry.get("outcomes"))
    references = entry.get("reference") or entry.get("references") or ()
    errata = entry.get("errata") or {}
    return Summary(
        name=str(entry["name"]),
        protocol=str(entry.get("protocol") or ""),
        version=str(entry.get("protocol_version") or entry.get("version") or ""),
        reader=str(entry.get("reader") or ""),
        model=str(entry.get("model") or model),
        n=int(entry.get("n") or 0),
        headline=headline,
        others=tuple(e for name, e in estimates.items() if name not in (headline.name, "chance")),
        outcomes=outcomes,
        bounds=_bounds(entry, estimates.get("accuracy"), outcomes),
        chance=_number(entry.get("chance", metrics.get("chance"))),
        references=tuple(Reference(str(r["name"]), r.get("overall") or {}) for r in references),
        subsets=tuple(_row(s, references, strings) for s in entry.get("subsets") or ()),
        groups=tuple(_row(g, (), strings) for g in entry.get("groups") or ()),
        warnings=tuple(_warning(w, strings) for w in entry.get("warnings") or ()),
        errata=errata if isinstance(errata, Mapping) else {},
        errata_count=errata if isinstance(errata, int) else len(errata),
        usage=entry.get("usage") or {},
        timing=entry.get("timing") or {},
    )


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
    given = str(metric.get("title") or "")
    title = strings.known(f"metric.{name}", given or name.replace("_", " "))
    return Estimate(
        name=name,
        title=given if given and strings.language == "en" else title,
        value=_number(metric.get("value")),
        ci95=_pair(metric.get("ci95")),
        n=metric.get("n"),
        method=str(metric.get("method") or ""),
        clusters=metric.get("clusters"),
        deff=_number(metric.get("deff")),
        partial=metric.get("partial") or False,
    )


def _row(
    row: Mapping[str, Any], references: Sequence[Mapping[str, Any]], strings: Strings
) -> Row:
    name = str(row["name"])
    title = strings.known(f"metric.{name}", str(row.get("title") or ""))
    return Row(
        name=name,
        title=title if strings.language == "zh" else str(row.get("title") or ""),
        n=int(row.get("n") or 0),
        accuracy=_number(row.get("accuracy", row.get("value"))),
        ci95=_pair(row.get("ci95")),
        chance=_number(row.get("chance")),
        outcomes=_outcomes(row.get("outcomes")),
        references=tuple(_number((r.get("subsets") or {}).get(name)) for r in references),
    )


def _outcomes(counts: Mapping[str, int] | None) -> dict[Outcome, int]:
    return {outcome: int((counts or {}).get(outcome, 0)) for outcome in OUTCOMES}


def _bounds(
    entry: Mapping[str, Any], accuracy: Estimate | None, outcomes: Mapping[Outcome, int]
) -> Bounds | None:
    """The accuracy if all that is left out were wrong, and if it were right."""
    given = entry.get("bounds")
    if isinstance(given, Mapping):
        given = (given.get("worst"), given.get("best"))
    if given is not None:
        return _pair(given)
    left_out = sum(outcomes[outcome] for outcome in LEFT_OUT)
    total = sum(outcomes.values())
    if not left_out or left_out == total or accuracy is None or accuracy.value is None:
        return None
    points = accuracy.value * (total - left_out)
    return points / total, (points + left_out) / total


def _warning(warning: Any, strings: Strings) -> str:
    """A warning's text; one with a code is said in the reader's language where that is known."""
    if not isinstance(warning, Mapping):
        return str(warning)
    text = str(warning.get("text") or warning.get("message") or warning.get("code") or "")
    template = strings.known(f"warning.{warning.get('code')}", "")
    try:
        return template.format(**warning) if template else text
    except (KeyError, ValueError):
        return text


def _number(value: Any) -> float | None:
    if isinstance(value, Mapping):
        value = value.get("value")
    return None if value is None else float(value)


def _pair(value: Any) -> Bounds | None:
    if value is None or value[0] is None or value[1] is None:
        return None
    return float(value[0]), float(value[1])
