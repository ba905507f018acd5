"""Archives and lines that strangers send: what is odd is told in one line, and soon."""

from __future__ import annotations

import gzip
import io
import struct
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from keju import bounds
from keju.bounds import unpack_gzip
from keju.errors import DataError
from keju.files import TABLE, iter_json_rows, parse_json
from keju.sources.archive import ZipEntries

CENTRAL, LOCAL = b"PK\x01\x02", b"PK\x03\x04"
TEXT = b'{"a": 1}' * 100


def packed(name: str = "a.json", content: bytes = TEXT, method: int = 8) -> bytes:
    """A zip file of one entry."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        archive.writestr(name, content)
    return stream.getvalue()


def with_field(raw: bytes, *, local: int, central: int, form: str, value: int) -> bytes:
    """`raw` with a field of the only entry's two headers set."""
    changed = bytearray(raw)
    struct.pack_into(form, changed, raw.index(LOCAL) + local, value)
    struct.pack_into(form, changed, raw.index(CENTRAL) + central, value)
    return bytes(changed)


def flagged(raw: bytes, bit: int) -> bytes:
    return with_field(raw, local=6, central=8, form="<H", value=bit)


def of_method(raw: bytes, method: int) -> bytes:
    return with_field(raw, local=8, central=10, form="<H", value=method)


def of_size(raw: bytes, size: int) -> bytes:
    return with_field(raw, local=22, central=24, form="<I", value=size)


def in_zstandard(content: bytes) -> bytes:
    """A zip file whose only entry is packed as Inspect does."""
    return of_method(
        of_size(packed(content=zstandard.compress(content), method=0), len(content)), 93
    )


def twice() -> bytes:
    stream = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(stream, "w") as archive:
        warnings.simplefilter("ignore")
        archive.writestr("a.json", "1")
        archive.writestr("a.json", "2")
    return stream.getvalue()


def damaged(raw: bytes) -> bytes:
    """Bytes inside the first entry are other ones."""
    at = raw.index(LOCAL) + 30 + len("a.json") + 4
    return raw[:at] + b"\xff\x00\xff" + raw[at + 3 :]


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (twice(), "it holds 'a.json' twice"),
        (flagged(packed(), 1), "a.json is encrypted"),
        (of_method(packed(), 12), "a method that Keju does not read (12)"),
        (of_method(packed(), 99), "a method that Keju does not read (99)"),
        (of_method(packed(), 0), "cannot read"),
        (damaged(packed()), "cannot read"),
        (packed()[:-30], "is not a whole zip file"),
        (b"nothing", "is not a whole zip file"),
        (b"", "is not a whole zip file"),
        (of_size(packed(), 0xFFFFFFF0), "is too large: 4294967280 bytes"),
        (packed(content=bytes(100 << 20)), "unpacks to more than 250 times its size"),
        (of_size(packed(), len(TEXT) - 1), "cannot read"),
        (of_method(packed(), 93), "cannot read"),
        (damaged(in_zstandard(TEXT)), "cannot read"),
        (of_size(in_zstandard(TEXT), 1 << 27), "unpacks to more than 250 times"),
        (of_size(in_zstandard(TEXT), 1 << 31), "is too large"),
        (of_size(in_zstandard(TEXT), len(TEXT) + 1), "cannot read"),
        (of_size(in_zstandard(TEXT), 1), "cannot read"),
    ],
)
def test_an_odd_archive_is_refused(raw: bytes, told: str, tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    path.write_bytes(raw)
    with pytest.raises(DataError) as error:
        ZipEntries(path).read("a.json")
    assert told in str(error.value)
    assert str(path) in str(error.value)


@pytest.mark.parametrize("make", [packed, lambda: packed(method=0)], ids=["deflated", "stored"])
def test_a_sound_archive_is_read(make: Callable[[], bytes], tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_bytes(make())
    assert ZipEntries(tmp_path / "x.zip").read("a.json") == TEXT


def test_what_is_read_of_an_archive_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "MOST_BYTES", 1000)
    (tmp_path / "x.zip").write_bytes(packed())
    archive = ZipEntries(tmp_path / "x.zip")
    archive.read("a.json")
    with pytest.raises(DataError, match="is too large"):
        archive.read("a.json")
    monkeypatch.setattr(bounds, "MOST_ENTRIES", 0)
    with pytest.raises(DataError, match="more than 0 entries"):
        ZipEntries(tmp_path / "x.zip")


@pytest.mark.slow
def test_a_gzip_bomb_is_refused_before_it_fills_the_memory() -> None:
    bomb = gzip.compress(bytes(1 << 27), 9)
    with pytest.raises(DataError, match="data is refused: it unpacks"):
        unpack_gzip(io.BytesIO(bomb), "data").read()


def test_a_line_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "LONGEST_LINE", 1 << 20)
    lines = io.BytesIO(b'{"a": 1}\n' + b"x" * ((1 << 20) + 1))
    with pytest.raises(DataError, match="data, line 2: longer than 1 MiB"):
        list(iter_json_rows(lines, "data"))


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (b'{"a": 1, "a": 2}', "the key 'a' is given twice"),
        (b'{"b": {"a": 1, "\\u0061": 2}}', "the key 'a' is given twice"),
        (b'{"a": "\xff"}', "not UTF-8 at byte 8"),
        ('{"a": "ü"}'.encode("utf-16"), "not UTF-8 at byte 1"),
        (b'{"a": "\\ud800"}', "a lone surrogate"),
        (b"[" * 200_000, "nested too deep"),
        (b'{"a": ' * 200_000, "nested too deep"),
        (b"1" * 5000, "a number has too many digits"),
        (b"-1e400", "a number is too large"),
        (b"NaN", "NaN is not a JSON value"),
        (b'{"a": 1', "expecting ',' delimiter at character 8"),
        (b"", "expecting value at character 1"),
        (b'{"a": "\n"}', "invalid control character at character 8"),
        (b'{"a": "b', "unterminated string starting at character 7"),
        (b'{"a": "\0"}', "invalid control character at"),
    ],
)
def test_what_is_no_json_is_told_in_one_line(raw: bytes, told: str) -> None:
    with pytest.raises(DataError) as error:
        parse_json(raw)
    assert told in str(error.value)
    assert "\n" not in str(error.value)


def test_a_mark_before_json_is_passed_over_and_numbers_stay_as_written() -> None:
    row = parse_json(b'\xef\xbb\xbf{"a": 1.10, "b": "\\ud83d\\ude00"}', TABLE)
    assert row == {"a": 1.1, "b": "\N{GRINNING FACE}"}
    assert str(row["a"]) == "1.10"
