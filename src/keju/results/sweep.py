"""Which tool earns its tokens: each arm with one tool less, or one tool alone, as a row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from keju.config.sweep import SweepKind
from keju.errors import TranslatableText, join_hints
from keju.messages import Language
from keju.results.schema import (
    SIGNIFICANT,
    Comparison,
    ResultEntry,
    ToolEffect,
    ToolRow,
    ToolStats,
    ToolSweep,
    ToolVerdict,
)
from keju.results.sweep_rule import SMALL, is_small
from keju.runs.manifest import Manifest, StoredStop
from keju.stats.paired import holm


def sweeps_of(
    kind: SweepKind,
    manifest: Manifest,
    entries: Sequence[ResultEntry],
    comparisons: Sequence[Comparison],
) -> Iterator[ToolSweep]:
    """Yield the table of each exam; arms that do not differ by one tool are left out."""
    by_exam: dict[str, dict[str, ResultEntry]] = {}
    for entry in entries:
        by_exam.setdefault(entry.name, {}).setdefault(entry.arm, entry)
    for exam, arms in by_exam.items():
        pairs = [pair for pair in comparisons if pair.exam == exam and pair.base_is_first]
        if not pairs:
            continue
        base = arms[pairs[0].base]
        rows = [
            row
            for pair in pairs
            if (row := _effect(kind, pair, base, arms[pair.arm], manifest.arms or {})) is not None
        ]
        if not rows:
            continue
        sweep = ToolSweep(
            exam=exam,
            reader=pairs[0].reader,
            kind=kind,
            base=pairs[0].base,
            small=SMALL,
            questions=max(_count_questions(entry) for entry in arms.values()),
            rows=tuple(_with_verdicts(kind, rows)),
        )
        yield replace(sweep, sentence=str(sweep_sentence(sweep, "en")))


def _count_questions(entry: ResultEntry) -> int:
    """Return the number of questions that an arm could have been asked."""
    stopping = entry.stopping
    return entry.n + entry.ungraded if stopping is None else stopping.whole


def _effect(
    kind: SweepKind,
    pair: Comparison,
    base: ResultEntry,
    entry: ResultEntry,
    arm_facts: Mapping[str, Mapping[str, Any]],
) -> ToolEffect | None:
    """Return the row of one arm before its verdict, or None if it is not about one tool."""
    base_tools, tools = (
        set(arm_facts.get(name, {}).get("tools", ())) for name in (pair.base, pair.arm)
    )
    changed = base_tools - tools if kind == "left_out" else tools
    if len(changed) != 1:
        return None
    (tool,) = changed
    user = base if kind == "left_out" else entry
    row = _find_row(user.tools, tool)
    tokens, source = _definition_tokens(kind, arm_facts, pair)
    stats = user.tools
    per_question = None
    if tokens is not None and stats is not None and stats.episodes:
        per_question = round(tokens * stats.requests / stats.episodes, 1)
    difference, ci95, p, looks = pair.difference, pair.ci95, pair.p, 0
    stopping = entry.stopping
    if _is_sequential(stopping):
        assert stopping is not None
        difference, ci95, p, looks = (
            stopping.value, stopping.interval, stopping.p, stopping.looks
        )  # fmt: skip
    return ToolEffect(
        tool=tool.partition("__")[2] or tool,
        arm=pair.arm,
        verdict="open",
        n=pair.n,
        difference=difference,
        ci95=None if ci95 is None else (ci95[0], ci95[1]),
        p_holm=p,
        tokens=tokens,
        tokens_from=source,
        tokens_per_question=per_question,
        calls=row.calls if row else 0,
        failed=row.calls - row.kinds.get("ok", 0) if row else 0,
        seconds_p50=row.seconds_p50 if row else None,
        seconds=None if pair.seconds is None else pair.seconds.difference,
        looks=looks,
    )


def _is_sequential(stopping: StoredStop | None) -> bool:
    """Whether an arm could end before all questions were asked."""
    if stopping is None or stopping.rule != "sweep":
        return False
    return stopping.early or stopping.looks > 1


def _find_row(stats: ToolStats | None, tool: str) -> ToolRow | None:
    return next((row for row in stats.tools if row.name == tool), None) if stats else None


def _definition_tokens(
    kind: SweepKind, arm_facts: Mapping[str, Mapping[str, Any]], pair: Comparison
) -> tuple[int | None, str]:
    """Return the tokens of a tool's definition, and who counted them."""
    facts = arm_facts.get(pair.arm, {})
    tokens, source = facts.get("schema_tokens"), str(facts.get("schema_tokens_from", ""))
    if kind == "alone" or tokens is None:
        return tokens, source
    base_facts = arm_facts.get(pair.base, {})
    base_tokens = base_facts.get("schema_tokens")
    if base_tokens is None or base_facts.get("schema_tokens_from") != source:
        return None, ""
    return base_tokens - tokens, source


def _with_verdicts(kind: SweepKind, rows: Sequence[ToolEffect]) -> Iterator[ToolEffect]:
    """Yield the rows with p adjusted for all tools, and what each row shows; losses first."""
    adjusted = iter(holm([row.p_holm for row in rows if row.p_holm is not None]))
    judged = []
    for row in rows:
        p = None if row.p_holm is None else next(adjusted)
        judged.append(replace(row, p_holm=p, verdict=_verdict(kind, replace(row, p_holm=p))))
    sign = 1 if kind == "left_out" else -1
    yield from sorted(judged, key=lambda row: (_ORDER[row.verdict], sign * (row.difference or 0.0)))


_ORDER: dict[ToolVerdict, int] = {"earns": 0, "harms": 1, "small": 2, "open": 3}


def _verdict(kind: SweepKind, row: ToolEffect) -> ToolVerdict:
    """Return what a row shows."""
    if row.difference is None or row.p_holm is None:
        return "open"
    if row.p_holm < SIGNIFICANT and row.difference:
        is_loss = row.difference < 0
        return "earns" if is_loss == (kind == "left_out") else "harms"
    return "small" if is_small(kind, row.ci95) else "open"


def sweep_sentence(sweep: ToolSweep, language: Language) -> str:
    """Return the conclusion of a table: which tools earn their tokens, and which do not."""
    by_verdict: dict[str, list[ToolEffect]] = {}
    for row in sweep.rows:
        by_verdict.setdefault(row.verdict, []).append(row)
    parts: list[TranslatableText] = []
    for verdict in ("earns", "harms"):
        for row in by_verdict.get(verdict, ()):
            values = {"tool": row.tool, "points": 100 * (row.difference or 0.0)}
            code = f"sweep_{sweep.kind}_{verdict}"
            if verdict == "earns":
                code += "_tokens" if row.tokens is not None else ""
                values |= {"tokens": row.tokens or 0}
            parts.append(TranslatableText(code, **values))
    for verdict in ("small", "open"):
        if rows := by_verdict.get(verdict):
            tools = [f"`{row.tool}`" for row in rows]
            values = {"tools": tools, "small": 100 * sweep.small, "n": len(rows)}
            code = "sweep_open" if verdict == "open" else f"sweep_{sweep.kind}_small"
            parts.append(TranslatableText(code, **values))
    joined = join_hints("joined_by_semicolon", parts)
    return joined.text(language) if isinstance(joined, TranslatableText) else joined
