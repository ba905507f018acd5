"""Numbers, texts and results in words, once for the terminal and the page.

A value that is not known prints as a dash, never 0.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from keju.benchmarks.base import Reference
from keju.messages import Language, fill, first_of, foreign, labels
from keju.messages import printable as printable
from keju.results.schema import (
    BEST,
    NO_GOLD,
    WHOLE_SET,
    WORST,
    Entry,
    Errors,
    Metric,
    Results,
    Row,
)
from keju.runs.run import command_name
from keju.stats.estimate import Ends
from keju.types import ALL_OUTCOMES, OUTCOMES, UNGRADED, Outcome

UNKNOWN = "–"

# `canary GUID`, and `canary` with a GUID somewhere behind it; not the bird alone.
_CANARY, _NAMED_CANARY = (
    re.compile("canary", re.IGNORECASE),
    re.compile(r"canary\W+guid", re.IGNORECASE),
)
# `26b5c67b-86bc-4bd1-90a3-3a2f8b1b2c6d`
_GUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)


def percent(value: float | None, digits: int = 2) -> str:
    """A share in percent, e.g. ``63.59 %``."""
    return UNKNOWN if value is None else f"{value * 100:.{digits}f} %"


def published(value: float | None) -> str:
    """A published share in percent with no more digits than it needs, e.g. ``67.7 %``."""
    return UNKNOWN if value is None else f"{value * 100:.2f}".rstrip("0").rstrip(".") + " %"


def interval(bounds: Sequence[float] | None, digits: int = 2) -> str:
    """An interval of shares in percent without the sign, e.g. ``60.52–66.55``."""
    return "–".join(f"{end * 100:.{digits}f}" for end in bounds) if bounds else UNKNOWN


def count(value: int | None) -> str:
    """A whole number with thousands separated."""
    return UNKNOWN if value is None else f"{value:,}"


def compact(value: float) -> str:
    """A rate or a large count in few characters, e.g. ``4.1k``, ``0.025``."""
    for limit, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            scaled = value / limit
            return f"{scaled:.0f}{suffix}" if scaled >= 100 else f"{scaled:.1f}{suffix}"
    if 0 < value < 0.1:
        return f"{value:.2g}" if value >= 1e-4 else "0"
    return f"{value:.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"


def moment(stamp: str) -> str:
    """A time as a clock here shows it, e.g. ``2026-11-17 16:00``."""
    try:
        return datetime.fromisoformat(stamp).astimezone().strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError):  # a manifest that somebody wrote by hand
        return stamp


def money(value: float) -> str:
    """A cost in the currency of the user's price list, finer where it is small."""
    return f"{value:,.2f}" if value >= 1 else f"{value:.4f}"


def without_canary(text: str) -> str:
    """`text` without the lines that hold a data set's canary string."""
    if "canary" not in text.casefold():
        return text
    return "\n".join(line for line in text.split("\n") if not _has_canary(line))


def _has_canary(line: str) -> bool:
    """Whether a line holds a canary string; in time that grows with the line and no faster."""
    if _NAMED_CANARY.search(line):
        return True
    first = _CANARY.search(line)
    return first is not None and _GUID.search(line, first.end()) is not None


def shorten(text: str, limit: int) -> str:
    """`text` on one line and at most `limit` characters long."""
    text = printable(text, one_line=True)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def shorten_name(name: str, limit: int) -> str:
    """The two ends of a name: names of a kind differ late (``tracking_shuf…_seven_objects``)."""
    name = printable(name, one_line=True)
    if len(name) <= limit:
        return name
    start = (limit - 1) // 2
    return f"{name[:start]}…{name[start + 1 - limit :]}"


# The words of a language.

# A metric of so many attempts, e.g. ``pass@5``.
_ATTEMPTS = re.compile(r"(?P<stem>.+[@^])(?P<k>\d+)")
# How many a mean is of, e.g. ``mean of 27 subsets``, ``mean of the 14 categories``.
_COUNTED = re.compile(r"\bmean of (?:the )?(?P<whole>\d+)\b")

# The arm of one difficulty among several, e.g. ``difficulty-0.25``.
_LEVEL = re.compile(r"difficulty-[\d.]+")


