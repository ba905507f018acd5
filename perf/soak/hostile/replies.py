"""What a hostile or broken endpoint answers: status lines, headers, encodings, connections."""

from __future__ import annotations

import gzip
import socket
import time
import zlib
from collections.abc import Callable
from contextlib import suppress

from perf.soak.hostile.peer import Attack, HostilePeer

WIRE: dict[str, Attack] = {}
"""Attacks on HTTP itself, by what they do."""
BIG = b"x" * 65536


def wire(name: str) -> Callable[[Attack], Attack]:
    """Add an attack to the list."""

    def add(attack: Attack) -> Attack:
        WIRE[name] = attack
        return attack

    return add


def raw(name: str, data: bytes, *, close: bool = True) -> None:
    """Add an attack that sends the same bytes to everyone."""

    def attack(peer: HostilePeer) -> None:
        peer.send(data.replace(b"@BODY", peer.encoded()))
        if close:
            peer.plug.close()

    WIRE[name] = attack


def _head(*lines: bytes, status: bytes = b"HTTP/1.1 200 OK") -> bytes:
    return b"\r\n".join((status, *lines)) + b"\r\n\r\n"


# Status lines
raw("status line: HTTP/0.9, a body alone", b"@BODY")
raw("status line: version 9.9", _head(status=b"HTTP/9.9 200 OK") + b"@BODY")
raw("status line: version 1.0 without length", _head(status=b"HTTP/1.0 200 OK") + b"@BODY")
raw("status line: no number", _head(status=b"HTTP/1.1 OK") + b"@BODY")
raw("status line: -200", _head(status=b"HTTP/1.1 -200 OK") + b"@BODY")
raw("status line: 99999999999999999999", _head(status=b"HTTP/1.1 " + b"9" * 20) + b"@BODY")
raw("status line: a reason of 1 MiB", _head(status=b"HTTP/1.1 200 " + b"r" * 2**20) + b"@BODY")
raw("status line: control characters", _head(status=b"HTTP/1.1 200 \x1b[2J\x00\x07") + b"@BODY")
raw("status line: bare line feeds", b"HTTP/1.1 200 OK\nContent-Type: a/b\n\n@BODY")
raw("status line: the preface of HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0" * 200)
raw("status line: a TLS alert", b"\x15\x03\x01\x00\x02\x02\x28" * 40)
raw("status line: an SSH banner", b"SSH-2.0-OpenSSH_9.9\r\n")
raw("status line: bytes of an image", b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 64)
raw("status line: a request in place of a reply", b"POST /v1 HTTP/1.1\r\nHost: a\r\n\r\n")

# Headers
raw("headers: one of 8 MiB", _head(b"X-Long: " + b"h" * 2**23) + b"@BODY")
raw("headers: 100,000", _head(*[b"X-%d: 1" % i for i in range(100_000)]) + b"@BODY")
raw("headers: folded lines", _head(b"Content-Type: application/json\r\n ;a=b\r\n\t;c=d") + b"@BODY")
raw("headers: without a colon", _head(b"Content-Type application/json") + b"@BODY")
raw("headers: without a name", _head(b": empty") + b"@BODY")
raw(
    "headers: NUL and escapes",
    _head(b"Server: \x00\x1b]0;owned\x07", b"X-Request-Id: \x1b[31m") + b"@BODY",
)
raw(
    "headers: bytes beyond ASCII",
    _head(b"Server: \xff\xfe\x80", b"X-Request-Id: \xe9\xff") + b"@BODY",
)
raw(
    "headers: two lengths that differ",
    _head(b"Content-Length: 5", b"Content-Length: 500") + b"@BODY",
)
raw("headers: a negative length", _head(b"Content-Length: -5") + b"@BODY")
raw("headers: a length of 2 to the power of 70", _head(b"Content-Length: %d" % 2**70) + b"@BODY")
raw("headers: a length in hexadecimal", _head(b"Content-Length: 0x40") + b"@BODY")
raw(
    "headers: chunks and a length",
    _head(b"Content-Length: 5", b"Transfer-Encoding: chunked") + b"5\r\n@BODY\r\n0\r\n\r\n",
)
raw("headers: unknown transfer encoding", _head(b"Transfer-Encoding: cow, chunked") + b"@BODY")
raw(
    "headers: upgrade to a WebSocket",
    _head(b"Upgrade: websocket", b"Connection: upgrade", status=b"HTTP/1.1 101 Switching Protocols")
    + BIG,
)


@wire("headers: a length that is too small, the rest as a second reply")
def _smuggled(peer: HostilePeer) -> None:
    body = peer.encoded()
    second_reply = _head(b"Content-Length: %d" % len(body)) + peer.encoded("The answer is (B).")
    peer.reply(body + second_reply, length=len(body))


