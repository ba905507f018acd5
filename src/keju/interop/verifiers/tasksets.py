"""Keju's exams as tasksets of verifiers 0.4, and the environment that they run in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import verifiers.v1 as vf
from pydantic import Field

from keju.answers.thinking import as_reply
from keju.errors import ConfigError, KejuError
from keju.interop.verifiers.harness import REPLY, hang_up
from keju.interop.verifiers.proctor import (
    ExamSpec,
    Proctor,
    metrics_of,
    open_exam,
    unanswered,
)
from keju.interop.verifiers.tools import choose
from keju.types import Message, Reading, Reply, Sample

MOST_TURNS = 10
"""Turns of a rollout with tools, unless ``--env.agent.max-turns`` says otherwise."""


class Refused(ConfigError, SystemExit):  # type: ignore[misc]
    """A setting that cannot be carried out: one line from a command, an exception elsewhere."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.code = f"keju: error: {message}"


class ExamConfig(vf.TasksetConfig):
    """Settings of an exam, under ``--env.taskset.*``."""

    data_dir: str | None = None
    """Folder with one folder a benchmark (or KEJU_DATA_DIR)."""
    protocol: str | None = None
    """A published way to sit the exam; `keju list protocols` shows them."""
    subset_list: list[str] | None = None
    """Only these subsets."""
    few_shot_num: int | None = None
    """Worked examples before the question; the protocol's number by default."""
    limit: int | float | None = None
    """Questions of each subset: a number of at least 1, or a share below 1."""
    seed: int = 42
    """Seed of whatever is drawn or shuffled."""
    tools: list[str] = Field(default_factory=list)
    """Tools that the model may call: calculator."""
    dataset_args: dict[str, Any] = Field(default_factory=dict)
    """Further settings of the benchmark, as `keju eval --dataset-args` takes them."""


class BixBenchConfig(ExamConfig):
    """Settings of BixBench: the arguments of the environment `bixbench`, and Keju's own."""

    mode: str = "zero_shot"
    """How the model works; only zero_shot is possible here."""
    answer_mode: str = "mcq"
    """mcq: choose among options; open: answer freely."""
    question_source: str = "mcq"
    """mcq: the questions of the capsules; hypothesis: each capsule's as true or false."""
    add_tf_legend: bool = False
    """Hypothesis with options: say which letter means True, after shuffling."""
    max_episodes: int | None = None
    """Only the first N questions."""
    shuffle_options: bool = True
    """Shuffle the options; the permutation follows the seed and the question's id."""
    with_refusal: bool = False
    """Offer not to know as the last option."""
    use_think: bool = False
    """Also cut reasoning in tags other than <think>, which is always cut."""
    llm_judge_model: str = "gpt-4.1-mini"
    """The model that judges open answers."""
    llm_judge_base_url: str = "https://api.openai.com/v1"
    """The endpoint of the judge."""
    llm_judge_api_key_var: str = "OPENAI_API_KEY"
    """Name of the environment variable that holds the judge's key."""
    continuous_scoring: bool = False
    """The judge gives a number in [0, 1] instead of a verdict."""
    all_questions: bool = False
    """Version 1.0: ask all questions of a capsule, not only its first."""
    compat_shuffle: bool = False
    """Permute as the environment did: one order for all questions of version 1.0."""
    no_judge: str | None = None
    """Open answers without a judge: exact (the default) compares, ungraded is an error."""
    data_version: str | None = None
    """1.5 (the default) or 1.0, where a folder holds both."""


_SHARED = set(vf.TasksetConfig.model_fields) | {
    "data_dir", "limit", "seed", "tools", "dataset_args",
}  # fmt: skip
"""Fields that are no settings of a benchmark."""


class ExamData(vf.TaskData):
    """One question; it carries all that is needed to grade the answer again."""

    exam: dict[str, Any]
    """The `ExamSpec` it belongs to."""
    subset: str
    target: str
    """The right answer; never part of a prompt."""
    sampling: dict[str, Any] = Field(default_factory=dict)
    """How the protocol decodes; ``--sampling.*`` goes before."""
    tools: list[str] = Field(default_factory=list)


