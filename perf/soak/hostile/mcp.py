"""Attacks of MCP servers on ``keju run``, and of models that call the tools of an honest server."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from perf.soak.case import Case
from perf.soak.hostile import mcp_server
from perf.soak.hostile.judge import KEY, SERVER_KEY, active_content, attacked, damaged_lines
from perf.soak.hostile.mcp_http import HTTP
from perf.soak.hostile.peer import Attack, HostilePeer, HostileServer

CODES = (0, 2, 3, 4)
"""Exit codes: complete, a server that does not start, without grades, incomplete."""
SECONDS = 300.0
"""Seconds in which a command ends: three restarts with their time-outs, on a busy machine."""
QUESTIONS = 2


def cases() -> list[Case]:
    """Return every attack of servers over stdio and HTTP, and of models with tools."""
    attack_cases = [
        Case(f"mcp stdio: {name.replace('_', ' ')}", _stdio(name)) for name in mcp_server.MODES
    ]
    attack_cases += [Case(f"mcp http: {name}", _http(attack)) for name, attack in HTTP.items()]
    attack_cases += [
        Case(f"model with tools: {name}", _model(calls)) for name, calls in CALLS.items()
    ]
    return attack_cases


def _config(folder: Path, server: dict[str, Any], model: Any = "scripted") -> None:
    limits = {"startup_timeout_ms": 4000, "tool_timeout_ms": 2000, "max_restarts": 1}
    settings = {
        "datasets": ["fresh_bbh"],
        "dataset_args": {
            "fresh_bbh": {"subset_list": ["multistep_arithmetic_two"], "seed": 7, "n": QUESTIONS}
        },
        "model": model,
        "arms": [{"name": "tools", "servers": [{"name": "calc"} | server | limits]}],
        "agent": {"max_iterations": 4},
    }
    (folder / "work").mkdir()
    (folder / "work/arms.yaml").write_text(json.dumps(settings))


def _run(folder: Path, *argv: str) -> str:
    environ = {"OPENAI_API_KEY": KEY, "MCP_HEADERS": json.dumps({"X-Token": SERVER_KEY})}
    before = _processes(folder)
    words = ("run", "-c", "arms.yaml", "--work-dir", "runs", "--run-id", "r", "--json", *argv)
    attack_run = attacked(folder, *words, codes=CODES, environ=environ, seconds=SECONDS)
    run = folder / "work/runs/r"
    if attack_run.problem:
        return attack_run.problem
    if orphans := _processes(folder) - before:
        return f"processes stay behind: {orphans}"
    return damaged_lines(run / "records.jsonl") or active_content(run / "report.html")


def _processes(folder: Path) -> set[int]:
    """Return the processes that were started for an attack: they know its folder."""
    pids = set()
    for path in Path("/proc").iterdir():
        if path.name.isdecimal():
            try:
                environ = (path / "environ").read_bytes()
            except OSError:
                continue
            if f"ATTACK={folder}\0".encode() in environ:
                pids.add(int(path.name))
    return pids


def _stdio(mode: str) -> Callable[[Path], str]:
    def run(folder: Path) -> str:
        script = str(Path(mcp_server.__file__))
        env = {"TOKEN": SERVER_KEY, "ATTACK": str(folder)}
        _config(folder, {"command": sys.executable, "args": [script, mode], "env": env})
        return _run(folder)

    return run


def _http(attack: Attack) -> Callable[[Path], str]:
    def run(folder: Path) -> str:
        with HostileServer(attack) as server:
            url = f"http://127.0.0.1:{server.port}/mcp"
            _config(folder, {"url": url, "headers_var": "MCP_HEADERS"})
            return _run(folder)

    return run


def _model(calls: Callable[[int], Any]) -> Callable[[Path], str]:
    """Return an attack of a model: what it calls, in each of its replies."""

    def reply(peer: HostilePeer) -> None:
        document = peer.good()
        if b'"tools"' in peer.body:
            message = {"role": "assistant", "content": None, "tool_calls": calls(peer.number)}
            document["choices"][0] |= {"message": message, "finish_reason": "tool_calls"}
        peer.reply(json.dumps(document).encode())

    def run(folder: Path) -> str:
        with HostileServer(reply) as server:
            script = str(Path(mcp_server.__file__))
            env = {"TOKEN": SERVER_KEY, "ATTACK": str(folder)}
            honest = {"command": sys.executable, "args": [script, "ignores_signals"], "env": env}
            _config(folder, honest, "m")
            pace = "--timeout 4 --attempts 2 --retry-interval 0.02 --give-up-after 3"
            return _run(folder, "--api-url", f"http://127.0.0.1:{server.port}/v1", *pace.split())

    return run


def _call(
    name: Any = "calc__calculate", arguments: Any = '{"expression": "1"}', **fields: Any
) -> Any:
    function = {"name": name, "arguments": arguments}
    return {"id": "c1", "type": "function", "function": function} | fields


CALLS: dict[str, Callable[[int], Any]] = {
    "a name for a path": lambda _: [_call("../../../etc/passwd")],
    "a name for a shell": lambda _: [_call("calc__$(touch canary);`touch canary`")],
    "a name for a terminal": lambda _: [_call("\x1b[2J\x1b]52;c;cm0=\x07")],
    "a name of 5 MiB": lambda _: [_call("n" * 5 * 2**20)],
    "a name that is a number": lambda _: [_call(5)],
    "no name": lambda _: [{"id": "c1", "type": "function", "function": {}}],
    "no function": lambda _: [{"id": "c1", "type": "function"}],
    "arguments that are no JSON": lambda _: [_call(arguments="{'a': __import__('os')}")],
    "arguments that are a list": lambda _: [_call(arguments="[1, 2]")],
    "arguments that are an object": lambda _: [_call(arguments={"expression": "1"})],
    "arguments of 10 MiB": lambda _: [
        _call(arguments=json.dumps({"expression": "1" * 10 * 2**20}))
    ],
    "arguments 100,000 deep": lambda _: [_call(arguments='{"a":' * 100_000 + "1" + "}" * 100_000)],
    "arguments 900 deep": lambda _: [_call(arguments='{"a":' * 900 + "1" + "}" * 900)],
    "arguments with NaN and huge numbers": lambda _: [
        _call(arguments='{"expression": NaN, "b": 1e999, "c": ' + "9" * 5000 + "}")
    ],
    "arguments with surrogates and NUL": lambda _: [
        _call(arguments='{"expression": "\\ud800\\u0000"}')
    ],
    "arguments with shell and paths": lambda _: [
        _call(arguments=json.dumps({"expression": "$(touch canary)", "../x": "../../x"}))
    ],
    "arguments with keys twice": lambda _: [
        _call(arguments='{"expression": "1", "expression": {"a": 1}}')
    ],
    "2,000 calls in one reply": lambda _: [_call(id=f"c{i}") for i in range(2000)],
    "the same id for all calls": lambda _: [_call() for _ in range(20)],
    "an id that is null": lambda _: [_call(id=None)],
    "an id of 5 MiB": lambda _: [_call(id="i" * 5 * 2**20)],
    "an id with escapes": lambda _: [_call(id="\x1b[2J</script><img src=x onerror=pwned()>")],
    "calls that are text": lambda _: "calc__calculate(1)",
    "calls that are numbers": lambda _: [1, None, "x", [], {}],
    "calls without an end": lambda n: [_call(id=f"c{n}")],
    "an unknown type of call": lambda _: [_call(type="mcp")],
}
"""What a model calls, by what is wrong with it."""
