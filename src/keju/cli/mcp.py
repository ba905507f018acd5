"""``keju mcp``: look at the MCP servers of a config file before a model is asked."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keju.cli.command import command
from keju.cli.common import Output, print_lines, print_sentences
from keju.errors import ConfigError, UsageError, did_you_mean

if TYPE_CHECKING:
    from keju.config.arms import Server
    from keju.errors import Notice
    from keju.report.format import Labels
    from keju.solvers.mcp.tools import ServerTools

LONGEST_DESCRIPTION = 60


@command(
    "mcp check",
    "keju mcp check -c config.yaml",
    'keju mcp check -c config.yaml --call calculate \'{"expression": "2 + 3"}\'',
    "keju mcp check -c config.yaml --json",
)
def check(config: str | None, call: list[str] | None) -> Output:
    """Start the MCP servers of a config file, list their tools and what these cost a request.

    With --call one tool is called as well, with JSON arguments. No model is asked. A server that
    cannot be started is an error, with the last words of its standard error.
    """
    from keju.engine.session import run_loop
    from keju.messages import spoken
    from keju.report.format import Labels

    if config is None:
        raise UsageError("run_no_file")
    wanted = _wanted(call)
    servers = _servers(Path(config))
    found, called = run_loop(lambda: _look(servers, wanted))
    document = {"servers": found} | ({"call": called} if called is not None else {})
    failed = called is not None and called["kind"] != "ok"
    labels = Labels(spoken())
    problem, unfit = "", []
    if called is not None and failed:
        problem = labels("mcp.failed", kind=_kind(called, labels))
        unfit = _unfit(found, called, wanted[1] if wanted else {})
    show = partial(_show, found, called, unfit, labels)
    return Output(document, show, problem, 2 if failed else 0)


def _wanted(call: list[str] | None) -> tuple[str, dict[str, Any]] | None:
    """The tool and its arguments in ``--call TOOL JSON``; no arguments are an empty object."""
    from keju.config.strict import mapping

    if not call:
        return None
    if len(call) > 2:
        raise UsageError("cli_call_form")
    return call[0], mapping(call[1], "--call") if len(call) == 2 else {}


def _servers(path: Path) -> list[tuple[str, Server]]:
    """The servers of a file, each with the arm that has it; the same one is started once."""
    from keju.config import Arm
    from keju.config.load import MANIFEST, canonical, from_file, with_neighbours
    from keju.config.mcpbr import read_run_file
    from keju.config.plan import is_plan
    from keju.config.strict import document
    from keju.models.registry import OF_ENDPOINTS
    from keju.solvers.mcp.launch import refuse_missing_script

    idle = ("model", *OF_ENDPOINTS)  # no model is asked
    if path.name == MANIFEST:
        layer = from_file(path)
    elif is_plan(path):
        layer = canonical({"arms": document(path).get("arms") or []}, str(path))
    else:
        layer = read_run_file(path, os.environ, None, idle).layer
    layer = with_neighbours(layer, path.parent)
    arms = [arm if isinstance(arm, Arm) else Arm(**arm) for arm in layer.get("arms", [])]
    servers: list[tuple[str, Server]] = []
    for arm in arms:
        for server in arm.servers:
            refuse_missing_script(arm.name, server)
            if all(server != other for _, other in servers):
                servers.append((arm.name, server))
    if not servers:
        raise ConfigError("mcp_no_servers", path=path)
    return servers


async def _look(
    servers: Sequence[tuple[str, Server]], wanted: tuple[str, dict[str, Any]] | None
) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """Start the servers one after the other, and call the tool that is asked for."""
    from keju.solvers.mcp import server_tools
    from keju.solvers.sandbox.supervisor import Supervisor

    found: list[dict[str, Any]] = []
    called: dict[str, Any] | None = None
    offered: list[str] = []
    async with Supervisor() as supervisor:
        for arm, server in servers:
            source = server_tools(server, supervisor, os.environ)
            try:
                await source.open()
                found.append(_described(arm, source))
                offered += source.listed
                if wanted is not None and called is None:
                    called = await _called(source, *wanted)
            finally:
                await source.close()
    if wanted is not None and called is None:
        raise UsageError("mcp_no_tool", tool=wanted[0], hint=did_you_mean(wanted[0], offered))
    return found, called


async def _called(source: ServerTools, tool: str, arguments: dict[str, Any]) -> Any:
    """What a call gives, if the server has the tool, under its own name or the model's."""
    from keju.solvers.toolbox import ToolsLost
    from keju.types import Sample

    names = {name: offered.name for name, offered in source.offered.items()}
    name = names.get(tool, tool)
    if name not in names.values():
        return None
    sample = Sample(id="check", subset="", index=0, text="", target="")
    try:
        async with source.episode(sample, 0) as box:
            result = await box.call(name, arguments)
    except ToolsLost as lost:
        return {"tool": name, "kind": "server_crash", "text": lost.message, "seconds": None}
    seconds = round(result.seconds, 4)
    return {"tool": name, "kind": result.kind, "text": result.text, "seconds": seconds}


