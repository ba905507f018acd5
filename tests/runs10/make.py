"""Record the runs of this folder: ``python -m tests.runs10.make [NAME...]`` in the repository.

It was run with version 1.0 and is kept to show how the files came about. Do not run it with a
later version: what it wrote is what later versions must still understand. The steps are those of
`tests/runs01/make.py`, with these differences:

- The questions are those of `tests/runs01/data`. `files/` has what else a run needs: the task file
  of the matrix, and the capsules of the notebooks. Servers of tools are `tests/support/mcp_server.py`.
- The matrix (two models, four exams) is a folder of its own; its runs are next to it.
- `keju merge` makes one run of two parts.
- What `keju compare` and `gate` say about a run and its baseline is in `compare.json` and
  `gate.json`; the exit codes of `keju report` and `audit` are in `codes.json`.
"""

from __future__ import annotations

import sys

from tests.runs10.cases import RUNS
from tests.support.recording import record_all

if __name__ == "__main__":
    record_all(RUNS, sys.argv[1:])
