"""Whether memory stays flat: the peak of a large exam against that of a small one."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from perf.exam import demo
from perf.measure import Row, in_child, peak_mb

SMALL, LARGE, REPORTED = 10_000, 1_000_000, 100_000
LIMIT = 1.5


def measure() -> Iterator[Row]:
    """Peaks of whole processes that run generated exams, everything journalled."""
    small = in_child(peak_of_run, settings=demo(SMALL), report=False).value
    large = in_child(peak_of_run, settings=demo(LARGE), report=False)
    yield _row(f"memory: {LARGE:,} questions against {SMALL:,}", large.value, small)
    yield Row(f"memory: CPU of those {LARGE:,} questions", f"{large.cpu:.0f} s")
    small = in_child(peak_of_run, settings=demo(SMALL), report=True).value
    large = in_child(peak_of_run, settings=demo(REPORTED), report=True)
    yield _row(f"memory: with the report, {REPORTED:,} against {SMALL:,}", large.value, small)


def _row(title: str, large: float, small: float) -> Row:
    ratio = large / small
    return Row(title, f"{large:.0f} MB", f"{LIMIT:g}x of {small:.0f} MB", ratio, ratio <= LIMIT)


def peak_of_run(settings: dict[str, Any], report: bool) -> float:
    """Run an exam; return the peak of this process in MB."""
    from keju.config import TaskConfig
    from keju.task import run_exams

    with tempfile.TemporaryDirectory() as folder:
        finished = run_exams(TaskConfig(**settings, work_dir=folder), report=report)
        assert finished.exit_code == 0, finished.message
        assert Path(finished.folder, "report.html").exists() == report
    return peak_mb()
