"""A small MCP server over stdio with faults on demand; it needs nothing but Python.

Run as a program. It speaks the handshake of 2025-11-25 and answers each call in a thread of its
own, so that one that hangs leaves the others alone.
"""

from __future__ import annotations

import argparse
import ast
import json
import operator
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

OPERATIONS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
NUMBER = {"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]}
READS = {"readOnlyHint": True}
TOOLS: dict[str, dict[str, Any]] = {
    "calculate": {
        "description": "Compute an arithmetic expression.",
        "inputSchema": {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {"expression": {"type": "string"}},
            "required": ["expression"],
        },
        "annotations": READS,
    },
    "echo": {"description": "Say the text again.", "inputSchema": TEXT, "annotations": READS},
    "write": {"description": "Like echo, but not read-only.", "inputSchema": TEXT},
    "crash": {"description": "End the server.", "inputSchema": {"type": "object"}},
    "crash_on": {
        "description": "End the server if n is 13, else say n.",
        "inputSchema": NUMBER,
        "annotations": READS,
    },
    "sleep": {"description": "Wait for n seconds.", "inputSchema": NUMBER},
    "noise": {"description": "Print n lines that are no messages.", "inputSchema": NUMBER},
    "fail": {"description": "Report an error.", "inputSchema": {"type": "object"}},
    "refuse": {"description": "A JSON-RPC error of code n.", "inputSchema": NUMBER},
    "invalid": {
        "description": "A result that contradicts its schema.",
        "inputSchema": {"type": "object"},
        "outputSchema": NUMBER,
    },
    "picture": {"description": "An image.", "inputSchema": {"type": "object"}},
    "structured": {"description": "No text.", "inputSchema": {"type": "object"}},
    "variable": {"description": "A variable of the environment.", "inputSchema": TEXT},
    "count": {"description": "How often it was called.", "inputSchema": {"type": "object"}},
    "arguments": {"description": "How it was started.", "inputSchema": {"type": "object"}},
    "long": {"description": "n characters.", "inputSchema": NUMBER},
}


def compute(expression: str) -> int | float:
    """The value of an expression of numbers, + - * / and brackets."""

    def value(node: ast.expr) -> Any:
        match node:
            case ast.BinOp(left_node, kind, right_node):
                return OPERATIONS[type(kind)](value(left_node), value(right_node))
            case ast.UnaryOp(ast.USub(), inner):
                return -value(inner)
            case ast.Constant(int() | float() as number):
                return number
        raise ValueError("not an arithmetic expression")

    result: int | float = value(ast.parse(expression.strip(), mode="eval").body)
    return result


class Server:
    """What it was told at its start, and what it was asked since."""

    def __init__(self, settings: argparse.Namespace) -> None:
        self.settings = settings
        self.calls = 0
        self.lock = threading.Lock()
        self.tools = {name: about for name, about in TOOLS.items() if name in settings.tools}
        if settings.lose:
            started = Path(settings.lose)
            if started.exists():
                self.tools.pop("echo", None)
            started.touch()

    def send(self, message: dict[str, Any]) -> None:
        with self.lock:
            sys.stdout.write(json.dumps({"jsonrpc": "2.0"} | message) + "\n")
            sys.stdout.flush()

    def answer(self, message: dict[str, Any]) -> None:
        method, key = message.get("method"), message.get("id")
        if key is None:
            return
        match method:
            case "initialize":
                about = {"name": "support", "version": "1.2"}
                result: dict[str, Any] = {"protocolVersion": "2025-11-25", "serverInfo": about}
                if self.settings.instructions:
                    result["instructions"] = self.settings.instructions
                self.send({"id": key, "result": result | {"capabilities": {"tools": {}}}})
            case "tools/list":
                # Two pages, as a long list would have.
                listed = [{"name": name} | about for name, about in self.tools.items()]
                middle = len(listed) // 2
                if message.get("params", {}).get("cursor"):
                    self.send({"id": key, "result": {"tools": listed[middle:]}})
                else:
                    self.send({"id": key, "result": {"tools": listed[:middle], "nextCursor": "2"}})
            case "tools/call":
                threading.Thread(
                    target=self.call, args=(key, message["params"]), daemon=True
                ).start()
            case _:
                self.send({"id": key, "error": {"code": -32601, "message": "Method not found"}})

    def call(self, key: Any, params: dict[str, Any]) -> None:
        self.calls += 1
        name, arguments = params["name"], params.get("arguments") or {}
        if name not in self.tools:
            self.send({"id": key, "error": {"code": -32602, "message": f"Unknown tool: {name}"}})
            return
        if name == "refuse":
            error = {"code": int(arguments["n"]), "message": "refused"}
            self.send({"id": key, "error": error})
            return
        try:
            result = self.result(name, arguments)
        except Exception as error:
            text = [{"type": "text", "text": f"{type(error).__name__}: {error}"}]
            result = {"content": text, "isError": True}
        self.send({"id": key, "result": result})

    def result(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        match name:
            case "calculate":
                text = str(compute(arguments["expression"]))
            case "echo" | "write":
                text = arguments["text"]
            case "crash":
                os._exit(3)
            case "crash_on":
                if arguments["n"] == 13:
                    time.sleep(0.03)
                    os._exit(3)
                time.sleep(0.1)
                text = str(arguments["n"])
            case "sleep":
                time.sleep(arguments["n"])
                text = "awake"
            case "noise":
                with self.lock:
                    sys.stdout.write("this is no message\n" * int(arguments["n"]))
                    sys.stdout.flush()
                text = "printed"
            case "fail":
                raise RuntimeError("it went wrong")
            case "invalid":
                return {"content": [], "structuredContent": {"n": "no number"}}
            case "picture":
                image = {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}
                return {"content": [image, {"type": "text", "text": "a picture"}]}
            case "structured":
                return {"content": [], "structuredContent": {"n": 7}}
            case "variable":
                text = str(os.environ.get(arguments["text"]))
            case "count":
                text = str(self.calls)
            case "arguments":
                text = json.dumps([*self.settings.rest, str(os.getpid())])
            case "long":
                text = "x" * int(arguments["n"])
            case _:
                raise ValueError(name)
        return {"content": [{"type": "text", "text": text}]}


def main() -> None:
    reader = argparse.ArgumentParser()
    reader.add_argument("--tools", default=",".join(TOOLS), type=lambda text: text.split(","))
    reader.add_argument("--slow", type=float, default=0.0)
    reader.add_argument("--die", action="store_true")
    reader.add_argument("--flood", action="store_true")
    reader.add_argument("--lose")
    reader.add_argument("--instructions")
    reader.add_argument("rest", nargs="*")
    settings = reader.parse_args()
    sys.stderr.write("server started\n")
    if settings.die:
        sys.stderr.write(f"no licence found {os.environ.get('LICENCE', '')}\n")
        sys.exit(4)
    while settings.flood:
        sys.stdout.write("x" * 100_000 + "\n")
    time.sleep(settings.slow)
    server = Server(settings)
    for line in sys.stdin:
        server.answer(json.loads(line))


if __name__ == "__main__":
    main()
