"""Arms and transcripts in words, once for the terminal and the page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from msgspec import UNSET

from keju.report import format as fmt
from keju.report.format import UNKNOWN, Labels, count, interval, money, share
from keju.report.pairs import at_the_edge, p_value, pair_title, point_ends, points
from keju.results.schema import Comparison, Entry, Results
from keju.types import Episode

Line = list[str]


class Table(NamedTuple):
    """A table: the titles of its columns, the first a name, and its rows."""

    titles: Line
    rows: list[Line]


def arm_table(results: Results, labels: Labels) -> Table:
    """A row for each arm: how often it is right, and what that takes.

    Where several readers read it, a row for each of them. Nothing where nothing is answered.
    """
    names = ("arm", "rate", "interval", "n", "calls", "failed", "latency", "tokens")
    titles = [labels(f"arms.{name}") for name in (*names, "cost", "solved")]
    entries = _arms_of(results)
    if not fmt.answered(entries):
        return Table(titles, [])
    rows = [_arm_row(entry, labels) for entry in entries]
    priced = any(row[-1] != UNKNOWN for row in rows)
    end = len(titles) if priced else -2
    titles, rows = titles[:end], [row[:end] for row in rows]
    if _several_readers(results):
        titles.insert(1, labels.word("reader"))
        for row, entry in zip(rows, entries, strict=True):
            row.insert(1, entry.reader)
    return Table(titles, rows)


def _arm_row(entry: Entry, labels: Labels) -> Line:
    metric, tools, usage = entry.metrics[entry.headline], entry.tools, entry.usage
    accuracy = entry.metrics["accuracy"]
    solved = (accuracy.value or 0.0) * accuracy.n
    cost = None if usage.cost is UNSET else usage.cost
    replies = max(1, sum(entry.outcomes.values()))
    return [
        entry.full_name,
        share(metric.value, metric.bounds),
        interval(metric.ci95),
        labels.graded(entry),
        count(tools.calls) if tools else "0",
        count(tools.failed) if tools else "0",
        labels.duration(entry.timing.latency_p50),
        count(round((usage.input_tokens + usage.output_tokens) / replies)),
        UNKNOWN if cost is None else money(cost),
        UNKNOWN if cost is None or not solved else money(cost / solved),
    ]


def pair_table(results: Results, labels: Labels) -> Table:
    """A row for each pair of arms: the table of pairs, the difference, its interval and p.

    Where several readers read the arms, it says which one the pairs are by.
    """
    names = "pair", "both", "arm_only", "base_only", "neither", "difference", "interval", "p"
    titles = [labels(f"arms.{name}") for name in (*names, "p_holm")]
    rows = [_pair_row(each, labels) for each in _compared(results)]
    end = len(titles) if _several(results) else -1
    titles, rows = titles[:end], [row[:end] for row in rows]
    if _several_readers(results):
        titles.insert(1, labels.word("reader"))
        for row, pair in zip(rows, _compared(results), strict=True):
            row.insert(1, pair.reader)
    return Table(titles, rows)


def _several_readers(results: Results) -> bool:
    """Whether any arm was read by more than one reader."""
    names = [entry.full_name for entry in _arms_of(results)]
    return len(set(names)) < len(names)


def _arms_of(results: Results) -> list[Entry]:
    """The results of arms; difficulties have their curve instead."""
    return [entry for entry in results.benchmarks if entry.arm and not results.is_level(entry)]


def _compared(results: Results) -> tuple[Comparison, ...]:
    """The pairs of arms, once there is anything to compare."""
    return results.comparisons if fmt.answered(results.benchmarks) else ()


def _several(results: Results) -> bool:
    """Whether any exam has more than one pair of arms."""
    return any(pair.p_holm is not None for pair in _compared(results))


def _pair_row(pair: Comparison, labels: Labels) -> Line:
    return [
        pair_title(pair, labels),
        count(pair.both),
        count(pair.arm_only),
        count(pair.base_only),
        count(pair.neither),
        points(pair.difference),
        point_ends(pair.ci95),
        *map(p_value, (pair.p, pair.p_holm)),
    ]


def pair_lines(results: Results, labels: Labels) -> Iterator[str]:
    """What each pair of arms shows, in a sentence, and what stands beside it."""
    for pair in _compared(results):
        yield pair.conclusion.text(labels.language)
        if edge := at_the_edge(pair, labels):
            yield edge
        clear = [each for each in pair.subsets if each.p_adjusted < 0.05]
        if clear:
            listed = labels("list_separator").join(
                f"{each.name} {100 * each.difference:+.1f}" for each in clear
            )
            yield labels("arms.subsets", listed=listed)
        if pair.left_out:
            yield labels("arms.left_out", n=count(pair.left_out))
        if pair.bounds:
            low, high = (100 * end for end in pair.bounds)
            yield labels("arms.bounds", low=low, high=high)
    if _several(results):
        yield labels("arms.several")


def tool_table(entry: Entry, labels: Labels) -> Table:
    """A row for each tool of an arm."""
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
            _span(row.seconds_p50, labels),
            _span(row.seconds_p95, labels),
            count(row.result_chars),
        ]
        for row in (entry.tools.tools if entry.tools and fmt.answered([entry]) else ())
    ]
    return Table([labels(f"tools.{name}") for name in names], rows)


def tool_words(entry: Entry, labels: Labels) -> str:
    """How the tools of an arm were used, in one line; empty without any."""
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


def _span(seconds: float | None, labels: Labels) -> str:
    """The time of a call, of which many take but milliseconds."""
    return UNKNOWN if seconds is None else labels("span.seconds", n=f"{seconds:.3g}")


class Step(NamedTuple):
    """One step of a transcript."""

    title: str
    text: str
    failed: bool = False


def transcript(episode: Episode, labels: Labels) -> Iterator[Step]:
    """An episode step by step: what the model said and called, and what it was told."""
    names: dict[str, str] = {}
    for turn in episode.turns:
        if turn.role == "assistant":
            if turn.reasoning:
                yield Step(labels("step.reasoning"), turn.reasoning)
            if turn.text:
                yield Step(labels("step.model"), turn.text)
            for call in turn.calls:
                names[call.id] = call.name
                yield Step(labels("step.call", tool=call.name), _arguments(call.arguments))
        elif turn.role == "tool":
            ok = turn.kind == "ok"
            title = labels("step.result", tool=names.get(turn.call, "?"), seconds=turn.seconds)
            title += "" if ok else f" · {labels.get(f'call.{turn.kind}', turn.kind)}"
            yield Step(title, turn.text, not ok)
        else:
            yield Step(labels("step.user"), turn.text)
    yield Step(labels("step.stop"), labels.get(f"stop.{episode.stop}", episode.stop))


def _arguments(text: str) -> str:
    """Arguments as people read them: code as code, not as one line of JSON."""
    try:
        given = json.loads(text or "{}")
    except ValueError:
        return text
    if not isinstance(given, dict):
        return text
    if len(given) == 1 and isinstance(only := next(iter(given.values())), str):
        return only
    return "\n".join(
        f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for name, value in given.items()
    )


def printable_steps(episode: Episode, labels: Labels) -> Iterator[Step]:
    """The same without control characters and canaries."""
    for step in transcript(episode, labels):
        yield step._replace(
            title=fmt.printable(step.title, one_line=True),
            text=fmt.printable(fmt.without_canary(step.text)),
        )
