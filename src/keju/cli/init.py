"""``keju init``: starts an exam, a plug-in benchmark, a config file or an A/B test of tools."""

from __future__ import annotations

import json
import re
import shlex
from importlib import resources
from pathlib import Path
from typing import Any

from keju.cli.command import command
from keju.cli.common import CommandOutput, print_steps
from keju.errors import UsageError
from keju.messages import label_text

CONFIG, ARMS = "config.yaml.txt", "arms/arms.yaml.txt"
SERVER = "calculator.py"
"""The MCP server of an A/B test."""
_NAME = re.compile(r"[a-z][a-z0-9]*(?:[_-][a-z0-9]+)*")
"""A name such as ``chess`` or ``chess-end_games2``."""
_NOT_IN_NAMES = re.compile(r"[^\w.-]")
"""A character that the name of an exam cannot have: the space in ``my quiz``."""


@command("init benchmark", "keju init benchmark chess", "keju init benchmark chess --dir plugins")
def benchmark(name: str, folder: str | None) -> CommandOutput:
    """Write a working plug-in package: a benchmark, its data and its test."""
    place = Path(folder or name)
    files = write_benchmark(name, place)
    module = next(str(file) for file in files if file.suffix == ".py")
    steps = {
        f"pip install -e {_quote_path(place)}": label_text("next.install"),
        f"keju show {name}": label_text("next.first_question"),
        f"keju eval --model scripted --datasets {name}": label_text("next.run"),
        f"keju eval --model scripted --datasets {_quote_path(module)}": label_text(
            "next.uninstalled"
        ),
    }
    lines = [label_text("wrote", file=file) for file in files]
    document: dict[str, Any] = {
        "name": name,
        "folder": str(place),
        "files": [str(file) for file in files],
    }
    document |= {"next": list(steps)}
    return CommandOutput(document, lambda: print_steps([*lines, label_text("next")], steps))


@command("init exam", "keju init exam quiz.csv", "keju init exam quiz.xlsx --dir geography")
def exam(table: str, folder: str | None) -> CommandOutput:
    """Write the exam.yaml that states how Keju reads your questions: kinds, columns, encoding.

    For a file it makes a folder with exam.yaml and a copy of the file; change the lines that are
    wrong. For a folder of tables it writes exam.yaml into it.
    """
    files, counts = write_exam(Path(table), folder)
    place = _quote_path(files[0].parent)
    steps = {
        f"keju show {place}": label_text("next.first_question"),
        f"keju eval --model scripted --datasets {place}": label_text("next.run"),
    }
    lines = [*(label_text("wrote", file=file) for file in files)]
    lines.append(label_text("init.exam", choice=counts[0], free=counts[1]))
    document: dict[str, Any] = {"files": [str(file) for file in files], "next": list(steps)}
    document |= {"choice": counts[0], "free": counts[1]}
    return CommandOutput(document, lambda: print_steps([*lines, label_text("next")], steps))


@command("init config", "keju init config", "keju init config -o nightly.yaml")
def config(output: str) -> CommandOutput:
    """Write a commented configuration that runs without changes."""
    path = write_config(Path(output))
    steps = {f"keju eval -c {shlex.quote(str(path))}": label_text("next.task")}
    lines = label_text("wrote", file=path), label_text("next")
    return CommandOutput(
        {"file": str(path), "next": list(steps)}, lambda: print_steps(lines, steps)
    )


@command("init arms", "keju init arms", "keju init arms -o tools/arms.yaml")
def arms(output: str) -> CommandOutput:
    """Write a commented A/B test of tools that runs without changes, and a small MCP server for it.

    It asks the same questions without tools, with the server's tools, and with a placebo. It needs
    the extra mcp: pip install 'keju[mcp]'.
    """
    files = write_arms(Path(output))
    path = shlex.quote(str(files[0]))
    steps = {
        f"keju mcp check -c {path}": label_text("next.servers"),
        f"keju run -c {path}": label_text("next.task"),
    }
    lines = [*(label_text("wrote", file=file) for file in files), label_text("next")]
    document = {"files": [str(file) for file in files], "next": list(steps)}
    return CommandOutput(document, lambda: print_steps(lines, steps))


