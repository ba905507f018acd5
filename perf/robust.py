"""How fast `robust` reads recorded replies, against version 0.1 in the same run.

Each side is a process of its own that reads the same replies in turns with the other.
"""

from __future__ import annotations

import importlib
import io
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from perf.exam import data_dir
from perf.measure import ROOT, NotMeasured, Row, alternate, environment_of_children, in_child

BEFORE = "476a02d"
"""The commit of version 0.1."""
ROUNDS = 9
REPLIES = 3000
"""Replies of a recording that are read in a round, evenly spread."""


class TimedRecording(NamedTuple):
    """Recorded replies, and the share of 0.1's time that reading them may take."""

    title: str
    benchmark: str
    protocol: str
    file: str
    limit: float


RECORDINGS = (
    TimedRecording(
        "BBH, answer only",
        "bbh",
        "answer-only",
        "golden/bbh/code-davinci-002_answer_only_predictions.jsonl.gz",
        0.75,
    ),
    TimedRecording(
        "BBH, chain of thought",
        "bbh",
        "paper",
        "golden/bbh/code-davinci-002_cot_predictions.jsonl.gz",
        0.75,
    ),
    TimedRecording(
        "MMLU-Pro, Llama 3.1 8B",
        "mmlu_pro",
        "official",
        "golden/mmlu_pro/Meta-Llama-3_1-8B-Instruct_predictions.jsonl.gz",
        0.5,
    ),
    TimedRecording(
        "MMLU-Pro, Mistral 7B",
        "mmlu_pro",
        "official",
        "golden/mmlu_pro/Mistral-7B-v0.1_predictions.jsonl.gz",
        0.5,
    ),
)


def measure() -> Iterator[Row]:
    """One row for each recording."""
    folder = data_dir()
    if folder is None or not all((folder / recording.file).is_file() for recording in RECORDINGS):
        raise NotMeasured("needs the recorded BBH and MMLU-Pro outputs in KEJU_DATA_DIR")
    archive = subprocess.run(["git", "archive", BEFORE, "src"], cwd=ROOT, capture_output=True)
    if archive.returncode:
        raise NotMeasured("needs the commit of version 0.1 in the repository")
    with tempfile.TemporaryDirectory() as scratch:
        before, replies = Path(scratch, "before"), Path(scratch, "replies.jsonl")
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
            files.extractall(before, filter="data")
        for recording in RECORDINGS:
            in_child(write, **recording._asdict(), data=str(folder), path=str(replies))
            arguments = (str(replies), recording.benchmark, recording.protocol, str(folder))
            with Side(ROOT, *arguments) as now, Side(before, *arguments) as then:
                sides = alternate(ROUNDS, now.read, then.read)
            title, figure = f"robust: a reply of {recording.title}", f"{sides.keju:.1f} µs"
            peer = f"{recording.limit:g}x of 0.1 ({sides.peer:.1f} µs)"
            yield Row(title, figure, peer, sides.ratio, sides.ratio <= recording.limit)


def write(data: str, path: str, benchmark: str, protocol: str, file: str, **_: Any) -> None:
    """Write the replies of a recording with their questions, for any version to read."""
    from keju.benchmarks.prepare import prepare_exam
    from keju.results.predictions import Predictions

    exam = prepare_exam(benchmark, {}, data_dir=data, protocol=protocol, offline=True)[0]
    lines = [
        msgspec.json.encode([row["output"], exam.as_recorded(exam.samples[place], row, gold=False)])
        for place, row, _ in Predictions(exam, Path(data, file))
    ]
    Path(path).write_bytes(b"\n".join(lines[:: max(1, len(lines) // REPLIES)]))


class Side:
    """A process that reads the replies with one version whenever it is told to."""

    def __init__(self, source: Path, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(Path(__file__).resolve()), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment_of_children() | {"PYTHONPATH": f"{source / 'src'}{os.pathsep}{ROOT}"},
        )

    def __enter__(self) -> Side:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def read(self) -> float:
        """Microseconds that a reply takes."""
        assert self._process.stdin
        assert self._process.stdout
        print("go", file=self._process.stdin, flush=True)
        return float(self._process.stdout.readline())


def serve(replies: str, benchmark: str, protocol: str, data: str) -> None:
    """Read all replies whenever a line comes, and say how long one took."""
    from keju.types import Sample

    try:
        from keju.benchmarks.prepare import prepare_exam
    except ImportError:  # version 0.1 has it elsewhere
        prepare_exam = importlib.import_module("keju.exams").prepare_exam
    exam: Any = prepare_exam(benchmark, {}, data_dir=data, protocol=protocol, offline=True)[0]
    read = exam.readers["robust"].read
    rows = [
        msgspec.json.decode(line, type=tuple[str, Sample])
        for line in Path(replies).read_bytes().splitlines()
    ]
    for _ in sys.stdin:
        before = time.process_time()
        for text, sample in rows:
            read(text, sample)
        print((time.process_time() - before) / len(rows) * 1e6, flush=True)


if __name__ == "__main__":
    serve(*sys.argv[1:])
