"""TaskConfig: the one typed object behind flags, YAML files, overrides and Python.

Keju refuses an unknown key and names the nearest valid one. It rejects settings that would do
nothing. Defaults are per key: setting one sampling parameter never removes the default of another.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self

from pydantic import (
    AliasChoices,
    BeforeValidator,
    Field,
    SecretStr,
    ValidationInfo,
    field_validator,
    model_validator,
)

from keju.config.address import expand_name
from keju.config.arms import AgentLimits, Arms, SandboxSettings
from keju.config.cluster import RaySettings
from keju.config.endpoints import PLACES, Endpoint, as_endpoints, check_distinct
from keju.config.exams import resolve_name, unknown_exam_error
from keju.config.patterns import compile_pattern
from keju.config.serving import split_command
from keju.config.strict import (
    LARGEST,
    Count,
    InvalidValue,
    Rate,
    Seconds,
    Seed,
    StrictSettings,
    Text,
    Texts,
    Whole,
    variable_name,
)
from keju.config.sweep import SweepKind
from keju.errors import ConfigError, did_you_mean
from keju.messages import language_of

Share = Annotated[float, Field(ge=0, le=1)]
Amount = Annotated[float, Field(gt=0)]
HalfWidth = Annotated[float, Field(ge=0.0001, lt=0.5)]
"""The half width of a score's interval: 0.02 is two points up and two points down. A width below a
hundredth of a point would require a hundred million questions."""
Port = Annotated[int, Field(ge=0, le=65535)]
Stops = Annotated[list[Text], BeforeValidator(lambda v: [v] if isinstance(v, str) else v)]
"""Several texts. An empty text is refused, because it would stop nothing."""


def split_names(value: Any) -> Any:
    """Return the names in a text with commas; any other value as it is."""
    return [name.strip() for name in value.split(",")] if isinstance(value, str) else value


def _reader_names(value: Any) -> Any:
    if isinstance(value, dict):
        raise InvalidValue("config_reader_rule")
    return split_names(value)


NameList = Annotated[list[str], BeforeValidator(split_names)]
"""Several names, as a list or in one text with commas."""
Readers = Annotated[list[str], BeforeValidator(_reader_names), Field(min_length=1)]
"""At least one reader, as a list or in one text with commas. A custom rule is not allowed."""

RESERVED_FIELDS = ("messages", "prompt", "model", "stream", "n")
"""Fields of a request's body that no setting may change."""
OTHER_NAMES = {"max_new_tokens": "max_tokens", "stop_seqs": "stop"}
"""Other spellings of sampling parameters."""


class ReplyFilters(StrictSettings):
    """How a reply is cleaned before a reader gets it."""

    remove_until: str | None = Field(default=None, min_length=1)
    """Remove everything up to and including the last occurrence of this text."""
    regex: str | None = Field(default=None, min_length=1)
    """Keep only the first group (or the whole match) of the first match of this pattern."""

    @property
    def changes_replies(self) -> bool:
        """Whether a filter is set."""
        return bool(self.remove_until or self.regex)

    @field_validator("regex")
    @classmethod
    def _check_pattern(cls, value: str | None) -> str | None:
        if value is not None:
            compile_pattern(value)
        return value


class JudgeArrangement(NamedTuple):
    """The judge of an exam that names its own."""

    judge: JudgeConfig | None
    settings: dict[str, Any]
    """The remaining settings, for the exam itself."""
    warning: str = ""


