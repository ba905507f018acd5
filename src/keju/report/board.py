"""Several runs at once, a line each: of a plan while it goes on, and of ``keju watch``.

On a terminal the lines are drawn anew in place; in a log there is a line for the whole now and
then, and one for each run that comes to its end.
"""

from __future__ import annotations

import os
import queue
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TextIO

from keju.engine.display import Pause
from keju.messages import said, spoken, tolerant, write_line
from keju.messages.wrapping import cells
from keju.report.format import UNKNOWN, Labels, compact, count, interval, money, percent
from keju.report.live import LOG_SECONDS, LOG_STEPS, SLOW_SECONDS
from keju.report.narrow import GAP
from keju.stats.estimate import FEWEST
from keju.stats.intervals import wilson

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

    from keju.report.table import Column

State = Literal["waiting", "running", "judging", "complete", "incomplete", "failed"]
OVER: tuple[State, ...] = ("complete", "incomplete", "failed")
FRAME = 6
"""Lines of a terminal that are not for runs."""


INSIDE = ("oldest", "pause", "why", "kept", "part")
"""What only the process that works on a run can tell, and a part of a line's name."""


class Line(NamedTuple):
    """How one run stands."""

    run: str
    model: str
    exam: str
    state: State
    done: int = 0
    total: int = 0
    score: float | None = None
    """The mean so far."""
    ends: tuple[float, float] | None = None
    """Its interval."""
    errors: int = 0
    in_flight: int = 0
    oldest: float = 0.0
    """Seconds since the oldest request in flight was sent."""
    requests: int = 0
    """Of the present session, like all below."""
    tokens: int = 0
    cost: float | None = None
    retries: int = 0
    speed: float | None = None
    """Answers a second."""
    left: float | None = None
    """Seconds to the end at the present pace."""
    pause: Pause | None = None
    """What holds requests back."""
    why: str = ""
    """Why it ended early."""
    kept: bool = False
    """It was complete before."""
    part: str = ""
    """Which of its exams and arms, where it has several."""

    @property
    def name(self) -> str:
        """What tells it from all other lines."""
        return f"{self.run} · {self.part}" if self.part else self.run

    @property
    def document(self) -> dict[str, Any]:
        """As ``keju watch --json`` has it: what can be known of a run of another process."""
        own = {name: value for name, value in self._asdict().items() if name not in INSIDE}
        ends = own.pop("ends")
        return own | {"ci95": list(ends) if ends else None}


def ends_of(score: float, graded: int, repeats: int = 1) -> tuple[float, float] | None:
    """The interval of a mean so far; None for a few answers."""
    questions = graded / repeats  # answers to one question are hardly independent
    return wilson(min(1.0, max(0.0, score)), questions) if questions >= FEWEST else None


class Whole(NamedTuple):
    """All runs together."""

    done: int
    total: int
    """Of the runs whose size is known."""
    sized: bool
    """Whether that are all runs that are not over."""
    over: int
    runs: int
    errors: int
    speed: float
    cost: float | None
    left: float | None
    """Seconds to the end at the present pace; None while it is not known."""


def whole_of(lines: Sequence[Line]) -> Whole:
    """All runs together.

    A run that has not begun is as large as another one of the same exam. Where there is none,
    nobody knows how much is left.
    """
    costs = [line.cost for line in lines if line.cost is not None]
    sizes = {line.exam: line.total for line in lines}
    sizes |= {line.exam: line.total for line in lines if line.total}
    totals = [line.total if line.state in OVER else sizes[line.exam] for line in lines]
    done, total = sum(line.done for line in lines), sum(totals)
    speed = sum(line.speed or 0.0 for line in lines)
    known = all(totals[n] for n, line in enumerate(lines) if line.state not in OVER)
    return Whole(
        done=done,
        total=total,
        sized=known,
        over=sum(line.state in OVER for line in lines),
        runs=len(lines),
        errors=sum(line.errors for line in lines),
        speed=speed,
        cost=sum(costs) if costs else None,
        left=(total - done) / speed if speed and known else None,
    )


