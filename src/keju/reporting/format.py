"""Format numbers, texts and results for the terminal and the page.

An unknown value prints as a dash, never as 0.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, TextIO, TypeVar

from keju.benchmarks.base import Reference
from keju.benchmarks.expectations import PART_NAMES
from keju.messages import Language, fill, first_of, foreign, labels
from keju.messages import printable as printable
from keju.results.schema import (
    BEST,
    NO_GOLD,
    WHOLE_SET,
    WORST,
    ErrorCounts,
    Metric,
    ResultEntry,
    Results,
    SubsetRow,
)
from keju.runs.run import command_name
from keju.stats.estimate import Ends
from keju.types import ALL_OUTCOMES, OUTCOMES, UNGRADED, Outcome

UNKNOWN = "–"

# `canary GUID`, or `canary` followed by a GUID; not the bird alone.
_CANARY, _NAMED_CANARY = (
    re.compile("canary", re.IGNORECASE),
    re.compile(r"canary\W+guid", re.IGNORECASE),
)
# `26b5c67b-86bc-4bd1-90a3-3a2f8b1b2c6d`
_GUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)


_decimals: ContextVar[int] = ContextVar("decimals", default=2)


@contextmanager
def decimals_for(file: TextIO) -> Iterator[None]:
    """Use one decimal for percentages on a terminal, and two in a file or pipe."""
    with _decimals_set(1 if file.isatty() else 2):
        yield


@contextmanager
def one_decimal() -> Iterator[None]:
    """Use one decimal for percentages, as in notebooks."""
    with _decimals_set(1):
        yield


@contextmanager
def _decimals_set(digits: int) -> Iterator[None]:
    token = _decimals.set(digits)
    try:
        yield
    finally:
        _decimals.reset(token)


def decimals() -> int:
    """Return the usual number of decimals of a percentage; see `decimals_for`."""
    return _decimals.get()


def percent(value: float | None, digits: int | None = None) -> str:
    """Format a share in percent, e.g. ``63.59 %``; see `decimals_for`."""
    digits = _decimals.get() if digits is None else digits
    return UNKNOWN if value is None else f"{value * 100:.{digits}f} %"


def plain_number(value: float) -> str:
    """Format a number that is not a share, such as a perplexity: ``23.45``, ``1,234.5``."""
    return f"{value:,.1f}" if abs(value) >= 1000 else f"{value:.4g}"


def metric_figure(metric: Metric, digits: int | None = None) -> str:
    """Format the value of a metric in its unit, or its range if it has no value."""
    if metric.unit and metric.value is not None:
        return plain_number(metric.value)
    if metric.value is None and metric.bounds:
        return f"{interval(metric.bounds, digits)} %"
    return percent(metric.value, digits)


def metric_interval(metric: Metric, digits: int | None = None) -> str:
    """Format the interval of a metric in its unit, without a sign."""
    if metric.unit and metric.ci95 is not None:
        return "–".join(map(plain_number, metric.ci95))
    return interval(metric.ci95, digits)


def published(value: float | None) -> str:
    """Format a published share in percent without trailing zeros, e.g. ``67.7 %``."""
    return UNKNOWN if value is None else f"{value * 100:.2f}".rstrip("0").rstrip(".") + " %"


def interval(bounds: Sequence[float] | None, digits: int | None = None) -> str:
    """Format an interval of shares in percent without the sign, e.g. ``60.52–66.55``."""
    digits = _decimals.get() if digits is None else digits
    return "–".join(f"{end * 100:.{digits}f}" for end in bounds) if bounds else UNKNOWN


def count(value: int | None) -> str:
    """Format a whole number with thousands separators."""
    return UNKNOWN if value is None else f"{value:,}"


def compact(value: float) -> str:
    """Format a rate or a large count in few characters, e.g. ``4.1k``, ``0.025``."""
    for limit, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            scaled = value / limit
            return f"{scaled:.0f}{suffix}" if scaled >= 100 else f"{scaled:.1f}{suffix}"
    if 0 < value < 0.1:
        return f"{value:.2g}" if value >= 1e-4 else "0"
    return f"{value:.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"


def moment(timestamp: str) -> str:
    """Format a time in local time, e.g. ``2026-11-17 16:00``."""
    try:
        return datetime.fromisoformat(timestamp).astimezone().strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError):  # a manifest that was written by hand
        return timestamp


def money(value: float) -> str:
    """Format a cost in the currency of the user's price list, with more digits if it is small."""
    return f"{value:,.2f}" if value >= 1 else f"{value:.4f}"


