"""A judge's sensitivity and specificity on answers that people graded, and the correction of scores
for its errors."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from keju.bounds import LONGEST_DOCUMENT, read_file, unpack_gzip
from keju.errors import DataError
from keju.judges.exam import make_judge_sample, score_of
from keju.sources.files import jsonl_rows
from keju.stats.agreement import JudgeQuality, rogan_gladen
from keju.stats.estimate import Estimate
from keju.stats.intervals import Z95, Interval, wilson
from keju.types import Sample


class LabelledAnswers(NamedTuple):
    """Answers with a known grade."""

    samples: list[Sample]
    """The answers as questions for the judge."""
    correct: list[bool]


def _read_question(
    row: Mapping[str, Any], index: int, place: dict[str, Any], find: Callable[[str], Sample | None]
) -> Sample:
    """Return the question of a row, named by the row: a question may occur in several."""
    name = f"labelled_{index}"
    if "id" in row:
        sample = find(str(row["id"]))
        if sample is None:
            raise DataError("labelled_unknown_question", **place, id=row["id"])
        return replace(sample, id=name)
    text, target = row.get("question"), row.get("target")
    if not isinstance(text, str) or not isinstance(target, str):
        raise DataError("labelled_without_question", **place)
    return Sample(id=name, subset="labelled", index=index, text=text, target=target)


def load_labelled(path: Path, find: Callable[[str], Sample | None]) -> LabelledAnswers:
    """Read a JSONL file of graded answers; DataError names a line that is invalid.

    A row has the `answer` and whether it is `correct`. It identifies the question by the `id` of a
    question in this run, or by `question` and `target`.
    """
    try:
        raw = io.BytesIO(read_file(path, LONGEST_DOCUMENT))
    except OSError as error:
        raise DataError("labelled_unreadable", path=path, problem=error.strerror) from None
    rows = unpack_gzip(raw, str(path)) if path.name.endswith(".gz") else raw
    labelled = LabelledAnswers([], [])
    for index, row in enumerate(jsonl_rows(rows, str(path))):
        place = {"path": path, "row": index + 1}
        sample = _read_question(row, index, place, find)
        if not isinstance(row.get("answer"), str) or not isinstance(row.get("correct"), bool):
            raise DataError("labelled_without_answer", **place)
        labelled.samples.append(make_judge_sample(sample, row["answer"], index))
        labelled.correct.append(row["correct"])
    if not labelled.samples:
        raise DataError("labelled_empty", path=path)
    return labelled


def measure(correct: Iterable[bool], verdicts: Iterable[str | None]) -> JudgeQuality:
    """Return sensitivity and specificity over the labelled answers that have a verdict."""
    calls: dict[bool, list[bool]] = {True: [], False: []}
    for truth, verdict in zip(correct, verdicts, strict=True):
        if verdict is not None:
            calls[truth].append(score_of(verdict).outcome == "correct")
    rights, wrongs = calls[True], calls[False]
    return JudgeQuality(
        sensitivity=sum(rights) / len(rights) if rights else math.nan,
        specificity=1 - sum(wrongs) / len(wrongs) if wrongs else math.nan,
        positives=len(rights),
        negatives=len(wrongs),
    )


def corrected_accuracy(
    judged: tuple[int, int],
    by_rule: tuple[int, int],
    judge: JudgeQuality,
    *,
    shrink: float = 1.0,
) -> Estimate:
    """Return the accuracy with the judged part corrected for the judge's errors.

    The method is that of Rogan and Gladen (1978). Each part is a pair: the number of graded
    answers, and the number of correct ones. The decisions of a rule are not corrected. `shrink`
    divides the sizes if answers are dependent.

    Raise UsageError if there is nothing to correct, or the judge is no better than chance.
    """
    (n_judged, right), (n_by_rule, right_by_rule) = judged, by_rule
    n = n_judged + n_by_rule
    weight = n_judged / n if n else 0.0
    corrected = rogan_gladen(right / n_judged if n_judged else 0.0, n_judged / shrink, judge)
    rule = right_by_rule / n_by_rule if n_by_rule else 0.0
    value = weight * corrected.value + (1 - weight) * rule
    between = weight * (1 - weight) * (corrected.value - rule) ** 2 * shrink / n
    rule_variance = rule * (1 - rule) * shrink / n_by_rule if n_by_rule else 0.0
    se = math.sqrt(weight**2 * corrected.se**2 + (1 - weight) ** 2 * rule_variance + between)
    # Each part has its own interval. Their half widths add up like independent errors.
    parts = [(weight, corrected.value, corrected.interval)]
    if n_by_rule:
        parts.append((1 - weight, rule, wilson(rule, n_by_rule / shrink)))
    lower_width, upper_width = (
        math.sqrt(
            Z95**2 * between + sum((share * (ends[side] - mid)) ** 2 for share, mid, ends in parts)
        )
        for side in (0, 1)
    )
    return Estimate(
        value,
        Interval(value - lower_width, value + upper_width).clip(),
        n,
        "rogan-gladen",
        se,
        title="accuracy, corrected for the judge's errors",
    )


def describe_quality(quality: JudgeQuality, labelled: Sequence[bool]) -> dict[str, Any]:
    """Return the judge's quality for the results; NaN becomes None."""
    return {
        "sensitivity": None if math.isnan(quality.sensitivity) else quality.sensitivity,
        "specificity": None if math.isnan(quality.specificity) else quality.specificity,
        "positives": quality.positives,
        "negatives": quality.negatives,
        "unjudged": len(labelled) - quality.positives - quality.negatives,
    }
