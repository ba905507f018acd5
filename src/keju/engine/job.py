"""One exam in one arm as work for the engine: its scores, and the solver of its requests."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from time import time

from keju.config import TaskConfig
from keju.engine.channel import ReplyWithAttempts
from keju.engine.limited_solver import LimitedSolver
from keju.engine.solver import Solver
from keju.engine.turn_solver import TurnSolver
from keju.errors import Notice
from keju.scores.exam_scores import ExamScores
from keju.scores.exams import make_scores_of
from keju.types import Record, Request


class Job(ExamScores):
    """The scores of an exam that an engine asks."""

    @cached_property
    def solver(self) -> Solver:
        """The solver that turns a request into a reply."""
        if self.exam.turns > 1:
            return TurnSolver(self.exam.turns)
        return Solver() if self.limits is None else LimitedSolver(self.limits)

    @property
    def session_notices(self) -> Sequence[Notice]:
        """The notices of the solver."""
        return self.solver.notices

    def record(self, unit: int, request: Request, exchange: ReplyWithAttempts) -> Record:
        """Read and score a reply, unless its solver has done so. Return its journal line."""
        index, epoch = divmod(unit, self.epochs)
        sample = self.exam.samples[index]
        return Record(
            bench=self.exam.benchmark,
            id=sample.id,
            epoch=epoch,
            arm=self.arm,
            hash=request.hash,
            target=sample.target,
            order=sample.order,
            reply=exchange.reply,
            readings=exchange.readings or self.grade(index, exchange.reply),
            faults=exchange.faults,
            at=round(time(), 3),
            endpoint=exchange.endpoint,
        )


def make_jobs(config: TaskConfig) -> list[Job]:
    """Return the exams of a run as work for the engine. Raise ConfigError if one cannot be run."""
    return make_scores_of(Job, config)
