"""Watchers of runs: a stream of events, Prometheus, OpenTelemetry.

`watch_runs` starts the watchers that a task requests. They follow everything that runs inside its
block. None of them can end a run: an error is reported once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from keju.config import TaskConfig
from keju.errors import Notice
from keju.progress.display import NotePrinter
from keju.progress.watching import WATCHER, Watcher, Watchers


@contextmanager
def watch_runs(config: TaskConfig, notes: NotePrinter) -> Iterator[None]:
    """Let the watchers in `config` follow the runs of this context.

    Inside of a larger task with watchers, only its watchers follow. `notes` gets messages about
    errors.
    """
    if WATCHER.get() is not None or not (watchers := _make_watchers(config, notes)):
        yield
        return
    combined_watcher = Watchers(watchers, lambda notice: notes.warn(notice.message))
    token = WATCHER.set(combined_watcher)
    try:
        yield
    finally:
        WATCHER.reset(token)
        combined_watcher.close()


def _make_watchers(config: TaskConfig, notes: NotePrinter) -> list[Watcher]:
    """Return the watchers in `config`. If one fails, close the others and raise its error."""
    watchers: list[Watcher] = []
    try:
        watchers.extend(_start_watchers(config, notes))
    except BaseException:
        for watcher in watchers:
            watcher.close()
        raise
    return watchers


def _start_watchers(config: TaskConfig, notes: NotePrinter) -> Iterator[Watcher]:
    def say(notice: Notice) -> None:
        notes.warn(notice.message)

    if config.events is not None:
        from keju.interop.watchers.events import EventStream

        yield EventStream(config.events, say)
    if config.otel:
        from keju.interop.watchers.otel import Telemetry

        yield Telemetry(say)
    if config.metrics_port is not None:
        from keju.interop.watchers.prometheus import Metrics

        yield Metrics(config.metrics_port, notes)
