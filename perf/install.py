"""What the core install weighs: packages and megabytes in a fresh environment."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from perf.measure import ROOT, Row, run, within

PACKAGES_LIMIT, SIZE_LIMIT = 25, 40.0
TOOLS = frozenset({"pip", "setuptools", "wheel", "pkg_resources", "_distutils_hack"})
"""What comes with the environment and is not Keju's."""


def measure() -> Iterator[Row]:
    """Install from this checkout with the pinned versions, without any extra."""
    with tempfile.TemporaryDirectory() as folder:
        run([sys.executable, "-m", "venv", folder])
        python = Path(folder, "bin", "python")
        pip = (str(python), "-m", "pip", "--disable-pip-version-check")
        constraints = ("--constraint", ROOT / "constraints.txt")
        run([*pip, "install", "--quiet", "--no-compile", *constraints, ROOT])
        listed = subprocess.run(
            [*pip, "list", "--format", "json"], stdout=subprocess.PIPE, check=True
        ).stdout
        names = {package["name"].lower() for package in json.loads(listed)} - TOOLS
        (site,) = Path(folder, "lib").glob("python*/site-packages")
        size = sum(_weight(entry) for entry in site.iterdir() if not _is_tool(entry.name))
    yield within("install: packages, Keju included", len(names), PACKAGES_LIMIT, "packages")
    yield within("install: size on disk, before byte code", size / 1e6, SIZE_LIMIT, "MB")


def _is_tool(name: str) -> bool:
    return name.partition("-")[0].lower() in TOOLS


def _weight(entry: Path) -> int:
    files = entry.rglob("*") if entry.is_dir() else (entry,)
    return sum(file.stat().st_size for file in files if file.suffix != ".pyc" and file.is_file())
