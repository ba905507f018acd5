"""An exam whose replies come from elsewhere: it gives out prompts and grades replies.

This module does not depend on verifiers. The same code as in ``keju eval`` prepares, renders, reads
and judges the exam, so that the same reply gets the same score.
"""

from __future__ import annotations

import asyncio
import logging
import os
from functools import lru_cache
from typing import Any

import msgspec

from keju.benchmarks import registry
from keju.config import TaskConfig
from keju.engine.channel import Channel, ChannelLimits
from keju.engine.job import make_jobs
from keju.errors import ConfigError, EndpointError, KejuError
from keju.judges.exam import JudgeExam, submit
from keju.judges.judge import Judge
from keju.models.openai.wire import BodyBuilder
from keju.scores.exam_scores import ExamScores
from keju.solvers.loop import ToolLoop
from keju.types import OUTCOMES, Message, Reading, Record, Reply, Sample

logger = logging.getLogger(__name__)

MODEL = "policy"
"""A placeholder for the model: verifiers manages its name and address."""
UNANSWERED = Reply(finish="length")
"""The reply of a rollout that was stopped during tool calls."""


class RewardMissing(KejuError):
    """A reply without a reward: the endpoint failed, or the answer could not be graded."""


class ExamSpec(msgspec.Struct, frozen=True, omit_defaults=True):
    """The definition of an exam, small enough to be part of every task."""

    benchmark: str
    settings: dict[str, Any] = {}
    """In the form of ``dataset_args``."""
    data_dir: str | None = None
    limit: int | float | None = None
    """Questions of each subset, or a share of them."""
    seed: int = 42
    agent: dict[str, Any] = {}
    """Limits of a model that acts, as in the settings of a run."""
    sandbox: dict[str, Any] = {}
    """Where the model's code runs."""


def open_exam(spec: ExamSpec) -> ExternalExam:
    """Return the exam of `spec`, loaded once in a process; KejuError has one line."""
    return _open_encoded(msgspec.json.encode(spec, order="sorted"))


@lru_cache(maxsize=8)
def _open_encoded(encoded: bytes) -> ExternalExam:
    return ExternalExam(msgspec.json.decode(encoded, type=ExamSpec))


