"""Keju's exams as tasksets of verifiers 0.4, and their environment."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import UnionType, new_class
from typing import Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
import verifiers.v1 as vf
from pydantic import Field, create_model

from keju.answers.segments import as_reply
from keju.benchmarks import registry
from keju.config import DatasetArgs
from keju.errors import ConfigError, KejuError
from keju.interop.verifiers.exam import UNANSWERED, ExamSpec, metrics_of, open_exam
from keju.interop.verifiers.harness import REPLY, close_transport
from keju.interop.verifiers.tools import choose_tools
from keju.types import Message, Reading, Reply


class SettingRejected(ConfigError, SystemExit):  # type: ignore[misc]
    """An invalid setting: one line from a command, an exception elsewhere."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.code = f"keju: error: {message}"


class ExamConfig(vf.TasksetConfig):
    """Settings of an exam, under ``--env.taskset.*``."""

    data_dir: str | None = None
    """Folder with one folder for each benchmark (or KEJU_DATA_DIR)."""
    protocol: str | None = None
    """A published way to run the exam; `keju list protocols` shows them."""
    subset_list: list[str] | None = None
    """Use only these subsets."""
    few_shot_num: int | None = None
    """The number of worked examples before the question; the protocol's number by default."""
    limit: int | float | None = None
    """Questions of each subset: a number of at least 1, or a share below 1."""
    seed: int = 42
    """The seed for everything that is random."""
    tools: list[str] = Field(default_factory=list)
    """Tools that the model may call: calculator."""
    dataset_args: dict[str, Any] = Field(default_factory=dict)
    """Further settings of the benchmark, in the form of `keju eval --dataset-args`."""
    agent: dict[str, Any] = Field(default_factory=dict)
    """Limits of a model that works in a notebook, as a run's `agent`."""
    sandbox: dict[str, Any] = Field(default_factory=dict)
    """Where the model's code runs, as a run's `sandbox`."""


_COMMON_FIELDS = set(vf.TasksetConfig.model_fields) | {
    "data_dir", "limit", "seed", "tools", "dataset_args", "agent", "sandbox",
}  # fmt: skip
"""Fields that are not settings of a benchmark."""


class ExamData(vf.TaskData):
    """One question, with everything to grade its answer again."""

    exam: dict[str, Any]
    """The `ExamSpec` of its exam."""
    subset: str
    target: str
    """The right answer; never part of a prompt."""
    sampling: dict[str, Any] = Field(default_factory=dict)
    """The protocol's sampling; ``--sampling.*`` overrides it."""
    tools: list[str] = Field(default_factory=list)


class ExamTask(vf.Task[ExamData]):
    """Graded as in ``keju eval``: the reward is the score by the protocol's own reader."""

    def __init__(self, data: ExamData, config: vf.TaskConfig | None = None) -> None:
        super().__init__(data, config)
        self._readings_by_reply: dict[bytes, tuple[Reading, ...]] = {}
        """By reply, for metrics and reward, so that a judge is asked only once about each."""

    @property
    def key(self) -> str:
        """The question's id."""
        return str(self.data.id)

    @vf.metric
    async def outcomes(self, trace: vf.Trace) -> dict[str, float]:
        """Return the outcome, and the score by the secondary reader."""
        return metrics_of(await self._grade(trace))

    @vf.reward
    async def score_by_protocol(self, trace: vf.Trace) -> float:
        """Return the score in [0, 1]; raise an error if the reply could not be graded."""
        readings = await self._grade(trace)
        return readings[0].score.value

    async def _grade(self, trace: vf.Trace) -> tuple[Reading, ...]:
        reply = _find_reply(trace)
        key = msgspec.json.encode((reply.text, reply.reasoning, reply.finish, reply.error))
        if key not in self._readings_by_reply:
            exam = open_exam(msgspec.convert(self.data.exam, ExamSpec))
            self._readings_by_reply[key] = await exam.grade(str(self.data.id), reply)
        return self._readings_by_reply[key]


