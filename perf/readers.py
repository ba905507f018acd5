"""How fast answers are read: recorded outputs, and replies made to be hard on a reader."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any

from perf.exam import data_dir
from perf.measure import NotMeasured, Row, in_child, run, within

RECORDED = "golden/mmlu_pro/Meta-Llama-3_1-8B-Instruct_predictions.jsonl.gz"
RECORDED_LIMIT = 3.0
LENGTH, SHORTER, TRIAL = 100_000, 25_000, 2_000
"""Characters of a long reply, of one to compare it with, and of one to find the hardest sample."""
GROWTH_LIMIT = 8.0
"""Four times the text takes four times as long if reading is linear, 16 times if quadratic."""
UNNOTICED_MS = 5.0
"""Below this a reader's growth is noise."""
LOOPS = {
    "marker": "So the answer is ",
    "marker and label": "So the answer is (A). ",
    "tolerant marker": "The answer is: ",
    "Chinese marker": "答案是",
    "labels": "(A) ",
    "joined labels": "A or B, ",
    "boxes": "\\boxed{",
    "open think": "<think>",
    "asterisks": "*",
    "spaces": " ",
    "blank lines": "\n",
    "brackets": "([{",
    "digits": "1,000",
    "words": "not yes ",
    "questions": "\nQ: ",
    "tags": "<answer>",
    "varied markers (bbh)": "So the answer is x{i}. ",
    "varied markers (mmlu_pro)": "The answer is (x{i}). ",
    "varied markers (ceval)": "答案：甲{i} ",
    "varied markers (bixbench)": "<answer>x{i}</answer> ",
    "varied markers (demo)": "answer is x{i} ",
}
"""What a reply repeats, by name; ``{i}`` counts, so that no two of them are equal."""


def measure() -> Iterator[Row]:
    """The recorded outputs first, then the slowest reader of each exam."""
    folder = data_dir()
    if folder is None or not (folder / RECORDED).is_file():
        raise NotMeasured("needs the recorded MMLU-Pro outputs in KEJU_DATA_DIR")
    command = [sys.executable, "-m", "keju", "score", "--datasets", "mmlu_pro", "--json"]
    scored: list[str | Path] = [*command, "--predictions", folder / RECORDED, "--data-dir", folder]
    usage = run(scored, KEJU_CORES="1")
    title = "readers: CPU of 12,032 MMLU-Pro outputs read and scored"
    yield within(title, usage.cpu, RECORDED_LIMIT, "s")
    for name in in_child(names_of_exams, data_dir=str(folder)).value:
        yield _row(name, in_child(slowest, name=name, data_dir=str(folder)).value)


def _row(name: str, reading: dict[str, Any]) -> Row:
    title = f"readers: {name}, 100,000 characters: {reading['reader']} on {reading['loop']}"
    growth, figure = reading["growth"], f"{reading['ms']:.1f} ms"
    return Row(title, figure, f"{GROWTH_LIMIT:g}x of a quarter", growth, growth <= GROWTH_LIMIT)


def names_of_exams(data_dir: str) -> list[str]:
    """The benchmarks that can be prepared here."""
    from keju.benchmarks import registry
    from keju.benchmarks.prepare import prepare_exam
    from keju.errors import KejuError

    ready = []
    for name in registry.names():
        try:
            prepare_exam(name, data_dir=data_dir, offline=True)
        except KejuError:
            continue
        ready.append(name)
    return ready


def slowest(name: str, data_dir: str) -> dict[str, Any]:
    """The slowest reading of any loop by any reader, on the hardest sample of all subsets.

    `growth` is the worst ratio to a quarter of the text, over all readings that take any time.
    """
    from keju.benchmarks.prepare import prepare_exam

    exam, _ = prepare_exam(name, data_dir=data_dir, offline=True)
    samples = [exam.samples[subset.start] for subset in exam.subsets]
    worst: dict[str, Any] = {"ms": 0.0, "reader": "", "loop": "", "growth": 0.0}
    for reader in exam.readers.values():
        for loop, words in LOOPS.items():
            trials = [(_milliseconds(reader, words, TRIAL, sample), sample) for sample in samples]
            sample = max(trials, key=itemgetter(0))[1]
            milliseconds = _milliseconds(reader, words, LENGTH, sample)
            if milliseconds > worst["ms"]:
                worst |= {"ms": milliseconds, "reader": reader.name, "loop": loop}
            if milliseconds > UNNOTICED_MS:
                growth = milliseconds / _milliseconds(reader, words, SHORTER, sample)
                worst["growth"] = max(worst["growth"], growth)
    return worst


def _milliseconds(reader: Any, words: str, length: int, sample: Any) -> float:
    """The quickest of two readings, processor time."""
    times = length // len(words) + 1
    text = "".join(words.replace("{i}", str(i)) for i in range(times))[:length]
    timings = []
    for _ in range(2):
        before = time.process_time()
        reader.read(text, sample)
        timings.append(time.process_time() - before)
    return min(timings) * 1e3
