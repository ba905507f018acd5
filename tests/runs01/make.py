"""Record the runs of this folder: ``python -m tests.runs01.make [NAME...]`` in the repository.

It was run with version 0.1 and is kept to show how the files came about. Do not run it with a
later version: what it wrote is what later versions must still understand. The steps:

1. `questions.py` writes the questions to `data/` (once; they stay as they are).
2. `keju eval` sits the exams of `cases.py` against the endpoint of the tests, on loopback, in an
   empty folder. One run is killed with SIGKILL and its last line torn; one is `keju import` of a
   log that another tool wrote (`tests/interop/imports/fixtures/evalscope`).
3. The run's folder is copied to `NAME/run`, without its report. The folder of the machine becomes
   ``@ROOT@`` and the address of the endpoint ``@ENDPOINT@``; nothing else is changed.
4. `keju score`, `export`, `eval --resume` and `judge` are called on fresh copies of it, and what
   they say is kept beside it: `score.json`, `export.csv`, `resume.json`, `judge.json`. They hold
   the exit code, how much was asked, and the results only where `run/results.json` has others.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.runs01 import cases, questions
from tests.runs01.cases import CASES, HERE, Case, Ran, Served

ENOUGH = 30
"""Records after which the run that is killed is killed."""


def keju_in(root: Path) -> Callable[..., Ran]:
    """Run ``keju`` in a folder, without the settings of whoever calls."""

    def run(*argv: str) -> Ran:
        done = subprocess.run(
            [sys.executable, "-m", "keju", *argv],
            cwd=root,
            env=_environment(),
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        return Ran(done.returncode, done.stdout)

    return run


def _environment() -> dict[str, str]:
    repository = str(HERE.parent.parent)
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("KEJU_", "OPENAI_"))}
    return clean | {"PYTHONPATH": os.pathsep.join((f"{repository}/src", repository))}


def record(case: Case) -> None:
    """Sit one exam and keep its folder."""
    served = Served(case, first=True)
    with tempfile.TemporaryDirectory() as place, served.endpoint as endpoint:
        root = Path(place)
        folder = root / "runs" / case.name
        if case.name == "imported":
            shutil.copytree(cases.IMPORTED_DATA, root / "data")
            shutil.copytree(cases.IMPORTED_LOG, root / "log")
            keju_in(root)("import", "log", "--data-dir", "data", "--run-id", case.name)
        else:
            shutil.copytree(HERE / "data", root / "data")
            argv = (
                *("eval", "--model", "tiny", "--api-url", endpoint.url, "--data-dir", "data"),
                *("--run-id", case.name, "--json", "-q", "--no-report", *case.flags),
            )
            if case.name == "killed":
                _kill(root, folder, argv)
            else:
                keju_in(root)(*argv)
        _keep(case, root, folder, endpoint.url)


def _kill(root: Path, folder: Path, argv: tuple[str, ...]) -> None:
    """Let a run begin, kill it, and tear its last line."""
    command = [sys.executable, "-m", "keju", *argv]
    with subprocess.Popen(command, cwd=root, env=_environment()) as child:
        journal = folder / "records.jsonl"
        while not journal.exists() or journal.read_bytes().count(b"\n") < ENOUGH:
            time.sleep(0.01)
        child.send_signal(signal.SIGKILL)
    journal.write_bytes(journal.read_bytes()[:-40])


def _keep(case: Case, root: Path, folder: Path, url: str) -> None:
    target = HERE / case.name
    shutil.rmtree(target, ignore_errors=True)
    (target / "run").mkdir(parents=True)
    for path in sorted(folder.iterdir()):
        if path.name != "report.html" and path.stat().st_size:
            text = path.read_bytes().replace(str(root).encode(), cases.ROOT.encode())
            (target / "run" / path.name).write_bytes(
                text.replace(url.encode(), cases.ENDPOINT.encode())
            )


def observe(case: Case) -> None:
    """Keep what this version says about a recorded run."""
    target = HERE / case.name
    _write(case, "score", _seen(case, lambda keju, _: cases.score(case, keju)))
    text = _seen(case, lambda keju, _: cases.export(case, keju, "csv"))
    (target / "export.csv").write_text(text, "utf-8", newline="")
    if case.resumes:
        _write(case, "resume", _seen(case, lambda *seen: cases.resume(case, *seen)))
    if case.judged:
        _write(case, "judge", _seen(case, lambda *seen: cases.judge(case, *seen)))


def _seen(case: Case, look: Callable[..., Any]) -> Any:
    served = Served(case)
    with tempfile.TemporaryDirectory() as place, served.endpoint as endpoint:
        cases.lay(case, Path(place), endpoint.url)
        return look(keju_in(Path(place)), served)


def _write(case: Case, what: str, said: dict[str, Any]) -> None:
    if not cases.lost(case.name, cases.results(case), said["results"]):
        del said["results"]
    text = json.dumps(said, ensure_ascii=False, indent=1)
    (HERE / case.name / f"{what}.json").write_text(text + "\n", "utf-8")


def main(names: list[str]) -> None:
    """Record the runs that are named, or all."""
    if not (HERE / "data").exists():
        questions.write(HERE / "data")
    for case in CASES:
        if not names or case.name in names:
            record(case)
            observe(case)
            print(case.name)


if __name__ == "__main__":
    main(sys.argv[1:])
