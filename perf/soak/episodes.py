"""Kills while models act: nothing is lost or doubled, and nothing is left running or lying about.

A case is a chain: ``keju eval`` with tools is killed `KILLS` times in the middle of episodes, each
time at another moment, then resumed, and compared with a run that nobody killed. The tools are a
real MCP server, Python in the sandbox with a grandchild that leaves its session, or a notebook of
BixBench whose cells do the same. All that is temporary lies in a folder of the case's own, which
must be empty soon after every kill, with no process that knows of it.
"""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any, Final

from tests.benchmarks.bixbench.conftest import flat, write
from tests.solvers.mcp.conftest import PROGRAM
from tests.support.endpoint import FaultyEndpoint
from tests.support.replies import EndpointRequest, Plan
from tests.support.tools import calling, results_in

from keju.runs.journal import FILE, Records
from perf.soak.case import LONGEST, Case, environment

KILLS: Final = 5
CHAINS: Final = {"server": 6, "python": 4, "notebook": 4}
SIZE: Final = {"server": 60, "python": 12, "notebook": 12}
IN_FLIGHT: Final = 3
CLEARED: Final = 60.0
"""Seconds within which everything is gone, on a busy machine."""
LATENCY: Final = 0.05
CODE: Final = (
    "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(600)\nprint(6 * 7)"
)
CALLS: Final[dict[str, dict[str, Any]]] = {
    "python": {"code": CODE},
    "server__calculate": {"expression": "6 * 7"},
    "edit_cell": {"contents": CODE},
}
BASELINE: Final = {"name": "baseline"}
SERVER: Final = {"name": "server", "command": sys.executable, "args": ["-I", str(PROGRAM)]}
ARMS: Final[dict[str, list[dict[str, Any]]]] = {
    "server": [BASELINE, {"name": "server", "servers": [SERVER]}],
    "python": [BASELINE, {"name": "python", "tools": ["python"]}],
    "notebook": [],
}

_killed: Counter[str] = Counter()


def cases() -> list[Case]:
    """Chains of kills with both kinds of tools."""
    return [
        Case(f"{kind}, chain {number}", partial(attack, kind, number))
        for kind, count in CHAINS.items()
        for number in range(count)
    ]


def summary() -> str:
    """How many kills hit a run."""
    parts = ", ".join(f"{kind} {_killed[kind]}" for kind in CHAINS)
    return f"{_killed.total()} kills: {parts}"


