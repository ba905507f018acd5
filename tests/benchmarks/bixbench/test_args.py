"""Every argument of the environment is known; what has no effect is refused in one line."""

from __future__ import annotations

from typing import Any

import pytest

from keju.benchmarks.bixbench import BixBenchArgs
from keju.config import JudgeConfig
from keju.errors import ConfigError

SEED_DEFAULTS: dict[str, Any] = {
    "mode": "zero_shot",
    "answer_mode": "mcq",
    "question_source": "mcq",
    "add_tf_legend": False,
    "max_episodes": None,
    "seed": 42,
    "shuffle_options": True,
    "with_refusal": False,
    "use_think": False,
    "system_prompt": None,
    "llm_judge_model": "gpt-4.1-mini",
    "llm_judge_base_url": "https://api.openai.com/v1",
    "llm_judge_api_key_var": "OPENAI_API_KEY",
    "continuous_scoring": False,
    "max_turns": 10,
    "enable_agentic_docker": False,
    "docker_image": "futurehouse/bixbench:aviary-notebook-env",
    "docker_timeout": 300,
}
OPEN = {"answer_mode": "open"}
HYPOTHESIS = {"question_source": "hypothesis"}


def test_defaults_are_those_of_the_environment() -> None:
    args = BixBenchArgs()
    assert {name: getattr(args, name) for name in SEED_DEFAULTS} == SEED_DEFAULTS
    assert BixBenchArgs(**SEED_DEFAULTS).seed == 42


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"mode": "agentic", "docker_image": "x"}, "only with enable_agentic_docker true"),
        ({"capsule_dir": "x"}, "capsule_dir has an effect only with mode 'agentic'"),
        (
            {"mode": "zeroshot"},
            "mode: input should be one of 'zero_shot', 'agentic' (did you mean 'zero_shot'?)",
        ),
        ({"answer_mode": "free"}, "answer_mode: input should be one of 'mcq', 'open'"),
        ({"question_source": "x"}, "question_source: input should be"),
        ({"max_episodes": 0}, "max_episodes: input should be greater than or equal to 1"),
        ({"max_episodes": -1}, "max_episodes"),
        ({"max_episodes": "8"}, "max_episodes: input should be a valid integer"),
        ({"shuffle_options": "yes"}, "shuffle_options: input should be a valid boolean"),
        ({"seed": 1.5}, "seed"),
        ({"with_refusl": True}, "unknown key 'with_refusl' (did you mean 'with_refusal'?)"),
        ({"llm_judge_api_key_var": ""}, "llm_judge_api_key_var is the name of an environment"),
        ({"max_turns": 11}, "max_turns has an effect only with mode 'agentic'"),
        ({"enable_agentic_docker": True}, "enable_agentic_docker has an effect only with mode"),
        ({"docker_image": "x"}, "docker_image has an effect only with mode 'agentic'"),
        ({"docker_timeout": 5}, "docker_timeout has an effect only with mode 'agentic'"),
        ({"add_tf_legend": True}, "add_tf_legend has an effect only with question_source"),
        (HYPOTHESIS | OPEN | {"add_tf_legend": True}, "add_tf_legend has an effect only"),
        (OPEN | {"with_refusal": True}, "with_refusal has an effect only with answer_mode 'mcq'"),
        (OPEN | {"shuffle_options": False}, "shuffle_options has an effect only"),
        ({"compat_shuffle": True, "shuffle_options": False}, "compat_shuffle has no effect"),
        ({"llm_judge_model": "x"}, "llm_judge_model has an effect only with answer_mode 'open'"),
        (HYPOTHESIS | OPEN | {"relaxations": "all"}, "relaxations has no effect"),
        (HYPOTHESIS | {"all_questions": True}, "all_questions has no effect"),
        ({"no_judge": "ungraded"}, "no_judge has an effect only"),
        (
            OPEN | {"no_judge": "exact", "llm_judge_model": "j"},
            "llm_judge_model has no effect with no_judge 'exact'",
        ),
        (
            OPEN | {"no_judge": "exact", "continuous_scoring": True},
            "continuous_scoring has no effect with no_judge 'exact'",
        ),
        (
            OPEN | {"llm_judge_base_url": "nonsense"},
            "llm_judge_base_url must begin with http:// or https://",
        ),
        ({"few_shot_num": 3}, "few_shot_num must be 0"),
        ({"shuffle_choices": True}, "use shuffle_options"),
        ({"data_version": "2"}, "data_version: input should be one of '1.5', '1.0'"),
    ],
)
def test_refusals(args: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        BixBenchArgs(**args)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("version", ["1.5", "v1.5", 1.5])
def test_a_version_may_be_a_number(version: Any) -> None:
    assert BixBenchArgs(data_version=version).data_version == "1.5"


def test_the_judge_that_the_settings_describe() -> None:
    args = BixBenchArgs(
        answer_mode="open",
        llm_judge_model="j",
        llm_judge_base_url="http://h/v1",
        llm_judge_api_key_var="K",
        continuous_scoring=True,
    )
    judge = args.judge()
    assert (judge.model, judge.api_url, judge.api_key_var) == ("j", "http://h/v1", "K")
    assert judge.continuous
    assert args.names_a_judge
    assert not BixBenchArgs(answer_mode="open").names_a_judge
    silent = BixBenchArgs(answer_mode="open", llm_judge_model="j")
    assert silent.judge().api_key_var is None


def test_a_judge_of_the_task_takes_the_place_of_these() -> None:
    open_ones: dict[str, Any] = {"answer_mode": "open", "seed": 7}
    judges: list[dict[str, Any]] = [
        {"no_judge": "exact"},
        {"llm_judge_model": "j", "continuous_scoring": True},
    ]
    for judge_args in judges:
        args = BixBenchArgs(**open_ones, **judge_args).without_own_judge()
        assert args == BixBenchArgs(**open_ones, no_judge="ungraded")
        assert not args.names_a_judge
        assert not args.exact


def test_who_grades_follows_the_key() -> None:
    judge_args: dict[str, Any] = {"answer_mode": "open", "seed": 7}
    judge_args |= {"llm_judge_model": "j", "llm_judge_api_key_var": "K"}
    common_args: dict[str, Any] = {"answer_mode": "open", "seed": 7}
    with_key = BixBenchArgs(**judge_args).arrange_judge(judge_args, {"K": "secret"})
    assert with_key.judge == JudgeConfig(
        model="j", api_url="https://api.openai.com/v1", api_key_var="K"
    )
    assert (with_key.settings, with_key.warning) == (common_args | {"no_judge": "ungraded"}, "")
    without = BixBenchArgs(**judge_args).arrange_judge(judge_args, {})
    assert (without.judge, without.settings) == (None, common_args | {"no_judge": "exact"})
    assert without.warning.startswith("K is not set")
    ungraded_args = judge_args | {"no_judge": "ungraded"}
    assert (
        BixBenchArgs(**ungraded_args).arrange_judge(ungraded_args, {}).settings["no_judge"]
        == "ungraded"
    )
    exact = common_args | {"no_judge": "exact"}
    arrangement = BixBenchArgs(**exact).arrange_judge(exact, {"OPENAI_API_KEY": "secret"})
    assert arrangement == (None, exact, "")


def test_a_key_in_place_of_its_variable_is_refused_and_not_repeated() -> None:
    for args in (OPEN, {"extra_params": OPEN}):
        with pytest.raises(ConfigError) as error:
            BixBenchArgs(llm_judge_api_key_var="sk-proj-MARKKEY999", **args)
        assert "llm_judge_api_key_var is the name of an environment variable" in str(error.value)
        assert "MARKKEY" not in str(error.value)
