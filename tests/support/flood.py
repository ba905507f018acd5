"""A server that sends given bytes, again and again if wanted, to whoever connects."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress


@contextmanager
def flooding(pieces: Iterable[bytes], max_bytes: int = 1 << 30) -> Iterator[str]:
    """Give the address of a server that answers each request with `pieces`, at most `most` bytes."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(0.1)
    is_finished = threading.Event()

    def answer(plug: socket.socket) -> None:
        with plug, suppress(OSError):
            plug.settimeout(5)
            plug.recv(1 << 16)
            bytes_left = max_bytes
            for piece in pieces:
                if is_finished.is_set() or bytes_left <= 0:
                    return
                plug.sendall(piece)
                bytes_left -= len(piece)
            plug.recv(1)  # until the client closes

    def serve() -> None:
        while not is_finished.is_set():
            with suppress(TimeoutError):
                plug, _ = listener.accept()
                threading.Thread(target=answer, args=[plug], daemon=True).start()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        is_finished.set()
        thread.join()
        listener.close()
