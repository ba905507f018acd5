"""Messages over the pipes of a process."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import suppress

import anyio
import pytest
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter
from perf.soak.hostile import mcp_server

from keju import bounds
from keju.config.arms import ServerSettings
from keju.errors import ConfigError
from keju.solvers.mcp.transport import ProcessOutput, pipe_transport
from keju.solvers.sandbox.supervisor import Supervisor
from tests.solvers.mcp.conftest import opened


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_message_to_a_server_that_has_ended_is_the_end_of_its_replies(loop: str) -> None:
    message = jsonrpc_message_adapter.validate_json('{"jsonrpc":"2.0","id":1,"method":"ping"}')

    async def work() -> None:
        async with Supervisor() as supervisor:
            process = await supervisor.start(["/bin/true"], env={"PATH": os.environ["PATH"]})
            assert process.stdin is not None
            await process.wait()
            process.stdin.close()  # what the loop does itself as soon as it sees that nobody reads
            await asyncio.sleep(0.05)
            pipes = ProcessOutput(process)
            async with pipe_transport(pipes) as (messages, write):
                with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                    for _ in range(3):
                        await write.send(SessionMessage(message))
                assert [message async for message in messages] == []
            assert pipes.ended.is_set()
            await process.end()

    factory = pytest.importorskip("uvloop").new_event_loop if loop == "uvloop" else None
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(asyncio.wait_for(work(), 60))


def test_a_message_of_too_many_values_counts_as_a_flood(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MOST_MESSAGE_VALUES", 3)
    honest = ServerSettings(name="s", command=sys.executable, args=[mcp_server.__file__, "forks"])

    async def start() -> None:
        async with opened(honest):
            pass

    with pytest.raises(ConfigError) as raised:
        asyncio.run(start())
    assert raised.value.code == "server_floods"