def without_canary(text: str) -> str:
    """Return `text` without the lines that contain a data set's canary string."""
    if "canary" not in text.casefold():
        return text
    return "\n".join(line for line in text.split("\n") if not _has_canary(line))


def _has_canary(line: str) -> bool:
    """Return whether a line contains a canary string, in linear time."""
    if _NAMED_CANARY.search(line):
        return True
    match = _CANARY.search(line)
    return match is not None and _GUID.search(line, match.end()) is not None


def shorten(text: str, limit: int) -> str:
    """Return `text` on one line with at most `limit` characters."""
    text = printable(text, one_line=True)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def shorten_name(name: str, limit: int) -> str:
    """Shorten a name in its middle: similar names often differ at the end."""
    name = printable(name, one_line=True)
    if len(name) <= limit:
        return name
    start = (limit - 1) // 2
    return f"{name[:start]}…{name[start + 1 - limit :]}"


# The labels of a language.

# A metric of several attempts, e.g. ``pass@5``.
_ATTEMPTS = re.compile(r"(?P<stem>.+[@^])(?P<k>\d+)")
# The number of parts of a mean, e.g. ``mean of 27 subsets``, ``mean of the 14 categories``.
_COUNTED = re.compile(r"\bmean of (?:the )?(?P<whole>\d+)\b")

# The arm of one difficulty among several, e.g. ``difficulty-0.25``.
_LEVEL = re.compile(r"difficulty-[\d.]+")