@wire("headers: a length that is too large")
def _long(peer: HostilePeer) -> None:
    peer.reply(length=10**6)
    peer.plug.close()


@wire("headers: endless, one after the other")
def _endless_headers(peer: HostilePeer) -> None:
    peer.send(b"HTTP/1.1 200 OK\r\n")
    peer.endless(b"X-More: " + b"y" * 8000 + b"\r\n")


@wire("headers: one byte every 50 ms")
def _slow_headers(peer: HostilePeer) -> None:
    peer.endless(b"H", 0.05)


@wire("1xx: an endless flood of 100 Continue")
def _continues(peer: HostilePeer) -> None:
    peer.endless(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)


@wire("1xx: an endless flood of 103 Early Hints with links")
def _hints(peer: HostilePeer) -> None:
    peer.endless(b"HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n" * 100)


@wire("1xx: 100, 102 and 103 before a good reply")
def _polite(peer: HostilePeer) -> None:
    peer.send(b"".join(b"HTTP/1.1 %d X\r\n\r\n" % code for code in (100, 102, 103)))
    peer.reply()


# Chunks
@wire("chunks: one byte each")
def _bytes(peer: HostilePeer) -> None:
    peer.chunked(*[bytes([byte]) for byte in peer.encoded()])


@wire("chunks: endless, of one byte")
def _endless_bytes(peer: HostilePeer) -> None:
    peer.chunked(end=b"")
    peer.endless(b"1\r\n \r\n" * 2000)


@wire("chunks: endless, of 64 KiB")
def _endless_chunks(peer: HostilePeer) -> None:
    peer.chunked(end=b"")
    peer.endless(b"10000\r\n" + BIG + b"\r\n")


@wire("chunks: extensions of 1 MiB")
def _extensions(peer: HostilePeer) -> None:
    body = peer.encoded()
    peer.chunked(end=b"%x;%s\r\n%s\r\n0\r\n\r\n" % (len(body), b"e" * 2**20, body))


@wire("chunks: endless extensions")
def _endless_extensions(peer: HostilePeer) -> None:
    peer.chunked(end=b"5;a=")
    peer.endless(BIG)


@wire("chunks: endless trailers")
def _trailers(peer: HostilePeer) -> None:
    peer.chunked(peer.encoded(), end=b"0\r\n")
    peer.endless(b"X-Trailer: " + b"t" * 4000 + b"\r\n")


@wire("chunks: trailers that change the status and the type")
def _lying_trailers(peer: HostilePeer) -> None:
    peer.chunked(
        peer.encoded(), end=b"0\r\nContent-Length: 3\r\nRetry-After: 9\r\n:status: 500\r\n\r\n"
    )


@wire("chunks: a size of 2 to the power of 80")
def _huge_chunk(peer: HostilePeer) -> None:
    peer.chunked(end=b"%x\r\n" % 2**80 + BIG)
    peer.plug.close()


@wire("chunks: a negative size")
def _negative_chunk(peer: HostilePeer) -> None:
    peer.chunked(end=b"-5\r\nhello\r\n")
    peer.plug.close()


@wire("chunks: no last chunk, then the end")
def _no_end(peer: HostilePeer) -> None:
    peer.chunked(peer.encoded(), end=b"")
    peer.plug.close()


@wire("chunks: no last chunk, then silence")
def _no_end_silent(peer: HostilePeer) -> None:
    peer.chunked(peer.encoded(), end=b"")
    peer.silence()


# Encodings
def _packed(name: str, header: str, pack: Callable[[bytes], bytes]) -> None:
    def attack(peer: HostilePeer) -> None:
        peer.reply(pack(peer.encoded()), f"Content-Encoding: {header}")

    WIRE[f"encoding: {name}"] = attack


