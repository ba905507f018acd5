"""The live display of a run: a panel, plain lines, a notebook bar, or a callback.

Every drawing happens inside a call of the engine and is throttled by the time of the snapshots.
It needs no thread, and an update that is not due costs one comparison.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from html import escape
from itertools import chain
from typing import TYPE_CHECKING, Any, TextIO, cast

from keju.messages import current_language, label_text, tolerant, write_sentence
from keju.progress.display import Display, Progress
from keju.reporting.brief import fit_text, pack_parts
from keju.reporting.format import (
    UNKNOWN,
    Labels,
    compact,
    count,
    interval,
    money,
    percent,
    printable,
)
from keju.reporting.narrow import named_rows
from keju.reporting.throughput import ProgressThroughput
from keju.stats.estimate import FEWEST
from keju.stats.intervals import wilson

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from rich.console import RenderableType
    from rich.live import Live


REFRESH_SECONDS = 0.2
LOG_SECONDS = (10.0, 60.0)
"""A log gets a line every 10 s at first and every minute later."""
SLOW_SECONDS = 30.0
"""A request that takes longer than this is mentioned."""
DEFAULT_WIDTH = 80
"""The number of terminal columns to assume while they are unknown."""
LOG_STEPS = 10
"""A log also gets a line after each tenth of the run."""


def make_display(stream: TextIO | None = None, *, quiet: bool = False) -> Display:
    """Return the display for `stream` (stderr by default): live on a terminal, else plain lines."""
    stream = tolerant(stream if stream is not None else sys.stderr)
    if quiet:
        return QuietDisplay(stream)
    if stream.isatty() and os.environ.get("TERM") != "dumb":
        return LiveDisplay(stream)
    return LogDisplay(stream)


class QuietDisplay(Display):
    """Prints only lines about failures and shows no progress."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def warn(self, line: str) -> None:
        """Print a line."""
        write_sentence(self._stream, line)


def describe(
    snapshot: Progress, rates: ProgressThroughput
) -> tuple[list[str], list[str], list[str]]:
    """Describe the state: quality, speed, and the remaining time."""
    quality: list[str] = []
    for exam, score, graded, repeats, _ in snapshot.exams:
        if graded:  # a mean over several exams would have no meaning
            name = label_text("accuracy").lower()
            name = f"{exam} {name}" if len(snapshot.exams) > 1 else name
            share = min(1.0, max(0.0, score / graded))
            questions = graded / repeats  # answers to the same question are not independent
            figure = percent(share, 1)
            if questions >= FEWEST:
                figure += label_text("in_brackets", text=interval(wilson(share, questions), 1))
            quality.append(f"{name} {figure}")
    for name in ("unparsed", "truncated", "refused", "errors"):
        if value := getattr(snapshot, name):
            quality.append(f"{label_text(f'live.{name}')} {count(value)}")
    speed: list[str] = []
    if speeds := rates.speeds():  # a reply counts when it is complete
        speed.append(label_text("live.requests", n=compact(speeds[0])))
        speed.append(label_text("live.tokens", n=compact(speeds[1])))
    if snapshot.actors:
        busy_nodes = [actor.node for actor in snapshot.actors if actor.node]
        speed.append(label_text("live.actors", actors=len(busy_nodes), nodes=len(set(busy_nodes))))
        if paces := rates.actor_rates():
            rate_range = "–".join(dict.fromkeys(map(compact, paces)))
            speed.append(label_text("live.actor_rates", rates=rate_range))
    if snapshot.limit:
        speed.append(f"{label_text('live.in_flight')} {snapshot.in_flight}/{snapshot.limit}")
    if snapshot.retries:
        speed.append(f"{label_text('live.retries')} {count(snapshot.retries)}")
    if snapshot.cost is not None:
        speed.append(f"{label_text('arms.cost')} {money(snapshot.cost)}")
    words = Labels(current_language())
    outlook = [f"{label_text('live.elapsed')} {words.duration(snapshot.elapsed)}"]
    remaining_time = rates.outlook(snapshot.total)
    if snapshot.done < snapshot.total and remaining_time is not None:
        code = "live.left_at_least" if remaining_time.at_least else "live.left"
        outlook.append(f"{label_text(code)} {words.duration(remaining_time.seconds)}")
    if snapshot.oldest >= SLOW_SECONDS:
        outlook.append(label_text("live.oldest", time=words.duration(snapshot.oldest)))
    if snapshot.waiting:
        outlook.append(label_text("live.waiting", why=printable(snapshot.waiting, one_line=True)))
    return quality, speed, outlook


def arm_rows(snapshot: Progress) -> list[list[str]]:
    """Return the arms of a run as a table with titles; empty for a run without arms."""
    rows = []
    for exam in snapshot.exams:
        if (arm := exam.arm) is not None:
            share = percent(exam.score / exam.graded, 1) if exam.graded else UNKNOWN
            row = [arm.name, f"{count(arm.done)}/{count(arm.units)}", share, count(arm.calls)]
            row += [count(arm.failed), count(arm.errors)]
            rows.append([*row, *([money(arm.cost)] if arm.cost is not None else [])])
    if not rows:
        return []
    words = ("arms.arm", "live.done", "arms.rate", "arms.calls", "live.failed", "live.errors")
    titles = [label_text(word) for word in (*words, "arms.cost")]
    table = [titles[: len(rows[0])], *rows]
    if any(exam.arm.calls for exam in snapshot.exams if exam.arm):
        return table
    return [[*row[:3], *row[5:]] for row in table]  # no tool was called


