"""``arms: each tool left out``: list the tools of the servers, make the arms, announce the cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from keju.cli.common import note
from keju.messages import label_text

if TYPE_CHECKING:
    from keju.config import TaskConfig
    from keju.config.arms import ServerSettings
    from keju.engine.job import Job

BYTES_PER_TOKEN = 4
"""A rough average for English and, with three bytes a character, for Chinese."""


class ListedTools(NamedTuple):
    """The tools of the servers of a sweep."""

    names: list[list[str]]
    """The tools of each server, by the names that the server uses."""
    tokens: dict[str, int]
    """The estimated tokens of their definitions, by the names of the arms' servers and tools."""


def make_tool_arms(config: TaskConfig) -> tuple[TaskConfig, ListedTools]:
    """Return the task with one arm for each tool; the servers are started once to list them."""
    from keju.cli.mcp import inspect_servers
    from keju.config.sweep import sweep_arms
    from keju.engine.session import run_loop
    from keju.solvers.mcp.launch import refuse_missing_script

    assert config.sweep is not None
    (template,) = config.arms
    for server in template.servers:
        refuse_missing_script(template.name, server)
    places = [(template.name, server) for server in template.servers]
    described, _ = run_loop(lambda: inspect_servers(places, None))
    names = [[tool["name"] for tool in server["tools"]] for server in described]
    tokens = {
        f"{server['name']}/{tool['name']}": int(tool["tokens"])
        for server in described
        for tool in server["tools"]
    }
    arms = sweep_arms(config.sweep, template.servers, names)
    return config.model_copy(update={"arms": arms}), ListedTools(names, tokens)


def forecast_sweep(config: TaskConfig, listed: ListedTools) -> dict[str, Any]:
    """Return the most that a sweep can ask, with an estimate of its input tokens and their cost.

    Every question is counted with one request in each arm; calls of tools need more.
    """
    from keju.task import make_dry_run

    jobs = make_dry_run(config).jobs
    arm_tokens = {
        arm.name: sum(
            listed.tokens[f"{server.name}/{tool}"]
            for server in arm.servers
            for tool in _tools_of(server, listed)
        )
        for arm in config.arms
    }
    tokens = sum(_prompt_tokens(job) + job.units * arm_tokens.get(job.arm, 0) for job in jobs)
    document: dict[str, Any] = {
        "kind": config.sweep,
        "tools": sum(map(len, listed.names)),
        "arms": len(config.arms),
        "questions": sum(job.units for job in jobs) // len(config.arms),
        "episodes": sum(job.units for job in jobs),
        "definition_tokens_estimate": sum(listed.tokens.values()),
        "input_tokens_estimate": tokens,
        "most_requests": config.agent.max_iterations + 1,
    }
    if config.price is not None:
        document["input_cost_estimate"] = round(tokens * config.price.input / 1e6, 4)
    return document


def _tools_of(server: ServerSettings, listed: ListedTools) -> list[str]:
    """Return the tools that a server of an arm offers."""
    offered = [name for name in listed.tokens if name.startswith(f"{server.name}/")]
    names = [name[len(server.name) + 1 :] for name in offered]
    allowed = server.tools.allow
    return names if allowed is None else [name for name in names if name in allowed]


def _prompt_tokens(job: Job) -> int:
    """Return an estimate of the tokens of all prompts of an arm."""
    prompts = (job.exam.render(sample) for sample in job.exam.samples)
    size = sum(len(message.content.encode()) for prompt in prompts for message in prompt.messages)
    return int(size * job.epochs // BYTES_PER_TOKEN)


def announce(document: dict[str, Any]) -> None:
    """Tell the user what the sweep may cost, before the first question."""
    for line in announcement(document):
        note(line)


def announcement(document: dict[str, Any]) -> Iterator[str]:
    """Yield the sentences about the cost of a sweep."""
    from keju.reporting.format import compact, count

    values = {name: document[name] for name in ("tools", "arms", "questions", "episodes")}
    yield label_text("sweep_forecast.plan", **values)
    tokens = compact(document["input_tokens_estimate"])
    definitions = count(document["definition_tokens_estimate"])
    most = document["most_requests"]
    yield label_text("sweep_forecast.tokens", tokens=tokens, definitions=definitions, most=most)
    if "input_cost_estimate" in document:
        yield label_text("sweep_forecast.cost", cost=document["input_cost_estimate"])
    yield label_text("sweep_forecast.order")