class GenerationConfig(StrictSettings):
    """Sampling parameters. The temperature is 0 unless it is set here or by the protocol."""

    temperature: float | None = Field(default=None, ge=0)
    """Randomness of sampling."""
    top_p: float | None = Field(default=None, gt=0, le=1)
    """Sample from the most likely tokens that together have this probability."""
    top_k: int | None = None
    """Sample from this many of the most likely tokens."""
    min_p: float | None = Field(default=None, ge=0, le=1)
    """Leave out tokens below this fraction of the most likely token's probability."""
    max_tokens: Whole | None = Field(
        default=None, validation_alias=AliasChoices("max_tokens", "max_new_tokens")
    )
    """The longest reply, in tokens; `max_new_tokens` also works."""
    stop: Stops | None = Field(default=None, validation_alias=AliasChoices("stop", "stop_seqs"))
    """Texts that end a reply; `stop_seqs` also works."""
    seed: Seed | None = None
    """The seed for the endpoint's sampling."""
    presence_penalty: float | None = None
    """As the endpoint defines it."""
    frequency_penalty: float | None = None
    """As the endpoint defines it."""
    repetition_penalty: float | None = None
    """As the endpoint defines it."""
    reasoning_effort: str | None = None
    """As the endpoint defines it, such as `low`."""
    logit_bias: dict[str, float] | None = None
    """As the endpoint defines it, by token."""
    chat_template_kwargs: dict[str, Any] | None = None
    """Arguments of the server's chat template, such as `enable_thinking`."""
    extra_body: dict[str, Any] = Field(default={})
    """Further fields of the request body, sent unchanged. Fields that have their own setting are
    refused."""
    extra_headers: dict[str, str] = Field(default={})
    """Request headers, sent unchanged; never stored."""

    @field_validator("extra_body")
    @classmethod
    def _no_field_twice(cls, value: dict[str, Any]) -> dict[str, Any]:
        """Refuse fields that have their own setting, so that the manifest shows what was sent."""
        for name in value:
            if name in RESERVED_FIELDS:
                raise InvalidValue("config_field_of_keju", name=name)
            setting = OTHER_NAMES.get(name, name)
            if setting in cls.model_fields:
                raise InvalidValue("config_field_has_setting", name=name, known=setting)
        return value

    def body(self) -> dict[str, Any]:
        """Return the fields of the request body that are not in `keju.types.Sampling`."""
        sampling_fields = (
            "top_k",
            "min_p",
            "presence_penalty",
            "frequency_penalty",
            "repetition_penalty",
        )
        request_fields = ("reasoning_effort", "logit_bias", "chat_template_kwargs")
        values = {name: getattr(self, name) for name in sampling_fields + request_fields}
        return {k: v for k, v in values.items() if v is not None} | self.extra_body


def parse_limit(value: Any) -> int | float | None:
    """Return a number of questions, or a share below 1."""
    if value is None:
        return None
    try:
        number = float(value) if not isinstance(value, bool) else math.nan
    except (ValueError, TypeError, OverflowError):
        number = math.nan
    if not 0 < number <= LARGEST or (number > 1 and number != int(number)):
        raise InvalidValue("config_limit")
    return number if number < 1 else int(number)


