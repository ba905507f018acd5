"""Show several runs at once, one line for each run: a matrix that is running, or ``keju watch``.

On a terminal the lines are redrawn in place. A log gets a summary line from time to time and one
line for each run that ends.
"""

from __future__ import annotations

import os
import queue
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TextIO

from keju.messages import current_language, label_text, tolerant, write_line
from keju.messages.wrapping import cells
from keju.progress.display import Pause
from keju.reporting.format import UNKNOWN, Labels, compact, count, interval, money, percent
from keju.reporting.live import LOG_SECONDS, LOG_STEPS, SLOW_SECONDS
from keju.reporting.narrow import GAP
from keju.stats.estimate import FEWEST
from keju.stats.intervals import wilson

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

    from keju.reporting.table import TableColumn

State = Literal["waiting", "running", "judging", "complete", "incomplete", "failed"]
ENDED_STATES: tuple[State, ...] = ("complete", "incomplete", "failed")
RESERVED_LINES = 6
"""The number of terminal lines that are not available for runs."""


PRIVATE_FIELDS = ("oldest", "pause", "why", "was_complete", "part")
"""Fields that only the process of the run knows, and the part of a line's name."""


class RunLine(NamedTuple):
    """The state of one run."""

    run: str
    model: str
    exam: str
    state: State
    done: int = 0
    total: int = 0
    score: float | None = None
    """The mean score so far."""
    ends: tuple[float, float] | None = None
    """The confidence interval of the score."""
    errors: int = 0
    in_flight: int = 0
    oldest: float = 0.0
    """Seconds since the oldest request in flight was sent."""
    requests: int = 0
    """Requests of the present session. All fields below are of the present session too."""
    tokens: int = 0
    cost: float | None = None
    retries: int = 0
    speed: float | None = None
    """Answers per second."""
    left: float | None = None
    """Seconds until the end at the present speed."""
    pause: Pause | None = None
    """The reason why no requests are sent."""
    why: str = ""
    """The reason why the run ended early."""
    was_complete: bool = False
    """Whether the run was complete before this matrix started."""
    part: str = ""
    """The exam and arm, if the run has several of them."""

    @property
    def name(self) -> str:
        """A name that is unique among the lines."""
        return f"{self.run} · {self.part}" if self.part else self.run

    @property
    def document(self) -> dict[str, Any]:
        """The fields of ``keju watch --json``, which can be known for a run of another process."""
        fields = {
            name: value for name, value in self._asdict().items() if name not in PRIVATE_FIELDS
        }
        ends = fields.pop("ends")
        return fields | {"ci95": list(ends) if ends else None}


def score_interval(score: float, graded: int, repeats: int = 1) -> tuple[float, float] | None:
    """Return the confidence interval of a mean score, or None if there are too few answers."""
    questions = graded / repeats  # answers to the same question are not independent
    return wilson(min(1.0, max(0.0, score)), questions) if questions >= FEWEST else None


class BoardTotals(NamedTuple):
    """The sums over all runs."""

    answered: int
    total: int
    """The replies of the runs whose size is known."""
    is_size_known: bool
    """Whether the size of every unfinished run is known."""
    ended: int
    runs: int
    errors: int
    speed: float
    cost: float | None
    seconds_left: float | None
    """Seconds until the end at the present speed, or None while they are unknown."""


def add_up(lines: Sequence[RunLine]) -> BoardTotals:
    """Add up all runs.

    A run that has not started has the same size as another run of the same exam. If there is no
    such run, the remaining time is unknown.
    """
    costs = [line.cost for line in lines if line.cost is not None]
    sizes = {line.exam: line.total for line in lines}
    sizes |= {line.exam: line.total for line in lines if line.total}
    totals = [line.total if line.state in ENDED_STATES else sizes[line.exam] for line in lines]
    answered, total = sum(line.done for line in lines), sum(totals)
    speed = sum(line.speed or 0.0 for line in lines)
    is_size_known = all(totals[n] for n, line in enumerate(lines) if line.state not in ENDED_STATES)
    return BoardTotals(
        answered=answered,
        total=total,
        is_size_known=is_size_known,
        ended=sum(line.state in ENDED_STATES for line in lines),
        runs=len(lines),
        errors=sum(line.errors for line in lines),
        speed=speed,
        cost=sum(costs) if costs else None,
        seconds_left=(total - answered) / speed if speed and is_size_known else None,
    )


