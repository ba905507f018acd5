"""A server that answers raw bytes: each connection is handed to an attack, request by request."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

ENDLESS_SECONDS = 20.0
"""Seconds for which an attack without an end goes on; every time-out of a command is shorter."""


class HostilePeer:
    """One request, and the connection on which it is answered."""

    def __init__(self, plug: socket.socket, head: bytes, body: bytes, number: int) -> None:
        self.plug, self.head, self.body = plug, head, body
        self.number = number
        """Which request of the attacked command it is, from 0 on."""

    @property
    def is_anthropic(self) -> bool:
        """Whether Anthropic's API was asked."""
        return b"/messages" in self.head.split(b"\r\n", 1)[0]

    @property
    def key(self) -> str:
        """The key that came with the request."""
        for line in self.head.decode("latin-1").split("\r\n"):
            name, _, value = line.partition(":")
            if name.lower() in ("authorization", "x-api-key", "proxy-authorization"):
                return value.strip().removeprefix("Bearer ")
        return ""

    def send(self, data: bytes) -> None:
        """Send bytes; OSError where the client is gone."""
        self.plug.sendall(data)

    def good(self, text: str = "The answer is (A).") -> dict[str, Any]:
        """Return a reply as the API that was asked gives it."""
        document: dict[str, Any]
        if self.is_anthropic:
            usage = {"input_tokens": 50, "output_tokens": 7}
            content = [{"type": "text", "text": text}]
            document = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m"}
            return document | {"content": content, "stop_reason": "end_turn", "usage": usage}
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 50, "completion_tokens": 7, "total_tokens": 57}
        document = {"id": "c-1", "object": "chat.completion", "created": 1, "model": "m"}
        return document | {"choices": [choice], "usage": usage}

    def encoded(self, text: str = "The answer is (A).") -> bytes:
        """Return a good reply as bytes."""
        return json.dumps(self.good(text)).encode()

    def reply(
        self,
        body: bytes | None = None,
        *headers: str,
        status: str = "200 OK",
        kind: str = "application/json",
        length: int | None = None,
    ) -> None:
        """Send one reply with a body of a stated length."""
        body = self.encoded() if body is None else body
        lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", *headers]
        if length != -1:
            lines.append(f"Content-Length: {len(body) if length is None else length}")
        self.send(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body)

    def chunked(self, *pieces: bytes, end: bytes = b"0\r\n\r\n", head: str = "") -> None:
        """Send one reply in chunks."""
        self.send(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
            + head.encode()
            + b"Transfer-Encoding: chunked\r\n\r\n"
        )
        for piece in pieces:
            self.send(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.send(end)

    def endless(self, data: bytes, pause: float = 0.0) -> None:
        """Send the same bytes again and again, until the client is gone."""
        due = time.monotonic() + ENDLESS_SECONDS
        while time.monotonic() < due:
            self.send(data)
            if pause:
                time.sleep(pause)

    def reset(self) -> None:
        """End the connection with a reset."""
        linger = b"\x01\0\0\0\0\0\0\0"
        self.plug.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.plug.close()

    def silence(self) -> None:
        """Send nothing until the client is gone."""
        self.plug.settimeout(ENDLESS_SECONDS)
        with suppress(OSError):
            self.plug.recv(1)


Attack = Callable[[HostilePeer], None]
"""Answers one request."""


class HostileServer:
    """Listens on a free port of this machine; requests before `start` get good replies."""

    def __init__(self, attack: Attack, start: int = 0) -> None:
        self._attack, self._start = attack, start
        self.is_hostile = True
        self.requests = 0
        self._lock = threading.Lock()
        self._plugs: list[socket.socket] = []

    def __enter__(self) -> Self:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._listener.close()
        for plug in self._plugs:
            with suppress(OSError):
                plug.shutdown(socket.SHUT_RDWR)
            plug.close()

    def _accept(self) -> None:
        while True:
            try:
                plug, _ = self._listener.accept()
            except OSError:
                return
            self._plugs.append(plug)
            threading.Thread(target=self._serve, args=(plug,), daemon=True).start()

    def _serve(self, plug: socket.socket) -> None:
        with suppress(OSError, ValueError), plug:
            plug.settimeout(ENDLESS_SECONDS)
            while (request := _request(plug)) is not None:
                with self._lock:
                    number = self.requests
                    self.requests += 1
                peer = HostilePeer(plug, *request, number - self._start)
                if self.is_hostile and number >= self._start:
                    self._attack(peer)
                else:
                    peer.reply()


def _request(plug: socket.socket) -> tuple[bytes, bytes] | None:
    """Return the head and the body of the next request; None where there is none."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = plug.recv(65536)
        if not piece:
            return None
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    length = 0
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            length = int(line.partition(b":")[2])
    while len(body) < length:
        piece = plug.recv(65536)
        if not piece:
            return None
        body += piece
    return head, body
