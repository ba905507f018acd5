"""A process that has Keju imported already and makes a copy of itself for every command.

Starting Python and importing Keju costs ten times what refusing a wrong input does. Each thread of
the soak has a zygote of its own, which ends when its standard input does.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Final, NamedTuple

from perf.soak.case import HUNG, LONGEST, CommandResult, environment

EARLY: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_thread_state = threading.local()
_all: list[subprocess.Popen[str]] = []


def end_all() -> None:
    """End the processes that wait for orders."""
    while _all:
        zygote = _all.pop()
        zygote.communicate()


class Moment(NamedTuple):
    """When a command is killed, and how."""

    signal: int
    path: str = ""
    """A file to wait for; its name may go on, as that of a file that is being written does."""
    size: int = 0
    """Bytes that it must have."""
    after: float = 0.0
    """Seconds after that, or after the start."""


def keju(
    folder: Path,
    *argv: str,
    environ: dict[str, str] | None = None,
    seconds: float = LONGEST,
    moment: Moment | None = None,
) -> CommandResult:
    """Run ``keju ARGV...`` in a folder, in a process of its own."""
    zygote: subprocess.Popen[str] | None = getattr(_thread_state, "zygote", None)
    if zygote is None or zygote.returncode is not None:
        zygote = _thread_state.zygote = subprocess.Popen(
            [sys.executable, "-m", "perf.soak.zygote"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        _all.append(zygote)
    assert zygote.stdin is not None
    assert zygote.stdout is not None
    out, err = folder.with_suffix(".out"), folder.with_suffix(".err")
    order = {"folder": str(folder), "argv": argv, "environ": environ or {}, "seconds": seconds}
    order |= {"out": str(out), "err": str(err), "moment": moment}
    zygote.stdin.write(json.dumps(order) + "\n")
    zygote.stdin.flush()
    code, peak = map(int, zygote.stdout.readline().split())
    texts = (out.read_text("utf-8", "replace"), err.read_text("utf-8", "replace"))
    return CommandResult(code, *texts, peak)


def _obey(order: dict[str, Any]) -> tuple[int, int]:
    """Run one command in a copy of this process; return its exit code and its peak memory."""
    wall = time.time()
    signal.pthread_sigmask(signal.SIG_BLOCK, EARLY)
    child = os.fork()
    if not child:
        _become(order)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, EARLY)
    started, due = time.monotonic(), None
    moment = Moment(*order["moment"]) if order["moment"] else None
    while (now := time.monotonic()) < started + order["seconds"]:
        exited_pid, status, usage = os.wait4(child, os.WNOHANG)
        if exited_pid:
            return os.waitstatus_to_exitcode(status), usage.ru_maxrss
        if moment is not None:
            if due is None and _has_come(moment, wall):
                due = now + moment.after
            if due is not None and now >= due:
                os.kill(child, moment.signal)
                moment = None
        time.sleep(0.0005 if moment is not None else 0.002)
    os.kill(child, signal.SIGKILL)
    usage = os.wait4(child, 0)[2]
    return HUNG, usage.ru_maxrss


def _has_come(moment: Moment, started: float) -> bool:
    """Whether the file is there that a kill waits for, written since `began` and large enough."""
    folder, start = os.path.split(moment.path)
    if not folder:
        return True
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        stats = (entry.stat() for entry in entries if entry.name.startswith(start))
        return any(stat.st_size >= moment.size and stat.st_mtime >= started for stat in stats)
    return False


def _become(order: dict[str, Any]) -> None:
    """Be the command, and end."""
    code = 1
    try:
        for number, name in enumerate((os.devnull, order["out"], order["err"])):
            flags = os.O_RDWR | (os.O_CREAT | os.O_TRUNC if number else 0)
            os.dup2(os.open(name, flags), number)
        for signal_number in EARLY:  # until Keju hears them itself
            signal.signal(signal_number, lambda *_: (os.write(2, b"interrupted\n"), os._exit(130)))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, EARLY)
        os.chdir(order["folder"])
        os.environ.update(order["environ"])
        sys.argv = ["keju", *order["argv"]]
        from keju.cli import main

        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def main() -> None:
    """Import what commands import, then obey."""
    from keju.cli import COMMANDS

    for name in ("keju.task", "keju.cli.command", "keju.interop.imports.building", "duckdb"):
        importlib.import_module(name)
    for command in COMMANDS:
        importlib.import_module(command.module)
    for line in sys.stdin:
        print(*_obey(json.loads(line)), flush=True)


if __name__ == "__main__":
    main()
