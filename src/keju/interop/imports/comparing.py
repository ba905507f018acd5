"""The tool's verdict beside Keju's, row by row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from keju.benchmarks.base import Exam
from keju.engine.job import Job
from keju.interop.imports.log import LogRow, Part, mean
from keju.interop.imports.matching import Match, gold
from keju.types import Record, Sample

EXCERPT = 160
"""Characters of a reply's end that are shown beside the two verdicts."""
SAME = 1e-6
"""Scores that differ by less are the same."""


class Pair(NamedTuple):
    """A row of the log, the question as it was shown, and the record made of it."""

    row: LogRow
    sample: Sample
    record: Record


@dataclass(frozen=True)
class Compared:
    """What the tool and Keju make of the same replies to one exam."""

    benchmark: str
    task: str
    protocol: str
    reader: str
    rows: int
    matched: int
    errors: int
    reported: Mapping[str, float]
    tool: float | None
    """Mean of the tool's verdicts on the rows that were matched."""
    keju: Mapping[str, float | None]
    """Accuracy by reader over the same rows, the equivalent reader first; errors are left out."""
    differences: Sequence[dict[str, Any]]
    other_gold: Sequence[dict[str, Any]]
    """Rows whose gold answer in the log is not that of the data."""
    unmatched: Sequence[dict[str, Any]]
    permuted: int
    """Rows whose options the log shows in another order than the data."""

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "name": self.benchmark,
            "task": self.task,
            "protocol": self.protocol,
            "reader": self.reader,
            "rows": self.rows,
            "matched": self.matched,
            "errors": self.errors,
            "permuted": self.permuted,
            "reported": dict(self.reported),
            "tool_accuracy": self.tool,
            "keju_accuracy": dict(self.keju),
            "differences": list(self.differences),
            "other_gold": list(self.other_gold),
            "unmatched": list(self.unmatched),
        }


def compare(
    part: Part, job: Job | None, exam: Exam, pairs: Sequence[Pair], unmatched: Sequence[Match]
) -> Compared:
    """Set the verdicts of a part side by side."""
    readers = [reader.name for reader in job.readers] if job is not None else []
    verdicts = [pair.row.verdict for pair in pairs if pair.row.verdict is not None]
    return Compared(
        benchmark=exam.benchmark,
        task=part.task,
        protocol=exam.protocol.name,
        reader=readers[0] if readers else exam.protocol.reader,
        rows=len(part.rows),
        matched=len(pairs),
        errors=sum(pair.record.reply.error is not None for pair in pairs),
        reported=part.reported,
        tool=mean(verdicts),
        keju={name: _accuracy(pairs, place) for place, name in enumerate(readers)},
        differences=[_difference(pair) for pair in pairs if _differs(pair)],
        other_gold=[_golds(pair) for pair in pairs if _other_gold(pair)],
        unmatched=[{"where": m.row.where, "reason": m.reason} for m in unmatched],
        permuted=sum(_moved(pair) for pair in pairs),
    )


def _accuracy(pairs: Sequence[Pair], place: int) -> float | None:
    scores = [pair.record.readings[place].score for pair in pairs]
    return mean(s.value for s in scores if s.outcome not in ("error", "ungraded"))


def _differs(pair: Pair) -> bool:
    """Whether the tool's score of the row is not Keju's, or one of them has none."""
    score = pair.record.readings[0].score
    if pair.row.verdict is None:
        return False
    if score.outcome in ("error", "ungraded"):
        return True
    return abs(pair.row.verdict - score.value) > SAME


def _difference(pair: Pair) -> dict[str, Any]:
    row, sample, record = pair
    reading = record.readings[0]
    shown = row.reply.text if row.reply.error is None else row.reply.error.message
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
        "reply": _excerpt(shown),
    }


def _excerpt(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= EXCERPT else "…" + line[-EXCERPT:]


def _other_gold(pair: Pair) -> bool:
    return bool(pair.row.target) and gold(pair.row.target) != gold(pair.sample.target)


def _golds(pair: Pair) -> dict[str, Any]:
    return {"id": pair.sample.id, "log": pair.row.target, "data": pair.sample.target}


def _moved(pair: Pair) -> bool:
    order = pair.record.order
    return bool(order) and order != tuple(range(len(order)))
