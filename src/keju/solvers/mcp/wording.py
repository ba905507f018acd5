"""Tools and results of a server as a model receives them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from keju.errors import ConfigError, Notice, did_you_mean, quoted
from keju.types import CallKind, Tool

if TYPE_CHECKING:
    import jsonschema
    from mcp import MCPError
    from mcp_types import CallToolResult
    from mcp_types import Tool as ListedTool

LONGEST_NAME: Final = 64
"""Longest name of a tool that endpoints accept."""

# A character that no endpoint accepts in a tool's name: the dot and the slash of `git/log.v2`.
_OTHER = re.compile(r"[^A-Za-z0-9_-]")
_INVALID_PARAMETERS: Final = -32602
_REQUEST_TIMEOUT: Final = -32001


def make_offered_tools(server: str, listed: tuple[ListedTool, ...]) -> dict[str, Tool]:
    """Return the tools as the model gets them, by their names at the server."""
    tools: dict[str, Tool] = {}
    names: dict[str, str] = {}
    for tool in listed:
        name = _OTHER.sub("_", f"{server}__{tool.name}")[:LONGEST_NAME]
        if name in names:
            raise ConfigError(
                "server_tools_collide", server=server, first=names[name], second=tool.name
            )
        names[name] = tool.name
        schema = {"type": "object", "properties": {}} | tool.input_schema
        schema.pop("$schema", None)
        tools[tool.name] = Tool(name, tool.description or "", schema)
    return tools


def text_of_result(result: CallToolResult) -> str:
    """Return the result of a call as text; other content is represented by its type and size."""
    parts: list[str] = []
    for block in result.content:
        match block.type:
            case "text":
                parts.append(block.text)
            case "image" | "audio":
                size = len(block.data) * 3 // 4
                parts.append(f"[{block.type}: {block.mime_type}, {size} bytes, not shown]")
            case "resource":
                parts.append(f"[resource: {_describe_resource(block.resource)}, not shown]")
            case "resource_link":
                parts.append(f"[link to a resource: {block.uri}]")
    if not any(block.type == "text" for block in result.content) and result.structured_content:
        parts.append(json.dumps(result.structured_content, ensure_ascii=False))
    return "\n".join(parts)


def _describe_resource(resource: Any) -> str:
    text = getattr(resource, "text", None)
    size = len(text.encode()) if text is not None else len(resource.blob) * 3 // 4
    return f"{resource.uri}, {resource.mime_type or 'of unknown type'}, {size} bytes"


def kind_of_result(result: CallToolResult, arguments: dict[str, Any], tool: Tool) -> CallKind:
    """Return how a call with a result ended. Servers of the SDK report bad arguments as errors."""
    if not result.is_error:
        return "ok"
    return "tool_error" if arguments_fit(arguments, tool) else "bad_arguments"


def kind_of_error(error: MCPError, *, is_listed: bool) -> CallKind:
    """Return how a call ended that the server answered with a protocol error."""
    if error.code == _REQUEST_TIMEOUT:
        return "timeout"
    if error.code == _INVALID_PARAMETERS:
        return "bad_arguments" if is_listed else "unknown_tool"
    return "protocol_error"


def arguments_fit(arguments: dict[str, Any], tool: Tool) -> bool:
    """Whether arguments match the tool's schema; an invalid schema accepts everything."""
    return not _schema_errors(arguments, tool.parameters)


def describe_misfits(arguments: dict[str, Any], schema: Mapping[str, Any]) -> list[Notice]:
    """Return in what ways arguments do not match a tool's schema.

    This is for people. The model gets the words of its server, as from any other host.
    """
    return [
        notice for error in _schema_errors(arguments, schema) for notice in _describe_error(error)
    ]


def _schema_errors(
    arguments: dict[str, Any], schema: Mapping[str, Any]
) -> list[jsonschema.ValidationError]:
    import jsonschema

    try:
        kind = jsonschema.validators.validator_for(schema)
        kind.check_schema(schema)
        return list(kind(schema).iter_errors(arguments))
    except Exception:  # it is not a schema
        return []


def _describe_error(error: jsonschema.ValidationError) -> Iterator[Notice]:
    name = ".".join(map(str, error.absolute_path))
    expected, instance = error.validator_value, error.instance
    match error.validator:
        case "required":
            missing = [key for key in expected if key not in instance]
            yield from (Notice("call_missing", {"name": _join_path(name, key)}) for key in missing)
        case "additionalProperties" if expected is False:
            properties = error.schema.get("properties", {})
            for unknown_key in (key_given for key_given in instance if key_given not in properties):
                hint = did_you_mean(unknown_key, properties)
                yield Notice("call_unknown", {"name": _join_path(name, unknown_key), "hint": hint})
        case "type":
            kinds = [expected] if isinstance(expected, str) else list(expected)
            yield Notice("call_type", {"name": name, "kinds": kinds})
        case "enum":
            choices = quoted(map(str, expected))
            yield Notice("call_choice", {"name": name, "choices": choices})
        case _:
            yield Notice("call_unfit", {"name": name, "problem": error.message})


def _join_path(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
