"""TaskConfig: the one typed object behind flags, YAML files, overrides and Python.

An unknown key is an error that names the nearest valid one, and a key that is accepted has an
effect. Defaults are per key: setting one sampling parameter never removes another's default.
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

from keju.config.address import full_name
from keju.config.arms import Agent, Arms, Sandbox
from keju.config.cluster import Ray
from keju.config.endpoints import PLACES, Endpoint, as_endpoints, distinct
from keju.config.exams import meant, not_run
from keju.config.patterns import compiled
from keju.config.serving import words_of
from keju.config.strict import (
    LARGEST,
    Count,
    Invalid,
    Rate,
    Seconds,
    Seed,
    StrictSettings,
    Text,
    Texts,
    Whole,
    variable_name,
)
from keju.errors import ConfigError, did_you_mean
from keju.messages import language_of

Share = Annotated[float, Field(ge=0, le=1)]
Amount = Annotated[float, Field(gt=0)]
HalfWidth = Annotated[float, Field(ge=0.0001, lt=0.5)]
"""Of an interval of a score: 0.02 is two points up and two points down. No exam has the hundred
million questions that less than a hundredth of a point takes."""
Port = Annotated[int, Field(ge=0, le=65535)]
Stops = Annotated[list[Text], BeforeValidator(lambda v: [v] if isinstance(v, str) else v)]
"""The same; an empty one would stop nothing."""


def listed(value: Any) -> Any:
    """The names in one text, with commas between them; anything else as it is."""
    return [name.strip() for name in value.split(",")] if isinstance(value, str) else value


def _reader_names(value: Any) -> Any:
    if isinstance(value, dict):
        raise Invalid("config_reader_rule")
    return listed(value)


NameList = Annotated[list[str], BeforeValidator(listed)]
"""Several names; they may stand in one text, with commas."""
Readers = Annotated[list[str], BeforeValidator(_reader_names), Field(min_length=1)]
"""The same, of readers, at least one; an exam's own rule is none."""

KEJUS_OWN = ("messages", "prompt", "model", "stream", "n")
"""Fields of a request's body that no setting may touch."""
OTHER_NAMES = {"max_new_tokens": "max_tokens", "stop_seqs": "stop"}
"""Other spellings of sampling parameters."""


class Filters(StrictSettings):
    """Cleaning of a reply before any reader sees it."""

    remove_until: str | None = Field(default=None, min_length=1)
    """Drop everything up to and including the last occurrence of this text."""
    regex: str | None = Field(default=None, min_length=1)
    """Keep only the first group (or the whole match) of the first match of this pattern."""

    @field_validator("regex")
    @classmethod
    def _compiles(cls, value: str | None) -> str | None:
        if value is not None:
            compiled(value)
        return value


class Arranged(NamedTuple):
    """Who grades the answers of an exam that brings its own judge."""

    judge: JudgeConfig | None
    settings: dict[str, Any]
    """What is left for the exam to know."""
    warning: str = ""


class GenerationConfig(StrictSettings):
    """Sampling parameters. Temperature is 0 unless it is set here or by the protocol."""

    temperature: float | None = Field(default=None, ge=0)
    """Randomness of sampling."""
    top_p: float | None = Field(default=None, gt=0, le=1)
    """Sample from the likeliest tokens that make up this share."""
    top_k: int | None = None
    """Sample from this many of the likeliest tokens."""
    min_p: float | None = Field(default=None, ge=0, le=1)
    """Leave out tokens below this share of the likeliest one's probability."""
    max_tokens: Whole | None = Field(
        default=None, validation_alias=AliasChoices("max_tokens", "max_new_tokens")
    )
    """The longest reply, in tokens; also `max_new_tokens`."""
    stop: Stops | None = Field(default=None, validation_alias=AliasChoices("stop", "stop_seqs"))
    """Texts that end a reply; also `stop_seqs`."""
    seed: Seed | None = None
    """The seed that the endpoint samples with."""
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
    """Further fields of the request body, sent as they are; none that has a setting here."""
    extra_headers: dict[str, str] = Field(default={})
    """Sent as they are as request headers; never stored."""

    @field_validator("extra_body")
    @classmethod
    def _no_field_twice(cls, value: dict[str, Any]) -> dict[str, Any]:
        """What has a setting is given by it, so that the manifest tells what was sent."""
        for name in value:
            if name in KEJUS_OWN:
                raise Invalid("config_field_of_keju", name=name)
            known = OTHER_NAMES.get(name, name)
            if known in cls.model_fields:
                raise Invalid("config_field_has_setting", name=name, known=known)
        return value

    def body(self) -> dict[str, Any]:
        """The fields that are no part of `keju.types.Sampling`, as the body carries them."""
        plain = ("top_k", "min_p", "presence_penalty", "frequency_penalty", "repetition_penalty")
        more = ("reasoning_effort", "logit_bias", "chat_template_kwargs")
        values = {name: getattr(self, name) for name in plain + more}
        return {k: v for k, v in values.items() if v is not None} | self.extra_body


