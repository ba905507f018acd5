"""MMLU-Pro as a benchmark: its data, how it is loaded, and what its exam knows beyond that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keju.benchmarks.base import Benchmark, Exam, Mean, Scores
from keju.benchmarks.kit import Questions, Setup, arrange
from keju.benchmarks.mmlu_pro import data
from keju.benchmarks.mmlu_pro.data import CATEGORIES, LAYOUT
from keju.benchmarks.mmlu_pro.facts import (
    GOLDEN,
    OFFICIAL_METRIC,
    OFFICIAL_TITLE,
    TOOL_TASKS,
    expected_with_guess,
    official_guess_accuracy,
)
from keju.benchmarks.mmlu_pro.protocols import PROTOCOLS
from keju.benchmarks.mmlu_pro.readers import readers_of
from keju.stats.estimate import Estimate

TASKS = tuple((category,) for category in CATEGORIES)
TITLE = "mean of the 14 categories"


@dataclass(kw_only=True, eq=False)
class MMLUProExam(Exam):
    """The test questions of the chosen categories, in published order."""

    keeps_answers: bool = True

    def extra_metrics(self, scores: Scores) -> Mapping[str, Estimate]:
        metric = expected_with_guess(self, scores)
        return {"accuracy_expected_with_guess": metric} if metric else {}

    def joint_metrics(
        self, answers: Mapping[str, Sequence[str | None]], targets: Sequence[str]
    ) -> Mapping[str, Mapping[str, Estimate]]:
        """The accuracy of the authors' scoring script, which guesses with one stream for both."""
        if "l1" not in answers or "l2" not in answers:
            return {}
        shares = official_guess_accuracy(answers["l1"], answers["l2"], targets)
        return {
            reader: {OFFICIAL_METRIC: Estimate(share, None, len(targets), title=OFFICIAL_TITLE)}
            for reader, share in shares.items()
        }

    def locate(self, row: Mapping[str, Any]) -> str:
        if "question_id" not in row and isinstance(row.get("id"), str):
            return str(row["id"])
        return data.sample_id(row["question_id"])


def questions(setup: Setup) -> Questions:
    """The test questions of the chosen categories."""
    rows = [row for row in data.read_rows(setup.folder, data.TEST) if row.category in setup.subsets]
    made = arrange("mmlu_pro", data.samples(rows), setup.subsets)
    made.errata = {data.sample_id(row.question_id): row.fault for row in rows if row.fault}
    made.notes, made.warnings = data.notes_on(rows), data.warnings_on(rows)
    return made


MMLU_PRO = Benchmark(
    name="mmlu_pro",
    title="MMLU-Pro",
    about="12,032 multiple-choice questions with up to ten options, 14 categories",
    aliases=("mmlu-pro",),
    layout=LAYOUT,
    tool_tasks=TOOL_TASKS,
    protocols=PROTOCOLS,
    readers=readers_of("evalscope"),
    subset_names=tuple(CATEGORIES),
    rows=CATEGORIES,
    averages=(Mean("macro_accuracy", TITLE, TASKS), Mean("macro_14", TITLE, TASKS)),
    golden=GOLDEN,
    exam=MMLUProExam,
    questions=questions,
    examples=lambda setup: data.samples(data.read_rows(setup.folder, data.POOL)),
    shot_key="{seed}:{name}:{subset}",
)
"""MMLU-Pro (Wang et al. 2024): up to ten options, reasoning before the letter."""
