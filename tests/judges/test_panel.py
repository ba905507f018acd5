"""Who the judges are: their keys, their names, and whether one of them is the candidate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from keju.config import JudgeConfig
from keju.judges.panel import Panel, judge_task
from tests.support.judged import config

URL = "http://127.0.0.1:8000/v1"
OWN, FOREIGN, NAMED = "sk-candidate-01", "sk-foreign-02", "sk-named-03"


def key_of(folder: Path, judge: dict[str, Any], api_key: str | None = OWN) -> str | None:
    task = config(folder, URL, None, api_key=api_key)
    key = judge_task(task, JudgeConfig(**{"model": "j"} | judge), "j").api_key
    return key.get_secret_value() if key is not None else None


def test_no_foreign_key_goes_to_the_endpoint_of_the_candidate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", FOREIGN)
    monkeypatch.setenv("JK", NAMED)
    assert key_of(tmp_path, {}) == OWN
    assert key_of(tmp_path, {"api_url": URL + "/"}) == OWN
    assert key_of(tmp_path, {}, api_key=None) is None
    assert key_of(tmp_path, {"api_key_var": "JK"}) == NAMED
    assert key_of(tmp_path, {"api_key_var": "OPENAI_API_KEY"}) == FOREIGN
    assert key_of(tmp_path, {"api_key_var": "NOT_SET"}) == OWN


def test_the_variable_that_a_judge_names_is_kept_with_the_run(tmp_path: Path) -> None:
    for named in ("OPENAI_API_KEY", "JK"):
        judge = JudgeConfig(model="j", api_key_var=named)
        assert judge.model_dump(exclude_defaults=True)["api_key_var"] == named
    assert "api_key_var" not in JudgeConfig(model="j").model_dump(exclude_defaults=True)


def test_another_endpoint_gets_the_key_of_its_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", FOREIGN)
    elsewhere = "http://127.0.0.2:8000/v1"
    assert key_of(tmp_path, {"api_url": elsewhere}) == FOREIGN
    assert key_of(tmp_path, {"api_url": elsewhere, "api_key_var": "NOT_SET"}) is None


@pytest.mark.parametrize(
    ("judge", "themselves"),
    [
        ({"model": "m", "api_url": "http://127.0.0.1:8000"}, ["m"]),
        ({"model": "m", "api_url": URL + "/chat/completions"}, ["m"]),
        ({"model": "m", "api_url": "http://127.0.0.1:8001/v1"}, []),
        ({"model": "j", "second": "m", "api_url": URL + "/"}, ["m"]),
        ({"model": "j", "second": "k"}, []),
    ],
)
def test_a_judge_that_is_the_candidate_is_known_by_any_spelling(
    tmp_path: Path, judge: dict[str, Any], themselves: list[str]
) -> None:
    task = config(tmp_path, URL, judge)
    assert task.judge is not None
    assert Panel(task, task.judge, []).judges_itself == themselves
