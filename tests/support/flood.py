"""A server that sends given bytes, again and again if wanted, to whoever connects."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress


@contextmanager
def flooding(pieces: Iterable[bytes], most: int = 1 << 30) -> Iterator[str]:
    """Give the address of a server that answers each request with `pieces`, at most `most` bytes."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(0.1)
    done = threading.Event()

    def answer(plug: socket.socket) -> None:
        with plug, suppress(OSError):
            plug.settimeout(5)
            plug.recv(1 << 16)
            left = most
            for piece in pieces:
                if done.is_set() or left <= 0:
                    return
                plug.sendall(piece)
                left -= len(piece)
            plug.recv(1)  # until the client closes

    def serve() -> None:
        while not done.is_set():
            with suppress(TimeoutError):
                plug, _ = listener.accept()
                threading.Thread(target=answer, args=[plug], daemon=True).start()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        done.set()
        thread.join()
        listener.close()
