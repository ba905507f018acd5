"""A judge that is asked about one answer at a time, while rollouts are being scored."""

from __future__ import annotations

from keju.config import JudgeConfig, TaskConfig
from keju.engine.channel import Channel, Limits
from keju.engine.job import Job
from keju.errors import EndpointError, KejuError
from keju.judges.exam import Bundle
from keju.judges.panel import Seat, judge_task
from keju.judges.prompts import Kind
from keju.types import Reading, Record, Reply, Request


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
        self._channel: Channel | None = None

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
        said = await self._ask(job.request(0), sample.id)
        (reading,) = job.grade(0, said)
        (grade,) = bundle.merge([reading.answer.value])
        return grade.readings

    async def close(self) -> None:
        """Close the judge's connections."""
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()

    async def _ask(self, request: Request, sample_id: str) -> Reply:
        if self._channel is None:
            model = self._seat.model()
            self._channel = Channel(model, Limits.of(self._seat.task, model))
            await self._channel.open(())
        try:
            async with self._channel.slot():
                reply = (await self._channel.ask(request)).reply
            if reply.error is None:
                return reply
            reason = reply.error.message
        except KejuError as error:  # the judge's endpoint is given up
            reason = str(error)
        name = self._settings.model
        raise EndpointError(f"the judge '{name}' has no verdict on {sample_id}: {reason}")