def whole_words(lines: Sequence[Line], elapsed: float | None) -> str:
    """All runs together in one line."""
    whole, own = whole_of(lines), Labels(spoken())
    words = [said("board.runs", over=whole.over, runs=whole.runs)]
    code = "board.answers" if whole.sized else "board.answers_least"
    words.append(said(code, done=count(whole.done), total=count(whole.total)))
    if whole.speed:
        words.append(said("board.speed", n=compact(whole.speed)))
    if whole.errors:
        words.append(f"{said('live.errors')} {count(whole.errors)}")
    if whole.cost is not None:
        words.append(f"{said('arms.cost')} {money(whole.cost)}")
    if elapsed is not None:
        words.append(f"{said('live.elapsed')} {own.duration(elapsed)}")
    if whole.left is not None and whole.done < whole.total:
        words.append(f"{said('live.left')} {own.duration(whole.left)}")
    return said("clause_separator").join(words)


def titles() -> list[str]:
    """The titles of the columns."""
    words = ("run", "board.state", "live.done", "headline", "board.rate", "live.errors")
    return [said(word) for word in (*words, "live.in_flight", "live.left", "arms.cost")]


def columns() -> list[Column]:
    """The same as columns of a table: the first names its row."""
    from keju.report.table import Column

    return [
        Column(title, "right" if n > 1 else "left", id=n == 0) for n, title in enumerate(titles())
    ]


def cells_of(line: Line) -> list[str]:
    """A line as texts, one for each of the `titles`."""
    score, own = UNKNOWN, Labels(spoken())
    if line.score is not None:
        ends = said("in_brackets", text=interval(line.ends, 1)) if line.ends else ""
        score = percent(line.score, 1) + ends
    state = said(f"board.{line.state}")
    if line.state == "running" and line.pause is not None:
        state = said(f"board.pause.{line.pause}")
    if line.state == "running" and line.oldest >= SLOW_SECONDS:
        state += said("in_brackets", text=said("live.oldest", time=own.duration(line.oldest)))
    alive = line.state in ("running", "judging")
    speed = line.speed if alive else None
    return [
        line.name,
        state,
        f"{count(line.done)}/{count(line.total)}" if line.total else UNKNOWN,
        score,
        UNKNOWN if speed is None else own("board.per_second", n=compact(speed)),
        count(line.errors) if line.errors else UNKNOWN,
        count(line.in_flight) if alive else UNKNOWN,
        own.duration(line.left) if alive and line.left is not None else UNKNOWN,
        money(line.cost) if line.cost is not None else UNKNOWN,
    ]


def end_words(line: Line) -> str:
    """A run that came to its end, in one line."""
    _, state, done, score, *_ = cells_of(line)
    words = [state, done]
    if line.score is not None:
        words.append(f"{said('accuracy').lower()} {score}")
    told = said("named", name=line.name, text=said("clause_separator").join(words))
    return said("pair_separator").join(filter(None, [told, line.why]))


class Board:
    """Shows several runs; this one shows nothing."""

    def start(self, title: str, lines: Sequence[Line]) -> None:
        """Begin."""

    def update(self, lines: Sequence[Line], elapsed: float) -> None:
        """Called a few times a second."""

    def note(self, line: str) -> None:
        """Print a line that stays; from any thread."""

    def warn(self, line: str) -> None:
        """Print a line of what failed; it is seen without progress too."""
        self.note(line)

    def finish(self, lines: Sequence[Line], elapsed: float) -> None:
        """Show the last state and let go of the terminal."""


def make_board(stream: TextIO | None = None, *, quiet: bool = False) -> Board:
    """The board that suits `stream`; by default stderr, whose reader may go away."""
    stream = stream if stream is not None else tolerant(sys.stderr)
    if quiet:
        return QuietBoard(stream)
    if stream.isatty() and os.environ.get("TERM") != "dumb":
        return LiveBoard(stream)
    return LogBoard(stream)


class QuietBoard(Board):
    """No progress: only lines of what failed."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def warn(self, line: str) -> None:
        """Print a line."""
        write_line(self._stream, line)


class _Noted(Board):
    """Notes come from the threads of runs; they are printed by the one that draws."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._notes: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._over: set[str] = set()

    def note(self, line: str) -> None:
        """Print it with the next update."""
        self._notes.put(line)

    def _news(self, lines: Sequence[Line]) -> list[str]:
        """What is to be said now: notes, and runs that came to their end."""
        news = []
        while not self._notes.empty():
            news.append(self._notes.get())
        for line in lines:
            if line.state in OVER and line.name not in self._over:
                self._over.add(line.name)
                news += [] if line.kept else [end_words(line)]
        return news


