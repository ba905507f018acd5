"""Who follows runs from outside: a stream of events, Prometheus, OpenTelemetry.

`watching` makes what a task asks for and lets it follow everything that is run inside its block.
None of them can end a run: what fails is said once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from keju.config import TaskConfig
from keju.engine.watching import WATCHER, Watcher, Watchers
from keju.errors import Notice


@contextmanager
def watching(config: TaskConfig, say: Callable[[Notice], None]) -> Iterator[None]:
    """While it is open, whoever `config` names follows the runs of this context.

    Where a larger task follows already, that one alone does. `say` tells the user what failed.
    """
    if WATCHER.get() is not None or not (watchers := _made(config, say)):
        yield
        return
    every = Watchers(watchers, say)
    before = WATCHER.set(every)
    try:
        yield
    finally:
        WATCHER.reset(before)
        every.close()


def _made(config: TaskConfig, say: Callable[[Notice], None]) -> list[Watcher]:
    """What `config` asks for; UsageError if one of them cannot be made, and then none is."""
    made: list[Watcher] = []
    try:
        made.extend(_watchers(config, say))
    except BaseException:
        for watcher in made:
            watcher.close()
        raise
    return made


def _watchers(config: TaskConfig, say: Callable[[Notice], None]) -> Iterator[Watcher]:
    if config.events is not None:
        from keju.interop.watchers.events import EventStream

        yield EventStream(config.events, say)
    if config.otel:
        from keju.interop.watchers.otel import Telemetry

        yield Telemetry(say)
    if config.metrics_port is not None:
        from keju.interop.watchers.prometheus import Metrics

        yield Metrics(config.metrics_port, say)