class ExamTask(vf.Task[ExamData]):
    """Graded as ``keju eval`` grades: the reward is the score by the protocol's own reader."""

    def __init__(self, data: ExamData, config: vf.TaskConfig | None = None) -> None:
        super().__init__(data, config)
        self._read: dict[str, tuple[Reading, ...]] = {}
        """By trace, between the metrics and the reward: a judge is asked once."""

    @property
    def key(self) -> str:
        """The question's id."""
        return str(self.data.id)

    @vf.metric
    async def outcomes(self, trace: vf.Trace) -> dict[str, float]:
        """The kind of result, and the score by the reader beside the protocol's."""
        self._read[trace.id] = await self._readings(trace)
        return metrics_of(self._read[trace.id])

    @vf.reward
    async def score_by_protocol(self, trace: vf.Trace) -> float:
        """The score in [0, 1]; raises where the reply could not be graded."""
        readings = self._read.pop(trace.id, None) or await self._readings(trace)
        return readings[0].score.value

    async def _readings(self, trace: vf.Trace) -> tuple[Reading, ...]:
        proctor = open_exam(msgspec.convert(self.data.exam, ExamSpec))
        return await proctor.read(str(self.data.id), _reply_in(trace))


class ExamTaskset(vf.Taskset[ExamTask, ExamConfig]):
    """The questions of one benchmark."""

    benchmark: ClassVar[str]

    def __init__(self, config: ExamConfig) -> None:
        super().__init__(config)
        settings = _settings(config)
        folder = config.data_dir and str(Path(config.data_dir).expanduser().absolute())
        self.spec = ExamSpec(self.benchmark, settings, folder, config.limit, config.seed)
        try:
            choose(config.tools)
            self.proctor = open_exam(self.spec)
        except KejuError as error:
            raise Refused(str(error)) from None
        if "system_prompt" in settings:
            self.system_prompt = None  # the exam's own prompts have it

    def load(self) -> Iterator[ExamTask]:
        """The questions in the order of the exam."""
        spec = msgspec.to_builtins(self.spec)
        for sample in self.proctor.exam.samples:
            yield ExamTask(_data(self.proctor, sample, spec, self.config.tools), self.config.task)


class BBHTaskset(ExamTaskset):
    benchmark = "bbh"


class MMLUProTaskset(ExamTaskset):
    benchmark = "mmlu_pro"


class CEvalTaskset(ExamTaskset):
    benchmark = "ceval"


class DemoTaskset(ExamTaskset):
    benchmark = "demo"


class BixBenchTaskset(ExamTaskset, vf.Taskset[ExamTask, BixBenchConfig]):
    benchmark = "bixbench"


class ExamEnvConfig(vf.SingleAgentEnvConfig):
    """One model, in this process: there is no box to start and no vendor to log in to."""

    agent: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig(), max_turns=MOST_TURNS)


class ExamEnv(vf.SingleAgentEnv, vf.Env[ExamEnvConfig]):
    """Runs rollouts in this process and closes its connections at the end."""

    async def stop(self) -> None:
        """Close the connections to the model and the judge."""
        await hang_up()
        await self.taskset.proctor.close()


def _settings(config: ExamConfig) -> dict[str, Any]:
    """What the user set of the benchmark's own settings; a default is left to the benchmark."""
    fields = type(config).model_fields
    given = {name: getattr(config, name) for name in fields if name not in _SHARED}
    chosen = {name: value for name, value in given.items() if value != fields[name].default}
    if isinstance(config, BixBenchConfig) and config.seed != fields["seed"].default:
        chosen["seed"] = config.seed
    if config.system_prompt is not None:
        chosen["system_prompt"] = config.system_prompt.read_text("utf-8")
    return chosen | config.dataset_args


def _data(proctor: Proctor, sample: Sample, spec: dict[str, Any], tools: list[str]) -> ExamData:
    turns = proctor.messages(sample)
    system = turns.pop(0).content if turns[0].role == "system" else None
    prompt = turns[0].content if len(turns) == 1 else [_turn(message) for message in turns]
    return ExamData(
        id=sample.id,
        name=sample.id,
        prompt=prompt,
        system_prompt=system,
        exam=spec,
        subset=sample.subset,
        target=sample.target,
        sampling=proctor.sampling,
        tools=tools,
    )


def _turn(message: Message) -> Any:
    kinds = {
        "system": vf.SystemMessage,
        "user": vf.UserMessage,
        "assistant": vf.AssistantMessage,
    }
    return kinds[message.role](content=message.content)


def _reply_in(trace: vf.Trace) -> Reply:
    """The reply to be graded: as our harness left it, or the last words under any other."""
    kept = trace.info.get(REPLY)
    if kept is not None:
        return msgspec.convert(kept, Reply)
    if not trace.assistant_messages:
        return Reply()
    last = trace.assistant_messages[-1]
    if last.tool_calls:
        return unanswered()
    finish = next((call.finish_reason for call in reversed(trace.calls) if not call.error), None)
    return as_reply(
        last.content or "", reasoning=(last.reasoning_content or "",), finish=finish or ""
    )
