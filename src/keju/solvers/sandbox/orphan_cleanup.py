"""Finds the remains of sandboxes whose Keju and supervisor were both killed."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from keju.errors import Notice
from keju.solvers.sandbox.backends import LABEL
from keju.solvers.sandbox.supervisor import PREFIX

_OWNER = re.compile(PREFIX.encode() + rb"(\d+)-")
"""``keju-4711-a07f``, a folder or a container of the Keju with process id 4711."""


class Orphan(NamedTuple):
    """A folder, a container or a process."""

    what: Notice
    remedy: str
    """A command that removes it."""


def find_leftovers() -> Iterator[Orphan]:
    """Yield all remains that belong to no running Keju."""
    for root in {tempfile.gettempdir(), "/tmp"}:
        for folder in sorted(Path(root).glob(f"{PREFIX}*")):
            if _is_orphaned(folder.name.encode()):
                remedy = f"rm -rf {shlex.quote(str(folder))}"
                yield Orphan(Notice("left_folder", {"folder": folder}), remedy)
    for engine in ("podman", "docker"):
        for name in _list_containers(engine) if shutil.which(engine) else ():
            if _is_orphaned(name.encode()):
                yield Orphan(
                    Notice("left_container", {"name": name}), f"{engine} rm --force {name}"
                )
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            command = path.read_bytes()
            if _is_orphaned(command):
                number = path.parent.name
                what = Notice("left_process", {"number": number})
                yield Orphan(what, f"kill -9 {number}")


def _is_orphaned(text: bytes) -> bool:
    match = _OWNER.search(text)
    return match is not None and not Path(f"/proc/{match[1].decode()}").exists()


def _list_containers(engine: str) -> list[str]:
    argv = [engine, "ps", "--all", "--filter", f"label={LABEL}", "--format", "{{.Names}}"]
    with suppress(OSError, subprocess.TimeoutExpired):
        process = subprocess.run(argv, capture_output=True, text=True, timeout=10, check=False)
        return process.stdout.split()
    return []