@command(
    "init mcp",
    "keju init mcp 'npx -y @modelcontextprotocol/server-everything'",
    "keju init mcp http://127.0.0.1:8000/mcp -o tools/mcp.yaml",
)
def mcp(server: str, output: str) -> CommandOutput:
    """Start an MCP server, list its tools, and write a first test of it: arms and questions.

    The questions are there to be filled in: one for each tool, with the tool that it should call.
    No model is asked. It needs the extra mcp: pip install 'keju[mcp]'.
    """
    from keju.cli.mcp_draft import write_mcp_test

    files, tools = write_mcp_test(server, Path(output))
    path = shlex.quote(str(files[0]))
    steps = {
        f"keju mcp check -c {path}": label_text("next.servers"),
        f"keju run -c {path} --model NAME --api-url URL": label_text("next.run_filled"),
    }
    lines = [*(label_text("wrote", file=file) for file in files)]
    lines += [label_text("init.mcp", n=len(tools), file=files[1]), label_text("next")]
    document = {"files": [str(file) for file in files], "tools": tools, "next": list(steps)}
    return CommandOutput(document, lambda: print_steps(lines, steps))


def _quote_path(path: str | Path) -> str:
    """Return a path as a shell accepts it: ``./chess``, to distinguish it from a package's name."""
    text = str(path)
    return shlex.quote(text if Path(text).is_absolute() or "/" in text else f"./{text}")


def write_benchmark(name: str, folder: Path) -> list[Path]:
    """Write a working plug-in package with the benchmark `name`; return its files.

    Raise UsageError if the name is invalid or in use, or if the folder is not empty.
    """
    from keju.benchmarks import registry

    if not _NAME.fullmatch(name):
        raise UsageError("cli_bad_benchmark_name", name=name)
    if name in [*registry.names(), *registry.ALIASES]:
        raise UsageError("cli_benchmark_exists", name=name)
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
        raise UsageError("cli_folder_not_empty", folder=folder)
    return [
        _write(folder / target, f"benchmark/{source}", words) for source, target in files.items()
    ]


def write_exam(table: Path, folder: str | None) -> tuple[list[Path], tuple[int, int]]:
    """Write the exam file of a table or of a folder of tables, and copy a single table next to it.

    Return the files, and the numbers of questions with options and without.
    """
    import shutil

    from keju.benchmarks.custom.draft import draft_exam

    if table.is_dir():
        place = table
    elif folder is not None:
        place = Path(folder)
    else:
        place = table.parent / table.name.partition(".")[0]
    name = _NOT_IN_NAMES.sub("_", place.resolve().name).strip("._-") or "exam"
    exam_file = place / "exam.yaml"
    if exam_file.exists():
        raise UsageError("cli_file_exists", path=exam_file)
    draft = draft_exam(table, name)
    files = [exam_file]
    try:
        place.mkdir(parents=True, exist_ok=True)
        exam_file.write_text(draft.text, encoding="utf-8")
        if not table.is_dir() and table.parent.resolve() != place.resolve():
            files.append(place / table.name)
            shutil.copyfile(table, files[-1])
    except OSError as error:
        raise UsageError("cli_cannot_write", place=place, problem=error.strerror) from None
    return files, (draft.choice_count, draft.free_count)


def write_config(path: Path) -> Path:
    """Write a commented configuration that works without changes."""
    if path.exists():
        raise UsageError("cli_file_exists", path=path)
    return _write(path, CONFIG, {"FILE": path.name})


def write_arms(path: Path) -> list[Path]:
    """Write an A/B test of tools, and the MCP server that it starts next to it."""
    server = path.parent / SERVER
    for file in (path, server):
        if file.exists():
            raise UsageError("cli_file_exists", path=file)
    words = {"FILE": path.name, "SERVER": json.dumps(SERVER, ensure_ascii=False)}
    return [_write(path, ARMS, words), _write(server, f"arms/{SERVER}.txt", {})]


def _write(path: Path, template: str, words: dict[str, str]) -> Path:
    """Write a template with its placeholders, such as ``@NAME@``, filled in."""
    text = resources.files("keju.cli").joinpath("templates", template).read_text("utf-8")
    for key, value in words.items():
        text = text.replace(f"@{key}@", value)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError("cli_cannot_write", place=path, problem=error.strerror) from None
    return path
