"""What all cores bring to work without a model: recorded outputs scored, and all that are known."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from perf.exam import data_dir
from perf.measure import NotMeasured, Row, run
from perf.readers import RECORDED

ROUNDS = 3
LIMIT = 0.9
"""The time of all cores over that of one, on two of them."""


def measure() -> Iterator[Row]:
    """One core and all of them, in turns; the least of each counts."""
    folder = data_dir()
    if folder is None or not (folder / RECORDED).is_file():
        raise NotMeasured("needs the recorded outputs in KEJU_DATA_DIR")
    score = ("score", "--datasets", "mmlu_pro", "--predictions", folder / RECORDED)
    yield _row("keju score on 12,032 MMLU-Pro outputs", (*score, "--data-dir", folder))
    yield _row("keju verify", ("verify", "--data-dir", folder))


def _row(title: str, words: tuple[str | Path, ...]) -> Row:
    cores = len(os.sched_getaffinity(0))
    command = [sys.executable, "-m", "keju", *words, "--json"]
    timings: dict[int, list[float]] = {1: [], cores: []}
    for _ in range(ROUNDS):
        for count, seconds in timings.items():
            seconds.append(run(command, KEJU_CORES=str(count)).seconds)
    one_core, all_of_them = min(timings[1]), min(timings[cores])
    ratio = all_of_them / one_core
    limit = f"{LIMIT:g}x of {one_core:.2f} s by one"
    ok = ratio <= LIMIT if cores > 1 else None
    return Row(f"cores: {title}, {cores} cores", f"{all_of_them:.2f} s", limit, ratio, ok)
