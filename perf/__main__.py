"""``python -m perf [NAME...]``: measure Keju and print one table of figures against limits."""

from __future__ import annotations

import argparse
import importlib
import sys

from perf.measure import NotMeasured, Row

NAMES = (
    "overhead",
    "peer",
    "slots",
    "scaling",
    "order",
    "endpoints",
    "tools",
    "arms",
    "memory",
    "million",
    "repeats",
    "resume",
    "startup",
    "viewer",
    "readers",
    "robust",
    "cores",
    "compare",
    "fresh",
    "install",
)
LINE = "{:<64} {:>16}  {:<26} {:>6}  {}"


def main() -> int:
    """Print a line for each figure as soon as it is known; 1 if any is over its limit."""
    parser = argparse.ArgumentParser(prog="python -m perf", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(NAMES)}")
    names = parser.parse_args().names or NAMES
    for name in names:
        if name not in NAMES:
            parser.error(f"there is no benchmark '{name}'; known are {', '.join(NAMES)}")
    print(LINE.format("what", "figure", "limit or peer", "ratio", ""))
    over = False
    for name in names:
        over |= _show(name)
    return 1 if over else 0


def _show(name: str) -> bool:
    """Run one benchmark; return whether a figure of it was over its limit."""
    over = False
    try:
        for row in importlib.import_module(f"perf.{name}").measure():
            print(_line(row), flush=True)
            over |= row.ok is False
    except NotMeasured as lack:
        print(LINE.format(name, "not measured", str(lack), "", ""), flush=True)
    return over


def _line(row: Row) -> str:
    ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
    verdict = "" if row.ok is None else "ok" if row.ok else "over"
    return LINE.format(row.title, row.figure, row.limit, ratio, verdict).rstrip()


if __name__ == "__main__":
    sys.exit(main())
