"""``python -m perf.soak [PART...]``: attack Keju for a long time; print what it did not stand."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from time import monotonic

from perf.soak.case import PARTS, cases_of, problems, told

LIMITS = "limits"
"""The part whose cells wait for minutes, all at once; see `perf.soak.limits`."""
ROUNDS = "scale"
"""The part that goes on for as long as it may; see `perf.soak.scale`."""


def main() -> int:
    """Print a line for each case that went wrong and one for each part; 1 if any did."""
    known = (*PARTS, LIMITS, ROUNDS)
    parser = argparse.ArgumentParser(prog="python -m perf.soak", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"one of {', '.join(known)}")
    parser.add_argument("--share", type=float, default=1.0, help="a seeded share of the cases")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2, help="cases that run at once")
    parser.add_argument("--minutes", type=float, default=60.0, help=f"how long {ROUNDS} takes")
    parser.add_argument("--round", type=int, help=f"one round of {ROUNDS} alone")
    given = parser.parse_args()
    for part in given.parts:
        if part not in known:
            parser.error(f"there is no part '{part}'; known are {', '.join(known)}")
    failed = 0
    for part in given.parts or known:
        if part == ROUNDS:
            from perf.soak.scale import soak

            failed += soak(given.minutes, given.seed, given.round)
            continue
        if part == LIMITS:
            from perf.soak import limits

            failed += limits.soak()
            continue
        cases, started, wrong = cases_of(part, given.share, given.seed), monotonic(), 0
        with tempfile.TemporaryDirectory() as folder:
            for problem in problems(cases, Path(folder), given.workers):
                print(f"  {problem}", flush=True)
                wrong += 1
        took = monotonic() - started
        line = f"{part}: {len(cases)} cases{told(part)}, {wrong} went wrong, {took:.0f} s"
        print(line, flush=True)
        failed += wrong
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
