"""An MCP server over stdio with ten tools, of which three help; it needs nothing but Python.

Run as a program. ``--folder`` is where the tool `save` writes. `lookup` knows codes that nobody can
guess, `convert` calculates, and the other seven answer with a fixed text.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

HELPFUL = ("lookup", "convert", "save")
USELESS = (
    "list_labels", "get_weather", "get_time", "set_theme", "count_users", "ping", "describe"
)  # fmt: skip
ARGUMENTS: dict[str, dict[str, str]] = {
    "lookup": {"item": "integer"},
    "convert": {"pounds": "integer"},
    "save": {"name": "string", "value": "string"},
}


def code_of(item: int) -> str:
    """The code that only `lookup` knows."""
    return f"K{item * 7919 % 10_007:05d}"


def tools() -> list[dict[str, Any]]:
    """The tools as `tools/list` gives them."""
    return [
        {
            "name": name,
            "description": f"The tool {name} of the company, for questions about {name}.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    key: {"type": kind} for key, kind in ARGUMENTS.get(name, {}).items()
                },
                "required": list(ARGUMENTS.get(name, {})),
            },
            "annotations": {"readOnlyHint": name != "save"},
        }
        for name in (*HELPFUL, *USELESS)
    ]


def call(name: str, arguments: dict[str, Any], folder: Path) -> str:
    """The text of a result."""
    if name == "lookup":
        return code_of(int(arguments["item"]))
    if name == "convert":
        return str(int(arguments["pounds"]) * 16)
    if name == "save":
        (folder / f"{arguments['name']}.txt").write_text(str(arguments["value"]), "utf-8")
        return "saved"
    if name in USELESS:
        return "nothing to report"
    raise KeyError(name)


def answer(message: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The result, or the error, of a request."""
    params = message.get("params", {})
    match message["method"]:
        case "initialize":
            about = {"name": "company", "version": "1.0"}
            result: dict[str, Any] = {"protocolVersion": "2025-11-25", "serverInfo": about}
            return {"result": result | {"capabilities": {"tools": {}}}}
        case "tools/list":
            return {"result": {"tools": tools()}}
        case "tools/call":
            try:
                text = call(params["name"], params.get("arguments") or {}, folder)
            except Exception as error:
                content = [{"type": "text", "text": f"{type(error).__name__}: {error}"}]
                return {"result": {"content": content, "isError": True}}
            return {"result": {"content": [{"type": "text", "text": text}]}}
    return {"error": {"code": -32601, "message": "Method not found"}}


def main() -> None:
    """Answer requests until standard input ends."""
    reader = argparse.ArgumentParser()
    reader.add_argument("--folder", default=".", type=Path)
    folder = reader.parse_args().folder
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            reply = {"jsonrpc": "2.0", "id": message["id"], **answer(message, folder)}
            sys.stdout.write(json.dumps(reply) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
