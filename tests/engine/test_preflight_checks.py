"""Notices that follow from the reply to the first cheap call."""

from __future__ import annotations

from typing import Any

import pytest

from keju.engine.preflight_checks import preflight_notices
from keju.models.scripted import ScriptedModel
from keju.types import CUT, Reply, Usage


def codes(reply: Reply, *, size: int = 40, declared: tuple[str, ...] = ()) -> list[str]:
    model = ScriptedModel(script=lambda _: "A")
    model.name, model.trial, model.trial_bytes = "small-7b", reply, size
    return [notice.code for notice in preflight_notices(model, declared)]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"model": "large-70b"}, "other_model_at_start"),
        ({"choices": 3}, "several_choices_at_start"),
        ({"text": "", "reasoning": "hm"}, "replies_in_reasoning_at_start"),
        ({"usage": Usage(1, 1)}, "prompt_tokens_capped_at_start"),
        ({"logprob_issue": "nan"}, "logprobs_nan_at_start"),
    ],
)
def test_a_fault_of_the_first_reply_is_reported(fields: dict[str, Any], code: str) -> None:
    sound: dict[str, Any] = {"text": "ok", "model": "small-7b", "usage": Usage(10, 1)}
    assert codes(Reply(**sound)) == []
    assert codes(Reply(**sound | fields)) == [code]


def test_what_the_settings_explain_is_no_fault() -> None:
    assert codes(Reply("ok", model="large-70b"), declared=("large-70b",)) == []
    assert codes(Reply("", reasoning="hm", finish=CUT)) == []
    assert codes(Reply("ok", usage=Usage(1, 1, cached=1))) == []


def test_a_model_without_a_trial_has_no_notices() -> None:
    assert list(preflight_notices(ScriptedModel(script=lambda _: "A"))) == []
