"""Writing the first version of things: a plug-in with a benchmark, a commented configuration."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

from keju.errors import UsageError

TEMPLATES = "templates"
CONFIG = "config.yaml.txt"
_NAME = re.compile(r"[a-z][a-z0-9]*(?:[_-][a-z0-9]+)*")


def write_benchmark(name: str, folder: Path) -> list[Path]:
    """Write a working plug-in package with the benchmark `name`; return its files.

    UsageError where the name cannot be one, is taken, or something stands at the place.
    """
    _check_name(name)
    module = f"keju_{name.replace('-', '_')}"
    words = {
        "NAME": name,
        "MODULE": module,
        "CLASS": "".join(part.capitalize() for part in re.split("[_-]", name)),
        "TITLE": " ".join(re.split("[_-]", name)).capitalize(),
        "DISTRIBUTION": module.replace("_", "-"),
    }
    files = {
        "pyproject.toml.txt": "pyproject.toml",
        "README.md.txt": "README.md",
        "module.py.txt": f"src/{module}/__init__.py",
        "questions.jsonl.txt": f"src/{module}/questions.jsonl",
        "test.py.txt": f"tests/test_{name.replace('-', '_')}.py",
    }
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} exists and is not empty; choose another with --dir")
    return [
        _write(folder / target, _filled(f"benchmark/{source}", words))
        for source, target in files.items()
    ]


def write_config(path: Path) -> Path:
    """Write a commented configuration that works as it stands."""
    if path.exists():
        raise UsageError(f"{path} exists; choose another place with -o FILE")
    return _write(path, _filled(CONFIG, {"FILE": path.name}))


def _check_name(name: str) -> None:
    from keju.benchmarks import registry

    if not _NAME.fullmatch(name):
        raise UsageError(
            f"'{name}' cannot be the name of a benchmark: small letters and digits, parts joined "
            "by - or _"
        )
    if name in [*registry.names(), *registry.ALIASES]:
        raise UsageError(f"there is a benchmark '{name}' already: choose another name")


def _filled(template: str, words: dict[str, str]) -> str:
    text = resources.files("keju.cli").joinpath(TEMPLATES, template).read_text("utf-8")
    for key, value in words.items():
        text = text.replace(f"@{key}@", value)
    return text


def _write(path: Path, text: str) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from None
    return path
