"""A command that is killed at a named place: when it calls a function, the process is gone."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import importlib, os, sys

module, name, *argv = sys.argv[1:]
setattr(importlib.import_module(module), name, lambda *_, **__: os._exit(9))

from keju.cli import main

sys.exit(main(argv))
"""


def killed_in(module: str, name: str, *argv: str) -> int:
    """Run ``keju ARGV...`` until `module` calls its `name`; the exit code, 9 if it came so far."""
    words = [sys.executable, "-c", PROGRAM, module, name, *argv]
    return subprocess.run(words, capture_output=True, check=False).returncode
