"""How many requests may be in flight with the files that this process may open.

Each request in flight needs a connection, which is an open file for the system. A request of a
model with tools needs more: pipes to its tools.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress

try:
    import resource
except ImportError:  # not Unix
    resource = None  # type: ignore[assignment]

RESERVE = 64
"""Files for everything else: the journal, the data, the terminal, the event loop."""
PER_TOOL_SLOT = 8
"""Files of a slot whose requests have tools."""

_lock = threading.Lock()
_reserved = 0
"""Files that the runs of this process have reserved."""


def reserve_slots(requested: int, files: int = 1) -> int:
    """Return how many of the `requested` slots can be used with `files` open files for each.

    The soft limit of open files is raised as far as that helps. The files stay reserved until
    `release_slots` is called with the returned number.
    """
    global _reserved
    if resource is None:
        return requested
    with _lock:
        required = max(_open_files(), _reserved) + RESERVE + requested * files
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft != resource.RLIM_INFINITY and soft < required:
            new_soft = required if hard == resource.RLIM_INFINITY else min(required, hard)
            with suppress(ValueError, OSError):
                resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, new_soft), hard))
            soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        usable = requested
        if soft != resource.RLIM_INFINITY and soft < required:
            usable = max(1, requested - -(-(required - soft) // files))
        _reserved += usable * files
        return usable


def release_slots(slots: int, files: int = 1) -> None:
    """Let other runs of this process use the files of some slots."""
    global _reserved
    with _lock:
        _reserved = max(0, _reserved - slots * files)


def _open_files() -> int:
    """Return how many files this process has open, or 32 where the system does not say."""
    for folder in ("/proc/self/fd", "/dev/fd"):
        with suppress(OSError):
            return len(os.listdir(folder))  # noqa: PTH208
    return 32
