"""Real MCP servers of npm and PyPI, each in an environment of its own, over stdio and HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from keju.cli import main
from keju.config.arms import Scope, ServerSettings
from keju.errors import ConfigError
from keju.solvers.mcp.tools import ServerTools
from keju.solvers.toolbox import Toolbox, ToolResult, ToolsLost
from tests.bridges.conftest import CACHE
from tests.solvers.mcp.conftest import opened, run, sample
from tests.support.calculations import calculates
from tests.support.endpoint import FaultyEndpoint
from tests.support.replies import EndpointRequest, Plan
from tests.support.tools import calling, results_in

pytestmark = pytest.mark.slow

NODE = "mcp-node/node_modules/.bin"
PROGRAMS = {
    "everything": (f"{NODE}/mcp-server-everything", 13),
    "filesystem": (f"{NODE}/mcp-server-filesystem", 14),
    "memory": (f"{NODE}/mcp-server-memory", 9),
    "sequential-thinking": (f"{NODE}/mcp-server-sequential-thinking", 1),
    "calculator": ("mcp-calculator/bin/mcp-server-calculator", 1),
    "time": ("mcp-time/bin/mcp-server-time", 2),
}


def program(name: str) -> str:
    """The program of a server; skips the test where it is missing."""
    cache = os.environ.get(CACHE)
    if not cache:
        pytest.skip(f"{CACHE} is not set: run 'make test-bridges' to test against MCP servers")
    path = Path(cache).expanduser() / PROGRAMS[name][0]
    if not path.exists():
        pytest.skip(f"no {path}: run 'make test-bridges'")
    return str(path)


def calls(server: ServerSettings, *tool_calls: tuple[str, dict[str, Any]]) -> list[ToolResult]:
    """The results of calls of one server, one after the other."""

    async def work(source: ServerTools, box: Toolbox) -> list[ToolResult]:
        assert len(source.tools) == PROGRAMS[server.name][1]
        return [await box.call(f"{server.name}__{name}", args) for name, args in tool_calls]

    return run(work, server)


def test_everything() -> None:
    echo, total, image, structured, wrong = calls(
        ServerSettings(name="everything", command=program("everything")),
        ("echo", {"message": "hi"}),
        ("get-sum", {"a": 2, "b": 3}),
        ("get-tiny-image", {}),
        ("get-structured-content", {"location": "Chicago"}),
        ("get-sum", {"a": "two"}),
    )
    assert (echo.kind, echo.text) == ("ok", "Echo: hi")
    assert total.text == "The sum of 2 and 3 is 5."
    assert "[image: image/png, 4035 bytes, not shown]" in image.text
    assert '"humidity"' in structured.text
    assert wrong.kind == "bad_arguments"


def test_a_long_call_of_everything_times_out() -> None:
    server = ServerSettings(name="everything", command=program("everything"), tool_timeout_ms=3000)
    slow, echo = calls(
        server,
        ("trigger-long-running-operation", {"duration": 60, "steps": 3}),
        ("echo", {"message": "still there"}),
    )
    assert (slow.kind, echo.text) == ("timeout", "Echo: still there")


def test_filesystem() -> None:
    server = ServerSettings(name="filesystem", command=program("filesystem"), args=["{workdir}"])

    async def work(_: ServerTools, box: Toolbox) -> None:
        allowed = await box.call("filesystem__list_allowed_directories", {})
        folder = allowed.text.splitlines()[-1]
        arguments = {"path": f"{folder}/note.txt", "content": "written"}
        assert (await box.call("filesystem__write_file", arguments)).kind == "ok"
        read = await box.call("filesystem__read_text_file", {"path": f"{folder}/note.txt"})
        assert read.text == "written"
        outside = await box.call("filesystem__read_text_file", {"path": "/etc/hostname"})
        assert outside.kind == "tool_error"

    run(work, server)


def test_memory_is_shared_by_the_run_or_the_question_s_own() -> None:
    async def entities(scope: Scope) -> list[int]:
        env: dict[str, str | None] = {"MEMORY_FILE_PATH": "{workdir}/memory.json"}
        server = ServerSettings(name="memory", command=program("memory"), scope=scope, env=env)
        entity = {"name": "it", "entityType": "thing", "observations": []}
        counts = []
        async with opened(server) as source:
            for number in range(2):
                async with source.episode(sample(number), 0) as box:
                    before = await box.call("memory__read_graph", {})
                    counts.append(before.text.count('"it"'))
                    await box.call("memory__create_entities", {"entities": [entity]})
        return counts

    assert asyncio.run(entities("run")) == [0, 1]
    assert asyncio.run(entities("sample")) == [0, 0]


def test_sequential_thinking() -> None:
    thought = {"thought": "a", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1}
    server = ServerSettings(name="sequential-thinking", command=program("sequential-thinking"))
    (result,) = calls(server, ("sequentialthinking", thought))
    assert '"thoughtHistoryLength": 1' in result.text


def test_calculator() -> None:
    server = ServerSettings(name="calculator", command=program("calculator"))
    expression = "((-5 + 9 * -4 - 0) * (4 + -7 + 0 * -5))"
    value, wrong = calls(server, ("calculate", {"expression": expression}), ("calculate", {}))
    assert (value.kind, value.text) == ("ok", "123")
    assert wrong.kind == "bad_arguments"


def test_time() -> None:
    convert = {"source_timezone": "UTC", "time": "16:30", "target_timezone": "Asia/Tokyo"}
    converted, wrong = calls(
        ServerSettings(name="time", command=program("time")),
        ("convert_time", convert),
        ("get_current_time", {"timezone": "Nowhere"}),
    )
    assert '"time_difference": "+9.0h"' in converted.text
    assert wrong.kind == "tool_error"


def test_the_calculator_helps_on_real_questions(
    tmp_path: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real server in an arm of ``keju run``, a placebo of it, and a baseline."""
    calculator = {"name": "calc", "command": program("calculator")}
    arms = [
        {"name": "baseline"},
        {"name": "calc", "servers": [calculator]},
        {"name": "placebo", "servers": [calculator], "stub_tools": True},
    ]
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(CACHE)  # no setting of Keju
    with FaultyEndpoint(Plan(answers=calculates)) as served:
        content = {"benchmark": "bigbench-hard", "model": "m", "api_url": served.url, "arms": arms}
        content |= {"data_dir": str(data_dir), "filter_category": ["multistep_arithmetic_two"]}
        Path("config.json").write_text(json.dumps(content))
        assert main(["run", "-c", "config.json", "-n", "20", "-o", "out.json", "--quiet"]) == 0
    document = json.loads(Path("out.json").read_text())
    resolved = {
        arm: document["summary"][arm]["resolved"] for arm in ("baseline", "calc", "placebo")
    }
    assert resolved == {"baseline": 0, "calc": 20, "placebo": 0}
    pairs = {(p["base"], p["arm"]): p["p"] for p in document["summary"]["paired"]}
    assert pairs["baseline", "calc"] == pytest.approx(2 * 0.5**20)
    assert pairs["baseline", "placebo"] == 1


