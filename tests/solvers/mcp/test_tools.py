"""What a model gets of an MCP server: tools, results, and every way a call can end."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from keju.errors import ConfigError
from keju.solvers.mcp.tools import ServerTools
from keju.solvers.toolbox import Toolbox, ToolResult
from tests.solvers.mcp.conftest import faulty, opened, run, sample

pytestmark = pytest.mark.slow


def call(name: str, arguments: dict[str, Any], *args: str, **settings: Any) -> ToolResult:
    async def work(_: ServerTools, box: Toolbox) -> ToolResult:
        return await box.call(f"s__{name}", arguments)

    return run(work, faulty(*args, **settings))


def test_tools_are_listed_to_the_last_page_and_named_after_their_server() -> None:
    async def work(source: ServerTools, box: Toolbox) -> None:
        assert len(box.tools) == 16
        calculate = next(tool for tool in box.tools if tool.name == "s__calculate")
        assert calculate.description == "Compute an arithmetic expression."
        assert calculate.parameters == {
            "type": "object",
            "properties": {"expression": {"type": "string"}},
            "required": ["expression"],
        }
        facts = source.facts()["s"]
        assert (facts["server"], facts["version"]) == ("support", "1.2")
        assert facts["protocol"] == "2025-11-25"
        assert source.statistics()["s"]["starts"] == 1

    run(work, faulty())


@pytest.mark.parametrize(
    ("name", "arguments", "text", "kind"),
    [
        ("calculate", {"expression": "-(5 - 2) * 4"}, "-12", "ok"),
        ("fail", {}, "RuntimeError: it went wrong", "tool_error"),
        ("calculate", {"expression": 5}, "AttributeError", "bad_arguments"),
        ("calculate", {}, "KeyError", "bad_arguments"),
        ("refuse", {"n": -32602}, "Error: refused", "bad_arguments"),
        ("refuse", {"n": -32603}, "Error: refused", "protocol_error"),
        ("refuse", {"n": -32000}, "Error: refused", "protocol_error"),
        ("invalid", {}, "Error: the tool's result is not valid.", "invalid_output"),
        ("picture", {}, "[image: image/png, 6 bytes, not shown]\na picture", "ok"),
        ("structured", {}, '{"n": 7}', "ok"),
        ("noise", {"n": 1000}, "printed", "ok"),
    ],
)
def test_every_way_a_call_can_end(
    name: str, arguments: dict[str, Any], text: str, kind: str
) -> None:
    result = call(name, arguments)
    assert result.kind == kind
    assert result.text.startswith(text)


def test_a_call_that_hangs_times_out_and_the_session_stays_usable() -> None:
    async def work(_: ServerTools, box: Toolbox) -> list[ToolResult]:
        slow = await box.call("s__sleep", {"n": 30})
        return [slow, await box.call("s__echo", {"text": "there"})]

    slow, after = run(work, faulty(tool_timeout_ms=2000))
    assert (slow.kind, slow.text) == ("timeout", "Error: the tool did not answer in time.")
    assert (after.kind, after.text) == ("ok", "there")


def test_only_the_tools_that_are_allowed_are_offered() -> None:
    async def names(_: ServerTools, box: Toolbox) -> list[str]:
        return [tool.name for tool in box.tools]

    only = faulty(tools={"allow": ["echo", "calculate"], "deny": ["echo"]})
    assert run(names, only) == ["s__calculate"]
    without = faulty(tools={"deny": ["echo"]})
    assert "s__echo" not in run(names, without)
    with pytest.raises(
        ConfigError, match=r"no tool 'eco' \(tools.allow\) \(did you mean 'echo'\?\)"
    ):
        run(names, faulty(tools={"allow": ["eco"]}))
    with pytest.raises(ConfigError, match="offers no tools: it lists 1"):
        run(names, faulty("--tools", "echo", tools={"deny": ["echo"]}))


@pytest.mark.parametrize(
    ("args", "settings", "problem"),
    [
        (
            ["--die"],
            {},
            "'s' ended with exit code 4 before it was ready; its last words: .*no licence found",
        ),
        (["--slow", "20"], {"startup_timeout_ms": 500}, "'s' was not ready after 0.5 s"),
        (["--flood"], {}, "'s' writes to its standard output without end"),
        ([], {"command": "no-such-program"}, "'s': the program 'no-such-program' is not found"),
        ([], {"setup_command": "echo gone >&2; exit 3"}, "exit code 3; its last words: gone"),
        ([], {"setup_command": "sleep 20", "setup_timeout_ms": 200}, "more than 0.2 s"),
    ],
)
def test_a_server_that_cannot_be_started_is_one_line(
    args: list[str], settings: dict[str, Any], problem: str
) -> None:
    async def do_nothing(_: ServerTools, __: Toolbox) -> None:
        raise AssertionError("it started")

    with pytest.raises(ConfigError, match=problem):
        run(do_nothing, faulty(*args, **settings))


def test_secrets_reach_the_server_and_nothing_else() -> None:
    environ = {"LICENCE_KEY": "s3cr3t-value", "OPENAI_API_KEY": "sk-own"}

    async def work(source: ServerTools, box: Toolbox) -> None:
        declared_variable = await box.call("s__variable", {"text": "LICENCE"})
        assert declared_variable.text == "***"
        undeclared_variable = await box.call("s__variable", {"text": "OPENAI_API_KEY"})
        assert undeclared_variable.text == "None"
        started = await box.call("s__arguments", {})
        assert json.loads(started.text)[0] == "--key=***"
        facts_text = json.dumps([source.facts(), source.statistics()])
        assert "s3cr3t" not in facts_text
        assert "--key=${LICENCE_KEY}" in facts_text

    server = faulty("--", "--key=${LICENCE_KEY}", env={"LICENCE": "${LICENCE_KEY}"})
    run(work, server, environ=environ)
    with pytest.raises(ConfigError) as refused:
        run(work, faulty("--die", env={"LICENCE": "${LICENCE_KEY}"}), environ=environ)
    assert "no licence found ***" in str(refused.value)
    with pytest.raises(ConfigError, match="'s': the environment variable LICENCE_KEY is not set"):
        run(work, server)


def test_a_work_folder_is_made_for_the_server_and_removed_with_it() -> None:
    async def work(_: ServerTools, box: Toolbox) -> Path:
        folder = Path(json.loads((await box.call("s__arguments", {})).text)[0])
        assert (folder / "ready").read_text() == "ready\n"
        return folder

    folder = run(work, faulty("{workdir}", setup_command="echo ready > {workdir}/ready"))
    assert not folder.exists()


def test_scopes_say_who_shares_a_server() -> None:
    async def pids(scope: str, **settings: Any) -> list[str]:
        started_pids = []
        async with opened(
            faulty("{instance_id}" * (scope == "sample"), scope=scope, **settings)
        ) as source:
            for wave in range(2):
                boxes = [source.episode(sample(2 * wave + i), 0) for i in range(2)]
                async with boxes[0] as first_box, boxes[1] as second_box:
                    for box in (first_box, second_box):
                        started = await box.call("s__arguments", {})
                        started_pids.append(" ".join(json.loads(started.text)))
        return started_pids

    assert len(set(asyncio.run(pids("run")))) == 1
    assert len(set(asyncio.run(pids("worker", workers=2)))) == 2
    sample_pids = asyncio.run(pids("sample"))
    assert len({text.split()[1] for text in sample_pids}) == 4
    assert [text.split()[0] for text in sample_pids] == ["q0", "q1", "q2", "q3"]


def test_a_placebo_lists_the_same_tools_and_answers_nothing() -> None:
    async def work(_: ServerTools, box: Toolbox) -> ToolResult:
        assert len(box.tools) == 16
        return await box.call("s__echo", {"text": "there"})

    result = run(work, faulty(), listed_only=True)
    assert result.text == "This tool is not available."


def test_calls_wait_for_their_turn_and_the_wait_is_told() -> None:
    async def work(_: ServerTools, box: Toolbox) -> list[ToolResult]:
        return list(await asyncio.gather(*(box.call("s__sleep", {"n": 0.2}) for _ in range(3))))

    first_result, second_result, third = run(work, faulty(max_in_flight=1))
    # Each waits for those before it, and its own time is counted apart; all begin at almost the
    # same moment.
    assert first_result.queued < first_result.seconds
    assert second_result.queued > first_result.seconds - 0.1
    assert third.queued > first_result.seconds + second_result.seconds - 0.1


def test_nothing_is_left_of_the_processes() -> None:
    async def work(_: ServerTools, box: Toolbox) -> int:
        return int(json.loads((await box.call("s__arguments", {})).text)[-1])

    pid = run(work, faulty())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
