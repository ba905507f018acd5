"""A sandbox for the tests, and programs that a test runs in it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from keju.config.sandbox import Sandbox as Settings
from keju.solvers.sandbox.kernel import Kernel
from keju.solvers.sandbox.sandbox import Probe, Sandbox

SIZES = {
    **{"memory": "400MiB", "max_file_bytes": "40MiB", "max_work_bytes": "60MiB"},
    **{"scratch_bytes": "20MiB", "processes": 64, "open_files": 256},
}
SMALL = Settings.model_validate(SIZES)
_probes: dict[str, Probe] = {}


def run(work: Awaitable[None], limit: float = 120) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(work, limit)

    asyncio.run(bounded())


async def opened(settings: Settings, **values: Any) -> Sandbox:
    """A sandbox whose backend works; the test is skipped where it does not."""
    sandbox = Sandbox(settings, **values)
    sandbox.probed = _probes.get(str(settings))
    probe = _probes[str(settings)] = await sandbox.probe()
    if not probe.ok:
        await sandbox.close()
        pytest.skip(f"{probe.backend} does not work here: {probe.problem}")
    sandbox.backend.runtime = probe.runtime
    return sandbox


def in_kernel(
    settings: Settings, work: Path, body: Callable[[Kernel], Awaitable[None]], limit: float = 120
) -> Kernel:
    """Run a test's body with a kernel; returns the kernel, closed."""
    kept: list[Kernel] = []

    async def with_kernel() -> None:
        sandbox = await opened(settings)
        try:
            async with sandbox.kernel(work) as kernel:
                kept.append(kernel)
                await body(kernel)
        finally:
            await sandbox.close()

    run(with_kernel(), limit)
    return kept[0]
