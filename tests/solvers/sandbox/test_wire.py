"""The reader of kernels' messages: what is too large, forged or broken is read past."""

from __future__ import annotations

import asyncio
import hmac
import json
import struct
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from keju.solvers.sandbox import wire
from keju.solvers.sandbox.output import (
    LARGEST_PICTURE,
    MOST_PICTURES,
    CellOutput,
    strip_terminal_codes,
)
from keju.solvers.sandbox.wire import KernelMessage, KernelSocket
from tests.solvers.sandbox.rooms import run

KEY = b"k"


def parts(kind: str, content: Any) -> list[bytes]:
    header, parent = {"msg_type": kind}, {"msg_id": "p"}
    return [json.dumps(part).encode() for part in (header, parent, {}, content)]


def signed(body: Sequence[bytes]) -> list[bytes]:
    signature = hmac.new(KEY, b"".join(body), "sha256").hexdigest().encode()
    return [b"topic", b"<IDS|MSG>", signature, *body]


def encoded(frames: Sequence[bytes]) -> bytes:
    flags = [wire.MORE] * (len(frames) - 1) + [0]
    return b"".join(
        struct.pack(">BQ", flag | wire.LONG, len(frame)) + frame
        for flag, frame in zip(flags, frames, strict=True)
    )


def received(data: bytes, tmp_path: Path) -> list[KernelMessage]:
    """What is read of the bytes that a kernel sends after its greeting."""
    messages: list[KernelMessage] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        greeting = await reader.readexactly(64)
        assert greeting[:1] + greeting[9:12] == b"\xff\x7f\x03\x00"
        writer.write(wire.GREETING + b"\x04\x06\x05READY" + data)
        await writer.drain()
        writer.write_eof()
        await reader.read()
        writer.close()

    async def listen() -> None:
        path = tmp_path / "s"
        async with await asyncio.start_unix_server(talk, path):
            channel = await KernelSocket.connect(path, "SUB", KEY)
            with suppress(EOFError):
                while True:
                    messages.append(await channel.receive())
            channel.close()

    run(listen())
    return messages


def test_messages_are_read(tmp_path: Path) -> None:
    message = encoded(signed(parts("stream", {"text": "hi"})))
    assert received(message, tmp_path) == [KernelMessage("stream", "p", {"text": "hi"})]


def test_what_is_forged_or_broken_is_read_past(tmp_path: Path) -> None:
    good = encoded(signed(parts("stream", {"text": "hi"})))
    deep = b"[" * 100_000
    bad = [
        [b"topic"],
        [b"<IDS|MSG>", b"no signature"],
        [b"<IDS|MSG>", b"wrong", *parts("stream", {"text": "forged"})],
        signed([b"not json", b"{}", b"{}", b"{}"]),
        signed([*parts("stream", {})[:3], deep]),
        signed(parts("stream", ["no", "object"])),
        signed([b"{}", b"{}", b"{}", b"{}"]),
    ]
    data = b"".join(map(encoded, bad)) + b"\x04\x05\x04PING" + good
    assert received(data, tmp_path) == [KernelMessage("stream", "p", {"text": "hi"})]


def test_what_is_too_large_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "MOST", 10_000)
    large = encoded(signed(parts("stream", {"text": "x" * 50_000})))
    many_parts = encoded([*signed(parts("stream", {"text": "y"})), *[b"z" * 1000] * 200])
    large_message, part_message = received(large + many_parts, tmp_path)
    assert (large_message.kind, large_message.content) == ("stream", {})
    assert large_message.left_out > 50_000
    assert (part_message.content, part_message.left_out) == ({}, 195_000)


@pytest.mark.parametrize(
    "content",
    [
        {"data": {"image/png": "AAAA"}},
        {"data": {"image/png": "!"}},
        {"data": {"image/png": "A" * (LARGEST_PICTURE * 2)}},
        {"data": {"image/png": {"odd": 1}}},
    ],
)
def test_pictures_that_are_none_are_left_out(content: dict[str, Any]) -> None:
    output = CellOutput(1000)
    output.add(KernelMessage("display_data", "p", content))
    assert (output.images, output.text) == ([], "[1 pictures left out]\n")


def test_not_more_than_a_few_pictures() -> None:
    output = CellOutput(1000)
    for _ in range(MOST_PICTURES + 3):
        output.add(KernelMessage("display_data", "p", {"data": {"image/png": "iVBORw0KGgo="}}))
    assert len(output.images) == MOST_PICTURES
    assert output.text == "[3 pictures left out]\n"


def test_a_terminal_is_not_driven() -> None:
    assert (
        strip_terminal_codes("\x1b[31mred\x1b[0m \x1b]0;title\x07ok\r\n10 %\r20 %\rdone\n")
        == "red ok\ndone\n"
    )
    assert "\x9b" not in strip_terminal_codes("\x9b2J")


@pytest.mark.parametrize("size", [9, 10, 11, 25, 1000, 100_000])
def test_long_text_keeps_both_ends(size: int) -> None:
    output = CellOutput(10)
    text = "".join(str(n % 10) for n in range(size))
    for place in range(0, size, 7):
        output.write(text[place : place + 7])
    if size <= 10:
        assert output.text == text
    else:
        assert output.text == f"{text[:5]}\n[… {size - 10} characters left out …]\n{text[-5:]}"