class ExamTaskset(vf.Taskset[ExamTask, ExamConfig]):
    """The questions of one benchmark."""

    benchmark: ClassVar[str]

    def __init__(self, config: ExamConfig) -> None:
        super().__init__(config)
        # The benchmark's own settings that the user set. The benchmark applies its own defaults.
        fields = type(config).model_fields
        settings = {name: getattr(config, name) for name in fields if name not in _COMMON_FIELDS}
        settings = {name: value for name, value in settings.items() if value is not None}
        has_seed = "seed" in registry.get(self.benchmark).Args.model_fields
        if has_seed and config.seed != fields["seed"].default:
            settings["seed"] = config.seed
        if config.system_prompt is not None:
            settings["system_prompt"] = config.system_prompt.read_text("utf-8")
        settings |= config.dataset_args
        folder = config.data_dir and str(Path(config.data_dir).expanduser().absolute())
        agent_settings = (config.agent, config.sandbox)
        self.spec = ExamSpec(
            self.benchmark, settings, folder, config.limit, config.seed, *agent_settings
        )
        try:
            choose_tools(config.tools)
            self.exam = open_exam(self.spec)
        except KejuError as error:
            raise SettingRejected(str(error)) from None
        if "system_prompt" in settings:
            self.system_prompt = None  # the exam's own prompts contain it

    def load(self) -> Iterator[ExamTask]:
        """Yield the questions in the order of the exam."""
        spec = msgspec.to_builtins(self.spec)
        for sample in self.exam.exam.samples:
            turns = self.exam.messages(sample)
            system = turns.pop(0).content if turns[0].role == "system" else None
            data = ExamData(
                id=sample.id,
                name=sample.id,
                prompt=turns[0].content if len(turns) == 1 else [*map(_to_message, turns)],
                system_prompt=system,
                exam=spec,
                subset=sample.subset,
                target=sample.target,
                sampling=self.exam.sampling,
                tools=self.config.tools,
            )
            yield ExamTask(data, self.config.task)


def _to_message(message: Message) -> Any:
    kinds = {
        "system": vf.SystemMessage,
        "user": vf.UserMessage,
        "assistant": vf.AssistantMessage,
    }
    return kinds[message.role](content=message.content)


def exam_taskset(name: str) -> type[ExamTaskset]:
    """Return the taskset of one benchmark, with its own settings as further flags."""
    args_class = registry.get(name).Args
    hints = get_type_hints(args_class)
    flags: dict[str, Any] = {
        field: (_loosen_type(hints[field]) | None, None)
        for field in args_class.model_fields
        if field not in DatasetArgs.model_fields and field not in ExamConfig.model_fields
    }
    config = create_model("ExamConfig", __base__=ExamConfig, __module__=__name__, **flags)
    bases = (ExamTaskset, vf.Taskset[ExamTask, config])
    body = {"benchmark": name, "__module__": __name__, "__doc__": ExamTaskset.__doc__}
    return new_class("ExamTaskset", bases, exec_body=lambda namespace: namespace.update(body))


def _loosen_type(kind: Any) -> Any:
    """Return a type that accepts any spelling of a setting: the benchmark reports errors."""
    if get_origin(kind) is Literal:
        return type(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        return Union[tuple(_loosen_type(member) for member in get_args(kind))]  # noqa: UP007
    return kind


class ExamEnvConfig(vf.SingleAgentEnvConfig):
    """One model, in this process: no container to start, and no login."""

    agent: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig())


class ExamEnv(vf.SingleAgentEnv, vf.Env[ExamEnvConfig]):
    """Runs rollouts in this process, and closes their shared resources at the end."""

    async def start(self) -> None:
        """Start the resources of models that act, before the first rollout."""
        try:
            await self.taskset.exam.open_tool_loop()
        except KejuError as error:
            raise SettingRejected(str(error)) from None

    async def stop(self) -> None:
        """Close the connections to the model and the judge, and the sandbox."""
        await close_transport()
        await self.taskset.exam.close()


def _find_reply(trace: vf.Trace) -> Reply:
    """Return the reply to grade: that of Keju's harness, or else the last message."""
    stored_reply = trace.info.get(REPLY)
    if stored_reply is not None:
        return msgspec.convert(stored_reply, Reply)
    if not trace.assistant_messages:
        return Reply()
    last_message = trace.assistant_messages[-1]
    if last_message.tool_calls:
        return UNANSWERED
    finish = next((call.finish_reason for call in reversed(trace.calls) if not call.error), None)
    return as_reply(
        last_message.content or "",
        reasoning=(last_message.reasoning_content or "",),
        finish=finish or "",
    )
