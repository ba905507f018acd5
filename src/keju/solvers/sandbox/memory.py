"""The memory of an episode, and the number of episodes that fit."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from keju.solvers.sandbox.supervisor_process import host_memory

GIB: Final = 2**30
MOST: Final = 8 * GIB
LEAST: Final = GIB
SHARE: Final = 0.6
"""Share of the available memory for all episodes together."""


def available_memory() -> int:
    """Return the available bytes, on the host and within the limits of Keju's own cgroups."""
    return min([host_memory()[1], *_free_in_cgroups()])


def _free_in_cgroups() -> list[int]:
    free_sizes = []
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "memory":
            folder, names = (
                Path("/sys/fs/cgroup/memory" + path),
                ("limit_in_bytes", "usage_in_bytes"),
            )
        elif not controllers:
            folder, names = Path("/sys/fs/cgroup" + path), ("max", "current")
        else:
            continue
        try:
            limit, usage = (int(Path(f"{folder}/memory.{n}").read_text()) for n in names)
        except (OSError, ValueError):  # no such file, or ``max``
            continue
        free_sizes.append(max(0, limit - usage))
    return free_sizes


def memory_shares(requested: int | None, concurrency: int, free: int) -> tuple[int, int]:
    """Return the bytes for each episode, and how many episodes may run at once.

    >>> memory_shares(None, 4, 20 * GIB) == (3 * GIB, 4)
    True
    >>> memory_shares(None, 16, 10 * GIB) == (GIB, 6)
    True
    """
    if requested is not None:
        return requested, concurrency
    room = int(SHARE * free)
    if room // concurrency < LEAST:
        concurrency = max(1, room // LEAST)
    return min(MOST, room // concurrency), concurrency
