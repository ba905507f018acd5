"""``keju gate``: decides whether a run may replace its baseline, and whether its score is high
enough."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Literal

from keju.cli.command import command
from keju.cli.common import CommandOutput, exam_args, is_brief


@command(
    "gate",
    "keju gate tuesday --baseline monday --margin 0.01",
    "keju gate tuesday --at-least 0.7",
    "keju gate tuesday --baseline monday --margin 0.01 --junit gate.xml --badge gate.svg",
    sets="dataset_args",
)
def gate(
    run: str,
    baseline: str | None,
    margin: float | None,
    at_least: float | None,
    junit: str | None,
    markdown: str | None,
    badge: str | None,
    exam: str | None,
    one_reader: str | None,
    gold: Literal["recorded", "current"] | None,
    protocol: str | None,
    data_dir: str | None,
    work_dir: str | None,
    verbose: bool,
    dataset_args: dict[str, Any] | None = None,
) -> CommandOutput:
    """Decide whether a run is no worse than its baseline by more than a margin, or good enough.

    Each exam is decided by a one-sided test at level 0.05 on the shared questions, with Holm's p
    for several exams. A run that is too bad passes in at most one of twenty cases, and a good one
    fails in at most one of twenty. The worst verdict decides. 'keju compare' tests whether the two
    runs differ at all, and may come to another answer.

    Exit codes: 0 pass, 1 fail, 2 usage or not comparable, 3 inconclusive: more questions would
    decide.
    """
    from keju.files import whole_file
    from keju.reporting import gate as report
    from keju.reporting.gate_summary import render_gate_summary
    from keju.results.gate import gate as gated

    result = gated(
        run,
        baseline=baseline,
        margin=margin,
        least=at_least,
        datasets=exam,
        reader=one_reader,
        gold=gold,
        protocol=protocol,
        dataset_args=exam_args(exam, dataset_args),
        data_dir=data_dir,
        work_dir=work_dir,
    )
    exports = ((junit, report.junit), (markdown, report.markdown), (badge, report.badge))
    for path, render in exports:
        if path is not None:
            with whole_file(Path(path)) as file:
                file.write(render(result).encode())

    def show() -> None:
        if not is_brief(verbose):
            report.render_gate(result)
        if sys.stdout.isatty():
            render_gate_summary(result)

    return CommandOutput(result.document, show, exit_code=result.exit_code)
