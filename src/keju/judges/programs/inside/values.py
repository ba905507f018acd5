"""The pipe between a program and its tests. Both sides run this text in their sandboxes.

A message is its length in four bytes and a JSON value. Only plain values cross the pipe: what a
program returns is copied, so an object that claims to equal everything arrives as `Opaque` and
equals nothing. This file uses only the standard library, because a sandbox has no other.
"""

from __future__ import annotations

import json
import os
import select
import struct
import time
from collections.abc import Callable
from typing import Any

LONGEST_MESSAGE = 16 << 20
DEEPEST = 60
SMALL = 1 << 63
CONTAINERS: tuple[tuple[Any, str], ...] = (
    (list, ""), (tuple, "t"), (set, "s"), (frozenset, "f")
)  # fmt: skip


class Opaque:
    """A value that cannot cross the pipe; it equals only itself."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __repr__(self) -> str:
        return f"<{self.kind}>"


def encode(value: Any, depth: int = 0) -> Any:
    """Return a value as JSON: containers other than lists are objects with one letter as key."""
    if value is None or type(value) in (bool, float, str):
        return value
    if isinstance(value, int):
        number = int.__index__(value)
        return number if -SMALL < number < SMALL else {"i": hex(number)}
    if depth > DEEPEST:
        return {"o": "nested too deeply"}
    if isinstance(value, dict):
        items = dict.items(value)
        return {"d": [[encode(key, depth + 1), encode(item, depth + 1)] for key, item in items]}
    for kind, letter in CONTAINERS:
        if isinstance(value, kind):
            content = [encode(item, depth + 1) for item in kind.__iter__(value)]
            return {letter: content} if letter else content
    return encode_scalar(value)


def encode_scalar(value: Any) -> Any:
    """Return a value that is neither a container nor an integer."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, complex):
        return {"c": [value.real, value.imag]}
    if isinstance(value, (bytes, bytearray)):
        return {"b": bytes(value).hex()}
    if isinstance(value, range):
        return {"r": [value.start, value.stop, value.step]}
    kind = type(value)
    name = f"{kind.__module__}.{kind.__qualname__}"
    if name in ("decimal.Decimal", "fractions.Fraction"):
        return {"n": [name, str(value)]}
    return {"o": name}


def decode_number(parts: list[str]) -> Any:
    """Return a number of a class of the standard library."""
    import decimal
    import fractions

    name, text = parts
    if "Fraction" not in name:
        return decimal.Decimal(text)
    # Only digits, as `str` writes them: the value of `1e9999999999` takes endless time.
    return fractions.Fraction(*map(int, text.split("/")))


DECODERS: dict[str, Callable[[Any], Any]] = {
    "i": lambda text: int(text, 16),
    "d": lambda pairs: {decode(key): decode(item) for key, item in pairs},
    "t": lambda items: tuple(map(decode, items)),
    "s": lambda items: set(map(decode, items)),
    "f": lambda items: frozenset(map(decode, items)),
    "c": lambda parts: complex(*parts),
    "b": bytes.fromhex,
    "r": lambda parts: range(*parts),
    "n": decode_number,
    "o": Opaque,
}


def decode(data: Any) -> Any:
    """Return the value of JSON that `encode` wrote."""
    if isinstance(data, list):
        return [decode(item) for item in data]
    if isinstance(data, dict):
        ((letter, content),) = data.items()
        return DECODERS[letter](content)
    return data


class Pipe:
    """Two files: messages are read from one and written to the other."""

    def __init__(self, source: int, target: int) -> None:
        self.source, self.target = source, target

    def send(self, message: Any) -> None:
        """Write a message."""
        text = json.dumps(message).encode()
        data = memoryview(struct.pack(">I", len(text)) + text)
        while data:
            data = data[os.write(self.target, data) :]

    def receive(self, deadline: float | None = None) -> Any:
        """Return the next message; None at the end of the file.

        Raise TimeoutError after the deadline, OverflowError if the message is too long, and
        ValueError if it is not JSON.
        """
        head = self.read(4, deadline)
        if head is None:
            return None
        (size,) = struct.unpack(">I", head)
        if size > LONGEST_MESSAGE:
            raise OverflowError
        text = self.read(size, deadline)
        return None if text is None else json.loads(text)

    def read(self, size: int, deadline: float | None) -> bytes | None:
        """Return the next bytes; None at the end of the file."""
        data = bytearray()
        while len(data) < size:
            if deadline is not None:
                seconds_left = deadline - time.monotonic()
                if seconds_left <= 0 or not select.select([self.source], [], [], seconds_left)[0]:
                    raise TimeoutError
            part = os.read(self.source, min(size - len(data), 1 << 16))
            if not part:
                return None
            data += part
        return bytes(data)


def move_files(*numbers: int) -> list[int]:
    """Move files away from the standard numbers, which then lead nowhere; return the new ones."""
    new_numbers = [os.dup(number) for number in numbers]
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)
    return new_numbers


def describe(error: BaseException) -> str:
    """Return the kind and the text of an exception, which may be hostile."""
    try:
        text = str(error)[:200]
    except BaseException:
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