EVALUATION = """<evaluation>
  <qa_pair><question>What is 17 + 25, from the tool?</question><answer>42</answer></qa_pair>
  <qa_pair><question>What is 4 + 9, from the tool?</question><answer>13</answer></qa_pair>
</evaluation>
"""


def adds(request: EndpointRequest) -> Any:
    """A model that adds only with the tool of the server."""
    if results := results_in(request):
        return f"ANSWER: {results[-1].rstrip('.').rpartition(' ')[2]}"
    numbers = [int(word.strip(",")) for word in request.text.split() if word.strip(",").isdigit()]
    names = {tool["function"]["name"] for tool in request.body.get("tools", [])}
    if len(numbers) < 2 or "everything__get-sum" not in names:
        return "I do not know"
    return calling(("everything__get-sum", {"a": numbers[0], "b": numbers[1]}))


@pytest.mark.parametrize("form", ["arms", "each tool left out"])
def test_an_evaluation_of_mcp_builder_runs_against_everything(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow = ["get-sum", "echo"]
    server = {"name": "everything", "command": program("everything"), "tools": {"allow": allow}}
    arms = [{"name": "baseline"}, {"name": "sum", "servers": [server]}]
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(CACHE)  # no setting of Keju
    Path("evaluation.xml").write_text(EVALUATION)
    with FaultyEndpoint(Plan(answers=adds)) as served:
        content: dict[str, Any] = {"model": "m", "api_url": served.url}
        content["datasets"] = ["./evaluation.xml"]
        content |= {"arms": arms} if form == "arms" else {"arms": form, "servers": [server]}
        Path("config.json").write_text(json.dumps(content))
        assert main(["run", "-c", "config.json", "--run-id", "r", "--quiet"]) == 0
    results = json.loads(Path("runs/r/results.json").read_text())
    scores = {
        entry["arm"]: entry["metrics"]["accuracy"]["value"] for entry in results["benchmarks"]
    }
    expected = {"baseline": 0, "sum": 1}
    if form != "arms":
        expected = {"all-tools": 1, "without-echo": 1, "without-get-sum": 0}
    assert scores == expected


def test_the_page_s_own_server_answers_a_model(
    tmp_path: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The filesystem server with a folder of its own, as the config file of mcpbr's page has it."""
    server = {"command": program("filesystem"), "args": ["{workdir}"]}

    def answers(request: EndpointRequest) -> Any:
        results = results_in(request)
        if "tools" not in request.body or "Solve" not in request.text:
            return "OK"
        return results[-1] if results else calling(("mcpbr__list_allowed_directories", {}))

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(CACHE)  # no setting of Keju
    with FaultyEndpoint(Plan(answers=answers)) as served:
        content: dict[str, Any] = {"benchmark": "bigbench-hard", "model": "m"}
        content |= {"api_url": served.url, "mcp_server": server, "data_dir": str(data_dir)}
        Path("config.json").write_text(json.dumps(content))
        flags = ["-t", "bbh_navigate_3", "-M", "-o", "out.json", "--quiet"]
        assert main(["run", "-c", "config.json", *flags]) == 0
    (task,) = json.loads(Path("out.json").read_text())["tasks"]
    folder = Path(task["mcp"]["agent_answer"].splitlines()[-1])
    assert folder.name.startswith("mcp-")
    assert not folder.exists()


def test_two_servers_with_tools_of_equal_names_in_one_arm(
    tmp_path: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = program("filesystem")
    sides = {side: tmp_path / side for side in ("left", "right")}
    for side, folder in sides.items():
        folder.mkdir()
        (folder / "note.txt").write_text(f"I am {side}.")
    servers = [{"name": s, "command": command, "args": [str(f)]} for s, f in sides.items()]

    def answers(request: EndpointRequest) -> Any:
        results = results_in(request)
        if "tools" not in request.body or "Solve" not in request.text or results:
            return " ".join(results) or "OK"
        note = ((s, str(f / "note.txt")) for s, f in sides.items())
        return calling(*((f"{s}__read_text_file", {"path": path}) for s, path in note))

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(CACHE)  # no setting of Keju
    with FaultyEndpoint(Plan(answers=answers)) as served:
        content: dict[str, Any] = {"benchmark": "bigbench-hard", "model": "m"}
        content |= {"api_url": served.url, "data_dir": str(data_dir)}
        content["arms"] = [{"name": "both", "servers": servers}]
        Path("config.json").write_text(json.dumps(content))
        flags = ["-t", "bbh_navigate_3", "-o", "out.json", "--quiet"]
        assert main(["run", "-c", "config.json", *flags]) == 0
    (task,) = json.loads(Path("out.json").read_text())["tasks"]
    assert task["both"]["agent_answer"] == "I am left. I am right."


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def http_server(port: int) -> subprocess.Popen[bytes]:
    """Everything's HTTP mode, ready to be asked."""
    process = subprocess.Popen(
        [program("everything"), "streamableHttp"],
        env=os.environ | {"PORT": str(port)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    for _ in range(600):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return process
        time.sleep(0.1)
    raise AssertionError("it does not listen")


@pytest.fixture
def everything_over_http(port: int) -> Iterator[subprocess.Popen[bytes]]:
    process = http_server(port)
    yield process
    process.kill()
    process.wait()


def test_a_server_over_http(port: int, everything_over_http: subprocess.Popen[bytes]) -> None:
    server = ServerSettings(
        name="everything", url=f"http://127.0.0.1:{port}/mcp", tool_timeout_ms=60000
    )

    async def work(source: ServerTools, box: Toolbox) -> None:
        texts = await asyncio.gather(
            *(box.call("everything__echo", {"message": str(n)}) for n in range(20))
        )
        assert [result.text for result in texts] == [f"Echo: {n}" for n in range(20)]
        assert source.facts()["everything"]["way"] == "http"
        everything_over_http.kill()
        everything_over_http.wait()
        with pytest.raises(ToolsLost):
            await box.call("everything__echo", {"message": "anybody?"})

    run(work, server)


def test_nobody_at_the_address(port: int) -> None:
    program("everything")

    async def work(_: ServerTools, __: Toolbox) -> None:
        raise AssertionError("it started")

    with pytest.raises(ConfigError, match=f"cannot be reached at http://127.0.0.1:{port}/mcp"):
        run(work, ServerSettings(name="everything", url=f"http://127.0.0.1:{port}/mcp"))
