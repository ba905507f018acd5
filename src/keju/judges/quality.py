"""How often a judge is right, from answers that people have graded, and what that corrects."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from keju.errors import DataError
from keju.judges.exam import Part, handed_in
from keju.judges.verdicts import score_of
from keju.sources.formats import jsonl_rows, unpacked
from keju.stats.distributions import Z95
from keju.stats.estimate import Estimate
from keju.stats.judge import JudgeQuality, rogan_gladen
from keju.types import Sample


class Labelled(NamedTuple):
    """Answers whose grade is known."""

    samples: list[Sample]
    """As they are handed to the judge."""
    correct: list[bool]


def load_labelled(path: Path, find: Callable[[str], Sample | None]) -> Labelled:
    """Read a JSONL file of graded answers; DataError names the line that cannot be used.

    A row has the `answer` and whether it is `correct`, and says what was asked: the `id` of a
    question in this run, or `question` and `target`.
    """
    try:
        raw = unpacked(path.read_bytes(), path.name, str(path))
    except OSError as error:
        raise DataError(f"judge.labelled: cannot read {path}: {error.strerror}") from None
    labelled = Labelled([], [])
    for index, row in enumerate(jsonl_rows(raw, str(path))):
        where = f"{path}, row {index + 1}"
        asked = _asked(row, index, find, where)
        if not isinstance(row.get("answer"), str) or not isinstance(row.get("correct"), bool):
            raise DataError(f"{where}: needs 'answer' (a text) and 'correct' (true or false)")
        labelled.samples.append(handed_in(asked, row["answer"], index=index))
        labelled.correct.append(row["correct"])
    if not labelled.samples:
        raise DataError(f"{path} holds no labelled answers")
    return labelled


def _asked(
    row: Mapping[str, Any], index: int, find: Callable[[str], Sample | None], where: str
) -> Sample:
    """What the row's answer is an answer to; its id is the row's, since questions may recur."""
    row_id = f"labelled_{index}"
    if "id" in row:
        sample = find(str(row["id"]))
        if sample is None:
            raise DataError(f"{where}: no exam of this run has a question '{row['id']}'")
        return Sample(
            id=row_id,
            subset="labelled",
            index=index,
            text=sample.text,
            target=sample.target,
            choices=sample.choices,
            metadata=sample.metadata,
        )
    question, target = row.get("question"), row.get("target")
    if not isinstance(question, str) or not isinstance(target, str):
        raise DataError(f"{where}: needs the 'id' of a question, or 'question' and 'target'")
    return Sample(id=row_id, subset="labelled", index=index, text=question, target=target)


def measure(correct: Iterable[bool], verdicts: Iterable[str | None]) -> JudgeQuality:
    """Sensitivity and specificity over the labelled answers that have a verdict."""
    calls = [
        (truth, score_of(verdict).outcome == "correct")
        for truth, verdict in zip(correct, verdicts, strict=True)
        if verdict is not None
    ]
    rights = [called for truth, called in calls if truth]
    wrongs = [called for truth, called in calls if not truth]
    return JudgeQuality(
        sensitivity=sum(rights) / len(rights) if rights else math.nan,
        specificity=1 - sum(wrongs) / len(wrongs) if wrongs else math.nan,
        positives=len(rights),
        negatives=len(wrongs),
    )


def corrected_accuracy(
    judged: Part, by_rule: Part, judge: JudgeQuality, *, shrink: float = 1.0
) -> Estimate:
    """Accuracy with the judged part corrected for the judge's errors (Rogan and Gladen 1978).

    What a rule decided stands as it is. `shrink` divides the sizes where answers hang together.
    UsageError if there is nothing to correct or the judge is no better than chance.
    """
    share = judged.correct / judged.n if judged.n else 0.0
    fixed = rogan_gladen(share, judged.n, judge)
    gain = judge.sensitivity + judge.specificity - 1
    clustered = (shrink - 1) * share * (1 - share) / judged.n / gain**2
    n = judged.n + by_rule.n
    weight = judged.n / n
    rule = by_rule.correct / by_rule.n if by_rule.n else 0.0
    value = weight * fixed.value + (1 - weight) * rule
    own = rule * (1 - rule) * shrink / by_rule.n if by_rule.n else 0.0
    between = weight * (1 - weight) * (fixed.value - rule) ** 2 * shrink / n
    se = math.sqrt(weight**2 * (fixed.se**2 + clustered) + (1 - weight) ** 2 * own + between)
    return Estimate(
        value,
        (max(0.0, value - Z95 * se), min(1.0, value + Z95 * se)),
        n,
        "rogan-gladen",
        se,
        title="accuracy, corrected for the judge's errors",
    )


def describe(quality: JudgeQuality, labelled: Sequence[bool]) -> dict[str, Any]:
    """The judge's quality for the results; NaN is nothing known."""
    return {
        "sensitivity": None if math.isnan(quality.sensitivity) else quality.sensitivity,
        "specificity": None if math.isnan(quality.specificity) else quality.specificity,
        "positives": quality.positives,
        "negatives": quality.negatives,
        "unjudged": len(labelled) - quality.positives - quality.negatives,
    }
