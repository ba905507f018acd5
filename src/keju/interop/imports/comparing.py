"""The tool's verdict beside Keju's, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from keju.benchmarks.base import Exam
from keju.engine.job import Job
from keju.interop.imports.log import LogRow, Part, mean
from keju.interop.imports.matching import Match, gold
from keju.types import UNSCORED, Record, Sample

EXCERPT = 160
"""Characters of a reply's end that are shown beside the two verdicts."""
NOTHING = ("", "[invalid]", "[INVALID]", "No valid answer found")
"""What tools say where they read no answer."""
SAME = 1e-6
"""Scores that differ by less are the same."""


class Pair(NamedTuple):
    """A row of the log, the question as it was shown, and the record made of it."""

    row: LogRow
    sample: Sample
    record: Record


def compare(
    part: Part, job: Job | None, exam: Exam, pairs: Sequence[Pair], unmatched: Sequence[Match]
) -> dict[str, Any]:
    """The verdicts of a part side by side, as ``import.json`` has them.

    ``reported`` are the tool's own figures, over ``reported_n`` rows; ``rows_missing`` of its rows
    are not in the log any more. ``tool_accuracy`` is the mean of the tool's verdicts on the rows
    that were matched, and ``keju_accuracy`` that of Keju's over the same rows, by reader, errors
    left out. ``answer_differences`` are rows that both score alike, for different answers.
    """
    readers = [reader.name for reader in job.readers] if job is not None else []
    scores = [[reading.score for reading in pair.record.readings] for pair in pairs]
    return {
        "name": exam.benchmark,
        "task": part.task,
        "protocol": exam.protocol.name,
        "reader": readers[0] if readers else exam.protocol.reader,
        "rows": len(part.rows),
        "matched": len(pairs),
        "errors": sum(pair.record.reply.fault is not None for pair in pairs),
        "permuted": sum(
            bool(order) and order != tuple(range(len(order)))
            for order in (pair.record.order for pair in pairs)
        ),
        "reported": dict(part.reported),
        "reported_n": part.n,
        "rows_missing": max(0, (part.asked or part.n or 0) - len(part.rows)),
        "tool_accuracy": mean(p.row.verdict for p in pairs if p.row.verdict is not None),
        "keju_accuracy": {
            name: mean(s[place].value for s in scores if s[place].outcome not in UNSCORED)
            for place, name in enumerate(readers)
        },
        "differences": [_difference(pair) for pair in pairs if _scores_differ(pair)],
        "answer_differences": [
            _difference(pair)
            for pair in pairs
            if _answers_differ(pair) and not _scores_differ(pair)
        ],
        "other_gold": [
            {"id": sample.id, "log": row.target, "data": sample.target}
            for row, sample, _ in pairs
            if row.target and gold(row.target) != gold(sample.target)
        ],
        "unmatched": [{"where": m.row.where, "reason": m.reason} for m in unmatched],
    }


def _scores_differ(pair: Pair) -> bool:
    verdict, score = pair.row.verdict, pair.record.readings[0].score
    if verdict is None:
        return False
    return score.outcome in UNSCORED or abs(verdict - score.value) > SAME


def _answers_differ(pair: Pair) -> bool:
    """Whether the tool and Keju read different answers.

    A tool that tells none, or the whole reply, is not compared.
    """
    reply = pair.record.reply
    if pair.row.answer in (None, reply.text) or reply.error is not None:
        return False
    told = "" if pair.row.answer in NOTHING else gold(pair.row.answer or "")
    return told != gold(pair.record.readings[0].answer.value or "")


def _difference(pair: Pair) -> dict[str, Any]:
    row, sample, record = pair
    reading = record.readings[0]
    shown = row.reply.text if row.reply.error is None else row.reply.error.message
    line = " ".join(shown.split())
    return {
        "id": sample.id,
        "subset": sample.subset,
        "epoch": row.epoch,
        "where": row.where,
        "target": sample.target,
        "tool": {"answer": row.answer, "score": row.verdict, "target": row.target},
        "keju": {
            "answer": reading.answer.value,
            "score": reading.score.value,
            "outcome": reading.score.outcome,
            "reason": reading.answer.reason,
        },
        "reply": line if len(line) <= EXCERPT else "…" + line[-EXCERPT:],
    }
