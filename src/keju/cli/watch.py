"""``keju watch``: follows runs of other processes in the terminal."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from keju.cli.command import command
from keju.cli.common import CommandOutput
from keju.errors import RunIncomplete
from keju.messages import label_text

if TYPE_CHECKING:
    from keju.reporting.board import RunLine

POLL_SECONDS = 0.5
"""Seconds between two updates."""


@command("watch", "keju watch", "keju watch weekly", "keju watch runs/tuesday --once --json")
def watch(followed: str | None, once: bool, work_dir: str | None, as_json: bool) -> CommandOutput:
    """Follow active runs, read-only: a plan, a run, or all active runs in a folder.

    Any process may have started them. Until they end, Keju shows their answers, rates, scores with
    intervals, errors and remaining time. With --json it prints the last state.

    Exit codes: 0 ok, 2 usage, 4 a run has ended incomplete.
    """
    from keju.config.load import runs_folder
    from keju.reporting.board import ENDED_STATES, Board, make_board
    from keju.viewer.watch import RunWatch

    following = RunWatch(followed, str(runs_folder(work_dir)))
    lines, start_time = following.read_lines(), time.monotonic()
    watched_runs = {line.run for line in lines if line.state not in ENDED_STATES}
    if once or not (watched_runs or following.is_continuing):
        return CommandOutput(_document(lines), lambda: _show(lines))
    board: Board = make_board(sys.stderr if as_json else sys.stdout)
    board.start(label_text("watch.title", name=following.title), lines)
    try:
        while following.is_continuing or any(
            line.state in ("running", "judging") for line in lines
        ):
            time.sleep(POLL_SECONDS)
            lines = following.read_lines()
            watched_runs |= {line.run for line in lines if line.state not in ENDED_STATES}
            board.update(lines, time.monotonic() - start_time)
    finally:
        board.finish(lines, time.monotonic() - start_time)
    incomplete_lines = [
        line for line in lines if line.run in watched_runs and line.state != "complete"
    ]
    code = RunIncomplete.exit_code if incomplete_lines else 0
    return CommandOutput(_document(lines), lambda: None, exit_code=code)


def _document(lines: list[RunLine]) -> dict[str, object]:
    from keju.reporting.board import ENDED_STATES

    running = {line.run for line in lines if line.state not in (*ENDED_STATES, "waiting")}
    return {"running": len(running), "runs": [line.document for line in lines]}


def _show(lines: list[RunLine]) -> None:
    from keju.reporting.board import cells_of, columns, describe_all
    from keju.reporting.table import TerminalScreen

    screen = TerminalScreen()
    if lines:
        screen.table(columns(), [cells_of(line) for line in lines])
        screen.line(describe_all(lines, None))
    else:
        screen.line(label_text("watch.nothing"))
    screen.flush()
