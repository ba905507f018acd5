"""Describe arms and transcripts for the terminal and the page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from msgspec import UNSET

from keju.benchmarks.expectations import STATE
from keju.reporting import format as fmt
from keju.reporting.format import UNKNOWN, Labels, count, interval, money, percent
from keju.reporting.pairs import explain_borderline, p_value, pair_title, point_ends, points
from keju.results.schema import Comparison, Metric, ResultEntry, Results
from keju.types import Episode

Line = list[str]


class TitledTable(NamedTuple):
    """A table: its column titles and its rows; the first column names the row."""

    titles: Line
    rows: list[Line]


def arm_table(results: Results, labels: Labels, digits: int = 2) -> TitledTable:
    """Return a row for each arm: its score, and its tool calls, latency and cost.

    An arm with several readers gets a row for each of them. The table is empty if no question is
    answered.
    """
    names = ("arm", "rate", "interval", "n", "calls", "failed", "latency", "tokens")
    titles = [labels(f"arms.{name}") for name in (*names, "cost", "solved")]
    entries = _arms_of(results)
    if not fmt.answered_rows(entries):
        return TitledTable(titles, [])
    rows = [_arm_row(entry, labels, digits) for entry in entries]
    has_prices = any(row[-1] != UNKNOWN for row in rows)
    end = len(titles) if has_prices else -2
    titles, rows = titles[:end], [row[:end] for row in rows]
    if _has_several_readers(results):
        titles.insert(1, labels.word("reader"))
        for row, entry in zip(rows, entries, strict=True):
            row.insert(1, entry.reader)
    return TitledTable(titles, rows)


def _arm_row(entry: ResultEntry, labels: Labels, digits: int) -> Line:
    metric, tools, usage = entry.metrics[entry.headline], entry.tools, entry.usage
    accuracy = entry.metrics["accuracy"]
    correct_answers = (accuracy.value or 0.0) * accuracy.n
    cost = None if usage.cost is UNSET else usage.cost
    replies = max(1, sum(entry.outcomes.values()))
    return [
        entry.full_name,
        _share(metric, digits),
        interval(metric.ci95, digits),
        labels.graded_count(entry),
        count(tools.calls) if tools else "0",
        count(tools.failed) if tools else "0",
        labels.duration(entry.timing.latency_p50),
        count(round((usage.input_tokens + usage.output_tokens) / replies)),
        UNKNOWN if cost is None else money(cost),
        UNKNOWN if cost is None or not correct_answers else money(cost / correct_answers),
    ]


def _share(metric: Metric, digits: int) -> str:
    """Return a score, or its range if it has no value."""
    if metric.value is None and metric.bounds:
        return f"{interval(metric.bounds, digits)} %"
    return percent(metric.value, digits)


def pair_table(results: Results, labels: Labels, digits: int = 2) -> TitledTable:
    """Return a row for each pair of arms: the counts, the difference, its interval and p.

    If several readers read the arms, the table names the reader of the pairs.
    """
    names = "pair", "both", "arm_only", "base_only", "neither", "difference", "interval", "p"
    titles = [labels(f"arms.{name}") for name in (*names, "p_holm")]
    rows = [_pair_row(pair, labels, digits) for pair in _arm_pairs(results)]
    end = len(titles) if _has_several_pairs(results) else -1
    titles, rows = titles[:end], [row[:end] for row in rows]
    if _has_several_readers(results):
        titles.insert(1, labels.word("reader"))
        for row, pair in zip(rows, _arm_pairs(results), strict=True):
            row.insert(1, pair.reader)
    return TitledTable(titles, rows)


def _has_several_readers(results: Results) -> bool:
    """Return whether any arm was read by more than one reader."""
    names = [entry.full_name for entry in _arms_of(results)]
    return len(set(names)) < len(names)


def _arms_of(results: Results) -> list[ResultEntry]:
    """Return the results of arms without difficulty levels, which have a curve instead."""
    return [entry for entry in results.benchmarks if entry.arm and not results.is_level(entry)]


def _arm_pairs(results: Results) -> tuple[Comparison, ...]:
    """Return the pairs of arms, or nothing if no question is answered."""
    return results.comparisons if fmt.answered_rows(results.benchmarks) else ()


def _has_several_pairs(results: Results) -> bool:
    """Return whether any exam has more than one pair of arms."""
    return any(pair.p_holm is not None for pair in _arm_pairs(results))


def _pair_row(pair: Comparison, labels: Labels, digits: int) -> Line:
    return [
        pair_title(pair, labels),
        count(pair.both),
        count(pair.arm_only),
        count(pair.base_only),
        count(pair.neither),
        points(pair.difference, digits),
        point_ends(pair.ci95, digits),
        *map(p_value, (pair.p, pair.p_holm)),
    ]


def pair_lines(results: Results, labels: Labels) -> Iterator[str]:
    """Yield the conclusion of each pair of arms, followed by notes."""
    for pair in _arm_pairs(results):
        yield pair.conclusion.text(labels.language)
        if edge := explain_borderline(pair, labels):
            yield edge
        significant_subsets = [subset for subset in pair.subsets if subset.p_adjusted < 0.05]
        if significant_subsets:
            listed = labels("list_separator").join(
                f"{subset.name} {100 * subset.difference:+.1f}" for subset in significant_subsets
            )
            yield labels("arms.subsets", listed=listed)
        if pair.left_out:
            yield labels("arms.left_out", n=count(pair.left_out))
        if pair.bounds:
            low, high = (100 * end for end in pair.bounds)
            yield labels("arms.bounds", low=low, high=high)
    if _has_several_pairs(results):
        yield labels("arms.several")


def tool_table(entry: ResultEntry, labels: Labels) -> TitledTable:
    """Return a row for each tool of an arm."""
    names = ("tool", "calls", "samples", "kinds", "p50", "p95", "chars")
    rows = [
        [
            row.name,
            count(row.calls),
            count(row.samples),
            labels("list_separator").join(
                f"{labels.get(f'call.{kind}', kind)} {n}"
                for kind, n in row.kinds.items()
                if kind != "ok"
            )
            or UNKNOWN,
            _call_time(row.seconds_p50, labels),
            _call_time(row.seconds_p95, labels),
            count(row.result_chars),
        ]
        for row in (entry.tools.tools if entry.tools and fmt.answered_rows([entry]) else ())
    ]
    return TitledTable([labels(f"tools.{name}") for name in names], rows)


def describe_tool_use(entry: ResultEntry, labels: Labels) -> str:
    """Describe how the tools of an arm were used, in one line; empty without tools."""
    tools = entry.tools
    if tools is None:
        return ""
    ended = (f"{labels.get(f'stop.{stop}', stop)} {n}" for stop, n in tools.stops.items())
    stops = labels("list_separator").join(ended)
    parts = [
        labels("tools.used", part=tools.with_calls, whole=tools.episodes, calls=tools.calls),
        labels("tools.coverage", used=tools.used, offered=tools.offered),
        labels("tools.stops", stops=stops),
    ]
    if tools.schema_tokens is not None:
        parts.append(
            labels(f"tools.schema_{tools.schema_tokens_from or 'estimate'}", n=tools.schema_tokens)
        )
    return " · ".join(parts)


def _call_time(seconds: float | None, labels: Labels) -> str:
    """Format the time of a tool call, which is often only milliseconds."""
    return UNKNOWN if seconds is None else labels("span.seconds", n=f"{seconds:.3g}")


class TranscriptStep(NamedTuple):
    """One step of a transcript."""

    title: str
    text: str
    failed: bool = False


def transcript(episode: Episode, labels: Labels) -> Iterator[TranscriptStep]:
    """Yield the steps of an episode: the model's texts and calls, and the replies to them."""
    names: dict[str, str] = {}
    for turn in episode.turns:
        if turn.role == "assistant":
            if turn.reasoning:
                yield TranscriptStep(labels("step.reasoning"), turn.reasoning)
            if turn.text:
                yield TranscriptStep(labels("step.model"), turn.text)
            for call in turn.calls:
                names[call.id] = call.name
                yield TranscriptStep(
                    labels("step.call", tool=call.name), _arguments(call.arguments)
                )
        elif turn.role == "tool":
            ok = turn.kind == "ok"
            title = labels("step.result", tool=names.get(turn.call, "?"), seconds=turn.seconds)
            title += "" if ok else f" · {labels.get(f'call.{turn.kind}', turn.kind)}"
            yield TranscriptStep(title, turn.text, not ok)
        else:
            yield TranscriptStep(labels("step.user"), turn.text)
    yield TranscriptStep(labels("step.stop"), labels.get(f"stop.{episode.stop}", episode.stop))
    if (state := episode.facts.get(STATE)) is not None:
        kind = "unknown" if "ok" not in state else "right" if state["ok"] else "wrong"
        details = state.get("problem") or state.get("output", "")
        text = labels(f"state.{kind}") + (f"\n{details}" if details else "")
        yield TranscriptStep(labels("step.state"), text, kind != "right")


def _arguments(text: str) -> str:
    """Format the arguments of a call for reading: code as code, not as one line of JSON."""
    try:
        arguments = json.loads(text or "{}")
    except ValueError:
        return text
    if not isinstance(arguments, dict):
        return text
    if len(arguments) == 1 and isinstance(only := next(iter(arguments.values())), str):
        return only
    return "\n".join(
        f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for name, value in arguments.items()
    )


def printable_steps(episode: Episode, labels: Labels) -> Iterator[TranscriptStep]:
    """Yield the same steps without control characters and canaries."""
    for step in transcript(episode, labels):
        yield step._replace(
            title=fmt.printable(step.title, one_line=True),
            text=fmt.printable(fmt.without_canary(step.text)),
        )
