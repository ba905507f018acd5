"""How hostile files are written, and the texts and values that they hold."""

from __future__ import annotations

import io
import json
import os
import socket
import threading
import time
import zipfile
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

CODES = (0, 2, 3, 4, 5)
STORED = "--model scripted --work-dir runs --run-id r"
SECONDS = 300.0
Row = dict[str, Any]
Build = Callable[[Path], None]
"""Writes the files of an attack into an empty folder."""
PLAIN: Row = {"question": "2 + 2?", "A": "4", "B": "5", "answer": "A"}
SHELL = "x$(touch canary)`touch canary`;touch canary|touch canary&\ntouch canary"
TEXTS = {
    "a path": "../../../outside",
    "an absolute path": "/tmp/outside/../../etc/passwd",
    "a shell": SHELL,
    "a terminal": "\x1b[2J\x1b]52;c;cm0=\x07\x9b31m\u202e",
    "HTML": "</script></style></textarea><img src=x onerror=pwned()><svg/onload=pwned()>",
    "an attribute": "\" onmouseover=pwned() x='javascript:pwned()",
    "a formula": "=cmd|' /C calc'!A0",
    "a template": "{{7*7}}{% raw %}{0.__class__}{question.__init__.__globals__}${HOME}%(x)s%n",
    "NUL": "a\0b",
    "an empty text": "",
    "blanks": " \t\u00a0\u3000 ",
    "a dot": ".",
    "two dots": "..",
    "a long text": "w" * 100_000,
    "a name of Windows": "CON.txt:stream",
    "line ends": "a\r\nb\u2028c\x85d",
    "combining characters": "e\u0301" * 500,
    "a lone surrogate": "\ud800x",
    "Markdown": "[x](javascript:pwned()) ![y](http://127.0.0.1:9/z) `|` | --- |\n# h",
    "LaTeX": "\\input{/etc/passwd}\\write18{touch canary}$\\href{a}{b}$&%#_",
}
"""Texts that mean more than text somewhere."""
FIELDS = ("question", "A", "answer", "subset", "id", "group", "explanation", "country")
VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 1.5, 10**400, 1e308, "", [], [[]], {}, {"a": {"b": []}}, ["A", 5, None]),
    *("A" * 10**6, float("nan"), float("inf"), 2**63, [None] * 1000),
)
"""Values none of which belongs in a field of a question."""


def write(name: str, data: bytes | str | Callable[[], bytes | str]) -> Build:
    """Write one file; what is large is made when it is needed."""

    def build(place: Path) -> None:
        content = data() if callable(data) else data
        write_file(place / name, content.encode() if isinstance(content, str) else content)

    return build


def write_file(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def combined(*builds: Build) -> Build:
    def build(place: Path) -> None:
        for build_part in builds:
            build_part(place)

    return build


def lines(*rows: Row) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


GOOD = lines(PLAIN | {"id": "a"}, PLAIN | {"id": "b"})


def with_ids(number: int) -> str:
    """Return good rows whose ids begin with a number."""
    return GOOD.replace('"id": "', f'"id": "{number}')


CSV = "question,A,B,answer\n2 + 2?,4,5,A\n"
ALIASES = "a0: &a0 [x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
)


def zipped(*entries: tuple[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries:
            archive.writestr(name, data)
    return stream.getvalue()


def fifo(name: str) -> Build:
    return lambda place: os.mkfifo(place / name)


def unix_socket(name: str) -> Build:
    def build(place: Path) -> None:
        previous_folder = Path.cwd()
        plug = socket.socket(socket.AF_UNIX)
        with suppress(OSError):
            plug.bind(os.path.relpath(place / name, previous_folder))
        plug.close()

    return build


def link(name: str, target: str) -> Build:
    return lambda place: (place / name).symlink_to(target)


def changing(name: str) -> Build:
    """Write a file that other threads make shorter and longer while it is read."""

    def build(place: Path) -> None:
        path = place / name
        path.write_text(GOOD * 2000)

        def change() -> None:
            due = time.monotonic() + 6
            while time.monotonic() < due and path.parent.exists():
                with suppress(OSError):
                    path.write_text(GOOD[: len(GOOD) // 3])
                    path.write_text(lines(*[PLAIN | {"id": str(n)} for n in range(3000)]))
                time.sleep(0.002)

        threading.Thread(target=change, daemon=True).start()

    return build


def parquet(rows: list[Row], times: int = 1, **options: Any) -> Build:
    def build(place: Path) -> None:
        try:
            pyarrow, tables = import_module("pyarrow"), import_module("pyarrow.parquet")
        except ImportError:
            write_file(place / "q.parquet", b"PAR1")
            return
        table = pyarrow.Table.from_pylist(rows * times)
        tables.write_table(table, place / "q.parquet", **options)

    return build
