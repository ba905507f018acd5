"""MCP servers over HTTP that send too much."""

from __future__ import annotations

import asyncio
import gzip
import tracemalloc
from collections.abc import Iterable
from itertools import chain, repeat

import pytest

from keju import bounds
from keju.config.arms import ServerSettings
from keju.errors import ConfigError
from keju.solvers.mcp.http import BoundedClient, MessageTooLong
from tests.solvers.mcp.conftest import opened
from tests.support.flood import flooding

MIB = 1 << 20
JSON = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
BOMB = gzip.compress(gzip.compress(b'"' + b"x" * 64 * MIB))

WIDE = b"[" + b"[]," * 200 + b"1]"


def chunks(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


FLOODS: dict[str, Iterable[bytes]] = {
    "a body": chain([JSON + b"\r\n"], repeat(b"x" * 65536)),
    "a bomb": [
        JSON + b"Content-Encoding: gzip, gzip\r\nContent-Length: %d\r\n\r\n" % len(BOMB) + BOMB
    ],
    "chunks of one byte": chain(
        [JSON + b"Transfer-Encoding: chunked\r\n\r\n"], repeat(chunks(b"x") * 5000)
    ),
    "an event": chain([EVENTS + chunks(b"data: ")], repeat(chunks(b"x" * 65536))),
    "lines of an event": chain([EVENTS], repeat(chunks(b"data: x\n" * 5000))),
    "comments": chain([EVENTS], repeat(chunks(b": x\n\n" * 5000))),
    "values of a message": [JSON + b"Content-Length: %d\r\n\r\n" % len(WIDE) + WIDE],
    "values of an event": [EVENTS + chunks(b"data: " + WIDE + b"\n\n") + b"0\r\n\r\n"],
}


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "LONGEST_MESSAGE", MIB // 256)
    monkeypatch.setattr(bounds, "MOST_STREAMED", MIB // 128)
    monkeypatch.setattr(bounds, "MOST_MESSAGE_VALUES", 100)


async def _post(url: str) -> None:
    async with BoundedClient() as client, client.stream("POST", url, json={}) as response:
        async for _ in response.aiter_bytes():
            pass


@pytest.mark.parametrize("name", FLOODS)
def test_what_is_sent_without_an_end_is_given_up(name: str) -> None:
    with flooding(FLOODS[name]) as url:
        tracemalloc.start()
        try:
            with pytest.raises(MessageTooLong):
                asyncio.run(_post(url))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < 4 * MIB


def test_a_packed_reply_is_unpacked_and_small_events_pass() -> None:
    async def body_of(url: str) -> bytes:
        async with BoundedClient() as client:
            return (await client.post(url)).content

    body = gzip.compress(b'{"a":') + gzip.compress(b"1}")
    head = JSON + b"Content-Encoding: GZip \r\nContent-Length: %d\r\n\r\n" % len(body)
    with flooding([head + body]) as url:
        assert asyncio.run(body_of(url)) == b'{"a":1}'
    events = chunks(b"data: 1\n\n") + chunks(b"data:") + chunks(b" 2\r\n\r\n") + b"0\r\n\r\n"
    with flooding([EVENTS + events]) as url:
        assert asyncio.run(body_of(url)) == b"data: 1\n\ndata: 2\r\n\r\n"


def test_commas_and_brackets_of_texts_are_no_values() -> None:
    text = b'["' + b'a,[{\\"' * 300 + b'", 1]'
    assert not bounds.has_many_values(text, 100)
    assert bounds.has_many_values(text + b"," * 100, 100)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_events_whose_lines_are_sent_one_by_one_are_measured_one_by_one(end: bytes) -> None:
    line, empty = chunks(b'data: [{"a": 1}]' + end), chunks(end)
    events = (line + empty) * 300 + b"0\r\n\r\n"
    with flooding([EVENTS + events]) as url:
        asyncio.run(_post(url))


def test_a_server_that_answers_the_handshake_with_a_bomb_cannot_be_used() -> None:
    async def start(url: str) -> None:
        async with opened(ServerSettings(name="s", url=url, startup_timeout_ms=10_000)):
            pass

    with flooding(FLOODS["a bomb"]) as url, pytest.raises(ConfigError, match="MCP server 's'"):
        asyncio.run(start(url))
