"""Grading with a model: its prompts, how verdicts are read, and how reliable they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from keju.config import TaskConfig
    from keju.judges.stage import JudgeStage
    from keju.scores.exam_scores import ExamScores


def make_judge_stage(config: TaskConfig, jobs: Sequence[ExamScores]) -> JudgeStage | None:
    """Return the judging stage of a run; None, without heavy imports, if no exam has a judge.

    From then on the stage sees every answer that is entered on the scoreboards of `jobs`.
    """
    judges = [config.judge or job.exam.judge for job in jobs]
    if all(judge is None or judge.strategy == "rule" for judge in judges):
        return None
    from keju.judges.stage import JudgeStage

    return JudgeStage(config, jobs)
