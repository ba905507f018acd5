"""``python -m perf.house [SRC] [--files] [--functions]``: how large the house is, and how far one
sample walks through it.

Prints the statements of each room (counted from the syntax tree, docstrings and comments aside),
the lengths of functions, and the files and functions that one BBH sample runs through in ``keju
eval``, ``keju score`` and ``keju judge``: each of them in a process of its own, with every call of
a function of Keju's counted. The reply is a plain one, in the form that was asked for. `SRC` is
another checkout's ``src`` to compare with. ``--files`` lists the files of each walk with their
lines and how many of their functions were called, ``--functions`` names these too, with calls.
"""

from __future__ import annotations

import ast
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.support.endpoint import FaultyEndpoint
from tests.support.replies import EndpointRequest, Plan

from perf.exam import data_dir
from perf.measure import ROOT, NotMeasured

CHILD = """
import json, sys, threading
seen = {}
def profile(frame, event, argument):
    if event == "call":
        code = frame.f_code
        # A function's code is optimised (flag 1); that of a module or a class body is not.
        if code.co_filename.startswith(SRC) and code.co_flags & 1 and code.co_name[0] != "<":
            key = code.co_filename, code.co_firstlineno, code.co_name
            seen[key] = seen.get(key, 0) + 1
SRC, answer, *arguments = sys.argv[1:]
sys.setprofile(profile)
threading.setprofile(profile)
from keju.cli import main
status = main(arguments)
sys.setprofile(None)
threading.setprofile(None)
called = sorted((*key, count) for key, count in seen.items())
json.dump({"called": called, "status": status}, open(answer, "w"))
"""
"""Runs a command and writes which files and functions of Keju it called, and how often."""


def modules(source: Path) -> Iterator[tuple[Path, ast.Module]]:
    """Every module below a folder, parsed."""
    for path in sorted(source.rglob("*.py")):
        yield path, ast.parse(path.read_text(encoding="utf-8"))


def statements(tree: ast.Module) -> int:
    """Statements of a module; a docstring is none."""
    return sum(
        isinstance(node, ast.stmt)
        and not (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        )
        for node in ast.walk(tree)
    )


def print_size(source: Path) -> None:
    """Statements by room, and how long functions are."""
    rooms: Counter[str] = Counter()
    lengths: dict[str, int] = {}
    for path, tree in modules(source):
        parts = path.relative_to(source).parts
        rooms["/".join(parts[:2]) if len(parts) > 2 else "beside the rooms"] += statements(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                lengths[f"{path.relative_to(source)}:{node.lineno} {node.name}"] = length
    for room, count in rooms.most_common():
        print(f"  {room:<24} {count:>7,}")
    print(f"  {'statements':<24} {rooms.total():>7,} in {len(list(source.rglob('*.py')))} files")
    longest = max(lengths, key=lengths.__getitem__)
    ordered = sorted(lengths.values())
    p95 = ordered[int(0.95 * len(ordered))]
    median = statistics.median(ordered)
    print(f"  functions {len(ordered):,}: lines median {median:g}, p95 {p95}, longest", end=" ")
    print(f"{lengths[longest]} ({longest})")


def walk(source: Path, *arguments: str) -> dict[Path, dict[str, int]]:
    """The calls of each function that a command runs through, by file, in their order."""
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder, "answer.json")
        child = subprocess.run(
            [sys.executable, "-c", CHILD, str(source), str(answer), *arguments],
            env=os.environ | {"PYTHONPATH": str(source), "OPENAI_API_KEY": "EMPTY"},
            capture_output=True,
            text=True,
            check=False,
        )
        if not answer.is_file():
            raise NotMeasured(child.stderr.strip().rpartition("\n")[2])
        trace = json.loads(answer.read_text())
        if trace["status"] not in (0, 4):
            raise NotMeasured(f"keju {arguments[0]} ended with {trace['status']}: {child.stderr}")
        files: dict[Path, dict[str, int]] = {}
        for file, line, function, calls in trace["called"]:
            files.setdefault(Path(file), {})[f"{function}:{line}"] = calls
        return files


def answer(request: EndpointRequest) -> str:
    """A plain reply: a label that the question has; a judge's grade."""
    wants_grade = "<grade>" in request.text
    return "<grade>correct</grade>" if wants_grade else "Think. So the answer is (A)."


def print_walks(source: Path) -> None:
    """How far one sample walks through each command."""
    data = data_dir()
    if data is None or not (data / "bbh").is_dir():
        raise NotMeasured("no BBH data: set KEJU_DATA_DIR")
    with tempfile.TemporaryDirectory() as work, FaultyEndpoint(Plan(answers=answer)) as endpoint:
        exam = ["--datasets", "bbh", "--data-dir", str(data), "--limit", "1"]
        exam += ["--dataset-args", '{"bbh": {"subset_list": ["snarks"]}}']
        place = ["--work-dir", work, "--json"]
        run = str(Path(work, "one"))
        model = ["--model", "m", "--api-url", endpoint.url]
        commands = {
            "eval": ["eval", *model, *exam, *place, "--run-id", "one"],
            "score": ["score", run, "--data-dir", str(data), "--json"],
            "judge": ["judge", run, *model, "--strategy", "llm", "--json"],
        }
        for name, arguments in commands.items():
            files = walk(source, *arguments)
            functions = sum(map(len, files.values()))
            calls = sum(sum(counts.values()) for counts in files.values())
            print(f"  keju {name:<6} {len(files):>4} files {functions:>5} functions", end=" ")
            print(f"{calls:>7,} calls")
            for file, counts in files.items() if {"--files", "--functions"} & {*sys.argv} else ():
                lines = len(file.read_text("utf-8").splitlines())
                print(f"      {file.relative_to(source)!s:<44} {lines:>5} {len(counts):>4}")
                if "--functions" in sys.argv:
                    names = (f"{key.partition(':')[0]}={calls}" for key, calls in counts.items())
                    print(f"          {' '.join(names)}")


def main() -> int:
    """Print all of it."""
    paths = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    source = Path(paths[0]).resolve() if paths else ROOT / "src"
    print_size(source)
    try:
        print_walks(source)
    except NotMeasured as lack:
        print(f"  not measured: {lack}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
