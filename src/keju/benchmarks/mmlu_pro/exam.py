"""MMLU-Pro as a benchmark: its data, how it is loaded, and what its exam knows beyond that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keju.benchmarks.base import Benchmark, Exam, Mean, Scores
from keju.benchmarks.kit import Questions, Setup, arrange, usual_settings
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
from keju.benchmarks.wording import Wording
from keju.config import DatasetArgs
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


class MMLUProArgs(DatasetArgs):
    """What MMLU-Pro can be asked for beside the usual settings."""

    option_blanks: bool = False
    """Show the options as EvalScope does, with the white space that 480 rows begin an option with.
    In some revisions of the data it marks the gold option, so it is removed by default."""


def read_rows(setup: Setup, table: str) -> list[data.Row]:
    """The rows of a table, with the options as they are to be shown."""
    assert isinstance(setup.args, MMLUProArgs)
    return data.read_rows(setup.folder, table, as_published=setup.args.option_blanks)


def settings(setup: Setup, wording: Wording) -> dict[str, Any]:
    """The usual settings, and whether options keep their white space."""
    assert isinstance(setup.args, MMLUProArgs)
    blanks = {"option_blanks": True} if setup.args.option_blanks else {}
    return usual_settings(setup, wording) | blanks


def questions(setup: Setup) -> Questions:
    """The test questions of the chosen categories."""
    rows = [row for row in read_rows(setup, data.TEST) if row.category in setup.subsets]
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
    examples=lambda setup: data.samples(read_rows(setup, data.POOL)),
    settings=settings,
    Args=MMLUProArgs,
    shot_key="{seed}:{name}:{subset}",
)
"""MMLU-Pro (Wang et al. 2024): up to ten options, reasoning before the letter."""
