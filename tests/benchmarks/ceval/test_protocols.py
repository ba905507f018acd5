"""What each protocol can be asked for, and what it refuses in one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from keju import run_task
from keju.benchmarks import registry
from keju.benchmarks.base import Exam
from keju.benchmarks.ceval import CEVAL
from keju.config import TaskConfig
from keju.errors import ConfigError
from tests.support.endpoint import FaultyEndpoint
from tests.support.replies import Plan

Evaluate = Callable[..., Exam]


def test_the_registry_finds_it() -> None:
    assert registry.get("c-eval") is CEVAL
    assert CEVAL.default_protocol in CEVAL.protocols
    assert {p.reader for p in CEVAL.protocols.values()} <= set(CEVAL.reader_names)


@pytest.mark.parametrize(
    ("settings", "version", "decode", "form", "tokens", "shots"),
    [
        ({}, "1.1", "generate", "chat", None, 5),
        ({"protocol": "tutorial"}, "1-answer-only-chat", "labels", "chat", None, 5),
        (
            {"protocol": "tutorial", "form": "base", "decode": "generate"},
            "1-answer-only-base-generate", "generate", "completion", 16, 5,
        ),
        ({"protocol": "tutorial", "mode": "cot"}, "1-cot-chat", "generate", "chat", None, 5),
        (
            {"protocol": "official", "form": "base"},
            "1-answer-only-base", "labels", "completion", None, 5,
        ),
        ({"protocol": "lm-eval"}, "2.1", "labels", "completion", None, 0),
        ({"protocol": "lm-eval", "decode": "generate"}, "2.1-generate", "generate", "completion", 16, 0),
        ({"protocol": "opencompass"}, "1-chat", "generate", "chat", 16, 5),
        ({"protocol": "opencompass", "form": "base"}, "1-base", "labels", "completion", None, 5),
        ({"protocol": "opencompass", "decode": "labels"}, "1-chat-labels", "labels", "chat", None, 5),
    ],
)  # fmt: skip
def test_the_protocol_is_fixed_by_mode_and_form(
    evaluate: Evaluate,
    settings: dict[str, Any],
    version: str,
    decode: str,
    form: str,
    tokens: int | None,
    shots: int,
) -> None:
    exam = evaluate(**settings)
    assert exam.protocol.name == settings.get("protocol", "evalscope")
    assert exam.protocol.version == version
    assert (exam.protocol.decode, exam.protocol.form) == (decode, form)
    assert exam.protocol.max_tokens == tokens
    assert exam.protocol.temperature is None  # Keju's default of 0 holds
    assert exam.settings["few_shot_num"] == shots
    assert exam.settings["decode"] == decode
    assert set(exam.readers) == set(CEVAL.reader_names)


@pytest.mark.parametrize(
    ("settings", "blamed"),
    [
        ({"mode": "answer-only"}, "mode 'answer-only' is not offered by protocol 'evalscope'"),
        ({"form": "base"}, "form 'base' is not offered by protocol 'evalscope'"),
        ({"decode": "labels"}, "decode 'labels' needs mode 'answer-only'"),
        ({"protocol": "lm-eval", "mode": "cot"}, "take protocol evalscope or tutorial or official"),
        ({"protocol": "lm-eval", "form": "chat"}, "form 'chat' is not offered"),
        ({"protocol": "opencompass", "mode": "cot"}, "mode 'cot' is not offered"),
        ({"protocol": "tutorial", "mode": "cot", "decode": "labels"}, "needs mode 'answer-only'"),
        ({"protocol": "tutorail"}, "did you mean 'tutorial'"),
        ({"few_shot_num": 6}, "few_shot_num of protocol evalscope is 0 to 5, not 6"),
        ({"few_shot_num": -1}, "few_shot_num"),
        (
            {"few_shot_num": 0, "few_shot_random": True},
            "few_shot_num 0 leaves no worked examples to draw",
        ),
        (
            {"protocol": "tutorial", "prompt_template": "{question}"},
            "has a fixed prompt; use protocol 'evalscope'",
        ),
        ({"prompt_template": "{question}"}, r"placeholder \{choices\} is missing"),
        ({"prompt_template": "{question}{choices}{anwser}"}, "unknown placeholder"),
        ({"prompt_template": "{question}{choices}{fewshot}"}, "unknown placeholder"),
        ({"few_shot_prompt_template": "{question}{choices}"}, r"\{fewshot\} is missing"),
        (
            {"few_shot_prompt_template": "{fewshot}{question}{choices}", "few_shot_num": 0},
            "no effect without worked examples: few_shot_num is 0",
        ),
        (
            {
                "few_shot_prompt_template": "{fewshot}{question}{choices}",
                "prompt_template": "{question}{choices}",
            },
            "give one of them",
        ),
        ({"protocol": "tutorial", "form": "base", "system_prompt": "x"}, "has no system message"),
        ({"protocol": "tutorial", "form": "base", "system_role": False}, "no effect in form"),
        ({"mdoe": "cot"}, "did you mean 'mode'"),
        ({"split": "valid"}, "split"),
        ({"extra_params": {"shots": 3}}, "unknown key 'extra_params.shots'"),
    ],
)
def test_what_cannot_be_honoured_is_refused(
    evaluate: Evaluate, settings: dict[str, Any], blamed: str
) -> None:
    with pytest.raises(ConfigError, match=blamed) as error:
        evaluate(**settings)
    assert "\n" not in str(error.value)


def test_own_settings_are_accepted_as_extra_params(evaluate: Evaluate) -> None:
    exam = evaluate(protocol="tutorial", extra_params={"mode": "cot", "form": "base"})
    assert exam.protocol.version == "1-cot-base"


def test_published_figures_stand_beside_comparable_settings_only(real: Evaluate) -> None:
    assert real().references == ()
    names = {ref.name: ref.overall for ref in real(protocol="tutorial").references}
    assert names["GPT-4, 5-shot answer-only, val"] == {"average": 0.699}
    assert real(protocol="tutorial", few_shot_num=3).references == ()
    test = {ref.name: ref.overall for ref in real(protocol="official", split="test").references}
    assert test["GPT-4, 5-shot answer-only, test"] == {"average": 0.687, "hard": 0.549}


@pytest.mark.parametrize("name", ["prompt_template", "few_shot_prompt_template"])
def test_an_empty_template_is_refused_and_not_ignored(evaluate: Evaluate, name: str) -> None:
    with pytest.raises(ConfigError, match=rf"{name}: the placeholder .* is missing"):
        evaluate(**{name: ""})


@pytest.mark.parametrize("protocol", ["evalscope", "opencompass"])
def test_doing_without_a_system_role_needs_a_system_message(
    evaluate: Evaluate, protocol: str
) -> None:
    with pytest.raises(ConfigError, match="system_role has no effect: protocol '"):
        evaluate(protocol=protocol, system_role=False)
    exam = evaluate(protocol=protocol, system_role=False, system_prompt="你好")
    assert exam.render(exam.samples[0]).messages[0].content.startswith("你好\n\n")
    assert evaluate(protocol="tutorial", system_role=False).settings["system_role"] is False


@pytest.mark.slow
def test_lm_eval_compares_the_label_with_its_space_over_http(small: Path, tmp_path: Path) -> None:
    """lm-eval compares ` A` to ` D`; the token `A` is another one."""
    plan = Plan(tokens=lambda _: {"A": -0.2, " C": -2.0, " B": -3.0, "。": -4.0})
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "ceval").symlink_to(small, target_is_directory=True)
    args = {"ceval": {"protocol": "lm-eval", "subset_list": ["logic", "law"]}}
    with FaultyEndpoint(plan) as endpoint:
        config = TaskConfig(
            model="m",
            api_url=endpoint.url,
            datasets=["ceval"],
            dataset_args=args,
            data_dir=str(tmp_path / "data"),
            work_dir=str(tmp_path / "runs"),
        )
        (entry,) = run_task(config)["benchmarks"]
    assert entry["outcomes"]["correct"] == 1, "of A, C, A only the second"
    assert any("outside the labels" in warning for warning in entry["warnings"])
