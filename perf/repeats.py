"""Processor time a record of commands that read a run with many repeats, and ten times as many."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from perf.measure import NotMeasured, Row
from perf.million import taken_by

QUESTIONS, REPEATS, TIMES = 6, 5_000, 10
"""30,000 records, and how many times more of them the larger run has."""
LIMIT = 2.0
"""Times the processor time a record that the larger run may take."""
COMMANDS = (
    "score {run} --json",
    "audit {run} --json",
    "export {run} --format csv -o {folder}/rows.csv",
    "report {run} -o {folder}/report.html",
    "compare {run} {run} --json",
)


def measure() -> Iterator[Row]:
    """Yield a row for each command."""
    with tempfile.TemporaryDirectory() as folder:
        for repeats in (REPEATS, TIMES * REPEATS):
            settings = "--model scripted --datasets demo --dataset-args demo.size=1 --no-report"
            run = f"--repeats {repeats} --work-dir {folder} --run-id r{repeats} --json"
            taken_by(f"eval {settings} --generation-config temperature=0.7 {run}")
        for command in COMMANDS:
            short_run, long_run = (
                taken_by(command.format(run=Path(folder, f"r{repeats}"), folder=folder))
                for repeats in (REPEATS, TIMES * REPEATS)
            )
            if short_run is None or long_run is None:
                raise NotMeasured(f"there is no command {command}")
            ratio = long_run.cpu / short_run.cpu / TIMES
            name = command.partition(" ")[0]
            yield Row(
                f"repeats: keju {name}, {QUESTIONS * REPEATS * TIMES:,} records",
                f"{long_run.cpu:.0f} s CPU",
                f"{LIMIT:g} times the time a record of {QUESTIONS * REPEATS:,}",
                ratio,
                ratio <= LIMIT,
            )