def describe_all(lines: Sequence[RunLine], elapsed: float | None) -> str:
    """Describe all runs together in one line."""
    totals, labels = add_up(lines), Labels(current_language())
    words = [label_text("board.runs", over=totals.ended, runs=totals.runs)]
    code = "board.answers" if totals.is_size_known else "board.answers_least"
    words.append(label_text(code, done=count(totals.answered), total=count(totals.total)))
    if totals.speed:
        words.append(label_text("board.speed", n=compact(totals.speed)))
    if totals.errors:
        words.append(f"{label_text('live.errors')} {count(totals.errors)}")
    if totals.cost is not None:
        words.append(f"{label_text('arms.cost')} {money(totals.cost)}")
    if elapsed is not None:
        words.append(f"{label_text('live.elapsed')} {labels.duration(elapsed)}")
    if totals.seconds_left is not None and totals.answered < totals.total:
        words.append(f"{label_text('live.left')} {labels.duration(totals.seconds_left)}")
    return label_text("clause_separator").join(words)


def titles() -> list[str]:
    """Return the column titles."""
    words = ("run", "board.state", "live.done", "headline", "board.rate", "live.errors")
    return [label_text(word) for word in (*words, "live.in_flight", "live.left", "arms.cost")]


def columns() -> list[TableColumn]:
    """Return the columns of a table; the first column names the row."""
    from keju.reporting.table import TableColumn

    return [
        TableColumn(title, "right" if n > 1 else "left", id=n == 0)
        for n, title in enumerate(titles())
    ]


def cells_of(line: RunLine) -> list[str]:
    """Return a line as texts, one for each title."""
    score, labels = UNKNOWN, Labels(current_language())
    if line.score is not None:
        ends = label_text("in_brackets", text=interval(line.ends, 1)) if line.ends else ""
        score = percent(line.score, 1) + ends
    state = label_text(f"board.{line.state}")
    if line.state == "running" and line.pause is not None:
        state = label_text(f"board.pause.{line.pause}")
    if line.state == "running" and line.oldest >= SLOW_SECONDS:
        state += label_text(
            "in_brackets", text=label_text("live.oldest", time=labels.duration(line.oldest))
        )
    is_active = line.state in ("running", "judging")
    speed = line.speed if is_active else None
    return [
        line.name,
        state,
        f"{count(line.done)}/{count(line.total)}" if line.total else UNKNOWN,
        score,
        UNKNOWN if speed is None else labels("board.per_second", n=compact(speed)),
        count(line.errors) if line.errors else UNKNOWN,
        count(line.in_flight) if is_active else UNKNOWN,
        labels.duration(line.left) if is_active and line.left is not None else UNKNOWN,
        money(line.cost) if line.cost is not None else UNKNOWN,
    ]


def describe_end(line: RunLine) -> str:
    """Describe a run that has ended, in one line."""
    _, state, progress, score, *_ = cells_of(line)
    words = [state, progress]
    if line.score is not None:
        words.append(f"{label_text('accuracy').lower()} {score}")
    sentence = label_text("named", name=line.name, text=label_text("clause_separator").join(words))
    return label_text("pair_separator").join(filter(None, [sentence, line.why]))


class Board:
    """Shows several runs; this base class shows nothing."""

    def start(self, title: str, lines: Sequence[RunLine]) -> None:
        """Start the display."""

    def update(self, lines: Sequence[RunLine], elapsed: float) -> None:
        """Update the display; called a few times per second."""

    def note(self, line: str) -> None:
        """Print a line that stays on the screen; may be called from any thread."""

    def warn(self, line: str) -> None:
        """Print a line about a failure; it is printed even without progress."""
        self.note(line)

    def finish(self, lines: Sequence[RunLine], elapsed: float) -> None:
        """Show the last state and release the terminal."""


def make_board(stream: TextIO | None = None, *, quiet: bool = False) -> Board:
    """Return the board for `stream`, by default stderr, whose reader may close it."""
    stream = stream if stream is not None else tolerant(sys.stderr)
    if quiet:
        return QuietBoard(stream)
    if stream.isatty() and os.environ.get("TERM") != "dumb":
        return LiveBoard(stream)
    return LogBoard(stream)


class QuietBoard(Board):
    """Prints only lines about failures and shows no progress."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def warn(self, line: str) -> None:
        """Print a line."""
        write_line(self._stream, line)


class _NoteQueueBoard(Board):
    """Collects notes from the threads of the runs; the thread that draws prints them."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._notes: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._over: set[str] = set()

    def note(self, line: str) -> None:
        """Print the line with the next update."""
        self._notes.put(line)

    def _collect_news(self, lines: Sequence[RunLine]) -> list[str]:
        """Return the lines to print now: notes, and runs that have ended."""
        news = []
        while not self._notes.empty():
            news.append(self._notes.get())
        for line in lines:
            if line.state in ENDED_STATES and line.name not in self._over:
                self._over.add(line.name)
                news += [] if line.was_complete else [describe_end(line)]
        return news


