"""mcpbr's config files, and Keju's form with arms, as settings of a task."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from keju.config import Arm, TaskConfig
from keju.config.mcpbr import filter_arms, read_run_file, translate
from keju.errors import ConfigError

SERVER: dict[str, Any] = {"command": "calc", "args": ["--key", "${TOKEN}", "{workdir}"]}
OWN: dict[str, Any] = {"benchmark": "bigbench-hard", "mcp_server": SERVER, "model": "sonnet"}


def task(content: dict[str, Any], environ: dict[str, str] | None = None) -> TaskConfig:
    return TaskConfig(**translate(content, environ or {}).layer)


def test_the_page_of_mcpbr_says_what_is_run(seeds: Path) -> None:
    page = (seeds / "mcpbr-bigbench-hard.md").read_text("utf-8")
    (text,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    config = task(yaml.safe_load(text))
    assert config.model == "anthropic:claude-sonnet-5-5"
    assert config.datasets == ["bigbench-hard"]
    assert config.dataset_args["bigbench-hard"]["subset_list"][0] == "boolean_expressions"
    assert (config.total, config.agent.max_iterations) == (10, 15)
    assert config.agent.timeout_seconds == 180
    baseline, with_server = config.arms
    assert (with_server.name, baseline.name, baseline.servers) == ("mcp", "baseline", [])
    (server,) = with_server.servers
    assert (server.command, server.name) == ("npx", "mcpbr")
    assert server.args == ["-y", "@modelcontextprotocol/server-filesystem", "{workdir}"]


def test_keys_with_a_meaning_are_honoured() -> None:
    settings = {
        "provider": "openai",
        "model": "gpt-4.1",
        "max_concurrent": 3,
        "task_ids": ["bbh_snarks_1"],
        "agent_prompt": "Solve {problem_statement}",
        "budget": 2.5,
        "price": {"input": 3, "output": 15},
        "output_dir": "out",
        "random_seed": 7,
        "rate_limit_rpm": 60,
    }
    config = task(OWN | settings)
    assert (config.model, config.eval_batch_size) == ("gpt-4.1", 3)
    assert (config.ids, config.budget.cost) == (["bbh_snarks_1"], 2.5)
    assert (config.work_dir, config.seed, config.rpm) == ("out", 7, 60)
    assert config.dataset_args["bigbench-hard"]["prompt_template"] == "Solve {problem_statement}"


def test_two_servers_side_by_side() -> None:
    servers = {
        "comparison_mode": True,
        "mcp_server_a": SERVER,
        "mcp_server_b": SERVER | {"name": "b"},
    }
    config = task({"benchmark": "bbh", "model": "m"} | servers)
    assert [arm.name for arm in config.arms] == ["mcp_server_a", "mcp_server_b"]


def test_keys_without_a_meaning_are_named_in_one_line() -> None:
    idle = {"thinking_budget": 10_000, "use_prebuilt_images": True, "sandbox": {"level": "strict"}}
    translated = translate(OWN | idle, {})
    (notice,) = translated.notices
    assert notice.text() == (
        "keys of mcpbr that have no effect in Keju: sandbox, thinking_budget, use_prebuilt_images"
    )
    TaskConfig(**translated.layer)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({"max_iteration": 3}, r"unknown key 'max_iteration' \(did you mean 'max_iterations'\?\)"),
        ({"model": {"nam": "m"}}, r"unknown key 'model.nam' \(did you mean 'name'\?\)"),
        ({"model": {"name": "m", "api_key_var": "NOT_SET"}}, "NOT_SET is not set"),
        ({"mcp_server": {"comand": "x"}}, "mcp_server: unknown key 'comand'.*'command'"),
        ({"mcp_server": "npx"}, "mcp_server: must be a mapping"),
        ({"mcp_server_a": SERVER}, "need comparison_mode"),
        ({"comparison_mode": True}, "needs mcp_server_a and mcp_server_b"),
        ({"arms": [{"name": "a"}]}, "either arms or mcp_server"),
        ({"sampling_strategy": "randon"}, "did you mean 'random'"),
        ({"provider": "gemini"}, "no address of 'gemini'"),
        ({"output_dir": "${NOT_SET}"}, "NOT_SET is not set"),
        ({"timeout_seconds": -1}, "agent.timeout_seconds"),
        ({"budget": 5}, "budget.cost needs a price"),
    ],
)
def test_what_cannot_be_carried_out_is_refused(content: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        task(OWN | content)


def test_variables_of_servers_stay_as_they_are_written() -> None:
    content = OWN | {"output_dir": "${PLACE:-runs}/${USER}"}
    config = task(content, {"USER": "me", "TOKEN": "secret"})
    assert config.work_dir == "runs/me"
    assert config.arms[1].servers[0].args[1] == "${TOKEN}"
    assert "secret" not in config.model_dump_json()


def test_keju_s_own_form() -> None:
    content = {
        "benchmark": "bigbench-hard",
        "model": {
            "name": "M",
            "api_url": "http://localhost:1/v1",
            "api_key_var": "KEY",
            "generation": {"temperature": 0, "max_tokens": 4096},
        },
        "max_iterations": 4,
        "arm_order": "given",
        "arms": [
            {"name": "baseline"},
            {"name": "calc", "servers": [SERVER | {"name": "calc", "retry": "always"}]},
            {"name": "placebo", "servers": [SERVER], "stub_tools": True},
        ],
        "repeats": 2,
    }
    config = task(content, {"KEY": "abc"})
    assert config.api_key is not None
    assert config.api_key.get_secret_value() == "abc"
    assert (config.model, config.generation_config.max_tokens) == ("M", 4096)
    assert (config.agent.max_iterations, config.agent.arm_order) == (4, "given")
    assert [arm.stub_tools for arm in config.arms] == [False, False, True]
    assert config.repeats == 2


def test_a_file_may_extend_others(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("model: haiku\nmax_iterations: 3\nbenchmark: bbh\n")
    child = tmp_path / "child.yaml"
    child.write_text("extends: base.yaml\nmax_iterations: 5\n")
    config = TaskConfig(**read_run_file(child, {}, None).layer)
    assert config.model == "anthropic:claude-haiku-5-5"
    assert config.agent.max_iterations == 5
    (tmp_path / "base.yaml").write_text("extends: child.yaml\n")
    with pytest.raises(ConfigError, match="goes round in a circle"):
        read_run_file(child, {}, None)


def test_arms_are_chosen_by_whether_they_have_tools() -> None:
    arms = [{"name": "a", "servers": [SERVER]}, {"name": "b"}]
    assert filter_arms(arms, with_tools=True) == arms[:1]
    assert filter_arms(arms, with_tools=False) == arms[1:]
    assert filter_arms(arms[:1], with_tools=False) == [{"name": "baseline"}]
    with pytest.raises(ConfigError, match="-M asks for arms with tools"):
        filter_arms(arms[1:], with_tools=True)


def test_numbers_and_switches_of_a_server_are_text() -> None:
    server = {
        "command": "c",
        "args": ["--port", 8080],
        "env": {"PORT": 8080, "ON": True, "X": None},
    }
    (_, arm) = translate({"mcp_server": server}, {}).layer["arms"]
    (server_settings,) = Arm(**arm).servers
    assert server_settings.args == ["--port", "8080"]
    assert server_settings.env == {"PORT": "8080", "ON": "true", "X": None}


def test_what_is_wrong_with_a_server_is_named_by_the_key_of_the_file() -> None:
    with pytest.raises(ConfigError) as error:
        translate({"mcp_server": {"command": "c", "scope": "all"}}, {})
    assert str(error.value).startswith("mcp_server: scope: ")
