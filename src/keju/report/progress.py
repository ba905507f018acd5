"""How a run that goes on is shown to users of Python: a bar, or a function of their own."""

from __future__ import annotations

import sys
import warnings
from asyncio import AbstractEventLoop
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from html import escape
from typing import Any

from keju.engine.display import Display, Progress, Silent
from keju.report.format import count, printable
from keju.report.live import REFRESH_SECONDS, Rates, describe, make_display

Callback = Callable[[Progress], None]
Shown = Callback | bool | None
"""A function that is called with the state, True for a bar, False for nothing.

None is a bar in a notebook and on a terminal, and nothing elsewhere.
"""


def display_for(progress: Shown) -> Display:
    """The display that `progress` asks for."""
    if callable(progress):
        return CallbackDisplay(progress)
    if progress is False:
        return Silent()
    if _in_notebook():
        return NotebookDisplay()
    return make_display(sys.stderr, quiet=progress is None and not sys.stderr.isatty())


def _in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")


def _ipython() -> Any:
    from IPython import display

    return display


def _html(text: str) -> Any:
    return _ipython().HTML(text)


class CallbackDisplay:
    """Calls a function with the state: at the start, at most five times a second, at the end.

    One that raises is warned about and called no more; what was asked is worth more.
    """

    def __init__(self, callback: Callback) -> None:
        self._callback: Callback | None = callback
        self._rates = Rates()
        self._last: Progress | None = None
        self._told: Progress | None = None
        self._due = 0.0

    def start(self, total: int, reused: int, benchmarks: Sequence[str]) -> None:
        """Tell of the beginning; a stage after another one begins anew."""
        self._rates, self._due = Rates(), 0.0
        self._tell(Progress(done=reused, total=total))

    def update(self, snapshot: Progress) -> None:
        """Tell of the state if it is time to."""
        self._last = snapshot
        if snapshot.elapsed >= self._due:
            self._due = snapshot.elapsed + REFRESH_SECONDS
            self._rates.add(snapshot)
            self._tell(replace(snapshot, left=self._rates.remaining(snapshot.total)))

    def note(self, line: str) -> None:
        """Say nothing."""

    def finish(self) -> None:
        """Tell of the last state unless it was told."""
        if self._last is not None:
            last = replace(self._last, left=0.0 if self._last.done == self._last.total else None)
            self._last = None
            self._tell(last)

    def _tell(self, snapshot: Progress) -> None:
        if self._callback is None:
            return
        try:
            self._callback(snapshot)
        except Exception as error:
            self._callback = None
            said = f"{type(error).__name__}: {error}"
            warnings.warn(
                f"the progress callback failed and is not called again: {said}",
                RuntimeWarning,
                stacklevel=2,
            )


class NotebookDisplay:
    """A bar under the cell of a notebook, drawn anew in place."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._title = ""
        self._rates = Rates()
        self._last: Progress | None = None
        self._due = 0.0

    def start(self, total: int, reused: int, benchmarks: Sequence[str]) -> None:
        """Put an empty bar under the cell."""
        self._title = ", ".join(benchmarks)
        self._rates, self._due = Rates(), 0.0
        self._last = Progress(done=reused, total=total)
        self._handle = _ipython().display(_html(self._bar(self._last)), display_id=True)

    def update(self, snapshot: Progress) -> None:
        """Draw it anew if it is time to."""
        self._last = snapshot
        if snapshot.elapsed >= self._due:
            self._due = snapshot.elapsed + REFRESH_SECONDS
            self._rates.add(snapshot)
            self._draw(snapshot)

    def note(self, line: str) -> None:
        """Print a line."""
        sys.stderr.write(f"{printable(line)}\n")

    def finish(self) -> None:
        """Draw the last state."""
        if self._last is not None:
            self._draw(self._last)
            self._last = None

    def _draw(self, snapshot: Progress) -> None:
        if self._handle is not None:
            self._handle.update(_html(self._bar(snapshot)))

    def _bar(self, snapshot: Progress) -> str:
        parts = [part for words in describe(snapshot, self._rates) for part in words]
        done = f"{count(snapshot.done)}/{count(snapshot.total)}"
        text = " · ".join([printable(self._title, one_line=True), done, *parts])
        total = max(snapshot.total, 1)
        bar = f'<progress value="{snapshot.done}" max="{total}" aria-label="{escape(done)}">'
        return f"<div>{bar}</progress> {escape(text)}</div>"


class Posted:
    """A display on another thread than its loop's: every call is made on the loop, in order."""

    def __init__(self, display: Display, loop: AbstractEventLoop) -> None:
        self._display = display
        self._loop = loop

    def start(self, total: int, reused: int, benchmarks: Sequence[str]) -> None:
        """Begin there."""
        self._post(partial(self._display.start, total, reused, benchmarks))

    def update(self, snapshot: Progress) -> None:
        """Show the state there."""
        self._post(partial(self._display.update, snapshot))

    def note(self, line: str) -> None:
        """Say it there."""
        self._post(partial(self._display.note, line))

    def finish(self) -> None:
        """End there."""
        self._post(self._display.finish)

    def _post(self, call: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(call)
