"""What an install weighs: packages and megabytes in a fresh environment.

``python -m perf.install [EXTRA...]`` prints two tables for the documentation: what each extra adds
to the core, and the packages of the core with their licences. Large extras take minutes.
"""

from __future__ import annotations

import sys
import tempfile
import tomllib
from collections.abc import Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path

from perf.measure import ROOT, Row, run, within

PACKAGES_LIMIT, SIZE_LIMIT = 25, 40.0
TOOLS = frozenset({"pip", "setuptools", "wheel", "pkg_resources", "_distutils_hack"})
"""What comes with the environment and is not Keju's."""


NOT_FOR_USERS = frozenset({"dev", "docs"})


def measure() -> Iterator[Row]:
    """Install from this checkout with the pinned versions, without any extra."""
    with tempfile.TemporaryDirectory() as folder:
        packages, size = weigh(Path(folder))
    yield within("install: packages, Keju included", len(packages), PACKAGES_LIMIT, "packages")
    yield within("install: size on disk, before byte code", size, SIZE_LIMIT, "MB")


def weigh(folder: Path, extra: str = "") -> tuple[dict[str, Distribution], float]:
    """Install into a new environment; its packages, and megabytes."""
    run([sys.executable, "-m", "venv", folder])
    pip = (folder / "bin" / "python", "-m", "pip", "--disable-pip-version-check")
    constraints = ("--constraint", ROOT / "constraints.txt")
    requirement = f"{ROOT}[{extra}]" if extra else ROOT
    run([*pip, "install", "--quiet", "--no-compile", *constraints, requirement])
    (site,) = (folder / "lib").glob("python*/site-packages")
    packages = {
        package.metadata["Name"].lower(): package for package in distributions(path=[str(site)])
    }
    size = sum(_weight(entry) for entry in site.iterdir() if not _is_tool(entry.name))
    return {name: package for name, package in packages.items() if name not in TOOLS}, size / 1e6


def licence(package: Distribution) -> str:
    """What a package says of its licence."""
    about = package.metadata.json
    expression, classes = about.get("license_expression"), about.get("classifier") or ()
    licences = [
        str(classifier).rpartition(" :: ")[2]
        for classifier in classes
        if "License ::" in str(classifier)
    ]
    return str(expression or next(iter(licences), about.get("license") or "not said")).splitlines()[
        0
    ]


def main() -> None:
    """Print the tables."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = sys.argv[1:] or [
        name for name in project["optional-dependencies"] if name not in NOT_FOR_USERS
    ]
    with tempfile.TemporaryDirectory() as folder:
        core, weight = weigh(Path(folder))
        print(f"core: {len(core)} packages, {weight:.0f} MB\n\n| package | licence |\n|---|---|")
        for name, package in sorted(core.items()):
            print(f"| {name} | {licence(package)} |")
    print("\n| extra | further packages | MB |\n|---|---:|---:|", flush=True)
    for extra in extras:
        with tempfile.TemporaryDirectory() as folder:
            packages, size = weigh(Path(folder), extra)
            print(f"| `{extra}` | {len(packages) - len(core)} | {size - weight:.0f} |", flush=True)


def _is_tool(name: str) -> bool:
    return name.partition("-")[0].lower() in TOOLS


def _weight(entry: Path) -> int:
    files = entry.rglob("*") if entry.is_dir() else (entry,)
    return sum(file.stat().st_size for file in files if file.suffix != ".pyc" and file.is_file())


if __name__ == "__main__":
    main()