def question_limit(value: Any) -> int | float | None:
    """A number of questions, or a share of them below 1."""
    if value is None:
        return None
    try:
        number = float(value) if not isinstance(value, bool) else math.nan
    except (ValueError, TypeError, OverflowError):
        number = math.nan
    if not 0 < number <= LARGEST or (number > 1 and number != int(number)):
        raise Invalid("config_limit")
    return number if number < 1 else int(number)


class DatasetArgs(StrictSettings):
    """Settings of one benchmark (``dataset_args.NAME``); each benchmark adds its own."""

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
    """Settings that shape what is asked, and not how a reply is read or scored."""
    size_setting: ClassVar[str] = ""
    """The setting that says how many questions each subset has, where they are made to order."""

    subset_list: NameList | None = None
    """Only these subsets."""
    few_shot_num: int | None = Field(default=None, ge=0)
    """Worked examples before the question; the protocol's number by default."""
    few_shot_random: bool = False
    """Draw the worked examples from the pool with the seed, instead of the first ones."""
    protocol: str | None = None
    """A published way to sit the exam; ``keju list protocols`` shows them."""
    reader: Readers | None = None
    """Readers to score with; the protocol's own by default."""
    prompt_template: str | None = None
    """Replaces the question's template; known placeholders only."""
    few_shot_prompt_template: str | None = None
    """Replaces the template used with worked examples; known placeholders only."""
    system_prompt: str | None = None
    """A system message; an empty text means none."""
    local_path: str | None = None
    """The folder that holds this benchmark's data, instead of one below ``data_dir``."""
    shuffle: bool = False
    """Put the questions of each subset in a seeded random order before ``limit`` takes the first;
    without a limit it changes nothing but the order in which they are asked."""
    shuffle_choices: bool = False
    """Permute the options of each question with the seed; the permutation is recorded."""
    filters: Filters = Filters()
    """Cleaning of replies before they are read."""
    limit: int | float | None = None
    """As the task's `limit`, for this benchmark alone."""
    generation_config: GenerationConfig | None = None
    """Sampling of this benchmark, key by key over the task's."""
    extra_params: dict[str, Any] = Field(default={})
    """The benchmark's own settings, as EvalScope spells them."""

    @property
    def implied_protocol(self) -> str | None:
        """The protocol that goes with these settings where none is named; usually the default."""
        return None

    def under_judge(self) -> Self:
        """These settings where the task names a judge, which takes the place of their own."""
        return self

    def exams(self, own: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """The settings of each exam that these ask for at once, by the name of its arm.

        Usually it is one exam, and no arm: `own`, the settings as they were given.
        """
        return {"": dict(own)}

    def arrange_judge(self, own: Mapping[str, Any], environ: Mapping[str, str]) -> Arranged:
        """The judge that these settings name where its key is in `environ`, and what is left.

        `own` are the settings as they were given.
        """
        return Arranged(None, dict(own))

    @field_validator("limit", mode="before")
    @classmethod
    def _limit(cls, value: Any) -> int | float | None:
        return question_limit(value)

    @field_validator("generation_config")
    @classmethod
    def _no_headers(cls, value: GenerationConfig | None) -> GenerationConfig | None:
        """Headers are the endpoint's, which all benchmarks share."""
        if value is not None and value.extra_headers:
            raise Invalid("config_headers_of_exam")
        return value

    @property
    def labels(self) -> dict[str, str]:
        """What the one line of ``keju vf-eval`` says about these settings."""
        return {}

    @model_validator(mode="before")
    @classmethod
    def _merge_extra_params(cls, data: Any) -> Any:
        """Lift ``extra_params`` to the benchmark's own fields, where they are validated."""
        if not isinstance(data, dict) or not isinstance(data.get("extra_params"), dict):
            return data
        own = set(cls.model_fields) - set(DatasetArgs.model_fields)
        for key in data["extra_params"]:
            if key not in own:
                code = "config_unknown_extra" if own else "config_no_extras"
                raise ConfigError(code, key=key, hint=did_you_mean(key, sorted(own)))
        return data | data["extra_params"]


class Price(StrictSettings):
    """Money for a million tokens."""

    input: float = Field(default=0.0, ge=0)
    """For input tokens."""
    output: float = Field(default=0.0, ge=0)
    """For output tokens."""
    cached: float | None = Field(default=None, ge=0)
    """Input tokens served from a cache; as `input` if not given."""
    written: float | None = Field(default=None, ge=0)
    """Input tokens that a cache keeps for later requests; as `input` if not given."""


class Budget(StrictSettings):
    """Hard limits of a run; overspent only where replies in flight are dearer than all before."""

    requests: Whole | None = None
    """The most requests; failed attempts count."""
    tokens: Whole | None = None
    """The most tokens, input and output."""
    cost: Amount | None = None
    """The most money; needs `price`."""
    seconds: Seconds | None = None
    """The most seconds."""


class JudgeConfig(StrictSettings):
    """A model that grades answers which no rule decides."""

    model: str
    """The judge."""
    api_url: str | None = None
    """Its endpoint; the candidate's by default."""
    api_key_var: str | None = None
    """Name of the environment variable that holds the key. Where none is said: at the candidate's
    own host the candidate's key, at OpenAI's OPENAI_API_KEY, at Anthropic's ANTHROPIC_API_KEY,
    elsewhere no key."""
    strategy: Literal["rule", "llm", "llm_recall"] = "llm_recall"
    """``rule`` never asks, ``llm`` asks about every answer, ``llm_recall`` about undecided ones."""
    continuous: bool = False
    """Ask for a number in [0, 1] instead of a verdict."""
    repeats: Count = 1
    """Verdicts on each answer; most decide."""
    second: str | None = None
    """Another judge model at the same endpoint, to measure agreement."""
    labelled: str | None = None
    """A JSONL file of graded answers that measures the judge's sensitivity and specificity."""
    eval_batch_size: Count = 8
    """The most requests in flight at the judge's endpoint."""
    attempts: Whole = 5
    """Attempts for one request, the first included."""
    timeout: Seconds = 120.0
    """Seconds for one attempt."""
    give_up_after: Seconds = 600.0
    """Seconds the judge's endpoint may stay down."""
    budget: Budget = Budget()
    """Hard limits of the judge, apart from the run's."""
    price: Price | None = None
    """What the judge's tokens cost."""
    generation_config: GenerationConfig = GenerationConfig()
    """Sampling parameters."""

    @field_validator("api_key_var")
    @classmethod
    def _names_a_variable(cls, value: str | None) -> str | None:
        return None if value is None else variable_name(value, "judge.api_key_var")

    @field_validator("model", "second")
    @classmethod
    def _full_name(cls, value: str | None) -> str | None:
        return None if value is None else full_name(value)


_PART = re.compile(r"[1-9]\d{0,5}/[1-9]\d{0,5}", re.ASCII)  # `3/16`


class TaskConfig(StrictSettings):
    """Everything that one run is asked to do."""

    model: str
    """A name at the endpoint, or anthropic:NAME, scripted, replay:RUN, embedded, gguf:PATH,
    hf:NAME."""
    api_url: str | None = None
    """Base URL of an OpenAI-compatible endpoint (or OPENAI_BASE_URL), or of Anthropic's API (or
    ANTHROPIC_BASE_URL). Several of them are `endpoints`."""
    endpoints: list[Endpoint] = Field(default=[])
    """Several endpoints of the same model, which share the work; in place of `api_url`."""
    serve: Text | None = None
    """The command of a server to start for the run, such as ``vllm serve NAME --port {port}``; in
    place of `api_url`. ``${VAR}`` in it is a variable of the environment."""
    api_key: SecretStr | None = Field(default=None, exclude=True)
    """Its key (or OPENAI_API_KEY, ANTHROPIC_API_KEY); never stored."""
    api: Literal["auto", "chat", "completions"] = "auto"
    """Which route of the endpoint; by default the one the protocol is published for."""
    headers: dict[str, str] = Field(default={}, exclude=True)
    """Further request headers; values are never stored."""
    ca_file: str | None = None
    """A certificate authority to trust, in PEM."""
    model_args: dict[str, Any] = Field(default={})
    """Settings of a kind of model: dtype, device, n_ctx, slots, api_version, …"""

    datasets: Texts = Field(min_length=1)
    """Exams: names of `keju list benchmarks`, or folders and files of your own."""
    dataset_args: dict[str, dict[str, Any]] = Field(default={})
    """Settings by exam."""
    protocol: str | None = None
    """Protocol of all datasets that do not name their own."""
    reader: Readers | None = None
    """Readers to score with; several stand side by side."""
    data_dir: str | None = None
    """Folder with one folder a benchmark (or KEJU_DATA_DIR)."""
    capsules: str | None = None
    """Folder of the data that questions are worked on with, for exams that have such data."""
    dataset_hub: Literal["huggingface", "modelscope"] | None = None
    """Where to look for data that is not in `data_dir`."""
    offline: bool = False
    """Open no socket but the model's."""

    generation_config: GenerationConfig = GenerationConfig()
    """Sampling parameters."""
    limit: int | float | None = None
    """Questions of each subset: a number of at least 1, or a share below 1."""
    total: Whole | None = None
    """Questions of each benchmark in all, its subsets in proportion to their size."""
    ids: Texts | None = None
    """Only these questions, by their ids."""
    failed_of: str | None = None
    """Only the questions that a stored run (folder or id) did not get right; they become `ids`."""
    sample: Literal["first", "random", "stratified"] = "first"
    """Which questions a limit keeps: the first, random ones, or spread over target answers."""
    shard: str | None = None
    """One part of the questions, e.g. 3/16: every 16th of those that are chosen, from the third on.
    Runs of all parts are made one with ``keju merge``."""
    repeats: Count = 1
    """Ask each question this many times; its repeats are averaged first."""
    rotate_options: Count = 1
    """Ask each question under this many cyclic rotations of its options."""
    seed: Seed = 42
    """The seed of whatever is drawn."""
    order: Literal["auto", "random"] = "auto"
    """In which order the questions of a subset are asked: those with the longest replies first, as
    far as that can be foreseen, so that no slot waits for a long one in the end; or a random one.
    """
    until_ci: HalfWidth | None = None
    """Stop when the headline is known within so much up and down, at whatever look that is."""
    until_decided: Text | None = None
    """Stop when the model is known to be better or worse than a baseline: a run, a log or a file
    of predictions of the same exam."""

    eval_batch_size: Count = 32
    """The most requests in flight at an endpoint; the engine goes lower while it is overloaded."""
    timeout: Seconds = 600.0
    """Seconds for one attempt."""
    attempts: Whole = 5
    """Attempts for one request, the first included."""
    retry_interval: Seconds = 0.5
    """Seconds before a failed attempt is repeated; doubled each time, up to a minute."""
    rpm: Rate | None = None
    """Requests a minute, over all endpoints."""
    tpm: Rate | None = None
    """Tokens a minute, input and output."""
    give_up_after: Seconds = 600.0
    """Seconds an endpoint may stay down before the run stops, resumable."""
    error_limit: Share = 0.01
    """Share of samples that may end in an error before the exit code says 4."""
    budget: Budget = Budget()
    """Hard limits."""
    price: Price | None = None
    """Money for a million tokens; a budget in money needs it."""
    judge: JudgeConfig | None = None
    """A model that grades open answers."""

    arms: Arms = Field(default=[])
    """Ways to sit the exams side by side, each with tools of its own; none: once, without tools."""
    agent: Agent = Agent()
    """Limits of a model that uses tools."""
    sandbox: Sandbox = Sandbox()
    """Where code that a model writes runs."""

    executor: Literal["local", "ray"] = "local"
    """Who asks: this process, or actors on a cluster of Ray."""
    ray: Ray = Ray()
    """Which cluster, and how many actors."""

    work_dir: str = "runs"
    """Folder of the runs (or KEJU_WORK_DIR)."""
    run_id: str | None = Field(default=None, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")
    """The name of the run; one that exists is resumed. A new one by default."""
    use_cache: str | None = None
    """A stored run (folder or id) whose replies are reused where the request is the same."""
    resume: bool = False
    """Require that the run exists; a run id that exists is resumed in any case."""
    replace: bool = False
    """Start over: a run of this id that exists is moved aside."""
    language: Literal["en", "zh"] | None = None
    """Language that the report begins with; by default that of the terminal."""

    events: Text | None = None
    """A file or pipe that gets what happens as JSON lines."""
    metrics_port: Port | None = None
    """A port of this machine that shows the run to Prometheus; 0 for one that is free."""
    otel: bool = False
    """Send spans and metrics where OpenTelemetry's own variables say."""

    @property
    def part(self) -> tuple[int, int] | None:
        """Which part of the questions, counted from 0, and of how many."""
        if self.shard is None:
            return None
        part, parts = map(int, self.shard.split("/"))
        return part - 1, parts

    @property
    def at_once(self) -> int:
        """The most requests in flight, over all endpoints."""
        own = [each.concurrency or self.eval_batch_size for each in self.endpoints]
        return sum(own) or self.eval_batch_size

    @property
    def stops_early(self) -> bool:
        """Whether a rule may end the asking before all questions were put."""
        return self.until_ci is not None or self.until_decided is not None

    @model_validator(mode="before")
    @classmethod
    def _addresses(cls, data: Any) -> Any:
        """Several addresses in `api_url` are endpoints without further settings."""
        return as_endpoints(data) if isinstance(data, dict) else data

    @field_validator("model")
    @classmethod
    def _full_name(cls, value: str) -> str:
        return full_name(value)

    @field_validator("serve")
    @classmethod
    def _has_a_port(cls, value: str | None) -> str | None:
        if value is not None:
            words_of(value)
        return value

    @field_validator("shard")
    @classmethod
    def _is_part(cls, value: str | None) -> str | None:
        if value is not None and _PART.fullmatch(value) is None:
            raise Invalid("config_shard_form")
        return value

    @field_validator("endpoints")
    @classmethod
    def _different(cls, value: list[Endpoint]) -> list[Endpoint]:
        return distinct(value)

    @field_validator("limit", mode="before")
    @classmethod
    def _limit(cls, value: Any) -> int | float | None:
        return question_limit(value)

    @model_validator(mode="after")
    def _one_choice(self) -> Self:
        """Two ways to choose questions at once would leave open which of them counts."""
        chosen = [n for n in ("limit", "total", "ids") if getattr(self, n) is not None]
        if len(chosen) > 1:
            raise Invalid("config_two_choices", first=chosen[0], second=chosen[1])
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
            raise Invalid("config_named_twice", names=sorted(repeated))
        return value

    @field_validator("dataset_args")
    @classmethod
    def _by_exam(
        cls, value: dict[str, dict[str, Any]], info: ValidationInfo
    ) -> dict[str, dict[str, Any]]:
        """Settings of an exam at a path, which may be named for short, under its path; its subsets
        as a list, however they were written, since runs are compared by it."""
        named: dict[str, dict[str, Any]] = {}
        for name, args in value.items():
            exam = meant(name, info.data.get("datasets", ())) or name
            named[exam] = named.get(exam, {}) | args
            if "subset_list" in args:
                named[exam]["subset_list"] = listed(args["subset_list"])
        return named

    @model_validator(mode="after")
    def _settings_fit_together(self) -> Self:
        """A setting that would have no effect is refused."""
        places = [name for name in PLACES if getattr(self, name)]
        if len(places) > 1:
            raise ConfigError("config_two_places", first=places[0], second=places[1])
        for name in ("weight", "reports") if len(self.endpoints) == 1 else ():
            if name in self.endpoints[0].model_fields_set:
                raise ConfigError("config_one_endpoint", name=name)
        if self.budget.cost is not None and self.price is None:
            raise ConfigError("config_cost_without_price", path="budget.cost")
        if self.agent.max_cost is not None and self.price is None:
            raise ConfigError("config_cost_without_price", path="agent.max_cost")
        if self.replace and (self.resume or self.run_id is None):
            raise ConfigError("config_replace", path="replace")
        if self.sample != "first" and self.limit is None and self.total is None:
            raise ConfigError("config_sample_without_limit", path="sample", sample=self.sample)
        if self.until_ci is not None and self.until_decided is not None:
            raise ConfigError("config_two_rules")
        if self.arms and self.stops_early:
            raise ConfigError("config_rule_with_arms")
        if self.part is not None and self.part[0] >= self.part[1]:
            raise ConfigError("config_shard", path="shard")
        if self.part is not None and self.stops_early:
            raise ConfigError("config_rule_with_shard")
        if self.executor != "ray" and self.ray != Ray():
            raise ConfigError("config_ray_without_executor", path="ray")
        if self.executor == "ray" and (self.endpoints or self.serve):
            raise ConfigError("config_ray_endpoints")
        for name in self.dataset_args:
            if name not in self.datasets:
                raise not_run(name, self.datasets)
        return self
