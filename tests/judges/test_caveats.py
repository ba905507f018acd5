"""Warnings about judges: in both languages, and with the judge's own settings."""

from __future__ import annotations

from typing import Any

import pytest

from keju.config import JudgeConfig, TaskConfig
from keju.errors import Notice
from keju.judges import caveats
from keju.models.openai.preflight import KEY_ADVICE

URL = "http://there/v1"


def task(**more: Any) -> TaskConfig:
    return TaskConfig(model="j", datasets=["demo"], api_url=URL, **more)


def test_every_warning_is_told_in_chinese(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JK", raising=False)
    judge = JudgeConfig(model="j", api_key_var="JK")
    warnings = [
        *caveats.about_kinship("itself", second=False),
        *caveats.about_kinship("namesake", second=True),
        *caveats.about_verdicts(3, 5, 40),
        *caveats.about_repeats(2, 0.0),
        caveats.lacking_key(judge, task()) or Notice(""),
        caveats.lacking_key(judge, task(api_key="sk-candidate-0123")) or Notice(""),
    ]
    told = [warning.text("zh") for warning in warnings]
    assert len(set(told)) == len(warnings) == 7
    for english, chinese in zip(warnings, told, strict=True):
        assert english.text() != chinese
        assert "评委" in chinese
    assert "JK" in told[-1]


def test_advice_names_the_settings_of_the_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    own, borrowed = JudgeConfig(model="j", api_url=URL), JudgeConfig(model="j")
    for told, at_its_own, at_the_candidates in (
        (KEY_ADVICE, "set OPENAI_API_KEY", "set OPENAI_API_KEY"),
        ("check --api-url", "check judge.api_url (or llm_judge_base_url)", "check --api-url"),
        (
            "check --api-url and --model",
            "check judge.api_url and judge.model (or llm_judge_base_url and llm_judge_model)",
            "check --api-url and judge.model",
        ),
    ):
        assert caveats.advice_about_judge(told, own, task()) == at_its_own
        assert caveats.advice_about_judge(told, borrowed, task()) == at_the_candidates
