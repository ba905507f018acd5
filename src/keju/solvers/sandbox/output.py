"""The output of a cell: text and pictures, limited in size and without terminal control codes."""

from __future__ import annotations

import base64
import re
from collections import deque
from typing import Any, NamedTuple

from keju.messages import printable
from keju.solvers.sandbox.wire import KernelMessage

PNG = b"\x89PNG\r\n\x1a\n"
LARGEST_PICTURE = 5 * 2**20
MOST_PICTURES = 8
# Colours and cursor moves of a terminal: ``\x1b[31m``, ``\x1b]0;title\x07``.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")


class CellResult(NamedTuple):
    """The result of running a cell."""

    text: str = ""
    """Output, values and tracebacks in order, and Keju's notes about them."""
    images: tuple[bytes, ...] = ()
    """PNG files."""
    error: str | None = None
    """The exception that the cell raised: ``NameError: name 'x' is not defined``."""
    timed_out: bool = False
    restarted: bool = False
    """Whether a new kernel was started, without the variables of the old one."""
    died: str | None = None
    """The name of the reason for the kernel's death: ``memory``."""
    ran: bool = True
    """Whether the cell was started; the kernel may have been gone before."""
    seconds: float = 0.0


class CellOutput:
    """Collects the messages of one cell."""

    def __init__(self, max_chars: int) -> None:
        self.max_chars = max_chars
        self.images: list[bytes] = []
        self.error: str | None = None
        self._head, self._tail = "", deque[str]()
        self._tail_size = self._cut = self._left_out = self._pictures_left_out = 0

    def add(self, message: KernelMessage) -> None:
        """Add a message's text, picture or error."""
        self._left_out += message.left_out
        content = message.content
        match message.kind:
            case "stream":
                self.write(_join_text(content.get("text")))
            case "display_data" | "execute_result" | "update_display_data":
                self._add_data(content.get("data"))
            case "error":
                lines = content.get("traceback")
                trace = "\n".join(map(str, lines)) if isinstance(lines, list) else ""
                self.error = strip_terminal_codes(
                    f"{content.get('ename')}: {content.get('evalue')}"
                ).strip()[:1000]
                self.write(f"{trace or self.error}\n")

    def write(self, text: str) -> None:
        """Append text; only its beginning and its end are kept if it is too long."""
        room = self.max_chars // 2 - len(self._head)
        self._head += text[: max(0, room)]
        if excess := text[max(0, room) :]:
            self._tail.append(excess[-self.max_chars :])
            self._tail_size += len(self._tail[-1])
            self._cut += len(excess) - len(self._tail[-1])
        while self._tail and self._tail_size - len(self._tail[0]) >= self.max_chars // 2:
            dropped = len(self._tail.popleft())
            self._tail_size -= dropped
            self._cut += dropped

    @property
    def text(self) -> str:
        """The kept output."""
        tail = "".join(self._tail)
        keep = self.max_chars - self.max_chars // 2
        cut = self._cut + max(0, len(tail) - keep)
        middle = f"\n[… {cut} characters left out …]\n" if cut else ""
        notes = f"[{self._left_out} bytes of output were too large]\n" if self._left_out else ""
        if self._pictures_left_out:
            notes += f"[{self._pictures_left_out} pictures left out]\n"
        return (
            strip_terminal_codes(self._head + middle + tail[-keep:] if cut else self._head + tail)
            + notes
        )

    def _add_data(self, data: Any) -> None:
        if not isinstance(data, dict):
            return
        if text := _join_text(data.get("text/plain")):
            self.write(text if text.endswith("\n") else text + "\n")
        if encoded := _join_text(data.get("image/png")):
            picture = _decode_picture(encoded)
            if picture is None or len(self.images) == MOST_PICTURES:
                self._pictures_left_out += 1
            else:
                self.images.append(picture)


def strip_terminal_codes(text: str) -> str:
    """Return text without colours, overwritten lines and other terminal control codes."""
    lines = _ESCAPES.sub("", text).split("\n")
    # A progress bar overwrites its own line: only the last part of ``10 %\r20 %`` is kept.
    return printable("\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines))


def _join_text(value: Any) -> str:
    """Return a text that may be a list of lines."""
    return "".join(map(str, value)) if isinstance(value, list) else str(value or "")


def _decode_picture(coded: str) -> bytes | None:
    """Return a PNG file; None if it is too large or of another type."""
    if len(coded) > LARGEST_PICTURE * 4 // 3 + 1000:
        return None
    try:
        picture = base64.b64decode(coded)
    except ValueError:
        return None
    return picture if picture.startswith(PNG) else None
