"""The rules of the house: which room may import which, and that no room but its own names an exam."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import keju

SOURCE = Path(keju.__file__).parent
ROOT = SOURCE.parents[1]

LEVELS = (
    ("types", "errors", "bounds", "files", "messages", "redaction", "signals"),
    ("config",),
    ("answers", "stats", "sources"),
    ("benchmarks", "models"),
    ("runs",),
    ("engine", "solvers"),
    ("judges",),
    ("results",),
    ("report", "viewer", "interop"),
    ("task",),
    ("merge", "plans"),
    ("api",),
    ("cli",),
)
"""A room imports rooms of lower levels, and of its own level without a cycle."""
LEVEL = {room: number for number, rooms in enumerate(LEVELS) for room in rooms}

EXAMS = re.compile(
    r"bbh|big[-_ ]?bench|mmlu[-_ ]?pro|c[-_]?eval(?![a-z])|bix[-_ ]?bench|gsm8k", re.IGNORECASE
)
"""``bbh`` in ``keju.benchmarks.bbh``, ``C-Eval`` in a sentence; not ``eval`` or ``ceval_``-less."""


def modules() -> Iterator[tuple[str, Path]]:
    """Every module with its room: ``("config", src/keju/config/load.py)``."""
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        if parts[0] not in ("__init__", "__main__"):
            yield parts[0], path


@cache
def imports(path: Path) -> set[str]:
    """The names of keju that a file imports, under TYPE_CHECKING and inside functions too."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            names |= {base} | {f"{base}.{alias.name}" for alias in node.names}
    return {name for name in names if name == "keju" or name.startswith("keju.")}


def rooms_of(path: Path) -> set[str]:
    """The rooms that a file imports from."""
    return {name.split(".")[1] for name in imports(path) if name.count(".")} & set(LEVEL)


UPWARD: set[tuple[str, str]] = set()
"""Imports that do not keep the rule yet: (file, room). The list only ever gets shorter."""


def test_every_room_has_a_level() -> None:
    assert {room for room, _ in modules()} <= set(LEVEL)


def test_rooms_import_only_what_is_below_them() -> None:
    wrong = {
        (str(path.relative_to(SOURCE)), other)
        for room, path in modules()
        for other in rooms_of(path)
        if LEVEL[other] > LEVEL[room]
    }
    assert wrong == UPWARD


def test_rooms_of_one_level_do_not_import_each_other_in_a_circle() -> None:
    beside: dict[str, set[str]] = {room: set() for room in LEVEL}
    for room, path in modules():
        beside[room] |= {o for o in rooms_of(path) if o != room and LEVEL[o] == LEVEL[room]}
    for room, others in beside.items():
        assert not any(room in beside[other] for other in others), f"{room} and {sorted(others)}"


def own_room(path: Path) -> bool:
    """Whether a file is part of an exam's own room."""
    parts = path.relative_to(SOURCE).parts
    return parts[0] == "benchmarks" and len(parts) > 2


def named(path: Path) -> set[str]:
    """The names of exams in a file's code and texts, docstrings aside."""
    tree = ast.parse(path.read_text("utf-8"))
    helps = path.relative_to(SOURCE).parts[0] in ("cli", "messages")
    documentation = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    found: set[str] = set()
    for node in ast.walk(tree):
        texts: list[str] = []
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            told = helps and "keju " in node.value  # help shows commands that can be tried
            texts = [] if told or id(node) in documentation else [node.value]
        elif isinstance(node, ast.Name):
            texts = [node.id]
        elif isinstance(node, ast.Attribute):
            texts = [node.attr]
        elif isinstance(node, ast.ImportFrom):
            texts = [node.module or "", *(alias.name for alias in node.names)]
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            texts = [node.name]
        found |= {match.lower() for text in texts for match in EXAMS.findall(text)}
    return found


REGISTRY = "benchmarks/registry.py"
"""One line an exam."""


def test_no_room_but_its_own_names_an_exam() -> None:
    naming = {
        str(path.relative_to(SOURCE)) for _, path in modules() if not own_room(path) and named(path)
    }
    assert naming == {REGISTRY}


PUBLIC = [*sorted((ROOT / "examples").rglob("*.py"))]
TEMPLATES = sorted((SOURCE / "cli" / "templates" / "benchmark").glob("*.py.txt"))


@pytest.mark.parametrize("path", [*PUBLIC, *TEMPLATES], ids=lambda path: path.name)
def test_examples_and_the_template_import_public_names_only(path: Path, tmp_path: Path) -> None:
    filled = tmp_path / "filled.py"
    filled.write_text(path.read_text("utf-8").replace("@CLASS@", "Exam_").replace("@MODULE@", "m"))
    used = imports(filled) - {"keju"}
    assert used <= {f"keju.{name}" for name in keju.__all__}


def test_the_registry_has_the_aliases_of_the_benchmarks() -> None:
    from keju.benchmarks import registry

    for name, (_, *aliases) in registry.BUILT_IN.items():
        assert registry.get(name).aliases == tuple(aliases)
        assert registry.get(name).name == name
