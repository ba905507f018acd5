"""From what was asked for to what Anthropic's API can be asked for, before anything is sent; and
what each of its models accepts, in one dated table.

The API tells much of it by itself (``GET /v1/models/ID``: the longest reply, the kinds of
thinking); what it does not tell, or what must be known before anything is sent, stands here. What
nobody asked for, such as Keju's own temperature of 0, is left out where the API has no place for
it, and results say so. What the user or the protocol asks for is sent, or refused in one line:
nothing is dropped in silence.
"""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple

import msgspec
from pydantic import Field

from keju.config import TaskConfig
from keju.config.strict import StrictSettings
from keju.errors import ConfigError, Notice
from keju.types import Sampling

AS_OF: Final = "2026-11-16"
"""When the table was last compared with what the vendor says."""
DEFAULT_VERSION: Final = "2026-10-21"
"""The version of the API that is asked for where no setting names another."""
NO_SAMPLING_SINCE: Final = "2026-10-21"
"""From this version on no model has ``temperature``, ``top_p`` and ``top_k``."""
MODEST_EFFORTS: Final = ("low", "medium", "high")

Thinking = Literal["adaptive", "enabled", "disabled", "between_tools"]


class Gate(NamedTuple):
    """What one family of models accepts."""

    thinks: Literal["off", "on", "always"]
    """Whether it thinks where a request does not say."""
    thinking: tuple[Thinking, ...]
    """Which settings of thinking a request may name."""
    sampling: Literal["one", "default", "none"]
    """In versions that have it: temperature or top_p, a temperature of 1 alone, or nothing."""
    most_tokens: int = 128_000
    """The longest reply."""
    prefill: bool = False
    """Whether it goes on from an assistant's turn that was begun for it."""
    efforts: bool = True
    """Whether it takes ``output_config.effort``."""
    default_effort: str = "high"
    modest: tuple[Thinking, ...] = ()
    """Settings of thinking that go with an effort of at most ``high``."""
    bound: bool = False
    """Whether its thinking is tied to all that was said before: history may only grow."""


_OF_4_5 = Gate(
    "off", ("enabled", "disabled"), "one", most_tokens=64_000, prefill=True, efforts=False
)
_OF_4_6 = Gate("off", ("adaptive", "enabled", "disabled"), "one")
_OF_4_8 = Gate("off", ("adaptive", "disabled"), "none")
_OF_5 = Gate("on", ("adaptive", "disabled"), "default")
_ALWAYS = Gate("always", ("adaptive",), "none", bound=True)

GATES: Final = {
    "claude-haiku-4-5": _OF_4_5,
    "claude-sonnet-4-5": _OF_4_5,
    "claude-opus-4-5": _OF_4_5._replace(efforts=True),
    "claude-opus-4-6": _OF_4_6,
    "claude-sonnet-4-6": _OF_4_6,
    "claude-opus-4-7": _OF_4_8,
    "claude-opus-4-8": _OF_4_8,
    "claude-sonnet-5": _OF_5,
    "claude-opus-5": _OF_5._replace(modest=("disabled",)),
    "claude-haiku-5-5": _OF_5._replace(modest=("disabled",), default_effort="medium", bound=True),
    "claude-sonnet-5-5": Gate(
        "on", ("adaptive", "between_tools"), "none", modest=("between_tools",), bound=True
    ),
    "claude-opus-5-5": _ALWAYS._replace(default_effort="medium"),
    "claude-fable-5": _ALWAYS,
    "claude-mythos-5": _ALWAYS,
}
"""By the beginning of the model's id: ``claude-sonnet-4-5`` is also ``claude-sonnet-4-5-20250929``,
and of ``claude-opus-5`` and ``claude-opus-5-5`` the longer one counts."""


def gate_of(model: str) -> Gate | None:
    """What `model` accepts; None for a name that the table does not know."""
    matches = [name for name in GATES if model == name or model.startswith(f"{name}-")]
    return GATES[max(matches, key=len)] if matches else None