class LogBoard(_NoteQueueBoard):
    """Prints plain lines to a file or pipe."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._next, self._step = LOG_SECONDS[0], 0

    def start(self, title: str, lines: Sequence[RunLine]) -> None:
        """Print the title."""
        write_line(self._stream, title)

    def update(self, lines: Sequence[RunLine], elapsed: float) -> None:
        """Print new lines, and a summary line if one is due."""
        for line in self._collect_news(lines):
            write_line(self._stream, line)
        totals = add_up(lines)
        step = totals.ended * LOG_STEPS // max(1, totals.runs)
        if elapsed >= self._next or step > self._step:
            shortest, longest = LOG_SECONDS
            self._next = elapsed + min(longest, max(shortest, elapsed / 20))
            self._step = step
            write_line(self._stream, describe_all(lines, elapsed))

    def finish(self, lines: Sequence[RunLine], elapsed: float) -> None:
        """Print the last lines."""
        for line in self._collect_news(lines):
            write_line(self._stream, line)
        write_line(self._stream, describe_all(lines, elapsed))


class LiveBoard(_NoteQueueBoard):
    """Shows a table on a terminal and redraws it in place."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        from rich.console import Console

        self._live: Live | None = None
        self._title = ""
        self._console = Console(file=stream, force_terminal=True, highlight=False, markup=False)

    def start(self, title: str, lines: Sequence[RunLine]) -> None:
        """Reserve the last lines of the terminal."""
        from rich.live import Live

        self._title = title
        self._live = Live(
            self._render(lines, 0.0),
            console=self._console,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
            vertical_overflow="crop",
        )
        self._live.start(refresh=True)

    def update(self, lines: Sequence[RunLine], elapsed: float) -> None:
        """Redraw the table."""
        if self._live is None:
            return
        for line in self._collect_news(lines):
            self._live.console.print(line)
        self._live.update(self._render(lines, elapsed), refresh=True)

    def finish(self, lines: Sequence[RunLine], elapsed: float) -> None:
        """Draw the table for the last time."""
        self.update(lines, elapsed)
        live, self._live = self._live, None
        if live is not None:
            live.stop()

    def _render(self, lines: Sequence[RunLine], elapsed: float) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        size = self._console.size
        visible_lines, table = render_lines(lines, size.width, size.height - RESERVED_LINES)
        parts: list[RenderableType] = [Text(self._title), *table]
        if len(visible_lines) < len(lines):
            parts.append(
                Text(label_text("board.more", n=len(lines) - len(visible_lines)), style="dim")
            )
        return Group(*parts, Text(describe_all(lines, elapsed)))


def render_lines(
    lines: Sequence[RunLine], width: int, height: int
) -> tuple[list[RunLine], list[RenderableType]]:
    """Return the visible lines and their table, or records if the table is too wide."""
    from rich.table import Table
    from rich.text import Text

    from keju.reporting.table import records_of

    rows = [titles(), *map(cells_of, lines)]
    widths = [max(map(cells, column)) for column in zip(*rows, strict=True)]
    if sum(widths) + GAP * (len(widths) - 1) > width:
        records = {record.name: record for record in records_of(columns(), rows[1:], width)}
        visible_lines = select_visible(
            lines, height // max(1 + len(record.lines) for record in records.values())
        )
        texts = ((line, records[line.name]) for line in visible_lines)
        return visible_lines, [
            Text("\n".join([record.name, *record.lines]), style=_style(line))
            for line, record in texts
        ]
    table = Table.grid(padding=(0, GAP, 0, 0))
    table.add_row(*(Text(title, style="bold") for title in titles()))
    visible_lines = select_visible(lines, height)
    for line in visible_lines:
        table.add_row(*(Text(cell, style=_style(line)) for cell in cells_of(line)))
    return visible_lines, [table]


def _style(line: RunLine) -> str:
    if line.pause not in (None, "stopping"):
        return "yellow"
    return "dim" if line.state in ("waiting", *ENDED_STATES) else ""


def select_visible(lines: Sequence[RunLine], limit: int) -> list[RunLine]:
    """Select as many lines as there is space for, running ones first, and keep their order."""
    if len(lines) <= max(1, limit):
        return list(lines)
    order = {"running": 0, "judging": 0, "waiting": 1}
    prioritized_lines = sorted(lines, key=lambda line: order.get(line.state, 2))[: max(1, limit)]
    return [line for line in lines if line in prioritized_lines]
