"""What each command needs for a million questions that are read from a file: memory, and whether
time grows with them; version 0.1, from the repository's history, beside it."""

from __future__ import annotations

import io
import os
import random
import re
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Thread
from typing import NamedTuple
from urllib.request import urlopen

import msgspec

from perf.measure import ROOT, NotMeasured, Row, environment_of_children
from perf.robust import BEFORE

LARGE, SMALLER = 1_000_000, 10
"""Questions, and how many times fewer time is held against; version 0.1 runs that much less."""
LIMIT = 200
"""MB of anonymous memory that a command may take."""
GROWTH = 1.5
"""Times the growth of the questions that the growth of processor time may be."""
QUESTIONS, QUESTIONS_BEFORE = "KEJU_PERF_QUESTIONS", "KEJU_PERF_QUESTIONS_01"
"""The environment variables that set other numbers of questions; 0 for 0.1 leaves it out."""
PAUSE = 0.01
"""Seconds between two looks at a process's memory."""
PATIENCE = 600.0
"""Seconds that one page of the viewer may take."""
PAGES = (
    "",
    "/samples?outcome=failed&page=3",
    "/samples?least=1&sort=longest",
    "/samples?subset=block+3&tier=strict",
    "/samples?text=answer+is+(B)",
    "/samples?where=length+%3E+10+and+outcome+%3D+%27correct%27",
)
"""What is looked at in `keju view`: a run, and its replies with filters."""


ADDRESS = re.compile(r"http://[^/\s]+/")
"""Where the viewer says that it is."""


class CommandUsage(NamedTuple):
    """What a command took."""

    peak: float
    """MB of anonymous memory (RssAnon) of the process, mapped files aside."""
    cpu: float
    """Seconds of processor time, those of processes that it started among them."""
    seconds: float


def measure() -> Iterator[Row]:
    """A row for each command: its memory, and its time against that of a tenth of the questions."""
    questions = int(os.environ.get(QUESTIONS, LARGE))
    small_size = questions // SMALLER
    older = int(os.environ.get(QUESTIONS_BEFORE, small_size))
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        small = dict(commands(folder / "small", small_size))
        before = dict(commands_before(folder, older)) if older else {}
        for step, measured in commands(folder / "large", questions):
            yield row(step, questions, (measured, small[step], before.get(step)), older)


def row(
    step: str,
    questions: int,
    takings: tuple[CommandUsage | None, CommandUsage | None, CommandUsage | None],
    older: int,
) -> Row:
    """One command: all questions, a tenth of them, and version 0.1 with so many as `older`."""
    measured, small, before = takings
    assert measured is not None
    assert small is not None
    growth = measured.cpu / small.cpu
    comparison = "; 0.1: not there" if older else ""
    if before is not None:
        comparison = f"; 0.1: {before.peak:.0f} MB, {before.cpu:.0f} s at {older:,}"
    return Row(
        f"million: keju {step}, {questions:,}, {measured.cpu:.0f} s CPU, {growth:.1f}x of a tenth",
        f"{measured.peak:.0f} MB",
        f"{LIMIT} MB anonymous{comparison}",
        measured.peak / LIMIT,
        measured.peak <= LIMIT and growth <= GROWTH * SMALLER,
    )


def commands(
    folder: Path, questions: int, source: Path | None = None
) -> Iterator[tuple[str, CommandUsage | None]]:
    """What each command takes for an exam in a JSON Lines file, one after the other.

    `source` is the tree of another version; None stands for a command that it does not have.
    """
    take = partial(taken_by, source=source)
    folder.mkdir()
    exam, runs, run = folder / "questions.jsonl", folder / "runs", folder / "runs" / "large"
    write_questions(exam, questions)
    evaluate = f"eval --model scripted --datasets {exam} --work-dir {runs} --json"
    eval_command = f"{evaluate} --run-id large"
    yield "eval", take(eval_command)
    halve(run / "records.jsonl")
    yield "eval --resume, half of it answered", take(f"{eval_command} --resume")
    yield "eval --resume, all of it answered", take(f"{eval_command} --resume")
    yield "score", take(f"score {run} --json")
    yield "report", take(f"report {run} -o {folder}/report.html")
    yield "export to CSV", take(f"export {run} --format csv -o {folder}/rows.csv")
    full = f"export {run} --format jsonl --full-text -o {folder}/rows.jsonl"
    yield "export to JSON Lines", take(full)
    write_predictions(folder / "predictions.jsonl", questions)
    predictions = f"--predictions {folder}/predictions.jsonl"
    yield "score --predictions", take(f"score --datasets {exam} {predictions} --json")
    yield "stats", take(f"stats {exam} --json")
    write_log(folder / "log", questions)
    imported = f"import {folder}/log --datasets {exam} --work-dir {runs} --run-id imported"
    yield "import of an lm-eval log", take(imported)
    yield (
        "view, six pages with filters, one in SQL",
        take(f"view {runs} --port 0 --no-browser", look),
    )
    if not has("compare", source):
        return
    take(f"{evaluate} --run-id other --generation-config temperature=0.7")
    compare = f"compare large other --work-dir {runs}"
    yield "compare", take(compare)
    yield "compare, as a page", take(f"{compare} -o {folder}/compare.html")
    yield "compare --json, every question that differs", take(f"{compare} --json")