def _bomb(data: bytes, members: int = 1) -> bytes:
    """Return a gzip of 512 MiB in all."""
    del data
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    zeros = bytes(2**20)
    archive = b"".join(packer.compress(zeros) for _ in range(512 // members)) + packer.flush()
    return archive * members


_packed("br, not asked for", "br", lambda body: b"\x0b\x02\x80" + body)
_packed("zstd, not asked for", "zstd", lambda body: b"\x28\xb5\x2f\xfd" + body)
_packed("an unknown name", "rot13", lambda body: body)
_packed("a name of 100 KiB", "g" * 100_000, lambda body: body)
_packed("gzip, and the body is plain", "gzip", lambda body: body)
_packed("gzip, cut in the middle", "gzip", lambda body: gzip.compress(body)[:-20])
_packed("gzip with a wrong checksum", "gzip", lambda body: gzip.compress(body)[:-8] + b"\0" * 8)
_packed(
    "gzip of many members",
    "gzip",
    lambda body: b"".join(gzip.compress(body[i : i + 1]) for i in range(len(body))),
)
_packed("gzip with bytes after the end", "gzip", lambda body: gzip.compress(body) + b"more" * 50)
_packed("gzip of an empty body", "gzip", lambda _: b"")
_packed("gzip bomb of 512 MiB", "gzip", _bomb)
_packed("gzip bomb in 8 members", "gzip", lambda body: _bomb(body, 8))
_packed("gzip bomb packed twice", "gzip, gzip", lambda body: gzip.compress(_bomb(body)))
_packed("gzip packed 50 times", ", ".join(["gzip"] * 50), lambda body: _times(body, 50))
_packed("gzip named 5,000 times", ", ".join(["gzip"] * 5000), lambda body: gzip.compress(body))
_packed("deflate without a header", "deflate", lambda body: zlib.compress(body)[2:-4])
_packed("deflate bomb", "deflate", lambda _: zlib.compress(bytes(2**28), 9))
_packed("'GZip ' in odd letters", "GZip ", gzip.compress)
_packed("identity, identity", "identity, identity", lambda body: body)


def _times(body: bytes, count: int) -> bytes:
    for _ in range(count):
        body = gzip.compress(body)
    return body


@wire("encoding: endless members of gzip, each empty")
def _empty_members(peer: HostilePeer) -> None:
    peer.send(_head(b"Content-Type: application/json", b"Content-Encoding: gzip"))
    peer.endless(gzip.compress(b"") * 1000)


# Connections
@wire("connection: closed before the reply")
def _closed(peer: HostilePeer) -> None:
    peer.plug.close()


@wire("connection: reset before the reply")
def _reset(peer: HostilePeer) -> None:
    peer.reset()


@wire("connection: reset in the status line")
def _reset_status(peer: HostilePeer) -> None:
    peer.send(b"HTTP/1.1 20")
    time.sleep(0.02)
    peer.reset()


@wire("connection: reset in the headers")
def _reset_headers(peer: HostilePeer) -> None:
    peer.send(b"HTTP/1.1 200 OK\r\nContent-Ty")
    time.sleep(0.02)
    peer.reset()


@wire("connection: reset in the body")
def _reset_body(peer: HostilePeer) -> None:
    peer.reply(peer.encoded()[:40], length=4000)
    time.sleep(0.02)
    peer.reset()


@wire("connection: reset after the reply")
def _reset_after(peer: HostilePeer) -> None:
    peer.reply()
    time.sleep(0.02)
    peer.reset()


@wire("connection: half closed, then silence")
def _half(peer: HostilePeer) -> None:
    peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{")
    peer.plug.shutdown(socket.SHUT_WR)
    peer.silence()


@wire("connection: accepted, and no reply")
def _silent(peer: HostilePeer) -> None:
    peer.silence()


@wire("connection: a body of one byte every 50 ms")
def _loris(peer: HostilePeer) -> None:
    peer.send(_head(b"Content-Type: application/json", b"Content-Length: 100000"))
    peer.endless(b" ", 0.05)


@wire("connection: keep-alive is promised, and each one is closed")
def _keeps_not(peer: HostilePeer) -> None:
    peer.reply(None, "Connection: keep-alive", "Keep-Alive: timeout=9999999999, max=-1")
    peer.plug.close()


@wire("connection: an end is announced, and it stays open")
def _stays(peer: HostilePeer) -> None:
    peer.reply(None, "Connection: close")
    peer.silence()


@wire("connection: a second reply that was not asked for")
def _two_replies(peer: HostilePeer) -> None:
    peer.reply()
    with suppress(OSError):
        peer.reply(peer.encoded("The answer is (B)."))


@wire("connection: a 408 on the idle connection after the reply")
def _late(peer: HostilePeer) -> None:
    peer.reply()
    time.sleep(0.01)
    peer.send(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")


@wire("body: endless, without a length")
def _endless(peer: HostilePeer) -> None:
    peer.send(_head(b"Content-Type: application/json"))
    peer.endless(BIG)


@wire("body: 15 MiB of blanks before a good reply")
def _padded(peer: HostilePeer) -> None:
    peer.reply(b" " * (15 * 2**20) + peer.encoded())


@wire("body: where a reply has none (204, 304, HEAD)")
def _bodiless(peer: HostilePeer) -> None:
    peer.reply(status=("204 No Content", "304 Not Modified")[peer.number % 2])
