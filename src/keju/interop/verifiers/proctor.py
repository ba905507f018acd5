"""An exam whose replies come from elsewhere: prompts go out, readings come in.

Nothing here knows verifiers. The exam is made ready, rendered, read and judged by the same code
as in ``keju eval``, so that the same reply is worth the same.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from keju.benchmarks import registry
from keju.config import JudgeConfig, TaskConfig
from keju.engine.job import Job, make_jobs
from keju.errors import ConfigError, KejuError
from keju.interop.verifiers.arbiter import Arbiter
from keju.models.openai.wire import BodyBuilder
from keju.types import OUTCOMES, Message, Reading, Reply, Sample

logger = logging.getLogger(__name__)

MODEL = "policy"
"""Stands for the model, whose name and address are verifiers' business."""
CUT_OFF = "length"
"""Finish reason of a rollout that was stopped before its answer."""


class Ungraded(KejuError):
    """A reply that has no reward: the endpoint failed, or nobody could grade the answer."""


class ExamSpec(msgspec.Struct, frozen=True, omit_defaults=True):
    """What determines an exam; small enough to travel with every task."""

    benchmark: str
    settings: dict[str, Any] = {}
    """As ``dataset_args`` takes them."""
    data_dir: str | None = None
    limit: int | float | None = None
    """Questions of each subset, or a share of them."""
    seed: int = 42


def open_exam(spec: ExamSpec) -> Proctor:
    """The exam of `spec`, loaded once in a process; raises KejuError in one line."""
    return _opened(msgspec.json.encode(spec, order="sorted"))


@lru_cache(maxsize=8)
def _opened(encoded: bytes) -> Proctor:
    return Proctor(msgspec.json.decode(encoded, type=ExamSpec))


class Proctor:
    """Hands out the questions of an exam and reads what comes back."""

    def __init__(self, spec: ExamSpec) -> None:
        name = registry.get(spec.benchmark).name
        judge, settings = _with_judge(name, spec.settings)
        config = TaskConfig(
            model=MODEL,
            datasets=[name],
            dataset_args={name: settings},
            data_dir=spec.data_dir,
            limit=spec.limit,
            seed=spec.seed,
        )
        (self._job,) = make_jobs(config)
        self.exam = self._job.exam
        _check(self._job)
        for note in (*self.exam.data.notes, *(w.text() for w in self.exam.warnings)):
            logger.info("%s: %s", name, note)
        self.sampling = BodyBuilder(MODEL).fields(self._job.sampling)
        """How the protocol decodes, as the fields of a chat request."""
        self.readers = self._job.readers
        """The reader of the headline, and those beside it."""
        self._places = {sample.id: place for place, sample in enumerate(self.exam.samples)}
        self._arbiter = Arbiter(config, judge, self._job) if judge is not None else None

    def messages(self, sample: Sample) -> list[Message]:
        """The prompt of one question as chat turns, the system's first."""
        prompt = self.exam.render(sample)
        return [*prompt.prefix.messages, Message("user", prompt.text)]

    async def read(self, sample_id: str, reply: Reply) -> tuple[Reading, ...]:
        """What the protocol's reader and the one beside it make of a reply, in that order.

        Raises Ungraded where there is no grade, rather than calling that 0.
        """
        place = self._places[sample_id]
        readings = self._job.grade(place, reply)
        if self._arbiter is not None:
            readings = await self._arbiter.decide(place, reply, readings)
        outcome = readings[0].score.outcome
        if outcome == "error" and reply.error is not None:
            raise Ungraded(f"{sample_id}: no reply to grade: {reply.error.message}")
        if outcome == "ungraded":
            raise Ungraded(
                f"{sample_id}: no rule decides this answer and there is no judge: set the variable "
                "named by llm_judge_api_key_var, or no_judge to 'exact'"
            )
        return readings

    async def close(self) -> None:
        """Let go of the judge's connections."""
        if self._arbiter is not None:
            await self._arbiter.close()


def metrics_of(readings: tuple[Reading, ...]) -> dict[str, float]:
    """The kind of result as one number each, and the score by the reader beside the headline's."""
    outcome = readings[0].score.outcome
    metrics = {f"outcome_{name}": float(name == outcome) for name in OUTCOMES}
    for reading in readings[1:]:
        if reading.score.outcome != "ungraded":
            metrics[f"{reading.reader}_score"] = reading.score.value
    return metrics


def unanswered() -> Reply:
    """The reply of a rollout that was stopped while it still called tools."""
    return Reply(finish=CUT_OFF)


def _with_judge(
    name: str, settings: Mapping[str, Any]
) -> tuple[JudgeConfig | None, dict[str, Any]]:
    """The judge of open answers where its key is set; otherwise exact matching, as promised."""
    own = dict(settings)
    if own.get("mode") == "agentic":
        raise ConfigError(
            f"{name}: mode 'agentic' works in a sandbox, which environments of verifiers do not "
            "offer: use mode 'zero_shot'"
        )
    kind = registry.get(name).Args
    try:
        args = kind(**own)
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from None
    arranged = args.arrange_judge(own, os.environ)
    if arranged.warning:
        logger.warning("%s", arranged.warning)
    return arranged.judge, arranged.settings


def _check(job: Job) -> None:
    """Refuse what an environment cannot do; a rollout is a chat whose last text is graded."""
    exam, sampling = job.exam, job.sampling
    where = f"{exam.benchmark}: protocol '{exam.protocol.name}'"
    if sampling.decode == "labels":
        raise ConfigError(
            f"{where} compares log-probabilities of labels, which an environment cannot: use a "
            "protocol that generates text (keju list protocols)"
        )
    if sampling.form == "completion":
        raise ConfigError(
            f"{where} continues a text, and environments only chat: use another protocol "
            "(keju list protocols)"
        )
    hidden = sum(not sample.target for sample in exam.samples)
    if hidden:
        raise ConfigError(
            f"{exam.benchmark}: {hidden} of {len(exam.samples)} questions are published without "
            "their answers, so there is no reward: use another split"
        )
