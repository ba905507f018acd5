"""A judge that is asked about one answer at a time, while rollouts are being scored."""

from __future__ import annotations

import asyncio
import random

from keju.config import JudgeConfig, TaskConfig
from keju.engine.job import Job
from keju.engine.loop import BACKOFF_MOST, FINAL, REFUSALS
from keju.errors import EndpointError
from keju.judges.exam import Bundle
from keju.judges.model import Judge
from keju.judges.panel import Seat, judge_task
from keju.judges.prompts import Kind
from keju.types import Fault, Reading, Record, Reply, Request


class Arbiter:
    """Decides what the rules of an exam leave open.

    A judge that fails raises: an answer is never worth 0 because of its judge. There are at most
    as many calls at once as the judge's settings allow, however many rollouts wait.
    """

    def __init__(self, config: TaskConfig, judge: JudgeConfig, job: Job) -> None:
        kind: Kind = "score" if judge.continuous else "grade"
        self._kind = kind
        self._settings = judge
        self._job = job
        self._seat = Seat(judge_task(config, judge, judge.model), kind)
        self._model: Judge | None = None
        self._slots = asyncio.Semaphore(judge.eval_batch_size)

    async def decide(
        self, place: int, reply: Reply, readings: tuple[Reading, ...]
    ) -> tuple[Reading, ...]:
        """The readings of a reply to question `place` with the judge's verdict where it counts."""
        bundle = Bundle(self._job, self._settings.strategy)
        sample = self._job.exam.samples[place]
        record = Record(bench=self._job.exam.benchmark, id=sample.id, hash="", reply=reply)
        bundle.consider(place, record)
        if not bundle.answers:
            return readings
        exam = bundle.exam(self._kind)
        name = self._settings.model
        job = Job(exam, self._seat.sampling, list(exam.readers.values()), model=name, arm=name)
        async with self._slots:
            said = await self._ask(job.request(0), sample.id)
        (reading,) = job.grade(0, said)
        (grade,) = bundle.merge([reading.answer.value])
        return grade.readings

    async def close(self) -> None:
        """Close the judge's connections."""
        model, self._model = self._model, None
        if model is not None:
            await model.close()

    async def _ask(self, request: Request, sample_id: str) -> Reply:
        model = await self._ready()
        fault: Fault | None = None
        for attempt in range(self._settings.attempts):
            if fault is not None:
                await asyncio.sleep(_pause(attempt, fault))
            reply = await model.ask(request, timeout=self._settings.timeout)
            fault = reply.error
            if fault is None:
                return reply
            if fault.kind in FINAL or fault.kind in REFUSALS:
                break
        assert fault is not None
        raise EndpointError(
            f"the judge '{self._settings.model}' has no verdict on {sample_id}: {fault.message}"
        )

    async def _ready(self) -> Judge:
        if self._model is None:
            self._model = self._seat.model()
            await self._model.start()
        return self._model


def _pause(attempt: int, fault: Fault) -> float:
    """Seconds before attempt number `attempt`: what was asked for, else exponential; jittered."""
    if fault.retry_after is not None:
        return fault.retry_after * random.uniform(1.0, 1.25)
    return min(BACKOFF_MOST, 0.5 * 2.0 ** (attempt - 1)) * random.uniform(0.5, 1.5)