def commands_before(folder: Path, questions: int) -> Iterator[tuple[str, CommandUsage | None]]:
    """The same by version 0.1."""
    archive = subprocess.run(["git", "archive", BEFORE, "src"], cwd=ROOT, capture_output=True)
    if archive.returncode:
        raise NotMeasured("needs the commit of version 0.1 in the repository")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder / "before", filter="data")
    yield from commands(folder / "older", questions, folder / "before" / "src")


def has(command: str, source: Path | None) -> bool:
    """Whether a version has a command."""
    with suppress(NotMeasured):
        return taken_by(f"{command} --help", source=source) is not None
    return False


def taken_by(
    command: str,
    drive: Callable[[subprocess.Popen[bytes], Path], None] | None = None,
    *,
    source: Path | None = None,
) -> CommandUsage | None:
    """Run a command of Keju, of another version with `source`; None where it does not have it.

    `drive` ends a command that would not end; it is given the file that the command writes to.
    """
    arguments = command.split()
    if source is not None and "--help" not in arguments and not has(arguments[0], source):
        return None
    environment = environment_of_children() | {"PYTHONUNBUFFERED": "1"}
    if source is not None:
        environment["PYTHONPATH"] = str(source)
    with tempfile.NamedTemporaryFile() as output:
        started = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "keju", *arguments],
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=ROOT,
            env=environment,
        )
        driver = Thread(target=drive, args=(process, Path(output.name))) if drive else None
        if driver is not None:
            driver.start()
        peak, exited_pid = 0, 0
        while not exited_pid:
            for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
                if line.startswith("RssAnon:"):
                    peak = max(peak, int(line.split()[1]))
            time.sleep(PAUSE)
            exited_pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if driver is not None:
            driver.join()
        if process.returncode:
            text = Path(output.name).read_text(errors="replace").strip()
            code, last_line = process.returncode, text.rpartition("\n")[2]
            raise NotMeasured(f"keju {arguments[0]} ended with {code}: {last_line}")
    return CommandUsage(peak / 1024, usage.ru_utime + usage.ru_stime, seconds)


def look(process: subprocess.Popen[bytes], output: Path) -> None:
    """Open pages of a run in the viewer, then end it."""
    try:
        address = None
        for _ in range(int(PATIENCE / PAUSE)):
            if (address := ADDRESS.search(output.read_text())) is not None:
                break
            time.sleep(PAUSE)
        assert address is not None
        for page in PAGES:
            with urlopen(f"{address[0]}runs/large{page}", timeout=PATIENCE) as answer:
                answer.read()
    finally:
        process.send_signal(signal.SIGINT)


def write_questions(path: Path, count: int) -> None:
    """Write an exam of short questions with four options in ten subsets, the rows mixed."""
    draw = random.Random(1)
    with path.open("w") as file:
        for number in range(count):
            question, options = _question(draw)
            file.write(
                f'{{"id": "sum-{number}", "subset": "block {number * 7 % 10}", '
                f'"question": "{question}", '
                f'"choices": {options}, "answer": "A"}}\n'.replace("'", '"')
            )


def _question(draw: random.Random) -> tuple[str, list[str]]:
    left_term, right_term = draw.randrange(10_000), draw.randrange(10_000)
    options = [str(left_term + right_term + step) for step in (0, 1, 10, 100)]
    return f"What is {left_term} plus {right_term}?", options


def write_predictions(path: Path, count: int) -> None:
    """Write a reply to each of the questions."""
    with path.open("w") as file:
        for number in range(count):
            file.write(f'{{"id": "sum-{number}", "output": "ANSWER: {"ABCD"[number % 4]}"}}\n')


def write_log(folder: Path, count: int) -> None:
    """Write a reply to each of the questions as lm-eval would, with a verdict."""
    folder.mkdir()
    draw, encode = random.Random(1), msgspec.json.Encoder().encode
    with (folder / "samples_sums_2026-01-01T00-00-00.000.jsonl").open("wb") as file:
        for number in range(count):
            question, options = _question(draw)
            letter = "ABCD"[number % 4]
            document = {"id": f"sum-{number}", "question": question, "options": options}
            row = {
                "doc_id": number,
                "doc": document | {"answer": "A"},
                "target": "A",
                "arguments": {"gen_args_0": {"arg_0": question, "arg_1": {"until": ["\n\n"]}}},
                "resps": [[f"ANSWER: {letter}"]],
                "filtered_resps": [letter],
                "filter": "none",
                "metrics": ["exact_match"],
                "exact_match": float(letter == "A"),
            }
            file.write(encode(row) + b"\n")


def halve(journal: Path) -> None:
    """Leave the first half of a journal, as a run that was killed does."""
    with journal.open("r+b") as file:
        file.seek(journal.stat().st_size // 2)
        file.readline()
        file.truncate()