KIND: Final = "anthropic:"
DEFAULT_MAX_TOKENS: Final = 16_384
"""The API wants a limit; output limits are reckoned by it, so it is not the largest there is."""
UNSTREAMED_TOKENS: Final = 21_333
"""Longer replies may take more than ten minutes, after which networks cut silent connections."""
ROOM_TO_THINK: Final = 4096
"""Tokens below which a model that thinks often ends before its answer."""
LEAST_BUDGET: Final = 1024
"""Tokens that ``thinking.budget_tokens`` allows at least."""
ONLY_CLIENT: Final = "continue_final_message"
"""Says that the reply goes on from the prompt's cue: a begun turn here, no field of the body."""
NOT_THERE: Final = (
    "min_p", "presence_penalty", "frequency_penalty", "repetition_penalty", "logit_bias",
    "chat_template_kwargs", "logprobs", "top_logprobs", "seed",
)  # fmt: skip
"""What no version of the API has."""
OF_KEJU: Final = ("system", "tools", "tool_choice", "stop_sequences", "cache_control")
"""Fields that Keju makes itself, beside those that no endpoint may be given."""


class ModelArgs(StrictSettings):
    """What ``model_args`` may say about a model of Anthropic's API."""

    api_version: str = Field(default=DEFAULT_VERSION, pattern=r"^\d{4}-\d{2}-\d{2}$")
    """The header ``anthropic-version``."""
    like: str | None = None
    """A model of the table that this one accepts the same settings as, e.g. behind a gateway that
    has names of its own."""


class Settings(NamedTuple):
    """A model's id, the version of the API, and what the model accepts."""

    id: str
    version: str
    gate: Gate | None

    @property
    def has_sampling(self) -> bool:
        """Whether the version has a temperature at all."""
        return self.version < NO_SAMPLING_SINCE


def settings_of(config: TaskConfig) -> Settings:
    """What `config` says of the model; ConfigError in one line."""
    model = config.model.strip().removeprefix(KIND)
    if not model:
        raise ConfigError("anthropic_no_name")
    try:
        args = ModelArgs(**config.model_args)
    except ConfigError as error:
        raise ConfigError("config_from", origin="model_args", problem=error) from None
    gate = gate_of(args.like or model)
    if args.like is not None and gate is None:
        raise ConfigError("anthropic_like_unknown", like=args.like)
    return Settings(model, args.api_version, gate)


def fit(config: TaskConfig, sampling: Sampling) -> tuple[Sampling, tuple[Notice, ...]]:
    """`sampling` as the API takes it, and what results must say of it; ConfigError if it cannot.

    A temperature of None is one that nobody asked for.
    """
    model = settings_of(config)
    if sampling.decode == "labels":
        raise ConfigError("anthropic_no_logprobs")
    if sampling.form == "completion":
        raise ConfigError("anthropic_no_completions")
    requested_fields = [*sampling.extra, *(["seed"] if sampling.seed is not None else [])]
    for name in NOT_THERE:
        if name in requested_fields:
            raise ConfigError("anthropic_no_field", name=name)
    for name in OF_KEJU:
        if name in sampling.extra:
            raise ConfigError("extra_body_own", name=name)
    max_tokens = model.gate.most_tokens if model.gate is not None else None
    limit = sampling.max_tokens or min(DEFAULT_MAX_TOKENS, max_tokens or DEFAULT_MAX_TOKENS)
    if max_tokens is not None and limit > max_tokens:
        raise ConfigError("anthropic_too_long", model=model.id, tokens=limit, most=max_tokens)
    extra = _with_thinking(model, limit, _with_effort(model, sampling.extra))
    if sampling.extra.get(ONLY_CLIENT) and (model.gate is None or not model.gate.prefill):
        raise ConfigError("anthropic_no_prefill", model=model.id)
    temperature = _fit_temperature(model, sampling, extra)
    notices = []
    if temperature is None:
        values = {"model": model.id, "version": model.version}
        notices.append(Notice("temperature_not_sent", values))
    if blank_stops := [stop for stop in sampling.stop if not stop.strip()]:
        notices.append(Notice("stop_cut_here", {"stops": ", ".join(map(repr, blank_stops))}))
    if _has_thinking(extra) and limit < ROOM_TO_THINK:
        notices.append(Notice("thinking_in_limit", {"model": model.id, "tokens": limit}))
    if limit > UNSTREAMED_TOKENS:
        notices.append(Notice("long_without_stream", {"tokens": limit, "most": UNSTREAMED_TOKENS}))
    fitted = msgspec.structs.replace(
        sampling, temperature=temperature, max_tokens=limit, extra=extra
    )
    return fitted, tuple(notices)


