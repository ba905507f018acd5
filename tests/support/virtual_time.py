"""An event loop whose clock jumps to the next timer, so that an hour of waiting takes no time."""

from __future__ import annotations

import asyncio
import selectors
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

CLOCK = "monotonic"
"""The clock of Keju's modules."""


class _Selector(selectors.DefaultSelector):
    """Moves the clock of its loop instead of waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0

    def select(self, timeout: float | None = None) -> list[Any]:
        events = super().select(0)
        if events or timeout is None:
            return events or super().select(None)
        self.now += max(0.0, timeout)
        return events


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop in simulated time; work for threads is done at once, in this thread."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        """Return the simulated time."""
        return self._virtual.now

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> Any:
        """Call a function and return its result as a future."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future


def use_virtual_time(monkeypatch: pytest.MonkeyPatch) -> Callable[[], float]:
    """Let the runs of a test happen in simulated time; return the clock."""
    loops: list[VirtualLoop] = []

    def new_loop() -> VirtualLoop:
        loops.append(VirtualLoop())
        return loops[-1]

    def now() -> float:
        return loops[-1].time() if loops else 1000.0

    monkeypatch.setattr("keju.engine.session._new_loop", new_loop)
    for module in keju_modules():
        if CLOCK in vars(module):
            monkeypatch.setattr(module, CLOCK, now)
    return now


def keju_modules() -> list[ModuleType]:
    """Return the modules of the engine that are loaded."""
    import keju.engine.pool_engine
    import keju.engine.session  # noqa: F401

    return [module for name, module in [*sys.modules.items()] if name.startswith("keju.engine")]
