"""Record runs and what this version of Keju says about them, see `recorded_runs`."""

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

from tests.support.recorded_checks import laid_out
from tests.support.recorded_runs import (
    ENDPOINT,
    IMPORTED_LOG,
    ROOT,
    TESTS,
    CommandOutput,
    Keju,
    LaidRun,
    RecordedCase,
    Recordings,
    Served,
)

ENOUGH = 30
"""Records after which a run is killed that is to be killed."""


def keju_in(root: Path) -> Callable[..., CommandOutput]:
    """Run ``keju`` in a folder, without the caller's settings."""

    def run(*argv: str) -> CommandOutput:
        process = subprocess.run(
            [sys.executable, "-m", "keju", *argv],
            cwd=root,
            env=_environment(),
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        return CommandOutput(process.returncode, process.stdout)

    return run


def _environment() -> dict[str, str]:
    repository = str(TESTS.parent)
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("KEJU_", "OPENAI_"))}
    return clean | {"PYTHONPATH": os.pathsep.join((f"{repository}/src", repository))}


def record(recordings: Recordings, case: RecordedCase) -> None:
    """Make one run and keep its folder; of a matrix also the folders of its runs."""
    served = Served(case, recordings.answers, is_first=True)
    with tempfile.TemporaryDirectory() as place, served.endpoint as endpoint:
        root = Path(place)
        recordings.prepare(case, root, endpoint.url)
        argv = (
            *("eval", "--model", case.model, "--api-url", endpoint.url, "--data-dir", "data"),
            *("--run-id", case.name, "--json", "-q", "--no-report", *case.flags),
        )
        match case.origin:
            case "import":
                shutil.copytree(IMPORTED_LOG, root / "log")
                keju_in(root)("import", "log", "--data-dir", "data", "--run-id", case.name)
            case "killed":
                _kill(root, root / "runs" / case.name, argv)
            case "merge":
                recordings.copy_runs(case.parts, root, endpoint.url)
                keju_in(root)("merge", *case.parts, "-o", case.name, "--data-dir", "data")
            case "matrix":
                keju_in(root)("eval", "--config", f"{case.name}.yaml", "--json", "-q")
                for part in case.parts:
                    _keep(recordings, part, root, endpoint.url)
            case _:
                keju_in(root)(*argv)
        _keep(recordings, case.name, root, endpoint.url)


def _kill(root: Path, folder: Path, argv: tuple[str, ...]) -> None:
    """Let a run begin, kill it, and tear its last line."""
    command = [sys.executable, "-m", "keju", *argv]
    with subprocess.Popen(command, cwd=root, env=_environment()) as child:
        journal = folder / "records.jsonl"
        while not journal.exists() or journal.read_bytes().count(b"\n") < ENOUGH:
            time.sleep(0.01)
        child.send_signal(signal.SIGKILL)
    journal.write_bytes(journal.read_bytes()[:-40])


def _keep(recordings: Recordings, name: str, root: Path, url: str) -> None:
    """Copy a run's folder, without its report, with placeholders."""
    folder, target = root / "runs" / name, recordings.folder / name
    shutil.rmtree(target, ignore_errors=True)
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != "report.html" and path.stat().st_size:
            text = path.read_bytes().replace(str(root).encode(), ROOT.encode())
            copy = target / "run" / path.relative_to(folder)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(text.replace(url.encode(), ENDPOINT.encode()))


def observe(recordings: Recordings, case: RecordedCase) -> None:
    """Keep what this version says about a recorded run."""

    def see(look: Callable[[LaidRun, Keju], Any]) -> Any:
        with (
            tempfile.TemporaryDirectory() as place,
            laid_out(recordings, case.name, Path(place)) as laid,
        ):
            return look(laid, keju_in(Path(place)))

    def write(name: str, look: Callable[[LaidRun, Keju], Any]) -> None:
        document = see(look)
        if "results" in document and not recordings.differences(
            case.name, recordings.results(case), document["results"]
        ):
            del document["results"]
        text = json.dumps(document, ensure_ascii=False, indent=1)
        (recordings.folder / case.name / f"{name}.json").write_text(text + "\n", "utf-8")

    if recordings.is_scored(case):
        write("score", LaidRun.score)
        rows = see(lambda laid, keju: laid.export(keju, "csv"))
        (recordings.folder / case.name / "export.csv").write_text(rows, "utf-8", newline="")
    if case.resumes:
        write("resume", LaidRun.resume)
    if case.judged:
        write("judge", LaidRun.judge)
    if case.baseline:
        write("compare", LaidRun.compare)
        write("gate", LaidRun.gate)
    write("codes", LaidRun.codes)


def record_all(recordings: Recordings, names: list[str]) -> None:
    """Record the runs that are named, or all; then what is said about them."""
    chosen = [case for case in recordings.cases if not names or case.name in names]
    for case in chosen:
        if case.origin != "cell":
            record(recordings, case)
            print("recorded", case.name, flush=True)
    for case in chosen:
        observe(recordings, case)
        print("observed", case.name, flush=True)
