"""``keju plot``: draws runs as a figure for a paper or a page."""

from __future__ import annotations

from typing import Literal

from keju.cli.command import command
from keju.cli.common import CommandOutput, open_stored_run, print_lines
from keju.messages import current_language, label_text


@command(
    "plot",
    "keju plot tuesday -o tuesday.svg",
    "keju plot monday tuesday -o both.pdf",
    "keju plot tuesday --kind latency -o latency.png",
    "keju plot tuesday --kind curve -o curve.svg",
)
def plot(
    runs: list[str],
    kind: Literal["forest", "difference", "curve", "latency", "tokens", "outcomes"],
    output: str,
    data_dir: str | None,
    work_dir: str | None,
) -> CommandOutput:
    """Draw one or more runs. SVG needs nothing else; PNG and PDF need keju[plot].

    A forest has the subsets with their intervals and the level of chance, a mark for each run. A
    difference compares two runs, or the arms of one, question by question. A curve has accuracy
    against difficulty, for exams with several difficulties.
    """
    from keju.reporting.charts import draw
    from keju.reporting.figure import check_suffix

    check_suffix(output)
    stored = [open_stored_run(run, work_dir) for run in runs]
    figure = draw(stored, kind, language=current_language(), data_dir=data_dir)
    path = figure.save(output)
    document = {"runs": [run.id for run in stored], "kind": kind, "file": str(path)}
    return CommandOutput(document, lambda: print_lines(label_text("wrote", file=path)))
