"""A judge that is asked about one answer at a time, while rollouts are being scored."""

from __future__ import annotations

from keju.config import JudgeConfig, TaskConfig
from keju.engine.channel import Channel, Limits
from keju.engine.job import Job
from keju.errors import EndpointError, KejuError
from keju.judges.exam import JudgeExam, submit
from keju.judges.judge import Judge
from keju.types import Reading, Record, Reply


class Arbiter:
    """Decides what the rules of an exam leave open.

    A judge that fails raises: an answer is never worth 0 because of its judge. There are at most
    as many calls at once as the judge's settings allow, however many rollouts wait.
    """

    def __init__(self, config: TaskConfig, judge: JudgeConfig, job: Job) -> None:
        self._job = job
        self._judge = Judge(config, judge, judge.model)
        self._channel: Channel | None = None

    async def decide(
        self, place: int, reply: Reply, readings: tuple[Reading, ...]
    ) -> tuple[Reading, ...]:
        """The readings of a reply to question `place` with the judge's verdict where it counts."""
        judge, name = self._judge, self._job.exam.samples[place].id
        record = Record(
            bench=self._job.exam.benchmark, id=name, hash="", reply=reply, readings=readings
        )
        submission = submit(self._job, place, record, judge.settings.strategy)
        if submission is None:
            return readings
        if self._channel is None:
            model = judge.model()
            self._channel = Channel(model, Limits.of(judge.task, model))
            await self._channel.open(())
        exam = JudgeExam(self._job.exam.benchmark, [submission.question], judge.kind)
        try:
            async with self._channel.slot():
                verdict = await judge.ask(judge.job(exam).request(0), self._channel)
            if verdict.reply.error is None:
                return submission.decided(verdict.readings[0].answer.value)
            reason = verdict.reply.error.message
        except KejuError as error:  # the judge's endpoint is given up
            reason = str(error)
        raise EndpointError(f"the judge '{judge.task.model}' has no verdict on {name}: {reason}")

    async def close(self) -> None:
        """Close the judge's connections."""
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()
