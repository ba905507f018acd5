"""Several grading stages as one: the programs of some exams and the judges of others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from keju.errors import KejuError
from keju.judges import GradingStage
from keju.judges.stage import Judgement
from keju.runs.run import JudgedReadings
from keju.scores.exam_scores import ExamScores

if TYPE_CHECKING:
    from keju.progress.display import Display
    from keju.runs.manifest import ManifestFile


class GradingStages:
    """The stages of a run, in order."""

    def __init__(self, stages: Sequence[GradingStage]) -> None:
        self._stages = stages

    @property
    def grades(self) -> list[JudgedReadings]:
        """The readings of each answer that a stage has decided."""
        return [grade for stage in self._stages for grade in stage.grades]

    def check(self) -> None:
        """Raise an error for a stage that cannot work, before any request."""
        for stage in self._stages:
            stage.check()

    def preflight(self) -> None:
        """Check the endpoints of the stages before the candidate is asked."""
        for stage in self._stages:
            stage.preflight()

    def grade(
        self,
        folder: Path,
        manifest: ManifestFile | None,
        *,
        display: Display | None = None,
        strict: bool = False,
        runs_programs: bool = False,
    ) -> KejuError | None:
        """Grade the answers so far; return the first error that stopped a stage early."""
        errors = [
            stage.grade(
                folder, manifest, display=display, strict=strict, runs_programs=runs_programs
            )
            for stage in self._stages
        ]
        return next((error for error in errors if error is not None), None)

    def judgement(self, job: ExamScores, reader: int, deff: float = 1.0) -> Judgement | None:
        """Return the facts about an exam's judges under a reader; None if it has no judge."""
        judgements = (stage.judgement(job, reader, deff) for stage in self._stages)
        return next((judgement for judgement in judgements if judgement is not None), None)
