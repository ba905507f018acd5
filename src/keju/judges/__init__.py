"""Grading with a model: what it is shown, how its verdict is read, how far it can be trusted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from keju.config import TaskConfig
    from keju.engine.job import Job
    from keju.judges.stage import JudgeStage


def judge_stage(config: TaskConfig, jobs: Sequence[Job]) -> JudgeStage | None:
    """The judging stage of a run; None, and nothing imported, where nobody is to be asked.

    From then on it sees every answer that is entered on the scoreboards of `jobs`.
    """
    judges = [config.judge or job.exam.judge for job in jobs]
    if all(judge is None or judge.strategy == "rule" for judge in judges):
        return None
    from keju.judges.stage import JudgeStage

    return JudgeStage(config, jobs)
