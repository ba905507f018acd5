"""A server that is lost in the middle of calls."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from keju.solvers.mcp.tools import ServerTools
from keju.solvers.toolbox import Toolbox, ToolResult, ToolsLost
from tests.solvers.mcp.conftest import faulty, opened, run, sample

pytestmark = pytest.mark.slow


async def in_episodes(
    source: ServerTools, calls: list[tuple[str, dict[str, Any]]]
) -> list[ToolResult | BaseException]:
    """The results of calls, each in an episode of its own, all at once."""

    async def call_in_episode(number: int, name: str, arguments: dict[str, Any]) -> ToolResult:
        async with source.episode(sample(number), 0) as box:
            return await box.call(f"s__{name}", arguments)

    work = [call_in_episode(number, *call) for number, call in enumerate(calls)]
    return await asyncio.gather(*work, return_exceptions=True)


def test_one_crashing_call_among_41_takes_none_of_the_others_with_it() -> None:
    async def work() -> None:
        async with opened(faulty()) as source:
            results = await in_episodes(source, [("crash_on", {"n": n}) for n in range(41)])
            culprit = results.pop(13)
            assert isinstance(culprit, ToolsLost)
            assert culprit.stop == "server_lost"
            assert "ended during a call of crash_on (twice)" in culprit.message
            survivors = [n for n in range(41) if n != 13]
            assert [r.text for r in results if isinstance(r, ToolResult)] == [
                str(n) for n in survivors
            ]
            figures = source.statistics()["s"]
            assert (figures["restarts"], figures["starts"]) == (2, 3)

    asyncio.run(work())


def test_calls_that_may_have_had_an_effect_are_not_repeated() -> None:
    async def work(retry: str, seconds: float) -> list[ToolResult | BaseException]:
        async with opened(faulty(retry=retry)) as source:
            calls: list[tuple[str, dict[str, Any]]] = [("sleep", {"n": seconds}), ("crash", {})]
            return await in_episodes(source, calls)

    result, culprit = asyncio.run(work("read_only", 600))
    assert isinstance(result, ToolsLost)
    assert "may have had an effect" in result.message
    assert isinstance(culprit, ToolsLost)
    result, culprit = asyncio.run(work("always", 0.5))
    assert isinstance(result, ToolResult)
    assert result.text == "awake"
    assert isinstance(culprit, ToolsLost)


def test_a_server_that_ends_too_often_is_given_up() -> None:
    async def work(_: ServerTools, box: Toolbox) -> None:
        for _attempt in range(2):
            with pytest.raises(ToolsLost, match="may have had an effect"):
                await box.call("s__crash", {})
        with pytest.raises(ToolsLost, match=r"'s' ended 3 times; its last words: server started"):
            await box.call("s__crash", {})
        with pytest.raises(ToolsLost, match="'s' ended 3 times"):
            await box.call("s__echo", {"text": "there"})

    run(work, faulty(max_restarts=2))


def test_tools_that_a_restart_loses_stay_offered_and_are_flagged(tmp_path: Path) -> None:
    async def work(source: ServerTools, box: Toolbox) -> None:
        assert (await box.call("s__echo", {"text": "there"})).kind == "ok"
        with pytest.raises(ToolsLost):
            await box.call("s__crash", {})
        lost_result = await box.call("s__echo", {"text": "there"})
        assert (lost_result.kind, lost_result.text) == ("unknown_tool", "Error: Unknown tool: echo")
        assert "s__echo" in {tool.name for tool in box.tools}
        assert source.statistics()["s"]["drift"] == {"lost": ["echo"]}
        (notice,) = source.notices
        assert "tools of MCP server 's' changed during the run: echo" in notice.text()

    run(work, faulty("--lose", str(tmp_path / "started")))


def test_a_server_of_one_question_is_not_started_again_as_its_state_is_gone() -> None:
    async def work(source: ServerTools, box: Toolbox) -> None:
        with pytest.raises(ToolsLost):
            await box.call("s__crash_on", {"n": 13})
        assert source.statistics()["s"]["restarts"] == 0

    run(work, faulty(scope="sample"))


def test_64_questions_share_one_server() -> None:
    async def work() -> None:
        async with opened(faulty()) as source:
            calls = [("calculate", {"expression": f"{n} * {n}"}) for n in range(64)]
            results = await in_episodes(source, calls)
            assert [r.text for r in results if isinstance(r, ToolResult)] == [
                str(n * n) for n in range(64)
            ]

    asyncio.run(work())


def test_an_episode_that_is_cancelled_during_a_restart_leaves_the_server_usable() -> None:
    async def work(source: ServerTools, box: Toolbox) -> None:
        crashing = asyncio.create_task(box.call("s__crash", {}))
        await asyncio.sleep(0.1)
        crashing.cancel()
        await asyncio.wait([crashing])
        assert (await box.call("s__echo", {"text": "there"})).text == "there"

    run(work, faulty())


def test_a_server_that_prints_without_end_during_a_call_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("keju.bounds.MOST_NOISE", 4 * 2**20)

    async def work(source: ServerTools, box: Toolbox) -> None:
        with pytest.raises(ToolsLost, match="ended during a call of noise"):
            await box.call("s__noise", {"n": 600_000})
        assert (await box.call("s__echo", {"text": "there"})).text == "there"
        assert source.statistics()["s"]["restarts"] == 1

    run(work, faulty())
