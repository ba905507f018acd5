"""The judges of some exams: who they are, what they are handed, and what they said."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from keju.config import JudgeConfig, TaskConfig
from keju.engine.job import Job
from keju.errors import ConfigError
from keju.exams import resolve_sampling
from keju.grades import Grade
from keju.judges.exam import JudgeExam, handed_in
from keju.judges.opinions import Votes, settled
from keju.judges.prompts import PROTOCOLS, Kind
from keju.judges.quality import Labelled
from keju.judges.selection import can_be_judged, wants_judge
from keju.judges.verdicts import CLAMPED, GRADER, score_of
from keju.models.base import Model
from keju.models.factory import make_model, model_name
from keju.judges.model import Judge
from keju.settings import is_local
from keju.types import Reading, Record, Sample, Score

LABELLED = "labelled"
"""Name of the answers with known grades, in the place of an exam's."""


def judge_task(config: TaskConfig, judge: JudgeConfig, model: str) -> TaskConfig:
    """Asking a judge as a task of its own: its model, key, pace, limits, budget and price.

    The key comes from the variable that the judge's settings name. Only a judge at the very
    endpoint of the candidate may use the candidate's.
    """
    local = is_local(model)
    address = judge.api_url or config.api_url or os.environ.get("OPENAI_BASE_URL")
    key: object = os.environ.get(judge.api_key_var)
    if not key and address == config.api_url:
        key = config.api_key
    try:
        return TaskConfig(
            model=model,
            api_url=None if local else address,
            api_key=None if local else key,
            ca_file=None if local else config.ca_file,
            datasets=config.datasets,
            generation_config=judge.generation_config,
            repeats=judge.repeats,
            seed=config.seed,
            eval_batch_size=judge.eval_batch_size,
            timeout=judge.timeout,
            attempts=judge.attempts,
            retry_interval=config.retry_interval,
            give_up_after=judge.give_up_after,
            budget=judge.budget,
            price=judge.price,
            work_dir=config.work_dir,
        )
    except ConfigError as error:
        raise ConfigError(f"judge: {error}") from None


def make_judge(task: TaskConfig, kind: Kind) -> Model:
    """The model of a judge, not yet started."""
    try:
        return Judge(make_model(task), kind)
    except ConfigError as error:
        raise ConfigError(f"judge: {error}") from None


@dataclass(frozen=True)
class Handed:
    """One answer that is handed to the judge."""

    unit: int
    """Of the candidate's job."""
    record: Record
    readings: tuple[Reading, ...]
    """What the rules made of it."""
    wanted: tuple[bool, ...]
    """Which of these readings the judge decides."""


@dataclass
class Bundle:
    """All answers of one exam that are handed in, and the verdicts on them."""

    job: Job
    answers: list[Handed] = field(default_factory=list)

    def samples(self) -> list[Sample]:
        """The answers as the judge's questions."""
        exam, epochs = self.job.exam, self.job.epochs
        return [
            handed_in(
                exam.samples[each.unit // epochs],
                each.record.reply.text,
                index=index,
                epoch=each.unit % epochs,
            )
            for index, each in enumerate(self.answers)
        ]

    def merge(self, verdicts: Sequence[str | None]) -> list[Grade]:
        """Enter the verdicts on the exam's scoreboards; return the readings that result."""
        grades = []
        for each, verdict in zip(self.answers, verdicts, strict=True):
            readings = tuple(
                _decided(reading, verdict) if wanted else reading
                for reading, wanted in zip(each.readings, each.wanted, strict=True)
            )
            for tally, reading in zip(self.job.tallies, readings, strict=True):
                tally.add(each.unit, reading)
            record = each.record
            grades.append(Grade(record.bench, record.id, record.hash, readings, record.epoch))
        return grades


def _decided(reading: Reading, verdict: str | None) -> Reading:
    """`reading` with the judge's word; that a reply was cut off stays said unless it is right."""
    score = score_of(verdict)
    if reading.score.outcome == "truncated" and score.outcome not in ("correct", "ungraded"):
        score = Score(score.value, "truncated", GRADER)
    return msgspec.structs.replace(reading, score=score)


def collect(
    jobs: Sequence[Job], records: Sequence[tuple[Job, int, Record]], judge: JudgeConfig
) -> list[Bundle]:
    raise NotImplementedError
