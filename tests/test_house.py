"""Rules of the code: which package may import which, and that only an exam's package names it."""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
import tomllib
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
    ("scores", "progress"),
    ("engine", "solvers"),
    ("judges",),
    ("results",),
    ("reporting", "viewer", "interop"),
    ("task",),
    ("stored_tasks", "matrix"),
    ("api",),
    ("cli",),
)
"""A package imports packages of lower levels, and of its level without a cycle."""
LEVEL = {package: number for number, packages in enumerate(LEVELS) for package in packages}

EXAMS = re.compile(
    r"bbh|big[-_ ]?bench|mmlu[-_ ]?pro|(?<![a-z])c[-_]?eval(?![a-z])|bix[-_ ]?bench|gsm8k",
    re.IGNORECASE,
)
"""``bbh`` in ``keju.benchmarks.bbh``, ``C-Eval`` in a sentence; not ``eval`` or ``ceval_``-less."""


def modules() -> Iterator[tuple[str, Path]]:
    """Every module with its package: ``("config", src/keju/config/load.py)``."""
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


def packages_of(path: Path) -> set[str]:
    """The packages that a file imports from."""
    return {name.split(".")[1] for name in imports(path) if name.count(".")} & set(LEVEL)


UPWARD: set[tuple[str, str]] = set()
"""Imports that do not keep the rule yet: (file, package). The list only ever gets shorter."""


def test_every_package_has_a_level() -> None:
    assert {package for package, _ in modules()} <= set(LEVEL)


def test_packages_import_only_lower_packages() -> None:
    wrong = {
        (str(path.relative_to(SOURCE)), other)
        for package, path in modules()
        for other in packages_of(path)
        if LEVEL[other] > LEVEL[package]
    }
    assert wrong == UPWARD


def test_packages_of_one_level_do_not_import_each_other_in_a_circle() -> None:
    beside: dict[str, set[str]] = {package: set() for package in LEVEL}
    for package, path in modules():
        beside[package] |= {
            o for o in packages_of(path) if o != package and LEVEL[o] == LEVEL[package]
        }
    for package, others in beside.items():
        assert not any(package in beside[other] for other in others), (
            f"{package} and {sorted(others)}"
        )


def in_exam_package(path: Path) -> bool:
    """Whether a file is part of an exam's own package."""
    parts = path.relative_to(SOURCE).parts
    return parts[0] == "benchmarks" and len(parts) > 2


def named(path: Path) -> set[str]:
    """The names of exams in a file's code, texts and docstrings."""
    helps = path.relative_to(SOURCE).parts[0] in ("cli", "messages")
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        texts: list[str] = []
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            is_command = helps and "keju " in node.value  # help shows commands that can be tried
            texts = [] if is_command else [node.value]
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
EVIDENCE = {
    f"answers/{name}.py" for name in ("discussions", "option_mentions", "verdicts", "wordings")
}
"""Their docstrings name the replies and the authors that the rules were made after."""


def test_only_the_package_of_an_exam_names_it() -> None:
    naming = {
        str(path.relative_to(SOURCE))
        for _, path in modules()
        if not in_exam_package(path) and named(path)
    }
    assert naming == {REGISTRY} | EVIDENCE


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


CEILINGS = {
    "vague names, %": 0.2,
    "class names with two meanings": 0,
    "odd phrases per 10,000 words": 3.5,
    "functions with more than 10 branches, %": 5.0,
    "most branches": 20,
}
"""The most that `src/keju` may have of each. Lower a ceiling when its figure falls; never raise one."""

VAGUE_NAMES = {
    "told", "found", "own", "known", "asked", "given", "said", "shown", "kept", "meant", "sat",
    "taken", "made", "wanted", "seen", "lost", "left", "gained", "named", "lacking", "spoken",
    "spent", "held", "beside", "alike", "apart", "each", "other", "others", "both", "rest",
    "first", "second", "last", "more", "most", "least", "one", "two", "many", "few", "whole",
}  # fmt: skip
"""Names that do not say what they hold: participles, pronouns and words for amounts."""

