"""Attacks of an MCP server over HTTP: raw replies to each message of the client."""

from __future__ import annotations

import gzip
import json
import time
import zlib
from collections.abc import Callable
from typing import Any

from perf.soak.hostile.mcp_server import TOOL
from perf.soak.hostile.peer import Attack, HostilePeer

HTTP: dict[str, Attack] = {}
"""Attacks by what they do. Each changes the answers to ``tools/call`` or to everything."""


_NOTIFICATION = (
    b'data: {"jsonrpc":"2.0","method":"notifications/message",'
    b'"params":{"level":"info","data":1}}\n\n'
)


def message_of(peer: HostilePeer) -> dict[str, Any]:
    """Return the message of a request; empty where there is none."""
    try:
        document = json.loads(peer.body or b"{}")
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def honest(peer: HostilePeer) -> None:
    """Answer as an honest server does."""
    message = message_of(peer)
    result: Any = None
    match message.get("method"):
        case "initialize":
            version = message["params"]["protocolVersion"]
            info = {"name": "calc", "version": "1"}
            result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            result = {"tools": [TOOL]}
        case "tools/call":
            result = {"content": [{"type": "text", "text": "5"}]}
    if result is not None:
        return peer.reply(answer(message, result))
    if "id" in message:
        error = {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no"}}
        return peer.reply(json.dumps(error).encode())
    return peer.reply(b"", status="202 Accepted" if peer.body else "405 No")


def answer(message: dict[str, Any], result: Any) -> bytes:
    """Return an answer to a message as bytes."""
    return json.dumps({"jsonrpc": "2.0", "id": message.get("id"), "result": result}).encode()


def _good(peer: HostilePeer) -> bytes:
    return answer(message_of(peer), {"content": [{"type": "text", "text": "5"}]})


def _on(name: str, method: str, attack: Attack) -> None:
    def run(peer: HostilePeer) -> None:
        if message_of(peer).get("method") == method:
            attack(peer)
        else:
            honest(peer)

    HTTP[name] = run


def _events(peer: HostilePeer) -> None:
    peer.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")


def _stream(*pieces: bytes, endless: bytes = b"", pause: float = 0.0) -> Attack:
    def attack(peer: HostilePeer) -> None:
        _events(peer)
        for piece in pieces:
            peer.send(piece)
        if endless:
            peer.endless(endless, pause)
        peer.plug.close()

    return attack


def _close(peer: HostilePeer) -> None:
    peer.plug.close()


def _status(status: str, body: bytes = b"", *headers: str, kind: str = "text/html") -> Attack:
    return lambda peer: peer.reply(body, *headers, status=status, kind=kind)


def _packed(header: str, pack: Callable[[bytes], bytes]) -> Attack:
    return lambda peer: peer.reply(pack(_good(peer)), f"Content-Encoding: {header}")


def _bomb(body: bytes) -> bytes:
    del body
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    return b"".join(packer.compress(bytes(2**20)) for _ in range(512)) + packer.flush()


def _slow(peer: HostilePeer) -> None:
    peer.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99999\r\n\r\n")
    peer.endless(b" ", 0.05)


def _endless_body(peer: HostilePeer) -> None:
    peer.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{")
    peer.endless(b" " * 65536)


def _endless_headers(peer: HostilePeer) -> None:
    peer.send(b"HTTP/1.1 200 OK\r\n")
    peer.endless(b"X-A: " + b"b" * 8000 + b"\r\n")


def _trailers(peer: HostilePeer) -> None:
    peer.chunked(_good(peer), end=b"0\r\n")
    peer.endless(b"X-A: " + b"b" * 8000 + b"\r\n")


for _name, _method in (("start", "initialize"), ("list", "tools/list"), ("call", "tools/call")):
    _on(f"closed on {_name}", _method, _close)
    _on(f"reset on {_name}", _method, lambda peer: peer.reset())
    _on(f"silent on {_name}", _method, lambda peer: peer.silence())
    _on(f"one byte every 50 ms on {_name}", _method, _slow)
    _on(f"endless body on {_name}", _method, _endless_body)
    _on(f"endless headers on {_name}", _method, _endless_headers)
    _on(f"endless trailers on {_name}", _method, _trailers)
    _on(f"no HTTP on {_name}", _method, lambda peer: peer.send(b"\x16\x03\x01" * 99))
    _on(f"HTML on {_name}", _method, _status("200 OK", b"<html>Log in</html>"))
    _on(f"an empty body on {_name}", _method, _status("200 OK", kind="application/json"))
    _on(f"202 on {_name}", _method, _status("202 Accepted"))
    _on(
        f"a redirect to a file on {_name}",
        _method,
        _status("302 Found", b"", "Location: file:///etc/passwd"),
    )
    _on(
        f"a redirect to another host on {_name}",
        _method,
        _status("307 Moved", b"", "Location: http://127.0.0.2:9/mcp"),
    )
    _on(
        f"401 on {_name}",
        _method,
        _status(
            "401 X", b"{}", 'WWW-Authenticate: Bearer resource_metadata="http://127.0.0.1:9/x"'
        ),
    )
    _on(f"404 on {_name}", _method, _status("404 X", b"gone"))
    _on(f"500 with 20 MiB on {_name}", _method, _status("500 X", b"e" * 20 * 2**20))
    _on(f"a gzip bomb on {_name}", _method, _packed("gzip", _bomb))
    _on(f"gzip cut on {_name}", _method, _packed("gzip", lambda body: gzip.compress(body)[:-9]))
    _on(f"br on {_name}", _method, _packed("br", lambda body: body))
    _on(f"events: endless comments on {_name}", _method, _stream(endless=b": c\n\n" * 5000))
    _on(f"events: an endless line on {_name}", _method, _stream(b"data: ", endless=b"x" * 65536))
    _on(f"events: endless data lines on {_name}", _method, _stream(endless=b"data: x\n" * 5000))
    _on(
        f"events: endless notifications on {_name}",
        _method,
        _stream(endless=_NOTIFICATION * 200),
    )
    _on(
        f"events: broken JSON without an end on {_name}",
        _method,
        _stream(endless=b"data: {]\n\n" * 500),
    )
    _on(
        f"events: retry 0 and no answer on {_name}", _method, _stream(b"retry: 0\nid: 1\ndata:\n\n")
    )
    _on(
        f"events: an id of 10 MiB on {_name}",
        _method,
        _stream(b"id: " + b"i" * 10 * 2**20 + b"\ndata:\n\n"),
    )
    _on(f"events: a comment every 50 ms on {_name}", _method, _stream(endless=b":\n\n", pause=0.05))
_on(
    "a session id with escapes",
    "initialize",
    lambda peer: peer.reply(
        answer(
            message_of(peer),
            {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "serverInfo": {"name": "a", "version": "b"},
            },
        ),
        "Mcp-Session-Id: \x1b[2J;x=\xff",
    ),
)
_on(
    "a session id of 40 KiB",
    "initialize",
    lambda peer: peer.reply(
        answer(
            message_of(peer),
            {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "serverInfo": {"name": "a", "version": "b"},
            },
        ),
        "Mcp-Session-Id: " + "s" * 40_000,
    ),
)
_on(
    "an answer with the wrong id",
    "tools/call",
    lambda peer: peer.reply(b'{"jsonrpc":"2.0","id":4711,"result":{}}'),
)
_on("an array of answers", "tools/call", lambda peer: peer.reply(b"[" + _good(peer) + b"]"))
_on(
    "8,000,000 empty lists",
    "tools/call",
    lambda peer: peer.reply(
        answer(message_of(peer), {"content": [], "structuredContent": {"a": 7}}).replace(
            b"7", b"[" + b"[]," * 8_000_000 + b"1]"
        )
    ),
)
_on("deep JSON", "tools/call", lambda peer: peer.reply(b'{"a":' * 200_000))
_on(
    "its headers echoed as an answer",
    "tools/call",
    lambda peer: peer.reply(
        answer(
            message_of(peer), {"content": [{"type": "text", "text": peer.head.decode("latin-1")}]}
        )
    ),
)
_on(
    "its headers echoed as an error",
    "tools/call",
    lambda peer: peer.reply(peer.head, status="400 X", kind="text/plain"),
)
_on(
    "its headers echoed at the start",
    "initialize",
    lambda peer: peer.reply(
        json.dumps(
            {
                "jsonrpc": "2.0",
                "id": message_of(peer).get("id"),
                "error": {"code": 1, "message": peer.head.decode("latin-1")},
            }
        ).encode()
    ),
)


def _endless_get(peer: HostilePeer) -> None:
    if peer.body:
        return honest(peer)
    _events(peer)
    peer.endless(_NOTIFICATION * 50)
    return None


HTTP["the stream of notifications never ends"] = _endless_get


def _sleepy(peer: HostilePeer) -> None:
    if message_of(peer).get("method") == "tools/call":
        time.sleep(1.5)
    honest(peer)


HTTP["every call takes nearly as long as it may"] = _sleepy