class ExternalExam:
    """Gives out the questions of an exam and grades the replies."""

    def __init__(self, spec: ExamSpec) -> None:
        benchmark = registry.get(spec.benchmark)
        name, settings = benchmark.name, dict(spec.settings)
        try:
            arrangement = benchmark.Args(**settings).arrange_judge(settings, os.environ)
        except ConfigError as error:
            raise ConfigError("config_from", origin=name, problem=error) from None
        if arrangement.warning:
            logger.warning("%s", arrangement.warning)
        agent_settings: dict[str, Any] = {"agent": spec.agent, "sandbox": spec.sandbox}
        config = self._config = TaskConfig(
            model=MODEL,
            datasets=[name],
            dataset_args={name: arrangement.settings},
            data_dir=spec.data_dir,
            limit=spec.limit,
            seed=spec.seed,
            **agent_settings,
        )
        (self._job,) = make_jobs(config)
        self.exam = self._job.exam
        _check_job(self._job)
        for note in (*self.exam.data.notes, *(w.text() for w in self.exam.warnings)):
            logger.info("%s: %s", name, note)
        self.sampling = BodyBuilder(MODEL).fields(self._job.sampling)
        """The protocol's sampling, as the fields of a chat request."""
        self.readers = self._job.readers
        """The reader of the headline, and the secondary ones."""
        self._positions = {sample.id: place for place, sample in enumerate(self.exam.samples)}
        self._judge: Judge | None = None
        if arrangement.judge is not None:
            self._judge = Judge(config, arrangement.judge, arrangement.judge.model)
        self._channel: Channel | None = None
        self._tool_loop: asyncio.Future[ToolLoop] | None = None

    def sample(self, sample_id: str) -> Sample:
        """Return a question by its id."""
        return self.exam.samples[self._positions[sample_id]]

    async def open_tool_loop(self) -> ToolLoop | None:
        """Return the tool loop of this exam; None if the model only answers.

        Its resources are started once, for all rollouts until `close`. Raise ConfigError or
        UsageError with one line if that fails: no data, no sandbox.
        """
        if self.exam.notebook is None:
            return None
        if self._tool_loop is None:
            self._tool_loop = asyncio.ensure_future(self._start_tool_loop())
        return await asyncio.shield(self._tool_loop)

    async def _start_tool_loop(self) -> ToolLoop:
        from keju.solvers.tool_setup import attach_tools

        for notice in attach_tools(self._config, [self._job], None):
            logger.warning("%s: %s", self.exam.benchmark, notice.text())
        loop = self._job.solver
        assert isinstance(loop, ToolLoop)
        await loop.open()
        return loop

    def messages(self, sample: Sample) -> list[Message]:
        """Return the prompt of one question as chat turns, the system's first."""
        prompt = self.exam.render(sample)
        return [*prompt.prefix.messages, Message("user", prompt.text)]

    async def grade(self, sample_id: str, reply: Reply) -> tuple[Reading, ...]:
        """Return the readings of a reply by the protocol's reader and the secondary one, in that
        order.

        Raise Ungraded for a reply without a grade, instead of scoring it as 0.
        """
        position = self._positions[sample_id]
        readings = self._job.grade(position, reply)
        if self._judge is not None:
            readings = await self._apply_judge(self._judge, position, reply, readings)
        outcome = readings[0].score.outcome
        if outcome == "error" and reply.error is not None:
            raise RewardMissing("environment_no_reply", id=sample_id, problem=reply.error.message)
        if outcome == "ungraded":
            raise RewardMissing("environment_no_judge", id=sample_id)
        return readings

    async def _apply_judge(
        self, judge: Judge, position: int, reply: Reply, readings: tuple[Reading, ...]
    ) -> tuple[Reading, ...]:
        """Return the readings with the judge's verdict, if the judge decides.

        A judge that fails raises an error: an answer never gets 0 because of its judge. The judge's
        settings limit the number of simultaneous calls, however many rollouts wait.
        """
        name, sample_id = self.exam.benchmark, self.exam.samples[position].id
        record = Record(bench=name, id=sample_id, hash="", reply=reply, readings=readings)
        submission = submit(self._job, position, record, judge.settings.strategy)
        if submission is None:
            return readings
        if self._channel is None:
            model = judge.create_model()
            self._channel = Channel(model, ChannelLimits.of(judge.task, model))
            await self._channel.open(())
        job = judge.make_job(JudgeExam(name, [submission.question], judge.kind))
        try:
            async with self._channel.slot():
                exchange = await judge.ask(job.request(0), self._channel)
            if exchange.reply.error is None:
                return submission.apply_verdict(exchange.readings[0].answer.value)
            problem: object = exchange.reply.error.message
        except KejuError as error:  # the judge's endpoint was given up
            problem = error
        values = {"name": judge.task.model, "id": sample_id, "problem": problem}
        raise EndpointError("environment_no_verdict", **values)

    async def close(self) -> None:
        """Close the judge's connections and the tool loop's resources."""
        channel, self._channel = self._channel, None
        tool_loop, self._tool_loop = self._tool_loop, None
        try:
            if channel is not None:
                await channel.close()
        finally:
            if tool_loop is not None:
                await asyncio.wait([tool_loop])
                await self._job.solver.close()


def metrics_of(readings: tuple[Reading, ...]) -> dict[str, float]:
    """Return each outcome as a number, and the score by the secondary reader."""
    outcome = readings[0].score.outcome
    metrics = {f"outcome_{name}": float(name == outcome) for name in OUTCOMES}
    for reading in readings[1:]:
        if reading.score.outcome != "ungraded":
            metrics[f"{reading.reader}_score"] = reading.score.value
    return metrics


def _check_job(job: ExamScores) -> None:
    """Refuse exams that an environment cannot run: it grades the last text of a chat."""
    values = {"name": job.exam.benchmark, "protocol": job.exam.protocol.name}
    if job.sampling.decode != "generate":
        raise ConfigError("environment_labels", **values)
    if job.sampling.form == "completion":
        raise ConfigError("environment_completion", **values)
    if unpublished_count := sum(not sample.target for sample in job.exam.samples):
        raise ConfigError(
            "environment_no_gold", hidden=unpublished_count, whole=len(job.exam.samples), **values
        )