def attack(kind: str, number: int, folder: Path) -> str:
    """One chain; what went wrong, or an empty text."""
    scratch = Path(tempfile.mkdtemp(prefix="kj-", dir="/tmp"))  # sockets need a short path
    scratch.chmod(0o755)
    try:
        return _chain(kind, number, folder, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _chain(kind: str, number: int, folder: Path, scratch: Path) -> str:
    chance, journal = random.Random(f"{kind} {number}"), folder / "r" / FILE
    with FaultyEndpoint(Plan(answers=acts, latency=LATENCY)) as endpoint:
        argv = command(kind, endpoint, folder, folder)
        for _ in range(KILLS):
            before = _lines(journal)
            child = _start(argv, scratch)
            aim = before + chance.randrange(3)
            while child.poll() is None and _lines(journal) <= aim:
                time.sleep(0.01)
            time.sleep(chance.random())
            if child.poll() is None:
                _killed[kind] += 1
            child.send_signal(signal.SIGKILL)
            child.wait()
            if orphans := _left_after(scratch):
                return f"left behind by a kill: {', '.join(orphans)[:300]}"
        resumed = _finish(argv, scratch)
        complete_run = _finish(command(kind, endpoint, folder, folder / "whole"), scratch)
    if isinstance(resumed, str) or isinstance(complete_run, str):
        return f"not finished: {resumed if isinstance(resumed, str) else complete_run}"
    if orphans := _left_after(scratch):
        return f"left behind at the end: {', '.join(orphans)[:300]}"
    if _numbers(resumed) != _numbers(complete_run):
        return "the killed run has other numbers"
    keys = Counter((record.id, record.arm) for record in Records(folder / "r"))
    expected = SIZE[kind] * max(1, len(ARMS[kind]))
    if len(keys) != expected or max(keys.values()) > 1:
        return f"{len(keys)} of {expected} records, {max(keys.values())} of one"
    notebooks = len(list((folder / "r").glob("episodes/*/notebook.ipynb")))
    if kind == "notebook" and notebooks != expected:
        return f"{notebooks} of {expected} notebooks"
    return ""


def acts(request: EndpointRequest) -> Any:
    """A model that calls its first tool once where it has one, and answers."""
    results, tools = results_in(request), request.body.get("tools")
    if tools and not results and len(request.body["messages"]) < 3:
        names = [tool["function"]["name"] for tool in tools]
        name = next((tool_name for tool_name in CALLS if tool_name in names), "")
        if name:
            return calling((name, CALLS[name]))
    if results and "submit_answer" in str(tools):
        return calling(("submit_answer", {"answer": results[-1].split()[-1]}))
    return f"So the answer is {results[-1].strip()}." if results else "So the answer is 41."


def command(kind: str, endpoint: FaultyEndpoint, folder: Path, runs: Path) -> list[str]:
    """``keju eval`` in two arms, without and with tools, or in notebooks."""
    exam: dict[str, Any] = {"demo": {"size": SIZE[kind], "subset_list": ["object_counting"]}}
    if kind == "notebook":
        exam = {"bixbench": {"mode": "agentic", "answer_mode": "open"}}
        _make_capsules(folder / "data" / "bixbench")
    settings = {
        "model": "m",
        "api_url": endpoint.url,
        "datasets": list(exam),
        "dataset_args": exam,
        "data_dir": str(folder / "data"),
        "arms": ARMS[kind],
        "sandbox": {"memory": "400MiB"},
        "eval_batch_size": IN_FLIGHT,
        "work_dir": str(runs),
        "run_id": "r",
    }
    file = folder / f"{runs.name}.json"
    file.write_text(json.dumps(settings))
    return [sys.executable, "-m", "keju", "eval", "--config", str(file), "--json", "--quiet"]


def _make_capsules(folder: Path) -> None:
    """Questions about one capsule of one file."""
    capsule = folder / "capsules" / "bix-1" / "Data"
    capsule.mkdir(parents=True, exist_ok=True)
    (capsule / "table.csv").write_text("gene,a\nalpha,42\n")
    names = [f"bix-1-q{number}" for number in range(1, SIZE["notebook"] + 1)]
    write(folder / "BixBench_v1.5.jsonl", [flat(name, "42", ["1", "2", "3"]) for name in names])


def _start(argv: list[str], scratch: Path) -> subprocess.Popen[bytes]:
    env = environment() | {"TMPDIR": str(scratch)}
    return subprocess.Popen(argv, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _finish(argv: list[str], scratch: Path) -> dict[str, Any] | str:
    """The results of a run that nobody disturbs, or what was wrong with it."""
    env = environment() | {"TMPDIR": str(scratch)}
    try:
        ran = subprocess.run(argv, env=env, capture_output=True, timeout=LONGEST, check=False)
    except subprocess.TimeoutExpired:
        return "it hangs"
    if ran.returncode:
        return f"exit code {ran.returncode}: {ran.stderr.decode()[-300:]}"
    document: dict[str, Any] = json.loads(ran.stdout)
    return document


def _numbers(results: dict[str, Any]) -> Any:
    return [(e.get("arm"), e["n"], e["metrics"], e["outcomes"]) for e in results["benchmarks"]]


def _lines(journal: Path) -> int:
    return journal.read_bytes().count(b"\n") if journal.exists() else 0


def _left_after(scratch: Path) -> list[str]:
    """What is still there when everything should be gone."""
    deadline = time.monotonic() + CLEARED
    while (orphans := _find_orphans(scratch)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return orphans


def _find_orphans(scratch: Path) -> list[str]:
    """Files below the temporary folder, and processes that know of it."""
    orphans = [path.name for path in scratch.iterdir()]
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command_line = (process / "cmdline").read_bytes()
            if str(scratch).encode() in (process / "environ").read_bytes() + command_line:
                orphans.append(command_line.replace(b"\0", b" ").decode("utf-8", "replace"))
        except OSError:
            continue  # gone in the meantime
    return orphans
