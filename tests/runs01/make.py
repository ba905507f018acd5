"""Record the runs of this folder: ``python -m tests.runs01.make [NAME...]`` in the repository.

It was run with version 0.1 and is kept to show how the files came about. Do not run it with a
later version: what it wrote is what later versions must still understand. The steps:

1. `questions.py` writes the questions to `data/` (once; they stay as they are).
2. `keju eval` runs the exams of `cases.py` against the endpoint of the tests, on loopback, in an
   empty folder. One run is killed with SIGKILL and its last line torn; one is `keju import` of a
   log that another tool wrote (`tests/interop/imports/fixtures/evalscope`).
3. The run's folder is copied to `NAME/run`, without its report. The folder of the machine becomes
   ``@ROOT@`` and the address of the endpoint ``@ENDPOINT@``; nothing else is changed.
4. `keju score`, `export`, `eval --resume` and `judge` are called on fresh copies of it, and what
   they say is kept next to it: `score.json`, `export.csv`, `resume.json`, `judge.json`. They hold
   the exit code, how much was asked, and the results only where `run/results.json` has others.
"""

from __future__ import annotations

import sys

from tests.runs01 import questions
from tests.runs01.cases import HERE, RUNS
from tests.support.recording import record_all


def main(names: list[str]) -> None:
    """Record the runs that are named, or all."""
    if not (HERE / "data").exists():
        questions.write(HERE / "data")
    record_all(RUNS, names)


if __name__ == "__main__":
    main(sys.argv[1:])