class DatasetArgs(StrictSettings):
    """Settings of one benchmark (``dataset_args.NAME``). Each benchmark adds its own."""

    asking: ClassVar[frozenset[str]] = frozenset(
        {
            "few_shot_num",
            "few_shot_random",
            "prompt_template",
            "few_shot_prompt_template",
            "system_prompt",
            "shuffle",
            "limit",
            "generation_config",
        }
    )
    """Settings that change the prompts, and not how a reply is read or scored."""
    size_setting: ClassVar[str] = ""
    """The setting for the number of generated questions in each subset."""

    subset_list: NameList | None = None
    """Use only these subsets."""
    few_shot_num: int | None = Field(default=None, ge=0)
    """The number of worked examples before the question; the protocol's number by default."""
    few_shot_random: bool = False
    """Draw the worked examples at random with the seed, instead of the first ones."""
    protocol: str | None = None
    """A published way to run the exam; ``keju list protocols`` shows them."""
    reader: Readers | None = None
    """Readers to score with; the protocol's own by default."""
    prompt_template: str | None = None
    """Replaces the template of the question. Only known placeholders are allowed."""
    few_shot_prompt_template: str | None = None
    """Replaces the template with worked examples. Only known placeholders are allowed."""
    system_prompt: str | None = None
    """A system message; an empty text removes it."""
    local_path: str | None = None
    """The folder with this benchmark's data, instead of one below ``data_dir``."""
    shuffle: bool = False
    """Shuffle the questions of each subset with the seed before ``limit`` takes the first ones.
    Without a limit, only the order of the requests changes."""
    shuffle_choices: bool = False
    """Shuffle the options of each question with the seed. The permutation is recorded."""
    filters: ReplyFilters = ReplyFilters()
    """How replies are cleaned before they are read."""
    limit: int | float | None = None
    """The task's `limit`, for this benchmark only."""
    generation_config: GenerationConfig | None = None
    """Sampling of this benchmark, merged key by key over the task's."""
    extra_params: dict[str, Any] = Field(default={})
    """The benchmark's own settings, spelled as in EvalScope."""

    @property
    def implied_protocol(self) -> str | None:
        """The protocol that these settings imply if none is named; usually the default."""
        return None

    def without_own_judge(self) -> Self:
        """Return these settings for a task with a judge, which replaces their own judge."""
        return self

    def exams(self, settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """Return the settings of each exam that these settings describe, by the name of its arm.

        Usually this is one exam without an arm, with `settings` as they were given.
        """
        return {"": dict(settings)}

    def arrange_judge(
        self, settings: Mapping[str, Any], environ: Mapping[str, str], *, ask_default: bool = False
    ) -> JudgeArrangement:
        """Return the judge that these settings name if its key is in `environ`, and the other
        settings.

        `settings` are the settings as they were given. With `ask_default` the exam's default judge
        is asked if the settings name none.
        """
        return JudgeArrangement(None, dict(settings))

    def settings_without_tools(
        self, settings: Mapping[str, Any], error: ConfigError
    ) -> dict[str, Any] | None:
        """Return the settings that ask the exam without tools, if `error` says that the data for
        them is missing; None if there is no such way.
        """
        return None

    @field_validator("limit", mode="before")
    @classmethod
    def _parse_limit(cls, value: Any) -> int | float | None:
        return parse_limit(value)

    @field_validator("generation_config")
    @classmethod
    def _no_headers(cls, value: GenerationConfig | None) -> GenerationConfig | None:
        """Refuse headers: they belong to the endpoint, which all benchmarks share."""
        if value is not None and value.extra_headers:
            raise InvalidValue("config_headers_of_exam")
        return value

    @property
    def labels(self) -> dict[str, str]:
        """Values for the summary line of ``keju vf-eval``."""
        return {}

    @model_validator(mode="before")
    @classmethod
    def _merge_extra_params(cls, data: Any) -> Any:
        """Move ``extra_params`` to the benchmark's own fields, where they are validated."""
        if not isinstance(data, dict) or not isinstance(data.get("extra_params"), dict):
            return data
        exam_fields = set(cls.model_fields) - set(DatasetArgs.model_fields)
        for key in data["extra_params"]:
            if key not in exam_fields:
                code = "config_unknown_extra" if exam_fields else "config_no_extras"
                raise ConfigError(code, key=key, hint=did_you_mean(key, sorted(exam_fields)))
        return data | data["extra_params"]


class Price(StrictSettings):
    """Prices for a million tokens."""

    input: float = Field(default=0.0, ge=0)
    """For input tokens."""
    output: float = Field(default=0.0, ge=0)
    """For output tokens."""
    cached: float | None = Field(default=None, ge=0)
    """For input tokens from a cache; the price of `input` by default."""
    written: float | None = Field(default=None, ge=0)
    """For input tokens that are written to a cache; the price of `input` by default."""


class Budget(StrictSettings):
    """Hard limits of a run. Only requests in flight can exceed them, if they cost more than all
    before."""

    requests: Whole | None = None
    """The most requests, including failed attempts."""
    tokens: Whole | None = None
    """The most tokens, input and output."""
    cost: Amount | None = None
    """The most money; requires `price`."""
    seconds: Seconds | None = None
    """The most seconds."""


class JudgeConfig(StrictSettings):
    """A model that grades answers that no rule can decide."""

    model: str
    """The judge model."""
    api_url: str | None = None
    """The judge's endpoint; the candidate's by default."""
    api_key_var: str | None = None
    """Name of the environment variable with the key. By default the candidate's host gets the
    candidate's key, OpenAI gets OPENAI_API_KEY, Anthropic gets ANTHROPIC_API_KEY, and any other
    host gets no key."""
    strategy: Literal["rule", "llm", "llm_recall"] = "llm_recall"
    """``rule`` never asks the judge, ``llm`` always, and ``llm_recall`` about undecided answers."""
    continuous: bool = False
    """Ask for a number in [0, 1] instead of a verdict."""
    repeats: Count = 1
    """The number of verdicts on each answer; the majority decides."""
    second: str | None = None
    """Another judge model at the same endpoint, to measure agreement."""
    labelled: str | None = None
    """A JSONL file of graded answers that measures the judge's sensitivity and specificity."""
    eval_batch_size: Count = 8
    """The most requests in flight at the judge's endpoint."""
    attempts: Whole = 5
    """The most attempts for one request, including the first."""
    timeout: Seconds = 120.0
    """Seconds for one attempt."""
    give_up_after: Seconds = 600.0
    """Seconds the judge's endpoint may stay down."""
    budget: Budget = Budget()
    """Hard limits of the judge, separate from the run's."""
    price: Price | None = None
    """The price of the judge's tokens."""
    generation_config: GenerationConfig = GenerationConfig()
    """Sampling parameters."""

    @field_validator("api_key_var")
    @classmethod
    def _names_a_variable(cls, value: str | None) -> str | None:
        return None if value is None else variable_name(value, "judge.api_key_var")

    @field_validator("model", "second")
    @classmethod
    def _full_name(cls, value: str | None) -> str | None:
        return None if value is None else expand_name(value)


_PART = re.compile(r"[1-9]\d{0,5}/[1-9]\d{0,5}", re.ASCII)  # `3/16`


class TaskConfig(StrictSettings):
    """All settings of one run."""

    model: str
    """A name at the endpoint, or one of anthropic:NAME, scripted, replay:RUN, embedded, gguf:PATH,
    hf:NAME."""
    api_url: str | None = None
    """Base URL of an OpenAI-compatible endpoint (or OPENAI_BASE_URL), or of Anthropic's API (or
    ANTHROPIC_BASE_URL). Several URLs become `endpoints`."""
    endpoints: list[Endpoint] = Field(default=[])
    """Several endpoints of the same model that share the work; replaces `api_url`."""
    serve: Text | None = None
    """The command of a server to start for the run, such as ``vllm serve NAME --port {port}``;
    replaces `api_url`. ``${VAR}`` in it is an environment variable."""
    api_key: SecretStr | None = Field(default=None, exclude=True)
    """Its key (or OPENAI_API_KEY, ANTHROPIC_API_KEY); never stored."""
    api: Literal["auto", "chat", "completions"] = "auto"
    """The endpoint's route; by default the one for which the protocol is published."""
    headers: dict[str, str] = Field(default={}, exclude=True)
    """Further request headers; values are never stored."""
    ca_file: str | None = None
    """A certificate authority to trust, as a PEM file."""
    model_args: dict[str, Any] = Field(default={})
    """Settings of a model kind: dtype, device, n_ctx, slots, api_version, …"""

    datasets: Texts = Field(min_length=1)
    """Exams: names from `keju list benchmarks`, or your own folders and files."""
    dataset_args: dict[str, dict[str, Any]] = Field(default={})
    """Settings by exam."""
    protocol: str | None = None
    """The protocol of all datasets that do not set their own."""
    reader: Readers | None = None
    """Readers to score with; results show several next to each other."""
    data_dir: str | None = None
    """Folder with one folder for each benchmark (or KEJU_DATA_DIR)."""
    capsules: str | None = None
    """Folder of the data files that questions refer to, for exams that have such files."""
    include_path: str | None = None
    """Folder with YAML files of more tasks for ``lm_eval:NAME``."""
    dataset_hub: Literal["huggingface", "modelscope"] | None = None
    """Where to look for data that is not in `data_dir`."""
    offline: bool = False
    """Allow no network connections except to the model."""

    generation_config: GenerationConfig = GenerationConfig()
    """Sampling parameters."""
    limit: int | float | None = None
    """Questions of each subset: a number of at least 1, or a share below 1."""
    total: Whole | None = None
    """Total number of questions of each benchmark, divided among its subsets in proportion to their
    size."""
    ids: Texts | None = None
    """Ask only the questions with these ids."""
    failed_of: str | None = None
    """Ask only the questions that a stored run (folder or id) did not answer correctly. They become
    `ids`."""
    sample: Literal["first", "random", "stratified"] = "first"
    """Which questions a limit keeps: the first ones, random ones, or a random sample stratified by
    target answer."""
    shard: str | None = None
    """One part of the selected questions, e.g. 3/16: every 16th question, starting with the third.
    ``keju merge`` joins the runs of all parts."""
    repeats: Count = 1
    """How many times each question is asked. The score of a question is the mean of its repeats."""
    rotate_options: Count = 1
    """How many cyclic rotations of its options each question is asked with."""
    seed: Seed = 42
    """The seed for everything that is random."""
    order: Literal["auto", "random"] = "auto"
    """The order of the questions in a subset. ``auto`` starts with those whose replies are expected
    to be longest, so that no slot waits for a long reply at the end; ``random`` shuffles them.
    """
    until_ci: HalfWidth | None = None
    """Stop when the headline's interval is at most this wide in each direction, whenever it is
    checked."""
    until_decided: Text | None = None
    """Stop when the model is significantly better or worse than a baseline: a run, a log or a file
    of predictions of the same exam."""

    eval_batch_size: Count = 32
    """The most requests in flight at an endpoint. The engine uses fewer while the endpoint is
    overloaded."""
    timeout: Seconds = 600.0
    """Seconds for one attempt."""
    attempts: Whole = 5
    """The most attempts for one request, including the first."""
    retry_interval: Seconds = 0.5
    """Seconds before a failed attempt is repeated. The time doubles after each failure, up to a
    minute."""
    rpm: Rate | None = None
    """The most requests a minute, over all endpoints."""
    tpm: Rate | None = None
    """The most tokens a minute, input and output."""
    give_up_after: Seconds = 600.0
    """Seconds that an endpoint may be down before the run stops. The run can be resumed."""
    error_limit: Share = 0.01
    """The share of samples that may end in an error. A higher share gives exit code 4."""
    budget: Budget = Budget()
    """Hard limits."""
    price: Price | None = None
    """Prices for a million tokens; required for a budget in money."""
    judge: JudgeConfig | None = None
    """A model that grades open answers."""

    arms: Arms = Field(default=[])
    """Variants of the run to compare, each with its own tools. Without arms, every exam is run once
    without tools."""
    sweep: SweepKind | None = None
    """Compare the first arm with every other one, tool by tool. Each arm lacks one tool of the
    first (``left_out``), or has one tool and the first has none (``alone``). `keju run` sets it for
    ``arms: each tool left out`` and ``arms: each tool alone``. Arms whose result is decided are
    asked fewer questions."""
    agent: AgentLimits = AgentLimits()
    """Limits of a model that uses tools."""
    sandbox: SandboxSettings = SandboxSettings()
    """Where a model's code runs."""
    jobs: Count | None = None
    """How many programs are graded at the same time. The default is one for each core."""

    executor: Literal["local", "ray"] = "local"
    """The sender of the requests: this process, or actors on a Ray cluster."""
    ray: RaySettings = RaySettings()
    """The cluster, and the number of actors."""

    work_dir: str = "runs"
    """Folder of the runs (or KEJU_WORK_DIR)."""
    run_id: str | None = Field(default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")
    """The name of the run. A run that already exists is resumed. By default the name is new."""
    use_cache: str | None = None
    """A stored run (folder or id) whose replies are reused for identical requests."""
    resume: bool = False
    """Require that the run exists. A run that exists is resumed in any case."""
    replace: bool = False
    """Start over: an existing run with this id is moved aside."""
    language: Literal["en", "zh"] | None = None
    """The language in which the report opens; the terminal's by default."""

    events: Text | None = None
    """A file or pipe that receives events as JSON lines."""
    metrics_port: Port | None = None
    """A port on this machine where Prometheus can read the run's metrics; 0 selects a free port."""
    otel: bool = False
    """Send spans and metrics to the destination in OpenTelemetry's own variables."""

    @property
    def part(self) -> tuple[int, int] | None:
        """The index of the part, counted from 0, and the number of parts."""
        if self.shard is None:
            return None
        part, parts = map(int, self.shard.split("/"))
        return part - 1, parts

    @property
    def at_once(self) -> int:
        """The most requests in flight, over all endpoints."""
        concurrencies = [
            endpoint.concurrency or self.eval_batch_size for endpoint in self.endpoints
        ]
        return sum(concurrencies) or self.eval_batch_size

    @property
    def stops_early(self) -> bool:
        """Whether a rule may stop the run before all questions are asked."""
        rules = self.until_ci, self.until_decided, self.sweep
        return any(rule is not None for rule in rules)

    @model_validator(mode="before")
    @classmethod
    def _addresses(cls, data: Any) -> Any:
        """Turn several addresses in `api_url` into endpoints without further settings."""
        return as_endpoints(data) if isinstance(data, dict) else data

    @field_validator("model")
    @classmethod
    def _full_name(cls, value: str) -> str:
        return expand_name(value)

    @field_validator("serve")
    @classmethod
    def _has_a_port(cls, value: str | None) -> str | None:
        if value is not None:
            split_command(value)
        return value

    @field_validator("shard")
    @classmethod
    def _is_part(cls, value: str | None) -> str | None:
        if value is not None and _PART.fullmatch(value) is None:
            raise InvalidValue("config_shard_form")
        return value

    @field_validator("endpoints")
    @classmethod
    def _check_endpoints(cls, value: list[Endpoint]) -> list[Endpoint]:
        return check_distinct(value)

    @field_validator("limit", mode="before")
    @classmethod
    def _parse_limit(cls, value: Any) -> int | float | None:
        return parse_limit(value)

    @model_validator(mode="after")
    def _check_one_choice(self) -> Self:
        """Refuse two ways to choose questions at the same time."""
        choices = [n for n in ("limit", "total", "ids") if getattr(self, n) is not None]
        if len(choices) > 1:
            raise InvalidValue("config_two_choices", first=choices[0], second=choices[1])
        return self

    @field_validator("language", mode="before")
    @classmethod
    def _language(cls, value: Any) -> Any:
        return (isinstance(value, str) and language_of(value)) or value

    @field_validator("datasets")
    @classmethod
    def _distinct(cls, value: list[str]) -> list[str]:
        repeated = {name for name in value if value.count(name) > 1}
        if repeated:
            raise InvalidValue("config_named_twice", names=sorted(repeated))
        return value

    @field_validator("dataset_args")
    @classmethod
    def _by_exam(
        cls, value: dict[str, dict[str, Any]], info: ValidationInfo
    ) -> dict[str, dict[str, Any]]:
        """Return the settings by exam.

        An exam at a path may have a short name here; the result uses its path. Subsets become a
        list in any case, because runs are compared by it.
        """
        args_by_exam: dict[str, dict[str, Any]] = {}
        for name, args in value.items():
            exam = resolve_name(name, info.data.get("datasets", ())) or name
            args_by_exam[exam] = args_by_exam.get(exam, {}) | args
            if "subset_list" in args:
                args_by_exam[exam]["subset_list"] = split_names(args["subset_list"])
        return args_by_exam

    @model_validator(mode="after")
    def _settings_fit_together(self) -> Self:
        """Refuse settings that contradict each other or would do nothing."""
        self._check_places()
        self._check_costs()
        self._check_questions()
        self._check_stopping_rule()
        return self

    def _check_places(self) -> None:
        """Refuse two places of a model, and settings of several endpoints or a cluster for one."""
        places = [name for name in PLACES if getattr(self, name)]
        if len(places) > 1:
            raise ConfigError("config_two_places", first=places[0], second=places[1])
        for name in ("weight", "reports") if len(self.endpoints) == 1 else ():
            if name in self.endpoints[0].model_fields_set:
                raise ConfigError("config_one_endpoint", name=name)
        if self.executor != "ray" and self.ray != RaySettings():
            raise ConfigError("config_ray_without_executor", path="ray")
        if self.executor == "ray" and (self.endpoints or self.serve):
            raise ConfigError("config_ray_endpoints")

    def _check_costs(self) -> None:
        """Refuse a limit on costs without a price."""
        costs = {"budget.cost": self.budget.cost, "agent.max_cost": self.agent.max_cost}
        for path, cost in costs.items():
            if cost is not None and self.price is None:
                raise ConfigError("config_cost_without_price", path=path)

    def _check_questions(self) -> None:
        """Refuse a choice of questions or a run that does not exist."""
        if self.replace and (self.resume or self.run_id is None):
            raise ConfigError("config_replace", path="replace")
        if self.sample != "first" and self.limit is None and self.total is None:
            raise ConfigError("config_sample_without_limit", path="sample", sample=self.sample)
        if self.part is not None and self.part[0] >= self.part[1]:
            raise ConfigError("config_shard", path="shard")
        for name in self.dataset_args:
            if name not in self.datasets:
                raise unknown_exam_error(name, self.datasets)

    def _check_stopping_rule(self) -> None:
        """Refuse a second stopping rule, and one for a task of which this run is only a part."""
        if self.until_ci is not None and self.until_decided is not None:
            raise ConfigError("config_two_rules")
        if self.sweep is not None and not self.arms:
            raise ConfigError("sweep_without_arms")
        if self.arms and (self.until_ci is not None or self.until_decided is not None):
            raise ConfigError("config_rule_with_arms")
        if self.part is not None and self.stops_early:
            code = "config_rule_with_shard" if self.sweep is None else "sweep_with_shard"
            raise ConfigError(code)
