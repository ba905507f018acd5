"""Ctrl-C, SIGTERM and SIGHUP: they have the same effect during the whole process.

They raise KeyboardInterrupt, unless a function asks to be called instead. Files are always written
whole, so a signal may come at any moment. Only the main thread receives signals. Work in another
thread is interrupted through its `ThreadInterrupter`.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar, copy_context
from types import FrameType
from typing import TYPE_CHECKING, Final, NoReturn, TypeVar

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

NUMBERS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
T = TypeVar("T")
_received: list[int] = []


def listen() -> None:
    """Let the signals interrupt this process from now on."""
    for number in _handled_signals():
        signal.signal(number, _interrupt)


def stop_listening() -> None:
    """Let the signals end this process silently from now on."""
    for number in _handled_signals():
        signal.signal(number, signal.SIG_DFL)


def _handled_signals() -> list[signal.Signals]:
    """Return the signals to handle: all, except SIGHUP if ``nohup`` made the process ignore it."""
    ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [number for number in NUMBERS if number != signal.SIGHUP or not ignored]


def _interrupt(number: int, _: FrameType | None) -> NoReturn:
    _received.append(number)
    raise KeyboardInterrupt


@contextmanager
def call_on_loop(handler: Callable[[], None], loop: AbstractEventLoop) -> Iterator[None]:
    """While it is open, signals call a function on a loop that runs in the main thread.

    It also calls the function for an earlier signal that was lost: Python drops an exception that a
    handler raises inside a destructor, or inside a callback of C code.
    """
    old_handlers = {number: signal.getsignal(number) for number in _handled_signals()}
    for number in old_handlers:
        loop.add_signal_handler(number, handler)
    try:
        if _received:
            handler()
        yield
    finally:
        for number, old_handler in old_handlers.items():
            loop.remove_signal_handler(number)
            if old_handler is not None:
                signal.signal(number, old_handler)


@contextmanager
def call_between_steps(handler: Callable[[], None]) -> Iterator[None]:
    """While it is open, signals call a function between two steps of the thread.

    A thread other than the main one uses its remote.
    """
    if threading.current_thread() is not threading.main_thread():
        remote = REMOTE.get()
        with remote.call_between_steps(handler) if remote is not None else nullcontext():
            yield
        return
    old_handlers = {number: signal.getsignal(number) for number in _handled_signals()}
    for number in old_handlers:
        signal.signal(number, lambda *_: handler())
    try:
        if _received:
            handler()
        yield
    finally:
        for number, old_handler in old_handlers.items():
            if old_handler is not None:
                signal.signal(number, old_handler)


class ThreadInterrupter:
    """Interrupts work in another thread, as a signal does in the main one."""

    def __init__(self) -> None:
        self._interrupts = 0
        self._handler: Callable[[], None] | None = None

    def interrupt(self) -> None:
        """Interrupt the work. If it does not listen yet, it is interrupted when it does."""
        self._interrupts += 1
        if self._handler is not None:
            self._handler()

    @contextmanager
    def call_on_loop(self, handler: Callable[[], None], loop: AbstractEventLoop) -> Iterator[None]:
        """While it is open, an interrupt calls a function on the loop of the thread."""

        def post() -> None:
            loop.call_soon_threadsafe(handler)

        with self._open(post, handler):
            yield

    @contextmanager
    def call_between_steps(self, handler: Callable[[], None]) -> Iterator[None]:
        """While it is open, an interrupt calls a function in the thread of the interrupt."""
        with self._open(handler, handler):
            yield

    @contextmanager
    def _open(self, post: Callable[[], None], handler: Callable[[], None]) -> Iterator[None]:
        self._handler = post
        try:
            if self._interrupts:
                handler()
            yield
        finally:
            self._handler = None


async def run_in_thread(work: Callable[[], T]) -> T:
    """Run `work` in a separate thread. An interrupt does not wait for the thread."""
    from asyncio import wrap_future
    from concurrent.futures import Future

    future: Future[T] = Future()
    future.set_running_or_notify_cancel()
    context = copy_context()

    def run() -> None:
        try:
            future.set_result(context.run(work))
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name="keju-aside", daemon=True).start()
    return await wrap_future(future)


REMOTE: ContextVar[ThreadInterrupter | None] = ContextVar("keju_remote", default=None)
"""The remote that may interrupt the work of this context."""
