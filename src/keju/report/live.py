"""The live display of a run: a panel on a terminal, a few plain lines in a log, or nothing.

Everything is drawn on the engine's own calls, throttled by the clock inside the snapshots: there
is no thread, and an update that is not due costs a comparison.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, TextIO

from keju.engine.display import Display, Progress, Silent
from keju.messages import said
from keju.report.format import (
    UNKNOWN,
    compact,
    count,
    duration,
    interval,
    money,
    percent,
    printable,
)
from keju.stats.intervals import wilson
from keju.stats.strata import FEWEST

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

REFRESH_SECONDS = 0.2
RATE_WINDOW = 10.0
"""Seconds over which rates are smoothed."""
ETA_WINDOW = 60.0
LOG_SECONDS = (10.0, 60.0)
"""A log gets a line each 10 s at first and each minute later."""
LOG_STEPS = 10
"""A log also gets a line at each tenth of the run."""


def make_display(stream: TextIO | None = None, *, quiet: bool = False) -> Display:
    """The display that suits `stream` (stderr by default): live on a terminal, else plain lines."""
    stream = stream if stream is not None else sys.stderr
    if quiet:
        return Silent()
    if stream.isatty() and os.environ.get("TERM") != "dumb":
        return LiveDisplay(stream)
    return LogDisplay(stream)


class Rates:
    """Speeds over the last seconds, from the snapshots alone."""

    def __init__(self) -> None:
        self._points: deque[Progress] = deque()

    def add(self, snapshot: Progress) -> None:
        """Enter a snapshot and forget what is older than the longest window."""
        self._points.append(snapshot)
        while len(self._points) > 2 and self._points[1].elapsed <= snapshot.elapsed - ETA_WINDOW:
            self._points.popleft()

    def _since(self, window: float) -> tuple[Progress, Progress] | None:
        """The newest point, and the newest one that is at least `window` seconds older."""
        if len(self._points) < 2:
            return None
        last = first = self._points[-1]
        for point in reversed(self._points):
            first = point
            if point.elapsed <= last.elapsed - window:
                break
        return (first, last) if last.elapsed > first.elapsed else None

    def speeds(self) -> tuple[float, float] | None:
        """Requests and tokens a second; None while nothing is known."""
        span = self._since(RATE_WINDOW)
        if span is None:
            return None
        first, last = span
        tokens = last.input_tokens + last.output_tokens - first.input_tokens - first.output_tokens
        seconds = last.elapsed - first.elapsed
        return (last.requests - first.requests) / seconds, tokens / seconds

    def remaining(self, total: int) -> float | None:
        """Seconds to the end at the present pace; None while nothing is known."""
        span = self._since(ETA_WINDOW)
        if span is None or span[1].done <= span[0].done:
            return None
        first, last = span
        return (total - last.done) * (last.elapsed - first.elapsed) / (last.done - first.done)


def describe(snapshot: Progress, rates: Rates) -> tuple[list[str], list[str], list[str]]:
    """The state in words: quality, speed, and what is to come."""
    quality: list[str] = []
    for exam, score, graded, repeats, _ in snapshot.exams:
        if graded:  # a mean over several exams would be one of nothing that was asked
            name = said("accuracy").lower()
            name = f"{exam} {name}" if len(snapshot.exams) > 1 else name
            share = min(1.0, max(0.0, score / graded))
            questions = graded / repeats  # answers to one question are hardly independent
            ends = f" ({interval(wilson(share, questions), 1)})" if questions >= FEWEST else ""
            quality.append(f"{name} {percent(share, 1)}{ends}")
    for name in ("unparsed", "truncated", "refused", "errors"):
        if value := getattr(snapshot, name):
            quality.append(f"{said(f'live.{name}')} {count(value)}")
    speed: list[str] = []
    if speeds := rates.speeds():
        speed.append(said("live.requests", n=compact(speeds[0])))
        speed.append(said("live.tokens", n=compact(speeds[1])))
    if snapshot.limit:
        speed.append(f"{said('live.in_flight')} {snapshot.in_flight}/{snapshot.limit}")
    if snapshot.retries:
        speed.append(f"{said('live.retries')} {count(snapshot.retries)}")
    if snapshot.cost is not None:
        speed.append(f"{said('arms.cost')} {money(snapshot.cost)}")
    outlook = [f"{said('live.elapsed')} {duration(snapshot.elapsed)}"]
    remaining = rates.remaining(snapshot.total)
    if snapshot.done < snapshot.total and remaining is not None:
        outlook.append(f"{said('live.left')} {duration(remaining)}")
    if snapshot.waiting:
        outlook.append(said("live.waiting", why=printable(snapshot.waiting, one_line=True)))
    return quality, speed, outlook


def arm_rows(snapshot: Progress) -> list[list[str]]:
    """The arms of a run, a row each under their titles; none in a run without arms."""
    rows = []
    for standing in snapshot.exams:
        if (arm := standing.arm) is not None:
            share = percent(standing.score / standing.graded, 1) if standing.graded else UNKNOWN
            row = [arm.name, f"{count(arm.done)}/{count(arm.units)}", share, count(arm.calls)]
            row += [count(arm.failed), count(arm.errors)]
            rows.append([*row, *([money(arm.cost)] if arm.cost is not None else [])])
    if not rows:
        return []
    words = ("arms.arm", "live.done", "arms.rate", "arms.calls", "live.failed", "live.errors")
    titles = [said(word) for word in (*words, "arms.cost")]
    table = [titles[: len(rows[0])], *rows]
    if any(standing.arm.calls for standing in snapshot.exams if standing.arm):
        return table
    return [[*row[:3], *row[5:]] for row in table]  # nobody has called a tool


def _opening(total: int, reused: int, benchmarks: Sequence[str]) -> str:
    line = said("live.opening", exams=", ".join(benchmarks), n=count(total))
    return line + said("live.reused", n=count(reused)) if reused else line


class LogDisplay:
    """Plain lines for a file or pipe: no control codes, few enough to read."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._rates = Rates()
        self._last: Progress | None = None
        self._shown: Progress | None = None
        self._step = 0
        self._next = LOG_SECONDS[0]

    def start(self, total: int, reused: int, benchmarks: Sequence[str]) -> None:
        """Print what is about to be asked; a stage after another one begins anew."""
        self._rates = Rates()
        self._last = self._shown = None
        self._next = LOG_SECONDS[0]
        self._step = reused * LOG_STEPS // total if total else 0
        self.note(_opening(total, reused, benchmarks))

    def update(self, snapshot: Progress) -> None:
        """Print a line if one is due."""
        self._last = snapshot
        self._rates.add(snapshot)
        step = snapshot.done * LOG_STEPS // snapshot.total if snapshot.total else 0
        if step <= self._step and snapshot.elapsed < self._next:
            return
        self._step = max(step, self._step)
        self._show(snapshot)

    def note(self, line: str) -> None:
        """Print a line."""
        _write_line(self._stream, line)

    def finish(self) -> None:
        """Print the last state unless it stands there already."""
        if self._last is not None and self._last != self._shown:
            self._show(self._last)

    def _show(self, snapshot: Progress) -> None:
        shortest, longest = LOG_SECONDS
        self._next = snapshot.elapsed + min(longest, max(shortest, snapshot.elapsed / 20))
        self._shown = snapshot
        share = percent(snapshot.done / snapshot.total, 0) if snapshot.total else percent(None)
        progress = f"{count(snapshot.done)}/{count(snapshot.total)} ({share})"
        self.note(", ".join([progress, *chain(*describe(snapshot, self._rates))]))


