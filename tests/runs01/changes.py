"""What later versions say otherwise about the runs of 0.1, and which fault of 0.1 is the reason.

A number of a stored run never changes without a row here and a row in docs/changed-results.md.
"""

from __future__ import annotations

import re

from tests.support.recorded_runs import Change

_PROMPT = "the judge's prompt is version 2: what it quotes is marked line by line"
_SELECTED = "8 of 36 replies are errors: a mean over the others is a selection"

_PLAIN = "robust did not read `I choose option E because of DNA.` and `显然选C。`"

_DEMO = "rows of demo were empty here: robust stood beside the readers of other exams alone"

_ANSWERED = "the chance level of an interrupted run was that of all its questions"

_INTERVALS = "intervals of few, clustered or repeated questions covered 80 to 93 %, or 98 to 99.9 %"
_SPREAD = "a subset without a spread of its own had Wilson's, now it has the whole exam's"
_GRADED = "n counted questions whose replies have no grade; they are in `ungraded` now"
CHANGES: tuple[Change, ...] = (
    Change("errors", "*/benchmarks/0/n", _GRADED),
    Change("errors", "*/benchmarks/0/subsets/*/n", _GRADED),
    Change("*", "*ci95*", _INTERVALS),
    Change("*", "*metrics/*/se", _SPREAD),
    Change("*", "*metrics/*/deff", _SPREAD),
    Change("bixbench-judged", "*/judge/protocol_version", _PROMPT),
    Change("bixbench-judged", "*/judge/usage/input_tokens", _PROMPT),
    Change("bixbench-judged", "*/judge/cost", _PROMPT),
    Change("errors", "/results/benchmarks/0/metrics/accuracy/*", _SELECTED),
    Change("errors", "/results/benchmarks/0/metrics/macro_accuracy/*", _SELECTED),
    Change("errors", "/results/benchmarks/0/warnings/0", _SELECTED),
    Change("killed", "/results/benchmarks/0/metrics/chance/*", _ANSWERED),
    Change("imported", "/results/benchmarks/[12]/metrics/accuracy_robust/*", _PLAIN),
    Change("imported", "/*/*_robust", _PLAIN),
    Change("several", "/4[89]/*_robust", _DEMO),
    Change("several", "/5[0-3]/*_robust", _DEMO),
)

ENDS = {": compare readers": ": keju audit ", " and 1 more": ", "}
"""How warnings of 0.1 end, and how they go on now: other advice, the one that was not named."""


# `3 of 60 replies (5.0%)`: shares are written as the tables have them, `5.00 %`.
_SHARE = re.compile(r"(?P<part>\d+) of (?P<whole>\d+) replies \([\d.]+%\)")


def _as_in_tables(found: re.Match[str]) -> str:
    part, whole = int(found["part"]), int(found["whole"])
    return f"{part} of {whole} replies ({100 * part / whole:.2f} %)"


def reworded(warning: str) -> str:
    """How a warning of 0.1 begins today."""
    warning = _SHARE.sub(_as_in_tables, warning)
    for before, now in ENDS.items():
        if warning.endswith(before):
            return warning.removesuffix(before) + now
    return warning
