"""A cluster that is none: actors in this process, which can be lost at any report."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from keju.config import RaySettings
from keju.engine.cluster import executor
from keju.engine.cluster.actor import Actor
from keju.engine.cluster.nodes import ActorLost, ActorResources, RayCluster
from keju.engine.cluster.wire import ActorReport, decode_report

Fate = Callable[["PretendedActor", ActorReport], str]
"""What becomes of an actor with its next report: ``lost``, ``twice`` (it is told twice), or goes
on as usual."""


class PretendedActor:
    """The driver's end of an actor in this process."""

    def __init__(self, number: int, fate: Fate) -> None:
        self.number = number
        self._actor = Actor()
        self._fate = fate
        self._gone = asyncio.Event()

    async def hello(self) -> dict[str, str]:
        greeting = await self._actor.hello()
        return greeting | {"id": f"node-{self.number}"}

    async def stream(self, method: str, argument: bytes) -> AsyncIterator[bytes]:
        reports = getattr(self._actor, method)(argument)
        waits: set[asyncio.Future[Any]] = {asyncio.ensure_future(self._gone.wait())}
        try:
            while True:
                pending_report = asyncio.ensure_future(anext(reports, None))
                waits.add(pending_report)
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                if self._gone.is_set():
                    raise ActorLost("gone")
                waits.discard(pending_report)
                data = pending_report.result()
                if data is None:
                    return
                fate = self._fate(self, decode_report(data)) if method == "ask" else ""
                if fate == "lost":
                    self._gone.set()
                    raise ActorLost("gone")
                yield data
                if fate == "twice":
                    yield data
        finally:
            for task in waits:
                task.cancel()
            await asyncio.wait(waits)
            await reports.aclose()

    def stop(self) -> None:
        asyncio.get_running_loop().create_task(self._actor.stop())

    def release(self) -> None:
        self._gone.set()

    async def close(self) -> None:
        """Let go of what the end of a process would."""
        if self._actor._channel is not None:
            await self._actor._channel.close()


class PretendedNodes(RayCluster):
    """Nodes with these resources."""

    def __init__(
        self, settings: RaySettings, resources: list[dict[str, float]], fate: Fate
    ) -> None:
        super().__init__(settings)
        self._resources = resources
        self._fate = fate
        self.handle: list[PretendedActor] = []

    async def open(self) -> None:
        pass

    async def resources(self) -> list[dict[str, float]]:
        return self._resources

    def hire(self, need: ActorResources) -> PretendedActor:  # type: ignore[override]
        self.handle.append(PretendedActor(len(self.handle), self._fate))
        return self.handle[-1]

    async def close(self) -> None:
        for worker in self.handle:
            await worker.close()


@contextmanager
def pretended(
    monkeypatch: pytest.MonkeyPatch,
    *,
    nodes: int = 3,
    fate: Fate = lambda _hand, _report: "",
) -> Iterator[list[PretendedNodes]]:
    """While it is open, ``executor: ray`` has actors in this process; yields what was opened."""
    opened: list[PretendedNodes] = []

    def open_nodes(settings: RaySettings) -> PretendedNodes:
        opened.append(PretendedNodes(settings, [{"CPU": 2.0}] * nodes, fate))
        return opened[-1]

    with monkeypatch.context() as patch:
        patch.setattr(executor, "RayCluster", open_nodes)
        patch.setattr(executor, "require_ray", lambda: None)
        patch.setattr(executor, "FIRST_PAUSE", 0.01)
        yield opened