def _with_effort(model: Settings, extra: dict[str, Any]) -> dict[str, Any]:
    """`extra` with the effort where the API has it."""
    fields = dict(extra)
    effort = fields.pop("reasoning_effort", None)
    if effort is not None:
        fields["output_config"] = {**(fields.get("output_config") or {}), "effort": effort}
    requested_effort = (fields.get("output_config") or {}).get("effort")
    if requested_effort is not None and model.gate is not None and not model.gate.efforts:
        raise ConfigError("anthropic_no_effort", model=model.id)
    return fields


def _with_thinking(model: Settings, limit: int, extra: dict[str, Any]) -> dict[str, Any]:
    """`extra` with the setting of thinking; its text is asked for, as the journal keeps it."""
    thinking, gate = extra.get("thinking"), model.gate
    if thinking is None:
        if gate is None or gate.thinks == "off":
            return extra
        return extra | {"thinking": {"type": "adaptive", "display": "summarized"}}
    kind = thinking.get("type") if isinstance(thinking, dict) else None
    if not isinstance(kind, str):
        raise ConfigError("anthropic_thinking_form")
    if gate is not None and kind not in gate.thinking:
        kinds = [*gate.thinking]
        raise ConfigError("anthropic_thinking_kind", model=model.id, kind=kind, kinds=kinds)
    effort = (extra.get("output_config") or {}).get("effort") or MODEST_EFFORTS[0]
    if gate is not None and kind in gate.modest and effort not in MODEST_EFFORTS:
        raise ConfigError("anthropic_thinking_effort", model=model.id, kind=kind, effort=effort)
    if kind == "enabled":
        budget = thinking.get("budget_tokens")
        if not isinstance(budget, int) or not LEAST_BUDGET <= budget < limit:
            raise ConfigError("anthropic_thinking_budget", least=LEAST_BUDGET, most=limit)
    if kind in ("adaptive", "enabled"):
        thinking = {"display": "summarized"} | thinking
    return extra | {"thinking": thinking}


def _has_thinking(extra: dict[str, Any]) -> bool:
    """Whether a request with these fields makes the model think."""
    thinking = extra.get("thinking")
    return thinking is not None and thinking["type"] != "disabled"


def _fit_temperature(model: Settings, sampling: Sampling, extra: dict[str, Any]) -> float | None:
    """The temperature to send; ConfigError for settings of sampling that the API refuses."""
    sampling_values = {"temperature": sampling.temperature, "top_p": sampling.top_p}
    sampling_values["top_k"] = extra.get("top_k")
    requested = {name: value for name, value in sampling_values.items() if value is not None}
    thinks = _has_thinking(extra)
    accepts = model.gate.sampling if model.gate is not None else "one"
    if not requested:
        # Keju's own default of 0, where the API would take it.
        takes_zero = model.has_sampling and model.gate is not None and accepts == "one" and not thinks
        return 0.0 if takes_zero else None
    setting, value = next(iter(requested.items()))
    values = {"model": model.id, "version": model.version, "setting": setting, "value": value}
    if not model.has_sampling:
        raise ConfigError("anthropic_no_sampling", since=NO_SAMPLING_SINCE, **values)
    is_default = requested in ({"temperature": 1.0}, {"top_p": 1.0})
    if accepts == "none" or (accepts == "default" and not is_default):
        raise ConfigError("anthropic_model_no_sampling", **values)
    if thinks and requested != {"temperature": 1.0}:
        raise ConfigError("anthropic_thinking_sampling", **values)
    if "temperature" in requested and "top_p" in requested:
        raise ConfigError("anthropic_one_of_two")
    if requested.get("temperature", 0) > 1:
        raise ConfigError("anthropic_temperature_range", temperature=requested["temperature"])
    return sampling.temperature
