"""Fits the requested sampling to Anthropic's API before anything is sent, with a dated table of
what each model accepts.

The API reports a part of it (``GET /v1/models/ID``: the longest reply, the kinds of thinking). The
table holds the parts that the API does not report or that must be known before sending. Defaults
such as Keju's temperature of 0 are left out if the API does not support them, and results report
it. Settings of the user or the protocol are either sent or refused in one
line, never dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple

import msgspec
from pydantic import Field

from keju.config import TaskConfig
from keju.config.strict import StrictSettings
from keju.errors import ConfigError, Notice
from keju.types import Sampling

AS_OF: Final = "2026-11-16"
"""The date on which the table was last compared with the vendor's documentation."""
DEFAULT_VERSION: Final = "2026-10-21"
"""The version of the API that is requested unless a setting names another."""
NO_SAMPLING_SINCE: Final = "2026-10-21"
"""From this version on no model has ``temperature``, ``top_p`` and ``top_k``."""
MODEST_EFFORTS: Final = ("low", "medium", "high")

Thinking = Literal["adaptive", "enabled", "disabled", "between_tools"]


class ModelFamilyRules(NamedTuple):
    """The settings that one family of models accepts."""

    thinks: Literal["off", "on", "always"]
    """Whether it thinks if a request does not say so."""
    thinking: tuple[Thinking, ...]
    """The settings of thinking that a request may name."""
    sampling: Literal["one", "default", "none"]
    """For versions with sampling: temperature or top_p, only a temperature of 1, or nothing."""
    most_tokens: int = 128_000
    """The longest reply in tokens."""
    prefill: bool = False
    """Whether it continues an assistant's turn that the request begins."""
    efforts: bool = True
    """Whether it accepts ``output_config.effort``."""
    default_effort: str = "high"
    modest: tuple[Thinking, ...] = ()
    """Settings of thinking that need an effort of at most ``high``."""
    bound: bool = False
    """Whether its thinking depends on all earlier turns, so that the history may only grow."""


_OF_4_5 = ModelFamilyRules(
    "off", ("enabled", "disabled"), "one", most_tokens=64_000, prefill=True, efforts=False
)
_OF_4_6 = ModelFamilyRules("off", ("adaptive", "enabled", "disabled"), "one")
_OF_4_8 = ModelFamilyRules("off", ("adaptive", "disabled"), "none")
_OF_5 = ModelFamilyRules("on", ("adaptive", "disabled"), "default")
_ALWAYS = ModelFamilyRules("always", ("adaptive",), "none", bound=True)

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
    "claude-sonnet-5-5": ModelFamilyRules(
        "on", ("adaptive", "between_tools"), "none", modest=("between_tools",), bound=True
    ),
    "claude-opus-5-5": _ALWAYS._replace(default_effort="medium"),
    "claude-fable-5": _ALWAYS,
    "claude-mythos-5": _ALWAYS,
}
"""Keys are beginnings of a model's id. ``claude-sonnet-4-5`` also matches
``claude-sonnet-4-5-20250929``. If both ``claude-opus-5`` and ``claude-opus-5-5`` match, the longer
one counts."""


def gate_of(model: str) -> ModelFamilyRules | None:
    """Return what `model` accepts; None for a name that is not in the table."""
    matches = [name for name in GATES if model == name or model.startswith(f"{name}-")]
    return GATES[max(matches, key=len)] if matches else None


KIND: Final = "anthropic:"
DEFAULT_MAX_TOKENS: Final = 16_384
"""The API needs a limit. Output rate limits are computed from it, so it is below the largest
possible."""
UNSTREAMED_TOKENS: Final = 21_333
"""Longer replies may take more than ten minutes, after which networks cut silent connections."""
ROOM_TO_THINK: Final = 4096
"""Number of tokens below which a model that thinks often ends before its answer."""
LEAST_BUDGET: Final = 1024
"""The least number of tokens for ``thinking.budget_tokens``."""
ONLY_CLIENT: Final = "continue_final_message"
"""The field that continues the reply from the prompt's cue. Here it becomes an assistant turn
instead of a field of the body."""
NOT_THERE: Final = (
    "min_p", "presence_penalty", "frequency_penalty", "repetition_penalty", "logit_bias",
    "chat_template_kwargs", "logprobs", "top_logprobs", "seed",
)  # fmt: skip
"""Fields that no version of the API has."""
OF_KEJU: Final = ("system", "tools", "tool_choice", "stop_sequences", "cache_control")
"""Fields that Keju makes itself, in addition to those that are refused for all endpoints."""