class LogBoard(_Noted):
    """Plain lines for a file or pipe."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._next, self._step = LOG_SECONDS[0], 0

    def start(self, title: str, lines: Sequence[Line]) -> None:
        """Print what is about to be asked."""
        write_line(self._stream, title)

    def update(self, lines: Sequence[Line], elapsed: float) -> None:
        """Print news, and a line for the whole if one is due."""
        for line in self._news(lines):
            write_line(self._stream, line)
        whole = whole_of(lines)
        step = whole.over * LOG_STEPS // max(1, whole.runs)
        if elapsed >= self._next or step > self._step:
            shortest, longest = LOG_SECONDS
            self._next = elapsed + min(longest, max(shortest, elapsed / 20))
            self._step = step
            write_line(self._stream, whole_words(lines, elapsed))

    def finish(self, lines: Sequence[Line], elapsed: float) -> None:
        """Print the last news."""
        for line in self._news(lines):
            write_line(self._stream, line)
        write_line(self._stream, whole_words(lines, elapsed))


class LiveBoard(_Noted):
    """A table on a terminal, drawn anew in place."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        from rich.console import Console

        self._live: Live | None = None
        self._title = ""
        self._console = Console(file=stream, force_terminal=True, highlight=False, markup=False)

    def start(self, title: str, lines: Sequence[Line]) -> None:
        """Take the terminal's last lines."""
        from rich.live import Live

        self._title = title
        self._live = Live(
            self._drawn(lines, 0.0),
            console=self._console,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
            vertical_overflow="crop",
        )
        self._live.start(refresh=True)

    def update(self, lines: Sequence[Line], elapsed: float) -> None:
        """Draw the table anew."""
        if self._live is None:
            return
        for line in self._news(lines):
            self._live.console.print(line)
        self._live.update(self._drawn(lines, elapsed), refresh=True)

    def finish(self, lines: Sequence[Line], elapsed: float) -> None:
        """Draw it for the last time."""
        self.update(lines, elapsed)
        live, self._live = self._live, None
        if live is not None:
            live.stop()

    def _drawn(self, lines: Sequence[Line], elapsed: float) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        size = self._console.size
        shown, table = drawn(lines, size.width, size.height - FRAME)
        parts: list[RenderableType] = [Text(self._title), *table]
        if len(shown) < len(lines):
            parts.append(Text(said("board.more", n=len(lines) - len(shown)), style="dim"))
        return Group(*parts, Text(whole_words(lines, elapsed)))


def drawn(
    lines: Sequence[Line], width: int, height: int
) -> tuple[list[Line], list[RenderableType]]:
    """The lines that are shown, and them as a table, or as records where that is too wide."""
    from rich.table import Table
    from rich.text import Text

    from keju.report.table import records_of

    rows = [titles(), *map(cells_of, lines)]
    widths = [max(map(cells, own)) for own in zip(*rows, strict=True)]
    if sum(widths) + GAP * (len(widths) - 1) > width:
        records = {each.name: each for each in records_of(columns(), rows[1:], width)}
        shown = fitting(lines, height // max(1 + len(each.lines) for each in records.values()))
        texts = ((line, records[line.name]) for line in shown)
        return shown, [
            Text("\n".join([record.name, *record.lines]), style=_style(line))
            for line, record in texts
        ]
    table = Table.grid(padding=(0, GAP, 0, 0))
    table.add_row(*(Text(title, style="bold") for title in titles()))
    shown = fitting(lines, height)
    for line in shown:
        table.add_row(*(Text(cell, style=_style(line)) for cell in cells_of(line)))
    return shown, [table]


def _style(line: Line) -> str:
    if line.pause not in (None, "stopping"):
        return "yellow"
    return "dim" if line.state in ("waiting", *OVER) else ""


def fitting(lines: Sequence[Line], room: int) -> list[Line]:
    """As many lines as there is room for: those that go on first, in the order of all."""
    if len(lines) <= max(1, room):
        return list(lines)
    order = {"running": 0, "judging": 0, "waiting": 1}
    first = sorted(lines, key=lambda line: order.get(line.state, 2))[: max(1, room)]
    return [line for line in lines if line in first]
