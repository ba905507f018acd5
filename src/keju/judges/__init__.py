"""Grading after the replies: by a model that judges, and by running programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from keju.config import TaskConfig
    from keju.errors import KejuError
    from keju.judges.stage import Judgement
    from keju.progress.display import Display
    from keju.runs.manifest import ManifestFile
    from keju.runs.run import JudgedReadings
    from keju.scores.exam_scores import ExamScores


class GradingStage(Protocol):
    """A stage of a run that grades answers after the readers."""

    @property
    def grades(self) -> list[JudgedReadings]:
        """The readings of each answer that the stage has decided."""

    def check(self) -> None:
        """Raise an error, before any request, if the stage cannot work."""

    def preflight(self) -> None:
        """Check endpoints before the candidate is asked."""

    def grade(
        self,
        folder: Path,
        manifest: ManifestFile | None,
        *,
        display: Display | None = None,
        strict: bool = False,
        runs_programs: bool = False,
    ) -> KejuError | None:
        """Grade the answers so far; return the error that stopped this early, if any.

        Without a `manifest` only stored verdicts count; with `runs_programs` missing verdicts on
        programs are made even so.
        """

    def judgement(self, job: ExamScores, reader: int, deff: float = 1.0) -> Judgement | None:
        """Return the facts about an exam's judges under a reader; None if it has no judge."""


def make_judge_stage(config: TaskConfig, jobs: Sequence[ExamScores]) -> GradingStage | None:
    """Return the grading stage of a run; None, without heavy imports, if no exam needs one.

    From then on the stage sees every answer that is entered on the scoreboards of `jobs`. Programs
    are never graded by a judge.
    """
    judged_jobs = [job for job in jobs if job.exam.programs is None]
    judges = [config.judge or job.exam.judge for job in judged_jobs]
    judge_stage: GradingStage | None = None
    if any(judge is not None and judge.strategy != "rule" for judge in judges):
        from keju.judges.stage import JudgeStage

        judge_stage = JudgeStage(config, judged_jobs)
    if len(judged_jobs) == len(jobs):
        return judge_stage
    from keju.judges.programs.stage import ProgramStage

    program_stage = ProgramStage(config, jobs)
    if judge_stage is None:
        return program_stage
    from keju.judges.programs.stages import GradingStages

    return GradingStages([program_stage, judge_stage])