def _opening(total: int, reused: int, benchmarks: Sequence[str]) -> str:
    exams = label_text("list_separator").join(_exam_names(benchmarks))
    line = label_text("live.opening", exams=exams, n=count(total))
    return line + label_text("live.reused", n=count(reused)) if reused else line


def _exam_names(titles: Sequence[str]) -> list[str]:
    """Return the names of exams; the number of its arms follows the name of an exam with several.

    The title of an arm is ``exam/arm``.
    """
    arms_by_exam: dict[str, list[str]] = {}
    for title in titles:
        exam, _, arm = title.partition("/")
        arms_by_exam.setdefault(exam, []).append(arm)
    return [
        label_text("live.exam_arms", exam=exam, n=len(arms)) if len(arms) > 1 else exam
        for exam, arms in arms_by_exam.items()
    ]


class LogDisplay(Display):
    """Prints a few plain lines to a file or pipe, without control codes."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._rates = ProgressThroughput()
        self._latest: Progress | None = None
        self._printed: Progress | None = None
        self._step = 0
        self._next = LOG_SECONDS[0]

    def start(self, total: int, reused: int, benchmarks: Sequence[str]) -> None:
        """Print the title; reset the rates if an earlier stage has run."""
        self._rates = ProgressThroughput()
        self._latest = self._printed = None
        self._next = LOG_SECONDS[0]
        self._step = reused * LOG_STEPS // total if total else 0
        self.note(_opening(total, reused, benchmarks))

    def update(self, snapshot: Progress) -> None:
        """Print a line if one is due."""
        self._latest = snapshot
        self._rates.add(snapshot)
        step = snapshot.done * LOG_STEPS // snapshot.total if snapshot.total else 0
        if step <= self._step and snapshot.elapsed < self._next:
            return
        self._step = max(step, self._step)
        self._show(snapshot)

    def note(self, line: str) -> None:
        """Print a line."""
        write_sentence(self._stream, line)

    def finish(self) -> None:
        """Print the last state unless it was the last line."""
        if self._latest is not None and self._latest != self._printed:
            self._show(self._latest)

    def _show(self, snapshot: Progress) -> None:
        shortest, longest = LOG_SECONDS
        self._next = snapshot.elapsed + min(longest, max(shortest, snapshot.elapsed / 20))
        self._printed = snapshot
        share = percent(snapshot.done / snapshot.total, 0) if snapshot.total else percent(None)
        progress = f"{count(snapshot.done)}/{count(snapshot.total)}"
        progress += label_text("in_brackets", text=share)
        words = [progress, *chain(*describe(snapshot, self._rates))]
        self.note(label_text("clause_separator").join(words))


class RedrawnDisplay(Display):
    """A display that is redrawn in place at a readable rate."""

    def __init__(self) -> None:
        self._rates = ProgressThroughput()
        self._latest: Progress | None = None
        self._due = 0.0

    def start(self, total: int, reused: int, benchmarks: Sequence[str]) -> None:
        """Start the display; reset it if an earlier stage has run."""
        self._rates, self._due = ProgressThroughput(), 0.0
        self._latest = Progress(done=reused, total=total)

    def update(self, snapshot: Progress) -> None:
        """Draw the state if an update is due."""
        self._latest = snapshot
        if snapshot.elapsed >= self._due:
            self._due = snapshot.elapsed + REFRESH_SECONDS
            self._rates.add(snapshot)
            self._draw(snapshot)

    def finish(self) -> None:
        """Draw the last state once."""
        snapshot, self._latest = self._latest, None
        if snapshot is not None:
            self._draw(snapshot)

    def _draw(self, snapshot: Progress) -> None:
        raise NotImplementedError


class LiveDisplay(RedrawnDisplay):
    """Shows a panel on a terminal."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream
        self._live: Live | None = None
        self._title = ""

    def start(self, total: int, reused: int, benchmarks: Sequence[str]) -> None:
        """Reserve the last lines of the terminal."""
        from rich.console import Console
        from rich.live import Live

        super().start(total, reused, benchmarks)
        self._title = _opening(total, reused, benchmarks)
        console = Console(file=self._stream, force_terminal=True, highlight=False, markup=False)
        self._live = Live(
            self._panel(Progress(done=reused, total=total)),
            console=console,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
            transient=True,  # the results say the same, and stay on the screen
        )
        self._live.start(refresh=True)

    def note(self, line: str) -> None:
        """Print a line above the panel."""
        if self._live is None:
            write_sentence(self._stream, line)
        else:
            self._live.console.print(printable(line))

    def status(self, line: str) -> None:
        """Show a line in place of the panel until the next update."""
        if self._live is None:
            self.note(line)
        else:
            from rich.console import Group
            from rich.text import Text

            self._live.update(Group(Text(self._title), Text(printable(line))), refresh=True)

    def finish(self) -> None:
        """Draw the last state and release the terminal."""
        super().finish()
        live, self._live = self._live, None
        if live is not None:
            live.stop()

    def _draw(self, snapshot: Progress) -> None:
        if self._live is not None:
            self._live.update(self._panel(snapshot), refresh=True)

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
        width = self._live.console.width if self._live is not None else DEFAULT_WIDTH
        quality, speed, outlook = (
            [Text(line) for line in pack_parts(parts, width)]
            for parts in describe(snapshot, self._rates)
        )
        for line in quality:
            line.stylize("bold")
        for line in outlook if snapshot.waiting else ():
            line.stylize("yellow")
        visible_lines: list[RenderableType] = [*quality, *speed, *outlook]
        if rows := arm_rows(snapshot):
            visible_lines[: len(quality)] = [named_rows(rows, width)]
        return Group(Text(fit_text(self._title, width)), bar, *visible_lines)


