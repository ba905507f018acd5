"""Who the judges are: their keys, their names, and whether one of them is the candidate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from keju.config import JudgeConfig
from keju.errors import ConfigError, EndpointError, Notice
from keju.judges.judge import Judge, make_judge_task
from keju.judges.stage import JudgePanel
from tests.support.judged import judged_config

URL = "http://127.0.0.1:8000/v1"
OWN, FOREIGN, NAMED = "sk-candidate-01", "sk-foreign-02", "sk-named-03"


def key_of(folder: Path, judge: dict[str, Any], api_key: str | None = OWN) -> str | None:
    task = judged_config(folder, URL, None, api_key=api_key)
    key = make_judge_task(task, JudgeConfig(**{"model": "j"} | judge), "j").api_key
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
    for variable in ("OPENAI_API_KEY", "JK"):
        judge = JudgeConfig(model="j", api_key_var=variable)
        assert judge.model_dump(exclude_defaults=True)["api_key_var"] == variable
    assert "api_key_var" not in JudgeConfig(model="j").model_dump(exclude_defaults=True)


def test_another_host_gets_the_key_of_its_own_variable_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", FOREIGN)
    monkeypatch.setenv("JK", NAMED)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    for elsewhere in ("http://127.0.0.2:8000/v1", "http://127.0.0.1:8001/v1", "http://there/v1"):
        assert key_of(tmp_path, {"api_url": elsewhere}) is None
        assert key_of(tmp_path, {"api_url": elsewhere, "api_key_var": "NOT_SET"}) is None
        assert key_of(tmp_path, {"api_url": elsewhere, "api_key_var": "JK"}) == NAMED
        assert key_of(tmp_path, {"api_url": elsewhere, "api_key_var": "OPENAI_API_KEY"}) == FOREIGN
    assert key_of(tmp_path, {"api_url": "http://127.0.0.1:8000/other/v1"}) == OWN


def test_the_key_of_openai_goes_to_openai_or_where_its_address_points(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", FOREIGN)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    assert key_of(tmp_path, {"api_url": "https://api.openai.com/v1"}) == FOREIGN
    assert key_of(tmp_path, {"api_url": "http://api.openai.com/v1"}) is None
    assert key_of(tmp_path, {"api_url": "https://api.openai.com.there/v1"}) is None
    monkeypatch.setenv("OPENAI_BASE_URL", "https://there/v1")
    assert key_of(tmp_path, {"api_url": "https://there:443/v1/"}) == FOREIGN
    assert key_of(tmp_path, {"api_url": "https://api.openai.com/v1"}) is None


ITSELF, NAMESAKE = "is the candidate itself", "has the candidate's name at another endpoint"


@pytest.mark.parametrize(
    ("judge", "expected"),
    [
        ({"model": "m", "api_url": "http://127.0.0.1:8000"}, [f"the judge {ITSELF}"]),
        ({"model": "m", "api_url": URL + "/chat/completions"}, [f"the judge {ITSELF}"]),
        ({"model": "m", "api_url": "http://localhost:8000/v1"}, [f"the judge {ITSELF}"]),
        ({"model": "m", "api_url": "http://[::1]:8000/v1"}, [f"the judge {ITSELF}"]),
        ({"model": "m", "api_url": "http://127.0.0.1:8001/v1"}, [f"the judge {NAMESAKE}"]),
        ({"model": "j", "second": "m", "api_url": URL + "/"}, [f"the second judge {ITSELF}"]),
        (
            {"model": "j", "second": "m", "api_url": "http://there/v1"},
            [f"the second judge {NAMESAKE}"],
        ),
        ({"model": "j", "second": "k"}, []),
    ],
)
def test_a_judge_that_is_the_candidate_is_known_by_any_spelling(
    tmp_path: Path, judge: dict[str, Any], expected: list[str]
) -> None:
    task = judged_config(tmp_path, URL, judge)
    assert task.judge is not None
    warnings = JudgePanel(task, task.judge, []).notices()
    assert [warning.text().partition(":")[0] for warning in warnings] == expected


def test_a_port_that_goes_unsaid_is_the_same_port(tmp_path: Path) -> None:
    task = judged_config(
        tmp_path, "https://there/v1", {"model": "m", "api_url": "https://there:443/v1"}
    )
    assert task.judge is not None
    assert any(ITSELF in warning.text() for warning in JudgePanel(task, task.judge, []).notices())


@pytest.mark.parametrize(
    "value", ["sk-proj-MARKKEY999", "", "MARKKEY999 ", "9MARKKEY", "MARKKEY\n", "K=MARKKEY"]
)
def test_a_key_in_place_of_its_variable_is_refused_and_not_repeated(
    tmp_path: Path, value: str
) -> None:
    for make in (
        lambda: JudgeConfig(model="j", api_key_var=value),
        lambda: judged_config(tmp_path, URL, {"api_key_var": value}),
    ):
        with pytest.raises(ConfigError) as caught:
            make()
        message = str(caught.value)
        assert "judge.api_key_var is the name of an environment variable" in message
        assert "MARKKEY" not in message + repr(caught.value.__context__)


def test_repeats_at_temperature_0_are_warned_about(tmp_path: Path) -> None:
    def is_warned(**judge: Any) -> bool:
        task = judged_config(tmp_path, URL, judge)
        assert task.judge is not None
        warnings = list(JudgePanel(task, task.judge, []).notices())
        return any(
            "repeats of the judge at temperature 0" in warning.text() for warning in warnings
        )

    assert is_warned(repeats=3)
    assert not is_warned()
    assert not is_warned(repeats=3, generation_config={"temperature": 0.7})


def test_every_warning_is_told_in_chinese(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JK", raising=False)
    judge_config = JudgeConfig(model="m", api_key_var="JK", api_url="http://there/v1")
    task_without_key, task_with_key = (
        judged_config(tmp_path, URL, None),
        judged_config(tmp_path, URL, None, api_key=OWN),
    )
    judges = [
        Judge(task_without_key, JudgeConfig(model="m"), "m"),
        Judge(task_without_key, judge_config, "m", is_second=True),
        Judge(task_with_key, JudgeConfig(model="m", api_key_var="JK"), "m"),
    ]
    warnings = [
        *judges[0].self_judging_notices(),
        *judges[1].self_judging_notices(),
        judges[1].missing_key() or Notice(""),
        judges[2].missing_key() or Notice(""),
        *(
            Notice(code, {"missing": 3, "whole": 40})
            for code in ("judge_without_verdict", "second_judge_without_verdict")
        ),
        Notice("judge_repeats_at_temperature_0"),
    ]
    chinese_texts = [warning.text("zh") for warning in warnings]
    assert len(set(chinese_texts)) == len(warnings) == 7
    for english, chinese in zip(warnings, chinese_texts, strict=True):
        assert english.text() != chinese
        assert "评分模型" in chinese
    assert "JK" in chinese_texts[2]


SETTINGS = {"key": "K", "address": "--api-url", "address_and_model": "--api-url and --model"}


@pytest.mark.parametrize(
    ("code", "at_its_own", "at_the_candidates"),
    [
        ("endpoint_wants_key", "OPENAI_API_KEY is not sent to other hosts", "set OPENAI_API_KEY"),
        (
            "endpoint_unreachable",
            "check judge.api_url (or llm_judge_base_url)",
            "check --api-url",
        ),
        (
            "endpoint_without_model_or_route",
            "check judge.api_url and judge.model (or llm_judge_base_url and llm_judge_model)",
            "check --api-url and judge.model",
        ),
    ],
)
def test_an_error_names_the_settings_of_the_judge(
    tmp_path: Path, code: str, at_its_own: str, at_the_candidates: str
) -> None:
    task = judged_config(tmp_path, URL, None)
    error = EndpointError(code, url=URL, status=401, problem="no", model="j", **SETTINGS)
    for settings, advice in (
        (JudgeConfig(model="j", api_url="http://there/v1"), at_its_own),
        (JudgeConfig(model="j"), at_the_candidates),
    ):
        failed = Judge(task, settings, "j").explain_error(error)
        assert type(failed) is EndpointError
        assert str(failed).startswith("the judge 'j': ")
        assert str(failed).endswith(advice)
        assert failed.text("zh").startswith("评分模型“j”：")