def _kind(called: Mapping[str, Any], labels: Labels) -> str:
    """How a call ended, in words where the language has others than the code."""
    return labels.get(f"call.{called['kind']}", called["kind"])


def _unfit(
    found: Sequence[dict[str, Any]], called: Mapping[str, Any], arguments: dict[str, Any]
) -> list[Notice]:
    """What is wrong with the arguments of a call that the server refused for them."""
    from keju.solvers.mcp.wording import describe_misfits

    if called["kind"] != "bad_arguments":
        return []
    tools = (tool for server in found for tool in server["tools"])
    schema: dict[str, Any] = next(
        (t["parameters"] for t in tools if t["offered_as"] == called["tool"]), {}
    )
    return describe_misfits(arguments, schema)


def _described(arm: str, source: ServerTools) -> dict[str, Any]:
    from keju.models.tokens import schema_tokens

    facts = source.facts()[source.server.name]
    figures = source.statistics()[source.server.name]
    tools = [
        {
            "name": own,
            "offered_as": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
            "tokens": schema_tokens((tool,)),
        }
        for own, tool in source.offered.items()
    ]
    about = {key: facts.get(key) for key in ("way", "server", "version", "protocol", "tool_hash")}
    about["instructions"] = facts.get("instructions", "")
    return {
        "name": source.server.name,
        "arm": arm,
        **about,
        "start_seconds": figures["start_seconds"],
        "tools": tools,
        "not_offered": facts["not_offered"],
        "tokens": {"value": schema_tokens(source.tools), "how": "estimate"},
    }


def _parameters(schema: Mapping[str, Any]) -> str:
    """What a tool takes: ``path: string, tail: number?``; what need not be given has a mark."""
    required = schema.get("required", ())
    words = []
    for name, about in schema.get("properties", {}).items():
        kind = about.get("type", "") if isinstance(about, dict) else ""
        kind = " | ".join(kind) if isinstance(kind, list) else kind
        words.append(f"{name}: {kind or 'any'}{'' if name in required else '?'}")
    return ", ".join(words)


def _show(
    found: Sequence[dict[str, Any]],
    called: dict[str, Any] | None,
    unfit: Sequence[Notice],
    labels: Labels,
) -> None:
    from keju.models.tokens import CHARACTERS_PER_TOKEN
    from keju.report.table import Column, render_table

    wide = (Column(labels(f"mcp.{each}"), fold=True) for each in ("parameters", "about"))
    columns: list[Column | str] = [labels("mcp.tool"), *wide, labels("mcp.tokens")]
    for server in found:
        seen = {key: server[key] for key in ("name", "arm", "way", "protocol")}
        seen["title"] = " ".join(filter(None, (server["server"], server["version"]))) or "–"
        print_sentences(labels("mcp.server", **seen, seconds=server["start_seconds"]))
        rows = []
        for tool in server["tools"]:
            described = " ".join(tool["description"].split())
            if len(described) > LONGEST_DESCRIPTION:
                described = described[: LONGEST_DESCRIPTION - 1] + "…"
            rows.append([tool["name"], _parameters(tool["parameters"]), described, tool["tokens"]])
        render_table(columns, rows)
        if server["instructions"]:
            told = " ".join(server["instructions"].split())
            print_sentences(labels("mcp.instructions", text=told))
        if server["not_offered"]:
            names = labels("list_separator").join(server["not_offered"])
            print_sentences(labels("mcp.not_offered", names=names))
        cost = server["tokens"]["value"]
        print_sentences(labels("mcp.cost", n=cost, each=CHARACTERS_PER_TOKEN), "")
    if called is not None:
        ended = "mcp.broken_off" if called["seconds"] is None else "mcp.called"
        known = {"tool": called["tool"], "seconds": called["seconds"]}
        print_sentences(labels(ended, **known, kind=_kind(called, labels)))
        if unfit:
            print_sentences(*(each.text(labels.language) for each in unfit), labels("mcp.told"))
        print_lines(called["text"])