class Labels:
    """The labels of one language; a call fills the placeholders of one label."""

    def __init__(self, language: Language = "en") -> None:
        self.language = language
        self._texts = labels(language)

    def __call__(self, key: str, **values: Any) -> str:
        """Return the label `key` with its placeholders filled; raise KeyError if it is unknown."""
        return fill(self._texts[key], values) if values else self._texts[key]

    def word(self, key: str) -> str:
        """Return the label `key` in lower case, for use inside a line."""
        return self(key).lower()

    def get(self, key: str, default: str) -> str:
        """Return the label `key` if the catalogue has it, otherwise the default."""
        return self._texts.get(key, default)

    def metric(self, name: str, title: str) -> str:
        """Return the title of a metric: in English its own title, otherwise from the catalogue."""
        if title and self.language == "en":
            return title
        attempts = _ATTEMPTS.fullmatch(name)
        key, k = (f"{attempts['stem']}k", attempts["k"]) if attempts else (name, "")
        text = self._texts.get(f"metric.{key}")
        return title or name.replace("_", " ") if text is None else text.format(k=k)

    def mean(self, name: str, metric: Metric) -> str:
        """Return the title of a metric; it says so if the mean covers only some of the subsets."""
        title = self.metric(name, metric.title)
        if not metric.partial:
            return title
        if name == WHOLE_SET:
            return self("whole_set_partial", subsets=metric.strata or UNKNOWN)
        counted = _COUNTED.search(title)
        total = int(counted["whole"]) if counted else metric.tasks_published
        if total is None or metric.tasks is None or metric.tasks == total:
            return title
        if counted is None:
            return self("mean_partial", title=title, part=metric.tasks, whole=total)
        number = self("part_of_whole", part=metric.tasks, whole=total)
        return f"{title[: counted.start('whole')]}{number}{title[counted.end('whole') :]}"

    def row(self, row: SubsetRow) -> str:
        """Return the title of a subset or group, followed by its name if they differ.

        The title of a partial group says so.
        """
        title = self.metric(row.name, row.title or row.name)
        if title in ("", row.name):
            title = row.name
        else:
            title += self("in_brackets", text=row.name)
        return self("marked_partial", title=title) if row.partial else title

    def outcome_count(self, row: SubsetRow | ResultEntry, outcome: Outcome) -> str:
        """Return the number of replies with an outcome; for truncated ones also how many are right.

        This way, the counts of a row add up to its accuracy.
        """
        n = count(row.outcomes.get(outcome, 0))
        if outcome != "truncated" or not row.cut_right:
            return n
        return self("truncated_right", n=n, right=count(row.cut_right))

    def graded_count(self, row: SubsetRow | ResultEntry) -> str:
        """Return the number of graded questions and of ungraded ones: ``28 (+8 ungraded)``."""
        if not row.ungraded:
            return count(row.n)
        return self("n_ungraded", n=count(row.n), ungraded=count(row.ungraded))

    def arm(self, name: str) -> str:
        """Return an arm in words, ``arm calc``; the name of a difficulty stays as it is."""
        return name if _LEVEL.fullmatch(name) else self("arm", arm=name)

    def duration(self, seconds: float | None) -> str:
        """Format a time span in its two largest units, e.g. ``2 h 05 min``."""
        if seconds is None:
            return UNKNOWN
        rounded = round(seconds)
        if rounded < 60:
            return self("span.seconds", n=f"{seconds:.1f}" if seconds < 10 else rounded)
        if rounded < 3600:
            return self("span.minutes", minutes=rounded // 60, seconds=rounded % 60)
        return self("span.hours", hours=rounded // 3600, minutes=rounded % 3600 // 60)

    def reason(self, code: str) -> str:
        """Return why no answer was read or the request failed; an unknown code stays as it is."""
        return self.get(f"reason.{code}", self.get(f"fault.{code}", code))

    def warnings(self, entry: ResultEntry) -> list[str]:
        """Return the warnings of an entry; a warning with an unknown code stays in English."""
        if self.language == "en":
            return list(entry.warnings)
        return [
            sentence if (text := notice.text(self.language)) == notice.code else text
            for notice, sentence in zip(entry.notices, entry.warnings, strict=True)
        ]


# Descriptions of an entry of the results.

DISAGREEMENTS_SHOWN = 20
ERRATA_NAMED = 5
GUESSING = "random guessing"
"""The name of published chance levels of a whole exam; a subset's chance level is computed."""
Rows = TypeVar("Rows", SubsetRow, ResultEntry)
_SEPARATE_METRICS = (WORST, BEST, "chance")
"""Metrics that are shown separately from the means."""
_EXAMPLE_LENGTH = 200

# A metric of one kind of question, e.g. ``accuracy[category=Genomics]``.
_KIND_METRIC = re.compile(r"(?P<metric>[^\[]+)\[(?P<kind>[^=]+)=(?P<value>.*)\]", re.DOTALL)


class ShownMetric(NamedTuple):
    """A metric with its title."""

    name: str
    title: str
    metric: Metric

    def marked_title(self, labels: Labels) -> str:
        """Return the title for places without notes; the title of a partial metric says so."""
        return labels("marked_partial", title=self.title) if self.metric.partial else self.title


class MetricBreakdown(NamedTuple):
    """One metric by kind of question; its metrics are named ``metric[kind=value]``."""

    kind: str
    metric: str
    rows: list[SubsetRow]


def display_metrics(entry: ResultEntry, labels: Labels) -> list[ShownMetric]:
    """Return the headline and the metrics that have no separate table."""
    headline_name = entry.headline if entry.headline in entry.metrics else next(iter(entry.metrics))
    excluded = {headline_name, *_SEPARATE_METRICS, *(group.name for group in entry.groups)}
    excluded |= {*PART_NAMES} - {headline_name}
    names = [
        n for n in distinct_metrics(entry) if n not in excluded and not _KIND_METRIC.fullmatch(n)
    ]
    return [
        ShownMetric(name, labels.mean(name, entry.metrics[name]), entry.metrics[name])
        for name in (headline_name, *names)
    ]


def distinct_metrics(entry: ResultEntry) -> dict[str, Metric]:
    """Return the metrics of an entry; of equal means over the same tasks only one.

    An exam whose groups cover all its tasks may have ``macro_accuracy`` under a second name. The
    headline is preferred, then the first name.
    """
    groups = {group.name for group in entry.groups}
    names = sorted(entry.metrics, key=lambda name: name != entry.headline)
    names_by_value: dict[object, str] = {}
    for name in names:
        metric = entry.metrics[name]
        is_mean = None not in (metric.tasks, metric.value) and name not in groups
        mean = (metric.tasks, metric.n, round(metric.value or 0.0, 12), interval(metric.bounds))
        names_by_value.setdefault(mean if is_mean else name, name)
    kept_names = set(names_by_value.values())
    return {name: metric for name, metric in entry.metrics.items() if name in kept_names}


def published_metrics(entry: ResultEntry) -> list[str]:
    """Return the overall metrics that the exam's publication reports, without those of groups."""
    groups = {group.name for group in entry.groups}
    names = dict.fromkeys(name for r in entry.reference for name in r.overall)
    return [name for name in names if name in entry.metrics and name not in groups]


def group_equal_metrics(metrics: Iterable[ShownMetric]) -> list[list[ShownMetric]]:
    """Group metrics that have the same value over the same answers."""
    groups: dict[object, list[ShownMetric]] = {}
    for shown_metric in metrics:
        value, n, bounds = (
            shown_metric.metric.value,
            shown_metric.metric.n,
            shown_metric.metric.bounds,
        )
        key = shown_metric.name if value is None else (round(value, 9), n, interval(bounds))
        groups.setdefault(key, []).append(shown_metric)
    return list(groups.values())


class Headline(NamedTuple):
    """The number of an entry, or the words that replace it."""

    figure: str
    """``63.59 %``; ``13.89–36.11 %`` if too many replies have no grade; empty without labels."""
    title: str
    note: str
    """The kind of number, if it is not the usual one."""


def headline_of(entry: ResultEntry, run: str, labels: Labels) -> Headline:
    """Return the headline of an entry; it never covers only a selection of the replies."""
    headline_metric, *_ = display_metrics(entry, labels)
    metric, bounds = headline_metric.metric, headline_metric.metric.bounds
    if not answered_rows([entry]):
        return Headline("", labels("no_answers"), "")
    if entry.gold == NO_GOLD:
        flags = {"no_gold_submission": "", "no_gold_partial": " --partial"}
        flag = next((flags[notice.code] for notice in entry.notices if notice.code in flags), None)
        note = "" if flag is None else f"keju export {run or 'RUN'} --format submission{flag}"
        return Headline("", labels("no_score"), note)
    if entry.grader and bounds and metric.value is not None:
        best = percent(bounds[1])
        # Only a file of predictions has a choice of gold answers, and it is not a run.
        command = f"keju judge {'RUN' if entry.gold or not run else run}"
        note = labels("exact_note", best=best, command=command)
        return Headline(percent(metric.value), labels("exact_match"), note)
    if bounds is None:
        return Headline(metric_figure(metric), headline_metric.title, "")
    total = sum(entry.outcomes[outcome] for outcome in OUTCOMES)
    ungraded = {"part": count(sum(entry.outcomes[outcome] for outcome in UNGRADED))}
    if metric.value is None:
        note = labels("range_note", whole=count(total), **ungraded)
    else:
        note = labels("range_beside", range=share(None, bounds), **ungraded)
    return Headline(share(metric.value, bounds), headline_metric.title, note)


def describe_questions(entry: ResultEntry, title: str, labels: Labels) -> str:
    """Describe the questions of an entry in one sentence."""
    subsets = len(answered_rows(entry.subsets))
    key = "asked_subsets" if subsets > 1 else "asked"
    reply_count = sum(entry.outcomes.values())
    return labels(
        key,
        n=count(reply_count // max(1, entry.repeats)),
        exam=title,
        subsets=subsets,
        protocol=protocol_line(entry),
        reader=entry.reader,
    )


def run_command_name(results: Results) -> str:
    """Return the name of the run in commands; without a run folder, this is its id."""
    return command_name(Path(results.folder)) if results.folder else results.run


class ExamOverview(NamedTuple):
    """One exam in the overview of several."""

    entry: ResultEntry
    figure: str
    """The headline, followed by the range that ungraded replies leave; or words."""
    ci95: Ends | None
    metric: str
    """The kind of number."""


def overview(results: Results, labels: Labels) -> list[ExamOverview]:
    """Return the headlines of several exams; empty for a single exam."""
    rows = []
    for entry in results.benchmarks if len(families(results)) > 1 else ():
        headline, headline_metric = (
            headline_of(entry, run_command_name(results), labels),
            display_metrics(entry, labels)[0],
        )
        metric = headline_metric.name if headline.title == headline_metric.title else headline.title
        if not headline.figure:
            rows.append(ExamOverview(entry, headline.title, None, ""))
            continue
        value, bounds = headline_metric.metric.value, headline_metric.metric.bounds
        has_range = bounds and value is not None
        range_note = labels("in_brackets", text=interval(bounds)) if has_range else ""
        rows.append(
            ExamOverview(entry, headline.figure + range_note, headline_metric.metric.ci95, metric)
        )
    return rows


def share(value: float | None, bounds: Sequence[float] | None = None) -> str:
    """Format a share in percent, or its range if it has no value."""
    return f"{interval(bounds)} %" if value is None and bounds else percent(value)


def breakdowns(entry: ResultEntry, labels: Labels) -> list[MetricBreakdown]:
    """Return metrics of kinds of questions as tables."""
    tables: dict[tuple[str, str], list[SubsetRow]] = {}
    for name, metric in entry.metrics.items():
        if parts := _KIND_METRIC.fullmatch(name):
            value, ends = metric.value, metric.ci95
            row = SubsetRow(
                name=parts["value"],
                n=metric.n,
                accuracy=value,
                ci95=ends,
                outcomes={},
                bounds=metric.bounds,
            )
            tables.setdefault((parts["kind"], parts["metric"]), []).append(row)
    return [
        MetricBreakdown(
            labels.get(f"kind.{kind}", kind.replace("_", " ")),
            labels.get(metric, metric.replace("_", " ")),
            rows,
        )
        for (kind, metric), rows in tables.items()
    ]


def metric_titles(entry: ResultEntry, labels: Labels) -> dict[str, str]:
    """Return the titles of the metrics by name."""
    groups = {row.name: labels.metric(row.name, row.title or row.name) for row in entry.groups}
    metrics = {
        shown_metric.name: shown_metric.metric for shown_metric in display_metrics(entry, labels)
    }
    return groups | {name: labels.metric(name, metric.title) for name, metric in metrics.items()}


def published_titles(entry: ResultEntry, labels: Labels) -> dict[str, str]:
    """Return the titles of the published means that this run covers completely, by name."""
    titles = metric_titles(entry, labels)
    complete_names = {name for name, metric in entry.metrics.items() if not metric.partial}
    published = (name for reference in entry.reference for name in reference.overall)
    names = dict.fromkeys(name for name in published if name in complete_names)
    return {name: titles.get(name) or labels.metric(name, "") for name in names}


def reference_name(reference: Reference, labels: Labels) -> str:
    """Return the source of published scores."""
    return labels.get(f"reference.{reference.name}", reference.name)


def subset_references(entry: ResultEntry) -> list[Reference]:
    """Return the published scores that exist for single subsets."""
    return [r for r in entry.reference if r.subsets and r.name != GUESSING]


def protocol_line(entry: ResultEntry) -> str:
    """Return protocol and version as one word, e.g. ``paper@1``."""
    version = entry.protocol_version
    return f"{entry.protocol}@{version}" if version else entry.protocol


def families(results: Results) -> list[list[ResultEntry]]:
    """Group the entries of the same benchmark, protocol and arm: one entry for each reader."""
    groups: dict[tuple[str, str, str], list[ResultEntry]] = {}
    for entry in results.benchmarks:
        groups.setdefault((entry.name, protocol_line(entry), entry.arm), []).append(entry)
    return list(groups.values())


def answered_rows(rows: Iterable[Rows]) -> list[Rows]:
    """Return the rows that have any answer; an interrupted run leaves rows without one."""
    return [row for row in rows if row.n or any(row.outcomes.values())]


def describe_partial_groups(entry: ResultEntry, labels: Labels) -> str:
    """Explain the mark of partial groups; empty if no group is partial."""
    is_partial = any(row.partial for row in answered_rows(entry.groups))
    return labels("partial_groups") if is_partial else ""


def occurring_outcomes(rows: Iterable[SubsetRow | ResultEntry]) -> list[Outcome]:
    """Return the outcomes that occur, and ``correct`` if an answer could have been correct."""
    occurring = {o for row in rows for o, n in row.outcomes.items() if n}
    if not occurring.isdisjoint(set(OUTCOMES) - set(UNGRADED)):
        occurring.add("correct")
    return [o for o in ALL_OUTCOMES if o in occurring]


def describe_incomplete(results: Results, labels: Labels) -> str:
    """Describe why the run is not complete, in one line; empty if it is complete."""
    if results.stopped:
        why = results.stop.text(labels.language) if results.stop else results.stopped
        return labels("stopped", why=why)
    return labels("incomplete") if results.complete is False else ""


def describe_outcomes(
    outcomes: Mapping[Outcome, int],
    labels: Labels,
    *,
    cut_right: int = 0,
    zeros: Collection[Outcome] = ("correct", "incorrect"),
) -> list[str]:
    """Describe the counts of outcomes; a count of zero is shown only for the outcomes `zeros`."""
    words = []
    for outcome in ALL_OUTCOMES:
        if outcomes.get(outcome) or outcome in zeros:
            is_right = outcome == "truncated" and cut_right
            code = f"counts.{outcome}_right" if is_right else f"counts.{outcome}"
            words.append(labels(code, n=count(outcomes.get(outcome, 0)), right=count(cut_right)))
    return words


def describe_signs(entry: ResultEntry, labels: Labels) -> str:
    """Describe what was noticed about the replies, in one line; empty if there is nothing."""
    parts = [labels(f"signs.{sign}", n=count(n)) for sign, n in entry.signs.items() if n]
    return labels("signs", signs=" · ".join(parts)) if parts else ""


def describe_errors(errors: ErrorCounts | None, labels: Labels) -> str:
    """Describe the kinds of errors in one line, the most frequent first; empty without errors."""
    if errors is None or not errors.kinds:
        return ""
    ranked = sorted(errors.kinds.items(), key=lambda kind_count: -kind_count[1])
    examples = {ranked[0][0]: errors.example} | errors.examples
    kinds = []
    for kind, n in ranked:
        kinds.append(labels("error_kind", kind=labels.get(f"fault.{kind}", kind), n=count(n)))
        if example := shorten(examples.get(kind, ""), _EXAMPLE_LENGTH):
            translated = foreign(example, labels.language)
            kinds[-1] = labels("error_example", kind=kinds[-1], example=translated)
    return labels("errors_line", kinds=labels("list_separator").join(kinds))


def describe_ungraded(entry: ResultEntry, labels: Labels) -> list[str]:
    """Describe how many answers have no grade and how they could change the accuracy."""
    total = sum(entry.outcomes[outcome] for outcome in UNGRADED)
    if entry.gold == NO_GOLD or not total:
        return []
    counts = {outcome: count(entry.outcomes[outcome]) for outcome in UNGRADED}
    words = [labels("left_out_note", **counts)]
    if WORST in entry.metrics and BEST in entry.metrics:
        worst, best = (percent(entry.metrics[name].value) for name in (WORST, BEST))
        words.append(labels("bounds", left_out=count(total), worst=worst, best=best))
    return words


def describe_errata(entry: ResultEntry, run: str, labels: Labels) -> str:
    """Describe the questions with known errors; empty if there are none.

    If not all of them are named, the text contains the command that lists them.
    """
    if entry.errata is None:
        return ""
    named_ids = first_of(entry.errata.ids, ERRATA_NAMED)
    n, names = count(entry.errata.n), labels("list_separator").join(named_ids)
    unnamed_count = entry.errata.n - len(named_ids)
    if not unnamed_count:
        return labels("errata_named", n=n, names=names)
    code = "errata_more" if names else "errata_note"
    return labels(code, n=n, names=names, rest=count(unnamed_count), run=run)


def describe_usage(entry: ResultEntry, labels: Labels) -> str:
    """Describe requests, tokens, cost and time in one line; empty without requests."""
    usage, timing = entry.usage, entry.timing
    if not usage.requests:
        return ""
    retries = usage.retries if isinstance(usage.retries, int) else 0
    line = labels("spent_requests", requests=count(usage.requests), retries=count(retries))
    if usage.input_tokens or usage.output_tokens:
        amounts = {"input": compact(usage.input_tokens), "output": compact(usage.output_tokens)}
        line += labels("spent_tokens", **amounts)
    if isinstance(usage.cost, float):
        line += labels("spent_cost", cost=money(usage.cost))
    if timing.seconds:
        line += labels("spent_time", time=labels.duration(timing.seconds))
    return line


def describe_gold(entry: ResultEntry, labels: Labels) -> str:
    """Describe which gold answers counted, in one line; empty without a choice."""
    if entry.gold in ("", NO_GOLD):
        return ""
    line = labels("gold_line", which=labels.get(f"gold.{entry.gold}", entry.gold))
    differs = entry.gold_differs
    return line + labels("gold_differs", n=count(differs)) if differs else line


def metric_notes(metric: Metric, labels: Labels) -> list[str]:
    """Describe how a metric was measured, each fact in a few words."""
    notes: list[str] = []
    if metric.method and metric.ci95 is not None:
        method = labels.get(f"method.{metric.method}", metric.method)
        notes.append(labels("interval_method", method=method))
    if metric.clusters is not None and isinstance(metric.deff, float):
        deff = f"{metric.deff:.2f}"
        notes.append(labels("clusters", clusters=metric.clusters, deff=deff))
    elif metric.clusters is not None:
        notes.append(labels("clusters_only", clusters=metric.clusters))
    if metric.partial:
        notes.append(labels("partial"))
    return notes