class LiveDisplay:
    """A panel that is redrawn in place on a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._live: Live | None = None
        self._rates = Rates()
        self._last: Progress | None = None
        self._due = 0.0
        self._title = ""

    def start(self, total: int, reused: int, benchmarks: Sequence[str]) -> None:
        """Take the terminal's last lines."""
        from rich.console import Console
        from rich.live import Live

        self._rates = Rates()
        self._due = 0.0
        self._title = _opening(total, reused, benchmarks)
        console = Console(file=self._stream, force_terminal=True, highlight=False, markup=False)
        self._last = Progress(done=reused, total=total)
        self._live = Live(
            self._panel(self._last),
            console=console,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start(refresh=True)

    def update(self, snapshot: Progress) -> None:
        """Redraw if it is time to."""
        self._last = snapshot
        if self._live is None or snapshot.elapsed < self._due:
            return
        self._due = snapshot.elapsed + REFRESH_SECONDS
        self._rates.add(snapshot)
        self._live.update(self._panel(snapshot), refresh=True)

    def note(self, line: str) -> None:
        """Print a line above the panel."""
        if self._live is None:
            _write_line(self._stream, line)
        else:
            self._live.console.print(printable(line))

    def finish(self) -> None:
        """Draw the last state and let go of the terminal."""
        if self._live is None or self._last is None:
            return
        live, self._live = self._live, None
        live.update(self._panel(self._last), refresh=True)
        live.stop()

    def _panel(self, snapshot: Progress) -> RenderableType:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        bar = Table.grid(padding=(0, 1))
        bar.add_row(
            ProgressBar(total=max(snapshot.total, 1), completed=snapshot.done, width=30),
            Text(f"{count(snapshot.done)}/{count(snapshot.total)}"),
        )
        quality, speed, outlook = (" · ".join(p) for p in describe(snapshot, self._rates))
        lines = [Text(quality, style="bold"), Text(speed), Text(outlook)]
        if snapshot.waiting:
            lines[-1].stylize("yellow")
        shown: list[RenderableType] = [line for line in lines if line.plain]
        if rows := arm_rows(snapshot):
            arms = Table.grid(padding=(0, 3))
            for row in rows:
                arms.add_row(*row)
            shown[:1] = [arms]
        return Group(Text(self._title), bar, *shown)


def _write_line(stream: TextIO, line: str) -> None:
    encoding = getattr(stream, "encoding", None) or "utf-8"
    stream.write(printable(line).encode(encoding, "replace").decode(encoding) + "\n")
    stream.flush()