Callback = Callable[[Progress], None]
Shown = Callback | bool | None
"""A callback that receives the state, True for a bar, False for no display.

None shows a bar in a notebook and on a terminal, and nothing otherwise.
"""


def display_for(progress: Shown) -> Display:
    """Return the display for the value of `progress`."""
    if callable(progress):
        return CallbackDisplay(progress)
    if progress is False:
        return Display()
    if in_notebook():
        return NotebookDisplay()
    return make_display(quiet=progress is None and not sys.stderr.isatty())


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")


class CallbackDisplay(RedrawnDisplay):
    """Calls a function with the state at the start, at most five times per second, and at the end.

    If the function raises an exception, Keju warns and does not call it again, so that the run
    continues.
    """

    def __init__(self, callback: Callback) -> None:
        super().__init__()
        self._callback: Callback | None = callback

    def start(self, total: int, reused: int, benchmarks: Sequence[str]) -> None:
        """Report the start."""
        super().start(total, reused, benchmarks)
        self._latest = None
        self._call(Progress(done=reused, total=total))

    def finish(self) -> None:
        """Report the last state unless it was reported already."""
        snapshot, self._latest = self._latest, None
        if snapshot is not None:
            self._call(replace(snapshot, left=0.0 if snapshot.done == snapshot.total else None))

    def _draw(self, snapshot: Progress) -> None:
        self._call(replace(snapshot, left=self._rates.seconds_remaining(snapshot.total)))

    def _call(self, snapshot: Progress) -> None:
        if self._callback is None:
            return
        try:
            self._callback(snapshot)
        except Exception as error:
            self._callback = None
            problem = f"{type(error).__name__}: {error}"
            warnings.warn(
                f"the progress callback failed and is not called again: {problem}",
                RuntimeWarning,
                stacklevel=2,
            )


class NotebookDisplay(RedrawnDisplay):
    """Shows a bar below a notebook cell."""

    def start(self, total: int, reused: int, benchmarks: Sequence[str]) -> None:
        """Show an empty bar below the cell."""
        from IPython import display

        super().start(total, reused, benchmarks)
        self._title = label_text("list_separator").join(benchmarks)
        self._notebook = cast(Any, display)
        empty = self._notebook.HTML(self._bar(Progress(done=reused, total=total)))
        self._handle = self._notebook.display(empty, display_id=True)

    def note(self, line: str) -> None:
        """Print a line."""
        write_sentence(tolerant(sys.stderr), line)

    def _draw(self, snapshot: Progress) -> None:
        self._handle.update(self._notebook.HTML(self._bar(snapshot)))

    def _bar(self, snapshot: Progress) -> str:
        parts = [part for words in describe(snapshot, self._rates) for part in words]
        progress = f"{count(snapshot.done)}/{count(snapshot.total)}"
        text = " · ".join([printable(self._title, one_line=True), progress, *parts])
        total = max(snapshot.total, 1)
        bar = f'<progress value="{snapshot.done}" max="{total}" aria-label="{escape(progress)}">'
        return f"<div>{bar}</progress> {escape(text)}</div>"


class LoopDisplay(Display):
    """Forwards every call, in order, to a display that belongs to another thread's event loop."""

    def __init__(self, display: Display, loop: AbstractEventLoop) -> None:
        self._display = display
        self._loop = loop

    def start(self, total: int, reused: int, benchmarks: Sequence[str]) -> None:
        """Start the display on its loop."""
        self._post(partial(self._display.start, total, reused, benchmarks))

    def update(self, snapshot: Progress) -> None:
        """Show the state on its loop."""
        self._post(partial(self._display.update, snapshot))

    def note(self, line: str) -> None:
        """Print a note on its loop."""
        self._post(partial(self._display.note, line))

    def warn(self, line: str) -> None:
        """Print a warning on its loop."""
        self._post(partial(self._display.warn, line))

    def finish(self) -> None:
        """Finish the display on its loop."""
        self._post(self._display.finish)

    def _post(self, call: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(call)