class AnthropicModelArgs(StrictSettings):
    """The ``model_args`` of a model of Anthropic's API."""

    api_version: str = Field(default=DEFAULT_VERSION, pattern=r"^\d{4}-\d{2}-\d{2}$")
    """The header ``anthropic-version``."""
    like: str | None = None
    """A model of the table that accepts the same settings as this one, e.g. for another name behind
    a gateway."""


class AnthropicSettings(NamedTuple):
    """A model's id, the version of the API, and the settings that the model accepts."""

    id: str
    version: str
    gate: ModelFamilyRules | None

    @property
    def has_sampling(self) -> bool:
        """Whether the version has a temperature."""
        return self.version < NO_SAMPLING_SINCE


def settings_of(config: TaskConfig) -> AnthropicSettings:
    """Return the settings of the model from `config`; raise ConfigError in one line."""
    model = config.model.strip().removeprefix(KIND)
    if not model:
        raise ConfigError("anthropic_no_name")
    try:
        args = AnthropicModelArgs(**config.model_args)
    except ConfigError as error:
        raise ConfigError("config_from", origin="model_args", problem=error) from None
    gate = gate_of(args.like or model)
    if args.like is not None and gate is None:
        raise ConfigError("anthropic_like_unknown", like=args.like)
    return AnthropicSettings(model, args.api_version, gate)


def fit(config: TaskConfig, sampling: Sampling) -> tuple[Sampling, tuple[Notice, ...]]:
    """Return `sampling` for the API with notices for the results; raise ConfigError if it cannot be
    sent.

    A temperature of None was not requested.
    """
    model = settings_of(config)
    _refuse_unknown_fields(sampling)
    max_tokens = model.gate.most_tokens if model.gate is not None else None
    limit = sampling.max_tokens or min(DEFAULT_MAX_TOKENS, max_tokens or DEFAULT_MAX_TOKENS)
    if max_tokens is not None and limit > max_tokens:
        raise ConfigError("anthropic_too_long", model=model.id, tokens=limit, most=max_tokens)
    extra = _with_thinking(model, limit, _with_effort(model, sampling.extra))
    if sampling.extra.get(ONLY_CLIENT) and (model.gate is None or not model.gate.prefill):
        raise ConfigError("anthropic_no_prefill", model=model.id)
    temperature = _fit_temperature(model, sampling, extra)
    fitted = msgspec.structs.replace(
        sampling, temperature=temperature, max_tokens=limit, extra=extra
    )
    return fitted, tuple(_notices(model, fitted, limit))


def _refuse_unknown_fields(sampling: Sampling) -> None:
    """Raise ConfigError for sampling that the API has no field for."""
    if sampling.decode == "labels":
        raise ConfigError("anthropic_no_logprobs")
    if sampling.form == "completion":
        raise ConfigError("anthropic_no_completions")
    requested_fields = {*sampling.extra, *(["seed"] if sampling.seed is not None else [])}
    for name in NOT_THERE:
        if name in requested_fields:
            raise ConfigError("anthropic_no_field", name=name)
    for name in OF_KEJU:
        if name in sampling.extra:
            raise ConfigError("extra_body_own", name=name)


