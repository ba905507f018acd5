"""Replies of HTTP servers that never end, or that need far more memory than bytes."""

from __future__ import annotations

import asyncio
import gzip
import tracemalloc
from itertools import chain, repeat
from typing import Any

import pytest

from keju import bounds
from keju.models.transport import HttpReply, Transport, TransportError
from tests.support.flood import flooding

HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
MIB = 1 << 20


async def _get(url: str) -> HttpReply:
    transport = Transport()
    try:
        return await transport.get(url, 20.0)
    finally:
        await transport.close()


def peak_of(pieces: Any) -> tuple[HttpReply | TransportError, int]:
    """What became of a reply, and the most memory that reading it took."""
    with flooding(pieces) as url:
        tracemalloc.start()
        try:
            got: HttpReply | TransportError = asyncio.run(_get(f"{url}/v1"))
        except TransportError as error:
            got = error
        finally:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
    return got, peak


ENDLESS = {
    "trailers": chain([CHUNKED + b"2\r\n{}\r\n0\r\n"], repeat(b"x-a: " + b"b" * 1000 + b"\r\n")),
    "one trailer": chain([CHUNKED + b"2\r\n{}\r\n0\r\nx-a: "], repeat(b"b" * 4096)),
    "headers": chain([HEAD], repeat(b"x-a: b\r\n" * 100)),
    "one header": chain([HEAD + b"x-a: "], repeat(b"b" * 4096)),
    "hints": repeat(b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" * 50),
    "a chunk's extension": chain([CHUNKED + b"1;"], repeat(b"x" * 4096)),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_what_never_ends_outside_of_the_body_is_given_up(name: str) -> None:
    error, peak = peak_of(ENDLESS[name])
    assert isinstance(error, TransportError)
    assert error.kind == "malformed"
    assert peak < 4 * MIB


def test_chunks_of_one_byte_take_no_more_memory_than_their_bytes() -> None:
    count = 200_000
    chunks = repeat(b"1\r\nx\r\n" * 1000, count // 1000)
    reply, peak = peak_of(chain([CHUNKED], chunks, [b"0\r\n\r\n"]))
    assert isinstance(reply, HttpReply)
    assert len(reply.body) == count
    assert peak < 3 * MIB


def packed(*parts: bytes) -> bytes:
    return b"".join(gzip.compress(part) for part in parts)


@pytest.mark.parametrize("encoding", [b"gzip", b"GZip ", b" X-GZIP", b"identity, gzip"])
def test_gzip_of_several_members_and_any_spelling_is_read(encoding: bytes) -> None:
    body = packed(b'{"a":', b" 1}")
    head = HEAD + b"Content-Encoding: %s\r\nContent-Length: %d\r\n\r\n" % (encoding, len(body))
    reply, _ = peak_of([head + body])
    assert isinstance(reply, HttpReply)
    assert reply.body == b'{"a": 1}'


def test_a_bomb_of_many_members_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "LONGEST_REPLY", MIB)
    body = packed(b" " * MIB) * 64
    head = HEAD + b"Content-Encoding: gzip, gzip\r\n"
    for packed_body in (body, packed(body)):
        once = head if packed_body is not body else head.replace(b"gzip, gzip", b"gzip")
        sent = once + b"Content-Length: %d\r\n\r\n" % len(packed_body) + packed_body
        error, peak = peak_of([sent])
        assert isinstance(error, TransportError)
        assert error.kind == "malformed"
        assert peak < 8 * MIB
