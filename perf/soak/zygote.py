"""A process that has Keju imported already and makes a copy of itself for every command.

Starting Python and importing Keju costs ten times what refusing a wrong input does. Each thread of
the soak has a zygote of its own, which ends when its standard input does.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from perf.soak.case import HUNG, LONGEST, Ended, environment

_own = threading.local()


def keju(
    folder: Path, *argv: str, environ: dict[str, str] | None = None, seconds: float = LONGEST
) -> Ended:
    """Run ``keju ARGV...`` in a folder, in a process of its own."""
    zygote: subprocess.Popen[str] | None = getattr(_own, "zygote", None)
    if zygote is None:
        zygote = _own.zygote = subprocess.Popen(
            [sys.executable, "-m", "perf.soak.zygote"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(),
        )
    assert zygote.stdin is not None
    assert zygote.stdout is not None
    out, err = folder.with_suffix(".out"), folder.with_suffix(".err")
    order = {"folder": str(folder), "argv": argv, "environ": environ or {}, "seconds": seconds}
    zygote.stdin.write(json.dumps(order | {"out": str(out), "err": str(err)}) + "\n")
    zygote.stdin.flush()
    code = int(zygote.stdout.readline())
    return Ended(code, out.read_text("utf-8", "replace"), err.read_text("utf-8", "replace"))


def _obey(order: dict[str, Any]) -> int:
    """Run one command in a copy of this process; return its exit code."""
    child = os.fork()
    if not child:
        _become(order)
    ends = time.monotonic() + order["seconds"]
    while time.monotonic() < ends:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return HUNG


def _become(order: dict[str, Any]) -> None:
    """Be the command, and end."""
    code = 1
    try:
        for number, name in enumerate((os.devnull, order["out"], order["err"])):
            flags = os.O_RDWR | (os.O_CREAT | os.O_TRUNC if number else 0)
            os.dup2(os.open(name, flags), number)
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

    for name in ("keju.task", "keju.cli.parser", "keju.interop.imports.building", "duckdb"):
        importlib.import_module(name)
    for command in COMMANDS:
        importlib.import_module(command.module)
    for line in sys.stdin:
        print(_obey(json.loads(line)), flush=True)


if __name__ == "__main__":
    main()
