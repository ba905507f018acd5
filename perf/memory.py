"""Whether memory stays flat: the peak of a large exam against that of a small one, and what each
command needs for a million questions that are read from a file."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from perf.exam import demo
from perf.measure import ROOT, NotMeasured, Row, environment_of_children, in_child, peak_mb

SMALL, LARGE, REPORTED = 10_000, 1_000_000, 100_000
LIMIT = 1.5
ANONYMOUS_LIMIT = 200
"""MB of anonymous memory that a command may take for `LARGE` questions."""
QUESTIONS = "KEJU_PERF_QUESTIONS"
"""The environment variable that sets another number of questions, to see what each adds."""
PAUSE = 0.01
"""Seconds between two looks at a process's memory."""


def measure() -> Iterator[Row]:
    """Peaks of whole processes that run generated exams, everything journalled."""
    small = in_child(peak_of_sitting, settings=demo(SMALL), report=False).value
    large = in_child(peak_of_sitting, settings=demo(LARGE), report=False)
    yield _row(f"memory: {LARGE:,} questions against {SMALL:,}", large.value, small)
    yield Row(f"memory: CPU of those {LARGE:,} questions", f"{large.cpu:.0f} s")
    small = in_child(peak_of_sitting, settings=demo(SMALL), report=True).value
    large = in_child(peak_of_sitting, settings=demo(REPORTED), report=True)
    yield _row(f"memory: with the report, {REPORTED:,} against {SMALL:,}", large.value, small)
    yield from commands(int(os.environ.get(QUESTIONS, LARGE)))


def _row(what: str, large: float, small: float) -> Row:
    ratio = large / small
    return Row(what, f"{large:.0f} MB", f"{LIMIT:g}x of {small:.0f} MB", ratio, ratio <= LIMIT)


def peak_of_sitting(settings: dict[str, Any], report: bool) -> float:
    """Run an exam; return the peak of this process in MB."""
    from keju.config import TaskConfig
    from keju.task import run_exams

    with tempfile.TemporaryDirectory() as folder:
        finished = run_exams(TaskConfig(**settings, work_dir=folder), report=report)
        assert finished.exit_code == 0, finished.message
        assert Path(finished.folder, "report.html").exists() == report
    return peak_mb()


def commands(questions: int) -> Iterator[Row]:
    """What each command takes for an exam in a JSON Lines file: RssAnon, mapped files aside."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_questions(folder / "questions.jsonl", questions)
        runs, run = folder / "runs", folder / "runs" / "large"
        sit = f"eval --model scripted --datasets {folder}/questions.jsonl --work-dir {runs}"
        steps = {
            "eval": f"{sit} --run-id large --json",
            "resume, half of it answered": f"{sit} --run-id large --resume --json",
            "resume, all of it answered": f"{sit} --run-id large --resume --json",
            "score": f"score {run} --json",
            "report": f"report {run} -o {folder}/report.html",
            "export to CSV": f"export {run} --format csv -o {folder}/rows.csv",
            "export to JSON Lines": f"export {run} --format jsonl --full-text -o {folder}/r.jsonl",
            "score of a predictions file": f"score --datasets {folder}/questions.jsonl "
            f"--predictions {folder}/predictions.jsonl --json",
            "stats": f"stats {folder}/questions.jsonl --json",
        }
        for step, command in steps.items():
            if step.startswith("resume, half"):
                _halve(run / "records.jsonl")
            if "--predictions" in command:
                write_predictions(folder / "predictions.jsonl", questions)
            seconds = time.perf_counter()
            peak = anonymous_peak(command.split())
            seconds = time.perf_counter() - seconds
            yield Row(
                f"memory: keju {step}, {questions:,} questions of a file, {seconds:.0f} s",
                f"{peak:.0f} MB",
                f"{ANONYMOUS_LIMIT} MB anonymous",
                peak / ANONYMOUS_LIMIT,
                peak <= ANONYMOUS_LIMIT,
            )


def anonymous_peak(arguments: list[str]) -> float:
    """Run a command of Keju; return the most anonymous memory that it held, in MB."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "keju", *arguments],
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=ROOT,
            env=environment_of_children(),
        )
        peak = 0
        while process.poll() is None:
            for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
                if line.startswith("RssAnon:"):
                    peak = max(peak, int(line.split()[1]))
            time.sleep(PAUSE)
        if process.returncode:
            output.seek(0)
            last = output.read().decode(errors="replace").strip().rpartition("\n")[2]
            raise NotMeasured(f"keju {arguments[0]} ended with {process.returncode}: {last}")
    return peak / 1024


def write_questions(path: Path, count: int) -> None:
    """Write an exam of short questions with four options in ten subsets, the rows mixed."""
    draw = random.Random(1)
    with path.open("w") as file:
        for number in range(count):
            first, second = draw.randrange(10_000), draw.randrange(10_000)
            options = [first + second + step for step in (0, 1, 10, 100)]
            file.write(
                f'{{"id": "sum-{number}", "subset": "block {number * 7 % 10}", '
                f'"question": "What is {first} plus {second}?", '
                f'"choices": {[str(o) for o in options]}, "answer": "A"}}\n'.replace("'", '"')
            )


def write_predictions(path: Path, count: int) -> None:
    """Write a reply to each of the questions."""
    with path.open("w") as file:
        for number in range(count):
            file.write(f'{{"id": "sum-{number}", "output": "ANSWER: {"ABCD"[number % 4]}"}}\n')


def _halve(journal: Path) -> None:
    """Leave the first half of a journal, as a run that was killed does."""
    with journal.open("r+b") as file:
        file.seek(journal.stat().st_size // 2)
        file.readline()
        file.truncate()