ODD_PHRASES = re.compile(
    r"\b(?:is|are|was|were) no (?!longer|more|such|doubt|need|way|\w+er\b)[a-z]+"  # is no share
    r"|\bbeside\b|\banew\b|\bso many\b|\bof (?:its|their|his|our|your) own\b"
    r"|\b(?:whoever|nobody|somebody|whatever|whichever)\b"
    r"|\b(?:stands?|stood|lies) "
    r"(?:beside|in|at|for|on|there|here|before|behind|above|below|side)\b"
    r"|\b(?:sits?|sat|sittings?)\b"
    r"|\b(?:is|are|was|were|be) (?:told|said)\b"
    r"|\b(?:that|those) of (?:a|an|the|its|their|one|another)\b"
    r"|(?:^|[.;:] )What [a-z]+s?\b"  # a docstring "What the model says."
)
"""Phrases that native writers rarely use in documentation."""


def branches(function: ast.AST) -> int:
    """Cyclomatic complexity; nested functions count for themselves."""
    decisions = (
        ast.If, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.IfExp, ast.Assert,
        ast.comprehension, ast.match_case,
    )  # fmt: skip
    total, remaining = 1, list(ast.iter_child_nodes(function))
    while remaining:
        node = remaining.pop()
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            total += isinstance(node, decisions)
            total += len(node.values) - 1 if isinstance(node, ast.BoolOp) else 0
            remaining += ast.iter_child_nodes(node)
    return total


def bound_name(node: ast.AST) -> str | None:
    """The name that a node binds: a variable, an argument or a function."""
    if isinstance(node, ast.Name):
        return node.id if isinstance(node.ctx, ast.Store) else None
    if isinstance(node, ast.arg):
        return None if node.arg in ("self", "cls") else node.arg
    return node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else None


def sentences_of(text: str, tree: ast.AST) -> Iterator[str]:
    """Strings with at least three words and comments with at least four."""
    for node in ast.walk(tree):
        value = node.value if isinstance(node, ast.Constant) else None
        if isinstance(value, str) and value.count(" ") >= 2 and "\\" not in value:
            yield value
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and token.string.count(" ") >= 3:
            yield token.string.lstrip("# ")


def english_texts() -> Iterator[str]:
    """English texts with at least three words in data files: ``en.toml``, ``en/…/x.json``, and
    the descriptions of the options."""

    def strings(value: object) -> Iterator[str]:
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict | list):
            for part in value.values() if isinstance(value, dict) else value:
                yield from strings(part)

    loaders = {".toml": tomllib.loads, ".json": json.loads}
    for path in SOURCE.rglob("*"):
        place = path.relative_to(SOURCE)
        is_english = "en" in (*place.parts[:-1], path.stem) or place == Path("cli/options.json")
        if path.suffix in loaders and is_english:
            document = loaders[path.suffix](path.read_text("utf-8"))
            yield from (text for text in strings(document) if text.count(" ") >= 2)


def language_figures() -> dict[str, float]:
    """The figures of `CEILINGS`, measured for all of `src/keju`."""
    names: list[str] = []
    files_of_class: dict[str, set[Path]] = {}
    complexities: list[int] = []
    texts = list(english_texts())
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text("utf-8")
        tree = ast.parse(text)
        texts += sentences_of(text, tree)
        for node in ast.walk(tree):
            if (name := bound_name(node)) is not None:
                names.append(name.lstrip("_"))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                complexities.append(branches(node))
            if isinstance(node, ast.ClassDef):
                files_of_class.setdefault(node.name, set()).add(path)
    words = sum(len(text.split()) for text in texts)
    phrases = sum(len(ODD_PHRASES.findall(text)) for text in texts)
    complex_share = sum(count > 10 for count in complexities) / len(complexities)
    return {
        "vague names, %": 100 * sum(name in VAGUE_NAMES for name in names) / len(names),
        "class names with two meanings": sum(len(files) > 1 for files in files_of_class.values()),
        "odd phrases per 10,000 words": 10_000 * phrases / words,
        "functions with more than 10 branches, %": 100 * complex_share,
        "most branches": max(complexities),
    }


def test_names_and_sentences_stay_below_their_ceilings() -> None:
    figures = language_figures()
    assert set(figures) == set(CEILINGS)
    too_high = {key: value for key, value in figures.items() if value > CEILINGS[key]}
    assert too_high == {}
