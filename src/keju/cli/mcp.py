"""``keju mcp``: checks the MCP servers of a config file before a model is asked."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keju.cli.command import command
from keju.cli.common import CommandOutput, print_lines, print_sentences
from keju.errors import ConfigError, UsageError, did_you_mean

if TYPE_CHECKING:
    from keju.config.arms import ServerSettings
    from keju.errors import Notice
    from keju.reporting.format import Labels
    from keju.solvers.mcp.tools import ServerTools

LONGEST_DESCRIPTION = 60


@command(
    "mcp check",
    "keju mcp check -c config.yaml",
    'keju mcp check -c config.yaml --call calculate \'{"expression": "2 + 3"}\'',
    "keju mcp check -c config.yaml --json",
)
def check(config: str | None, call: list[str] | None) -> CommandOutput:
    """Start the MCP servers of a config file, list their tools and what these cost a request.

    With --call, Keju also calls one tool with JSON arguments. No model is asked. A server that does
    not start is an error, shown with the end of its standard error.
    """
    from keju.engine.session import run_loop
    from keju.messages import current_language
    from keju.reporting.format import Labels

    if config is None:
        raise UsageError("run_no_file")
    requested_call = _parse_call(call)
    servers = _load_servers(Path(config))
    server_documents, call_result = run_loop(lambda: inspect_servers(servers, requested_call))
    document = {"servers": server_documents} | (
        {"call": call_result} if call_result is not None else {}
    )
    has_failed = call_result is not None and call_result["kind"] != "ok"
    labels = Labels(current_language())
    problem, argument_errors = "", []
    if call_result is not None and has_failed:
        problem = labels("mcp.failed", kind=_describe_kind(call_result, labels))
        argument_errors = _find_argument_errors(
            server_documents, call_result, requested_call[1] if requested_call else {}
        )
    show = partial(_show, server_documents, call_result, argument_errors, labels)
    return CommandOutput(document, show, problem, 2 if has_failed else 0)


def _parse_call(call: list[str] | None) -> tuple[str, dict[str, Any]] | None:
    """Return the tool and its arguments in ``--call TOOL JSON``. Without arguments, an empty
    object."""
    from keju.config.strict import parse_mapping

    if not call:
        return None
    if len(call) > 2:
        raise UsageError("cli_call_form")
    return call[0], parse_mapping(call[1], "--call") if len(call) == 2 else {}


def _load_servers(path: Path) -> list[tuple[str, ServerSettings]]:
    """Return the servers of a file, each with its arm. Equal servers are started once."""
    from keju.config import Arm
    from keju.config.load import MANIFEST, canonical, from_file, with_neighbours
    from keju.config.matrix import is_matrix_file
    from keju.config.mcpbr import read_run_file
    from keju.config.strict import document
    from keju.models.registry import OF_ENDPOINTS
    from keju.solvers.mcp.launch import refuse_missing_script

    idle = ("model", *OF_ENDPOINTS)  # no model is asked
    if path.name == MANIFEST:
        layer = from_file(path)
    elif is_matrix_file(path):
        layer = canonical({"arms": document(path).get("arms") or []}, str(path))
    else:
        layer = read_run_file(path, os.environ, None, idle).layer
    layer = with_neighbours(layer, path.parent)
    arms = [arm if isinstance(arm, Arm) else Arm(**arm) for arm in layer.get("arms", [])]
    servers: list[tuple[str, ServerSettings]] = []
    for arm in arms:
        for server in arm.servers:
            refuse_missing_script(arm.name, server)
            if all(server != known_server for _, known_server in servers):
                servers.append((arm.name, server))
    if not servers:
        raise ConfigError("mcp_no_servers", path=path)
    return servers


async def inspect_servers(
    servers: Sequence[tuple[str, ServerSettings]], requested_call: tuple[str, dict[str, Any]] | None
) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """Start the servers one after the other, and call the requested tool."""
    from keju.solvers.mcp import server_tools
    from keju.solvers.sandbox.supervisor import Supervisor

    server_documents: list[dict[str, Any]] = []
    call_result: dict[str, Any] | None = None
    offered_tools: list[str] = []
    async with Supervisor() as supervisor:
        for arm, server in servers:
            source = server_tools(server, supervisor, os.environ)
            try:
                await source.open()
                server_documents.append(_describe_server(arm, source))
                offered_tools += source.listed
                if requested_call is not None and call_result is None:
                    call_result = await _call_tool(source, *requested_call)
            finally:
                await source.close()
    if requested_call is not None and call_result is None:
        raise UsageError(
            "mcp_no_tool",
            tool=requested_call[0],
            hint=did_you_mean(requested_call[0], offered_tools),
        )
    return server_documents, call_result


async def _call_tool(source: ServerTools, tool: str, arguments: dict[str, Any]) -> Any:
    """Return the result of a call; None if the server does not have the tool.

    The name may be the server's own or the one that models see.
    """
    from keju.solvers.toolbox import ToolsLost
    from keju.types import Sample

    offered_names = {name: offered.name for name, offered in source.offered.items()}
    name = offered_names.get(tool, tool)
    if name not in offered_names.values():
        return None
    sample = Sample(id="check", subset="", index=0, text="", target="")
    try:
        async with source.episode(sample, 0) as episode:
            result = await episode.call(name, arguments)
    except ToolsLost as lost:
        return {"tool": name, "kind": "server_crash", "text": lost.message, "seconds": None}
    seconds = round(result.seconds, 4)
    return {"tool": name, "kind": result.kind, "text": result.text, "seconds": seconds}


def _describe_kind(call_result: Mapping[str, Any], labels: Labels) -> str:
    """Return the outcome of a call, in words if the language has some."""
    return labels.get(f"call.{call_result['kind']}", call_result["kind"])


def _find_argument_errors(
    server_documents: Sequence[dict[str, Any]],
    call_result: Mapping[str, Any],
    arguments: dict[str, Any],
) -> list[Notice]:
    """Return the problems of the arguments of a refused call."""
    from keju.solvers.mcp.wording import describe_misfits

    if call_result["kind"] != "bad_arguments":
        return []
    tools = (tool for server in server_documents for tool in server["tools"])
    schema: dict[str, Any] = next(
        (t["parameters"] for t in tools if t["offered_as"] == call_result["tool"]), {}
    )
    return describe_misfits(arguments, schema)


def _describe_server(arm: str, source: ServerTools) -> dict[str, Any]:
    from keju.models.tokens import schema_tokens

    facts = source.facts()[source.server.name]
    figures = source.statistics()[source.server.name]
    tools = [
        {
            "name": tool_name,
            "offered_as": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
            "tokens": schema_tokens((tool,)),
        }
        for tool_name, tool in source.offered.items()
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


def _describe_parameters(schema: Mapping[str, Any]) -> str:
    """Return a tool's parameters: ``path: string, tail: number?``. Optional ones have a mark."""
    required = schema.get("required", ())
    words = []
    for name, about in schema.get("properties", {}).items():
        kind = about.get("type", "") if isinstance(about, dict) else ""
        kind = " | ".join(kind) if isinstance(kind, list) else kind
        words.append(f"{name}: {kind or 'any'}{'' if name in required else '?'}")
    return ", ".join(words)


