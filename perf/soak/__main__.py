"""``python -m perf.soak [PART...]``: attack Keju for a long time; print what it did not stand."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from time import monotonic

from perf.soak.case import PARTS, cases_of, problems, summary_of

LIMITS = "limits"
"""The part whose cells wait for minutes, all at once; see `perf.soak.limits`."""
ROUNDS = "scale"
"""The part that goes on for as long as it may; see `perf.soak.scale`."""


def main() -> int:
    """Print a line for each case that went wrong and one for each part; 1 if any did."""
    part_names = (*PARTS, LIMITS, ROUNDS)
    parser = argparse.ArgumentParser(prog="python -m perf.soak", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"one of {', '.join(part_names)}")
    parser.add_argument("--share", type=float, default=1.0, help="a seeded share of the cases")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2, help="cases that run at once")
    parser.add_argument("--minutes", type=float, default=60.0, help=f"how long {ROUNDS} takes")
    parser.add_argument("--round", type=int, help=f"one round of {ROUNDS} alone")
    args = parser.parse_args()
    for part in args.parts:
        if part not in part_names:
            parser.error(f"there is no part '{part}'; known are {', '.join(part_names)}")
    failed = 0
    for part in args.parts or part_names:
        if part == ROUNDS:
            from perf.soak.scale import soak

            failed += soak(args.minutes, args.seed, args.round)
            continue
        if part == LIMITS:
            from perf.soak import limits

            failed += limits.soak()
            continue
        cases, started, wrong = cases_of(part, args.share, args.seed), monotonic(), 0
        with tempfile.TemporaryDirectory() as folder:
            for problem in problems(cases, Path(folder), args.workers):
                print(f"  {problem}", flush=True)
                wrong += 1
        seconds = monotonic() - started
        line = f"{part}: {len(cases)} cases{summary_of(part)}, {wrong} went wrong, {seconds:.0f} s"
        print(line, flush=True)
        failed += wrong
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
