"""Compares the tool's verdicts with Keju's, row by row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from keju.benchmarks.base import Exam
from keju.files import SpooledSequence
from keju.interop.imports.log import LogPart, LogRow, RunningMean
from keju.interop.imports.matching import normalize_gold
from keju.scores.exam_scores import ExamScores
from keju.types import UNSCORED, Record, Sample

EXCERPT = 160
"""The number of characters of a reply's end next to the two verdicts."""
NO_ANSWERS = ("", "[invalid]", "[INVALID]", "No valid answer found")
"""Texts that tools store if they read no answer."""
TOLERANCE = 1e-6
"""Scores with a smaller difference are equal."""


class ImportedReply(NamedTuple):
    """A row of the log, the question as it was shown, and the resulting record."""

    row: LogRow
    sample: Sample
    record: Record


class VerdictComparison:
    """The verdicts of a part, by the tool and by Keju."""

    def __init__(self, part: LogPart, job: ExamScores | None, exam: Exam) -> None:
        self._part = part
        self._exam = exam
        self._readers = [reader.name for reader in job.readers] if job is not None else []
        self._matched = self._errors = self._permuted = 0
        self._verdicts = RunningMean()
        self._scores = [RunningMean() for _ in self._readers]
        self._differences: SpooledSequence[dict[str, Any]] = SpooledSequence(dict)
        self._answer_differences: SpooledSequence[dict[str, Any]] = SpooledSequence(dict)
        self._other_gold: SpooledSequence[dict[str, str]] = SpooledSequence(dict)

    def add(self, pair: ImportedReply) -> None:
        """Add one row."""
        row, sample, record = pair
        self._matched += 1
        self._errors += record.reply.fault is not None
        self._permuted += bool(record.order) and record.order != tuple(range(len(record.order)))
        if row.verdict is not None:
            self._verdicts.add(row.verdict)
        for mean_score, reading in zip(self._scores, record.readings, strict=True):
            if reading.score.outcome not in UNSCORED:
                mean_score.add(reading.score.value)
        if _scores_differ(pair):
            self._differences.append(_describe_difference(pair))
        elif _answers_differ(pair):
            self._answer_differences.append(_describe_difference(pair))
        if row.target and normalize_gold(row.target) != normalize_gold(sample.target):
            self._other_gold.append({"id": sample.id, "log": row.target, "data": sample.target})

    def document(self, unmatched: Sequence[Mapping[str, str]]) -> dict[str, Any]:
        """Return the part for ``import.json``. Its long lists are read only when they are used.

        - ``reported`` are the tool's own figures over ``reported_n`` rows.
        - ``rows_missing`` is the number of these rows that the log no longer has.
        - ``tool_accuracy`` is the mean of the tool's verdicts on the matched rows.
        - ``keju_accuracy`` is the mean of Keju's scores on the same rows, by reader, without
          errors.
        - ``answer_differences`` are rows with equal scores for different answers.
        """
        part, exam, readers = self._part, self._exam, self._readers
        return {
            "name": exam.benchmark,
            "task": part.task,
            "protocol": exam.protocol.name,
            "reader": readers[0] if readers else exam.protocol.reader,
            "rows": len(part.rows),
            "matched": self._matched,
            "errors": self._errors,
            "permuted": self._permuted,
            "reported": dict(part.reported),
            "reported_n": part.n,
            "rows_missing": max(0, (part.written_count or part.n or 0) - len(part.rows)),
            "tool_accuracy": self._verdicts.value,
            "keju_accuracy": {
                name: mean_score.value
                for name, mean_score in zip(readers, self._scores, strict=True)
            },
            "differences": self._differences,
            "answer_differences": self._answer_differences,
            "other_gold": self._other_gold,
            "unmatched": unmatched,
        }


def _scores_differ(pair: ImportedReply) -> bool:
    verdict, score = pair.row.verdict, pair.record.readings[0].score
    if verdict is None:
        return False
    return score.outcome in UNSCORED or abs(verdict - score.value) > TOLERANCE


def _answers_differ(pair: ImportedReply) -> bool:
    """Whether the tool and Keju read different answers.

    A tool that stores no answer, or the whole reply, is not compared.
    """
    reply = pair.record.reply
    if pair.row.answer in (None, reply.text) or reply.error is not None:
        return False
    tool_answer = "" if pair.row.answer in NO_ANSWERS else normalize_gold(pair.row.answer or "")
    return tool_answer != normalize_gold(pair.record.readings[0].answer.value or "")


def _describe_difference(pair: ImportedReply) -> dict[str, Any]:
    row, sample, record = pair
    reading = record.readings[0]
    reply_text = row.reply.text if row.reply.error is None else row.reply.error.message
    line = " ".join(reply_text.split())
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