def _notices(model: AnthropicSettings, fitted: Sampling, limit: int) -> Iterator[Notice]:
    """Yield notices about sampling that differs from what was requested."""
    if fitted.temperature is None:
        yield Notice("temperature_not_sent", {"model": model.id, "version": model.version})
    if blank_stops := [stop for stop in fitted.stop if not stop.strip()]:
        yield Notice("stop_cut_here", {"stops": ", ".join(map(repr, blank_stops))})
    if _has_thinking(fitted.extra) and limit < ROOM_TO_THINK:
        yield Notice("thinking_in_limit", {"model": model.id, "tokens": limit})
    if limit > UNSTREAMED_TOKENS:
        yield Notice("long_without_stream", {"tokens": limit, "most": UNSTREAMED_TOKENS})


def _with_effort(model: AnthropicSettings, extra: dict[str, Any]) -> dict[str, Any]:
    """Return `extra` with the effort in the field of the API."""
    fields = dict(extra)
    effort = fields.pop("reasoning_effort", None)
    if effort is not None:
        fields["output_config"] = {**(fields.get("output_config") or {}), "effort": effort}
    requested_effort = (fields.get("output_config") or {}).get("effort")
    if requested_effort is not None and model.gate is not None and not model.gate.efforts:
        raise ConfigError("anthropic_no_effort", model=model.id)
    return fields


def _with_thinking(model: AnthropicSettings, limit: int, extra: dict[str, Any]) -> dict[str, Any]:
    """Return `extra` with the setting of thinking. Its text is requested, because the journal keeps
    it."""
    thinking, gate = extra.get("thinking"), model.gate
    if thinking is None:
        if gate is None or gate.thinks == "off":
            return extra
        return extra | {"thinking": {"type": "adaptive", "display": "summarized"}}
    kind = thinking.get("type") if isinstance(thinking, dict) else None
    if not isinstance(kind, str):
        raise ConfigError("anthropic_thinking_form")
    if gate is not None:
        _check_kind(model, gate, kind, extra)
    if kind == "enabled":
        _check_budget(thinking.get("budget_tokens"), limit)
    if kind in ("adaptive", "enabled"):
        thinking = {"display": "summarized"} | thinking
    return extra | {"thinking": thinking}


def _check_budget(budget: Any, limit: int) -> None:
    """Raise ConfigError for a number of thinking tokens that the API refuses."""
    if not isinstance(budget, int) or not LEAST_BUDGET <= budget < limit:
        raise ConfigError("anthropic_thinking_budget", least=LEAST_BUDGET, most=limit)


def _check_kind(
    model: AnthropicSettings, gate: ModelFamilyRules, kind: str, extra: Mapping[str, Any]
) -> None:
    """Raise ConfigError for a kind of thinking that the model does not have."""
    if kind not in gate.thinking:
        kinds = [*gate.thinking]
        raise ConfigError("anthropic_thinking_kind", model=model.id, kind=kind, kinds=kinds)
    effort = (extra.get("output_config") or {}).get("effort") or MODEST_EFFORTS[0]
    if kind in gate.modest and effort not in MODEST_EFFORTS:
        raise ConfigError("anthropic_thinking_effort", model=model.id, kind=kind, effort=effort)


def _has_thinking(extra: dict[str, Any]) -> bool:
    """Whether a request with these fields makes the model think."""
    thinking = extra.get("thinking")
    return thinking is not None and thinking["type"] != "disabled"


def _fit_temperature(
    model: AnthropicSettings, sampling: Sampling, extra: dict[str, Any]
) -> float | None:
    """Return the temperature to send; raise ConfigError for sampling that the API refuses."""
    sampling_values = {"temperature": sampling.temperature, "top_p": sampling.top_p}
    sampling_values["top_k"] = extra.get("top_k")
    requested = {name: value for name, value in sampling_values.items() if value is not None}
    thinks = _has_thinking(extra)
    accepts = model.gate.sampling if model.gate is not None else "one"
    if not requested:
        return 0.0 if _takes_zero(model, accepts, thinks=thinks) else None
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


def _takes_zero(model: AnthropicSettings, accepts: str, *, thinks: bool) -> bool:
    """Whether the API accepts Keju's default temperature of 0."""
    return model.has_sampling and model.gate is not None and accepts == "one" and not thinks