def _show(
    server_documents: Sequence[dict[str, Any]],
    call_result: dict[str, Any] | None,
    argument_errors: Sequence[Notice],
    labels: Labels,
) -> None:
    from keju.models.tokens import CHARACTERS_PER_TOKEN
    from keju.reporting.table import TableColumn, render_table

    wide_columns = (
        TableColumn(labels(f"mcp.{title}"), fold=True) for title in ("parameters", "about")
    )
    columns: list[TableColumn | str] = [labels("mcp.tool"), *wide_columns, labels("mcp.tokens")]
    for server in server_documents:
        server_values = {key: server[key] for key in ("name", "arm", "way", "protocol")}
        server_values["title"] = (
            " ".join(filter(None, (server["server"], server["version"]))) or "–"
        )
        print_sentences(labels("mcp.server", **server_values, seconds=server["start_seconds"]))
        rows = []
        for tool in server["tools"]:
            description = " ".join(tool["description"].split())
            if len(description) > LONGEST_DESCRIPTION:
                description = description[: LONGEST_DESCRIPTION - 1] + "…"
            rows.append(
                [
                    tool["name"],
                    _describe_parameters(tool["parameters"]),
                    description,
                    tool["tokens"],
                ]
            )
        render_table(columns, rows)
        if server["instructions"]:
            instructions = " ".join(server["instructions"].split())
            print_sentences(labels("mcp.instructions", text=instructions))
        if server["not_offered"]:
            names = labels("list_separator").join(server["not_offered"])
            print_sentences(labels("mcp.not_offered", names=names))
        cost = server["tokens"]["value"]
        print_sentences(labels("mcp.cost", n=cost, each=CHARACTERS_PER_TOKEN), "")
    if call_result is not None:
        label = "mcp.broken_off" if call_result["seconds"] is None else "mcp.called"
        call_values = {"tool": call_result["tool"], "seconds": call_result["seconds"]}
        print_sentences(labels(label, **call_values, kind=_describe_kind(call_result, labels)))
        if argument_errors:
            print_sentences(
                *(each.text(labels.language) for each in argument_errors), labels("mcp.told")
            )
        print_lines(call_result["text"])