class Labels:
    """The labels of one language; a call fills the placeholders of one of them."""

    def __init__(self, language: Language = "en") -> None:
        self.language = language
        self._texts = labels(language)

    def __call__(self, key: str, **values: Any) -> str:
        """The label `key` with its placeholders filled; an unknown key is a programming error."""
        return fill(self._texts[key], values) if values else self._texts[key]

    def word(self, key: str) -> str:
        """The label `key` inside a line: without the capital letter of a title."""
        return self(key).lower()

    def get(self, key: str, otherwise: str) -> str:
        """The label `key` if the catalogue has it, else `otherwise`."""
        return self._texts.get(key, otherwise)

    def metric(self, name: str, title: str) -> str:
        """What kind of mean a metric is: its own title in English, ours in other languages."""
        if title and self.language == "en":
            return title
        attempts = _ATTEMPTS.fullmatch(name)
        key, k = (f"{attempts['stem']}k", attempts["k"]) if attempts else (name, "")
        text = self._texts.get(f"metric.{key}")
        return title or name.replace("_", " ") if text is None else text.format(k=k)

    def mean(self, name: str, metric: Metric) -> str:
        """What a metric is of: one over a part of the subsets never passes for that over all."""
        title = self.metric(name, metric.title)
        if not metric.partial:
            return title
        if name == WHOLE_SET:
            return self("whole_set_partial", subsets=metric.strata or UNKNOWN)
        counted = _COUNTED.search(title)
        whole = int(counted["whole"]) if counted else metric.tasks_published
        if whole is None or metric.tasks is None or metric.tasks == whole:
            return title
        if counted is None:
            return self("mean_partial", title=title, part=metric.tasks, whole=whole)
        number = self("part_of_whole", part=metric.tasks, whole=whole)
        return f"{title[: counted.start('whole')]}{number}{title[counted.end('whole') :]}"

    def row(self, row: Row) -> str:
        """A subset or group: its title with the name behind it where they differ.

        A group of which only a part is known says so.
        """
        title = self.metric(row.name, row.title or row.name)
        if title in ("", row.name):
            title = row.name
        else:
            title += self("in_brackets", text=row.name)
        return self("marked_partial", title=title) if row.partial else title

    def counted(self, row: Row | Entry, outcome: Outcome) -> str:
        """How many replies have an outcome, in a table; of the truncated ones how many are right.

        So the counts of a row add up to its accuracy.
        """
        n = count(row.outcomes.get(outcome, 0))
        if outcome != "truncated" or not row.cut_right:
            return n
        return self("truncated_right", n=n, right=count(row.cut_right))

    def graded(self, row: Row | Entry) -> str:
        """The number of questions with a grade, and of those without one: ``28 (+8 ungraded)``."""
        if not row.ungraded:
            return count(row.n)
        return self("n_ungraded", n=count(row.n), ungraded=count(row.ungraded))

    def arm(self, name: str) -> str:
        """An arm in words, ``arm calc``; a difficulty's name says by itself what it is."""
        return name if _LEVEL.fullmatch(name) else self("arm", arm=name)

    def duration(self, seconds: float | None) -> str:
        """A time span in the two units that matter, e.g. ``2 h 05 min``."""
        if seconds is None:
            return UNKNOWN
        whole = round(seconds)
        if whole < 60:
            return self("span.seconds", n=f"{seconds:.1f}" if seconds < 10 else whole)
        if whole < 3600:
            return self("span.minutes", minutes=whole // 60, seconds=whole % 60)
        return self("span.hours", hours=whole // 3600, minutes=whole % 3600 // 60)

    def reason(self, code: str) -> str:
        """Why nothing was read, also that the request failed; a plug-in's code stays as it is."""
        return self.get(f"reason.{code}", self.get(f"fault.{code}", code))

    def warnings(self, entry: Entry) -> list[str]:
        """The warnings of an entry; one whose code no catalogue has stays as it was written."""
        if self.language == "en":
            return list(entry.warnings)
        return [
            sentence if (text := notice.text(self.language)) == notice.code else text
            for notice, sentence in zip(entry.notices, entry.warnings, strict=True)
        ]


# What an entry of the results says.

DISAGREEMENTS_SHOWN = 20
ERRATA_NAMED = 5
GUESSING = "random guessing"
"""Published figures that stand with the whole exam; a subset's own chance is computed."""
Rows = TypeVar("Rows", Row, Entry)
_ASIDE = (WORST, BEST, "chance")
"""Metrics that are shown beside the means, not among them."""
_EXAMPLE_LENGTH = 200

# A metric of one kind of question, e.g. ``accuracy[category=Genomics]``.
_OF_A_KIND = re.compile(r"(?P<metric>[^\[]+)\[(?P<kind>[^=]+)=(?P<value>.*)\]", re.DOTALL)


class Shown(NamedTuple):
    """A metric to be shown."""

    name: str
    title: str
    metric: Metric

    def marked(self, labels: Labels) -> str:
        """Its title where no notes stand beside it: what is partial says so."""
        return labels("marked_partial", title=self.title) if self.metric.partial else self.title


class Breakdown(NamedTuple):
    """One metric by kind of question: what is named ``metric[kind=value]``."""

    kind: str
    metric: str
    rows: list[Row]


def shown_metrics(entry: Entry, labels: Labels) -> list[Shown]:
    """The headline, and then the metrics that stand in no table of their own."""
    first = entry.headline if entry.headline in entry.metrics else next(iter(entry.metrics))
    elsewhere = {first, *_ASIDE, *(group.name for group in entry.groups)}
    names = [n for n in distinct(entry) if n not in elsewhere and not _OF_A_KIND.fullmatch(n)]
    return [
        Shown(name, labels.mean(name, entry.metrics[name]), entry.metrics[name])
        for name in (first, *names)
    ]


def distinct(entry: Entry) -> dict[str, Metric]:
    """Return the metrics of an entry, each mean over the same tasks once.

    MMLU-Pro's ``macro_14`` is its ``macro_accuracy``, and C-Eval's ``average`` is too. The headline
    stays, else the first of the names.
    """
    groups = {group.name for group in entry.groups}
    names = sorted(entry.metrics, key=lambda name: name != entry.headline)
    shown: dict[object, str] = {}
    for name in names:
        metric = entry.metrics[name]
        is_mean = None not in (metric.tasks, metric.value) and name not in groups
        mean = (metric.tasks, metric.n, round(metric.value or 0.0, 12), interval(metric.bounds))
        shown.setdefault(mean if is_mean else name, name)
    kept = set(shown.values())
    return {name: metric for name, metric in entry.metrics.items() if name in kept}


def alike(metrics: Iterable[Shown]) -> list[list[Shown]]:
    """Metrics of one value over the same answers together, e.g. micro and macro of one subset."""
    together: dict[object, list[Shown]] = {}
    for shown in metrics:
        value, n, bounds = shown.metric.value, shown.metric.n, shown.metric.bounds
        key = shown.name if value is None else (round(value, 9), n, interval(bounds))
        together.setdefault(key, []).append(shown)
    return list(together.values())


class Headline(NamedTuple):
    """The number that an entry is about, or what stands in its place."""

    figure: str
    """``63.59 %``; ``13.89–36.11 %`` where too many replies have no grade; empty without labels."""
    title: str
    note: str
    """What kind of number it is, where it is not the usual one."""


def headline_of(entry: Entry, run: str, labels: Labels) -> Headline:
    """What an entry says first: a number, never one over a selection of the replies."""
    shown, *_ = shown_metrics(entry, labels)
    metric, bounds = shown.metric, shown.metric.bounds
    if not answered([entry]):
        return Headline("", labels("no_answers"), "")
    if entry.gold == NO_GOLD:
        flags = {"no_gold_submission": "", "no_gold_partial": " --partial"}
        told = next((flags[each.code] for each in entry.notices if each.code in flags), None)
        note = "" if told is None else f"keju export {run or 'RUN'} --format submission{told}"
        return Headline("", labels("no_score"), note)
    if entry.grader and bounds and metric.value is not None:
        best = percent(bounds[1])
        # A file of predictions, the only thing with a choice of golds, is no run.
        command = f"keju judge {'RUN' if entry.gold or not run else run}"
        note = labels("exact_note", best=best, command=command)
        return Headline(percent(metric.value), labels("exact_match"), note)
    if bounds is None:
        return Headline(percent(metric.value), shown.title, "")
    whole = sum(entry.outcomes[outcome] for outcome in OUTCOMES)
    lost = {"part": count(sum(entry.outcomes[outcome] for outcome in UNGRADED))}
    if metric.value is None:
        note = labels("range_note", whole=count(whole), **lost)
    else:
        note = labels("range_beside", range=share(None, bounds), **lost)
    return Headline(share(metric.value, bounds), shown.title, note)


def asked_words(entry: Entry, labels: Labels) -> str:
    """What was asked, in one sentence."""
    subsets = len(answered(entry.subsets))
    key = "asked_subsets" if subsets > 1 else "asked"
    whole = sum(entry.outcomes.values())
    return labels(
        key,
        n=count(whole // max(1, entry.repeats)),
        exam=entry.full_name,
        subsets=subsets,
        protocol=protocol_line(entry),
        reader=entry.reader,
    )


def named_run(results: Results) -> str:
    """What commands call the run of these results; a document that stands alone has its id."""
    return command_name(Path(results.folder)) if results.folder else results.run


class Glance(NamedTuple):
    """One exam in the overview of several."""

    entry: Entry
    figure: str
    """The headline, beside it the range that replies without a grade leave; or words instead."""
    ci95: Ends | None
    metric: str
    """What kind of number it is."""


def overview(results: Results, labels: Labels) -> list[Glance]:
    """The headlines of several exams; nothing where there is one exam alone."""
    rows = []
    for entry in results.benchmarks if len(families(results)) > 1 else ():
        headline, shown = (
            headline_of(entry, named_run(results), labels),
            shown_metrics(entry, labels)[0],
        )
        metric = shown.name if headline.title == shown.title else headline.title
        if not headline.figure:
            rows.append(Glance(entry, headline.title, None, ""))
            continue
        value, bounds = shown.metric.value, shown.metric.bounds
        is_beside = bounds and value is not None
        beside = labels("in_brackets", text=interval(bounds)) if is_beside else ""
        rows.append(Glance(entry, headline.figure + beside, shown.metric.ci95, metric))
    return rows


def share(value: float | None, bounds: Sequence[float] | None = None) -> str:
    """A share in percent, or the range in which it lies where it has no value of its own."""
    return f"{interval(bounds)} %" if value is None and bounds else percent(value)


def breakdowns(entry: Entry, labels: Labels) -> list[Breakdown]:
    """Metrics of kinds of questions as tables."""
    tables: dict[tuple[str, str], list[Row]] = {}
    for name, metric in entry.metrics.items():
        if parts := _OF_A_KIND.fullmatch(name):
            value, ends = metric.value, metric.ci95
            row = Row(
                name=parts["value"],
                n=metric.n,
                accuracy=value,
                ci95=ends,
                outcomes={},
                bounds=metric.bounds,
            )
            tables.setdefault((parts["kind"], parts["metric"]), []).append(row)
    return [
        Breakdown(
            labels.get(f"kind.{kind}", kind.replace("_", " ")),
            labels.get(metric, metric.replace("_", " ")),
            rows,
        )
        for (kind, metric), rows in tables.items()
    ]


def metric_titles(entry: Entry, labels: Labels) -> dict[str, str]:
    """What the metrics are, by name."""
    groups = {row.name: labels.metric(row.name, row.title or row.name) for row in entry.groups}
    own = {shown.name: shown.metric for shown in shown_metrics(entry, labels)}
    return groups | {name: labels.metric(name, metric.title) for name, metric in own.items()}


def published_titles(entry: Entry, labels: Labels) -> dict[str, str]:
    """The means that published figures are of and that this run has whole, by name."""
    titles = metric_titles(entry, labels)
    whole = {name for name, metric in entry.metrics.items() if not metric.partial}
    published = (name for own in entry.reference for name in own.overall)
    names = dict.fromkeys(name for name in published if name in whole)
    return {name: titles.get(name) or labels.metric(name, "") for name in names}


def reference_name(reference: Reference, labels: Labels) -> str:
    """Whose figures were published."""
    return labels.get(f"reference.{reference.name}", reference.name)


def subset_references(entry: Entry) -> list[Reference]:
    """The published figures that are known for single subsets."""
    return [r for r in entry.reference if r.subsets and r.name != GUESSING]


def protocol_line(entry: Entry) -> str:
    """Protocol and version as one word, e.g. ``paper@1``."""
    version = entry.protocol_version
    return f"{entry.protocol}@{version}" if version else entry.protocol


def families(results: Results) -> list[list[Entry]]:
    """Entries of the same benchmark, protocol and arm together: one for each reader."""
    together: dict[tuple[str, str, str], list[Entry]] = {}
    for entry in results.benchmarks:
        together.setdefault((entry.name, protocol_line(entry), entry.arm), []).append(entry)
    return list(together.values())


def answered(rows: Iterable[Rows]) -> list[Rows]:
    """The rows that have any answer; an interrupted run leaves others, which say nothing."""
    return [row for row in rows if row.n or any(row.outcomes.values())]


def group_words(entry: Entry, labels: Labels) -> str:
    """What the mark of partial groups means; empty where none is shown."""
    is_partial = any(row.partial for row in answered(entry.groups))
    return labels("partial_groups") if is_partial else ""


def occurring_outcomes(rows: Iterable[Row | Entry]) -> list[Outcome]:
    """The outcomes that occur in any of the rows; also that none is correct, where any could be."""
    occurring = {o for row in rows for o, n in row.outcomes.items() if n}
    if not occurring.isdisjoint(set(OUTCOMES) - set(UNGRADED)):
        occurring.add("correct")
    return [o for o in ALL_OUTCOMES if o in occurring]


def ended_words(results: Results, labels: Labels) -> str:
    """Why the run is not complete, in one line; empty if it is."""
    if results.stopped:
        why = results.stop.text(labels.language) if results.stop else results.stopped
        return labels("stopped", why=why)
    return labels("incomplete") if results.complete is False else ""


def outcome_words(
    outcomes: Mapping[Outcome, int],
    labels: Labels,
    *,
    cut_right: int = 0,
    zeros: Collection[Outcome] = ("correct", "incorrect"),
) -> list[str]:
    """Counts in words, of the truncated ones also how many are right; zero ones only of `zeros`."""
    words = []
    for outcome in ALL_OUTCOMES:
        if outcomes.get(outcome) or outcome in zeros:
            is_right = outcome == "truncated" and cut_right
            code = f"counts.{outcome}_right" if is_right else f"counts.{outcome}"
            words.append(labels(code, n=count(outcomes.get(outcome, 0)), right=count(cut_right)))
    return words


def sign_words(entry: Entry, labels: Labels) -> str:
    """What was noticed about the replies, in one line; empty where nothing was."""
    parts = [labels(f"signs.{sign}", n=count(n)) for sign, n in entry.signs.items() if n]
    return labels("signs", signs=" · ".join(parts)) if parts else ""


def error_words(errors: Errors | None, labels: Labels) -> str:
    """The kinds of errors in one line, the commonest first; empty if there were none."""
    if errors is None or not errors.kinds:
        return ""
    ranked = sorted(errors.kinds.items(), key=lambda item: -item[1])
    examples = {ranked[0][0]: errors.example} | errors.examples
    kinds = []
    for kind, n in ranked:
        kinds.append(labels("error_kind", kind=labels.get(f"fault.{kind}", kind), n=count(n)))
        if example := shorten(examples.get(kind, ""), _EXAMPLE_LENGTH):
            told = foreign(example, labels.language)
            kinds[-1] = labels("error_example", kind=kinds[-1], example=told)
    return labels("errors_line", kinds=labels("list_separator").join(kinds))


def left_out_words(entry: Entry, labels: Labels) -> list[str]:
    """How many answers are outside the accuracy, where there is one, and what they could do."""
    total = sum(entry.outcomes[outcome] for outcome in UNGRADED)
    if entry.gold == NO_GOLD or not total:
        return []
    counts = {outcome: count(entry.outcomes[outcome]) for outcome in UNGRADED}
    words = [labels("left_out_note", **counts)]
    if WORST in entry.metrics and BEST in entry.metrics:
        worst, best = (percent(entry.metrics[name].value) for name in (WORST, BEST))
        words.append(labels("bounds", left_out=count(total), worst=worst, best=best))
    return words


def errata_words(entry: Entry, run: str, labels: Labels) -> str:
    """How many questions are known to be faulty, and which; empty where none is.

    Where not all are named the command is that lists them.
    """
    if entry.errata is None:
        return ""
    shown = first_of(entry.errata.ids, ERRATA_NAMED)
    n, names = count(entry.errata.n), labels("list_separator").join(shown)
    rest = entry.errata.n - len(shown)
    if not rest:
        return labels("errata_named", n=n, names=names)
    code = "errata_more" if names else "errata_note"
    return labels(code, n=n, names=names, rest=count(rest), run=run)


def spent_words(entry: Entry, labels: Labels) -> str:
    """What the answers took, in one line: requests, tokens, money, time; empty if nothing."""
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


def gold_words(entry: Entry, labels: Labels) -> str:
    """Which gold answers counted, in one line; empty where there was no choice."""
    if entry.gold in ("", NO_GOLD):
        return ""
    line = labels("gold_line", which=labels.get(f"gold.{entry.gold}", entry.gold))
    differs = entry.gold_differs
    return line + labels("gold_differs", n=count(differs)) if differs else line


def metric_notes(metric: Metric, labels: Labels) -> list[str]:
    """How a metric was measured, each in a few words."""
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
