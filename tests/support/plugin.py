"""Install the plug-in that `keju init` writes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple


class Plugin(NamedTuple):
    """A generated package and the folder it is installed in."""

    source: Path
    installed: Path

    def run(self, *argv: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run Python with the plug-in installed."""
        environ = {k: v for k, v in os.environ.items() if not k.startswith(("KEJU_", "OPENAI_"))}
        environ |= {"PYTHONPATH": str(self.installed), "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run(
            [sys.executable, *argv],
            cwd=cwd or self.source.parent,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
        )


def install(source: Path, target: Path) -> None:
    """Install a package without touching this environment or any network."""
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation",
         "--disable-pip-version-check", "--no-index", "--target", str(target), str(source)],
        check=True,
        capture_output=True,
    )  # fmt: skip
