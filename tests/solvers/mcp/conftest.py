"""A server with faults on demand, started as users' servers are."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from keju.config.arms import ServerSettings
from keju.solvers.mcp import server_tools
from keju.solvers.mcp.tools import ServerTools
from keju.solvers.sandbox.supervisor import Supervisor
from keju.solvers.toolbox import Toolbox
from keju.types import Sample

PROGRAM = Path(__file__).parents[2] / "support" / "mcp_server.py"
T = TypeVar("T")


def faulty(*args: str, **settings: Any) -> ServerSettings:
    """The settings of the server with faults."""
    fields: dict[str, Any] = {"name": "s", "command": sys.executable} | settings
    return ServerSettings(**fields, args=["-I", str(PROGRAM), *args])


def sample(number: int = 0) -> Sample:
    return Sample(id=f"q{number}", subset="s", index=number, text="?", target="!")


@asynccontextmanager
async def opened(
    server: ServerSettings, environ: dict[str, str] | None = None, **options: Any
) -> AsyncIterator[ServerTools]:
    """The tools of a server, open for as long as the block lasts."""
    async with Supervisor() as supervisor:
        source = server_tools(server, supervisor, dict(os.environ) | (environ or {}), **options)
        try:
            await source.open()
            yield source
        finally:
            await source.close()


def run(
    work: Callable[[ServerTools, Toolbox], Awaitable[T]], server: ServerSettings, **options: Any
) -> T:
    """What `work` gives with the tools of one episode."""

    async def work_in_episode() -> T:
        async with opened(server, **options) as source, source.episode(sample(), 0) as box:
            return await work(source, box)

    return asyncio.run(work_in_episode())
