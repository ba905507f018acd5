"""What can be asked of Anthropic's API: sent, left out with a word, or refused in one line."""

from __future__ import annotations

from typing import Any

import pytest

from keju.config import TaskConfig
from keju.config.address import SHORT_NAMES
from keju.errors import ConfigError
from keju.models.anthropic.sampling import GATES, fit, gate_of
from keju.types import Sampling
from tests.support.anthropic_schema import MODELS, NEW, OLD


def task(model: str, version: str = NEW, **args: Any) -> TaskConfig:
    return TaskConfig(
        model=f"anthropic:{model}", datasets=["demo"], model_args={"api_version": version} | args
    )


def fitted(model: str, version: str = NEW, **sampling: Any) -> Sampling:
    return fit(task(model, version), Sampling(**({"temperature": None} | sampling)))[0]


@pytest.mark.parametrize("model", MODELS)
def test_the_table_is_the_published_one(model: str) -> None:
    gate, row = gate_of(model), MODELS[model]
    assert gate is not None
    assert gate.thinking == row.thinking
    assert (gate.thinks != "off") == row.default_thinking
    assert gate.most_tokens == row.cap
    assert gate.prefill == row.prefill
    assert gate.efforts == (not row.no_effort)
    assert gate.modest == row.calm
    assert gate.sampling == row.sampling
    assert gate.bound == row.bound


def test_short_names_are_in_the_table() -> None:
    for full in SHORT_NAMES.values():
        assert full.removeprefix("anthropic:") in GATES
    assert gate_of("claude-opus-5-5-20270101") == GATES["claude-opus-5-5"]
    assert gate_of("claude-opus-51") is None


@pytest.mark.parametrize(
    ("model", "version", "asked", "sent"),
    [
        ("claude-sonnet-4-6", NEW, None, None),
        ("claude-sonnet-4-6", OLD, None, 0.0),  # Keju's own default
        ("claude-sonnet-4-6", OLD, 0.5, 0.5),
        ("claude-opus-4-8", OLD, None, None),
        ("claude-sonnet-5", OLD, None, None),
        ("claude-sonnet-5", OLD, 1.0, 1.0),
        ("unknown-model", OLD, None, None),
        ("unknown-model", OLD, 0.3, 0.3),
    ],
)
def test_temperatures(model: str, version: str, asked: float | None, sent: float | None) -> None:
    sampling, notices = fit(task(model, version), Sampling(temperature=asked))
    assert sampling.temperature == sent
    assert ("temperature_not_sent" in [each.code for each in notices]) == (sent is None)


@pytest.mark.parametrize(
    ("model", "version", "sampling", "code"),
    [
        ("claude-sonnet-4-6", NEW, {"temperature": 0.0}, "anthropic_no_sampling"),
        ("claude-sonnet-4-6", NEW, {"top_p": 0.9}, "anthropic_no_sampling"),
        ("claude-sonnet-4-6", NEW, {"extra": {"top_k": 3}}, "anthropic_no_sampling"),
        ("claude-opus-4-7", OLD, {"temperature": 1.0}, "anthropic_model_no_sampling"),
        ("claude-opus-5", OLD, {"temperature": 0.9}, "anthropic_model_no_sampling"),
        ("claude-opus-4-6", OLD, {"temperature": 0.9, "top_p": 0.9}, "anthropic_one_of_two"),
        ("claude-opus-4-6", OLD, {"temperature": 1.5}, "anthropic_temperature_range"),
        ("claude-opus-4-6", NEW, {"seed": 1}, "anthropic_no_field"),
        ("claude-opus-4-6", NEW, {"extra": {"logit_bias": {}}}, "anthropic_no_field"),
        ("claude-opus-4-6", NEW, {"decode": "labels"}, "anthropic_no_logprobs"),
        ("claude-opus-4-6", NEW, {"form": "completion"}, "anthropic_no_completions"),
        ("claude-opus-4-6", NEW, {"max_tokens": 128_001}, "anthropic_too_long"),
        ("claude-haiku-4-5", NEW, {"max_tokens": 64_001}, "anthropic_too_long"),
        ("claude-haiku-4-5", NEW, {"extra": {"reasoning_effort": "low"}}, "anthropic_no_effort"),
        (
            "claude-opus-4-6",
            NEW,
            {"extra": {"continue_final_message": True}},
            "anthropic_no_prefill",
        ),
        ("claude-opus-5-5", NEW, {"extra": {"thinking": "on"}}, "anthropic_thinking_form"),
        (
            "claude-opus-5-5",
            NEW,
            {"extra": {"thinking": {"type": "disabled"}}},
            "anthropic_thinking_kind",
        ),
        (
            "claude-opus-5",
            NEW,
            {"extra": {"thinking": {"type": "disabled"}, "reasoning_effort": "max"}},
            "anthropic_thinking_effort",
        ),
        (
            "claude-opus-4-6",
            NEW,
            {"max_tokens": 2000, "extra": {"thinking": {"type": "enabled", "budget_tokens": 2000}}},
            "anthropic_thinking_budget",
        ),
        (
            "claude-opus-4-6",
            OLD,
            {"temperature": 0.0, "extra": {"thinking": {"type": "adaptive"}}},
            "anthropic_thinking_sampling",
        ),
    ],
)
def test_what_is_refused(model: str, version: str, sampling: dict[str, Any], code: str) -> None:
    with pytest.raises(ConfigError) as caught:
        fitted(model, version, **sampling)
    assert caught.value.code == code
    assert "\n" not in str(caught.value)
    assert caught.value.text("zh") != str(caught.value)


def test_fields_of_keju_cannot_be_set() -> None:
    with pytest.raises(ConfigError, match="extra_body cannot set 'system'"):
        fitted("claude-opus-4-6", extra={"system": "x"})


def test_what_is_filled_in() -> None:
    sampling = fitted("claude-opus-5-5", extra={"reasoning_effort": "low"})
    assert sampling.max_tokens == 16_384
    assert sampling.extra == {
        "output_config": {"effort": "low"},
        "thinking": {"type": "adaptive", "display": "summarized"},
    }
    assert "thinking" not in fitted("claude-opus-4-8").extra  # it does not think by itself
    budget = {"type": "enabled", "budget_tokens": 1024}
    assert fitted("claude-haiku-4-5", extra={"thinking": budget}).extra == {
        "thinking": budget | {"display": "summarized"}
    }
    omitted = {"type": "adaptive", "display": "omitted"}
    assert fitted("claude-opus-5-5", extra={"thinking": omitted}).extra["thinking"] == omitted


def test_a_gateway_s_own_name_may_be_like_another() -> None:
    with pytest.raises(ConfigError, match="writes at most 64000"):
        fit(task("our-haiku", like="claude-haiku-4-5"), Sampling(max_tokens=100_000))


def test_long_replies_carry_a_warning() -> None:
    _, notices = fit(task("claude-opus-4-8"), Sampling(temperature=None, max_tokens=30_000))
    assert [each.code for each in notices] == ["temperature_not_sent", "long_without_stream"]
