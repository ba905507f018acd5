"""Headers of GGUF files: what they tell, and what is wrong with them in one line."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from keju.errors import DataError
from keju.models.gguf import read_gguf, template_hash
from tests.support.local_model import real_weights, small_gguf


def test_facts_of_a_real_model() -> None:
    file = read_gguf(real_weights())
    assert (file.architecture, file.context, file.vocabulary) == ("llama", 8192, 49152)
    assert file.quantisation == "Q4_1"
    assert "<|im_start|>" in file.chat_template
    assert len(template_hash(file.chat_template)) == 16


def test_facts_of_a_small_file(tmp_path: Path) -> None:
    file = read_gguf(small_gguf(tmp_path / "m.gguf", template="{{ messages }}"))
    assert (file.architecture, file.context, file.quantisation) == ("llama", 512, "F32")
    assert file.chat_template == "{{ messages }}"
    assert template_hash(read_gguf(small_gguf(tmp_path / "n.gguf")).chat_template) == ""


@pytest.mark.parametrize("share", [0.05, 0.3, 0.6, 0.99])
def test_every_cut_is_found(tmp_path: Path, share: float) -> None:
    whole = small_gguf(tmp_path / "m.gguf").read_bytes()
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(DataError, match="cut short") as caught:
        read_gguf(cut)
    assert "\n" not in str(caught.value)


def test_a_length_beyond_reason_is_damage(tmp_path: Path) -> None:
    path = small_gguf(tmp_path / "m.gguf")
    data = bytearray(path.read_bytes())
    data[24:32] = b"\xff" * 8
    path.write_bytes(data)
    with pytest.raises(DataError, match="damaged"):
        read_gguf(path)


def test_other_files_are_refused(tmp_path: Path) -> None:
    text = tmp_path / "notes.gguf"
    text.write_text("not a model")
    with pytest.raises(DataError, match="is not a GGUF file"):
        read_gguf(text)
    with pytest.raises(DataError, match="No such file"):
        read_gguf(tmp_path / "nowhere.gguf")
    with pytest.raises(DataError, match="Is a directory"):
        read_gguf(tmp_path)
    old = small_gguf(tmp_path / "old.gguf")
    old.write_bytes(b"GGUF\1\0\0\0" + old.read_bytes()[8:])
    with pytest.raises(DataError, match="version 1"):
        read_gguf(old)


UINT8, UINT32, TEXT, ARRAY, UINT64 = 0, 4, 8, 9, 10


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def entry(name: str, kind: int, value: bytes) -> bytes:
    return text(name) + struct.pack("<I", kind) + value


def array(kind: int, count: int, content: bytes = b"") -> bytes:
    return struct.pack("<IQ", kind, count) + content


def header(*entries: bytes, tensors: int = 0, count: int | None = None, more: bytes = b"") -> bytes:
    counts = struct.pack("<IQQ", 3, tensors, len(entries) if count is None else count)
    return b"GGUF" + counts + b"".join(entries) + more


NESTED = array(ARRAY, 1) * 100_000
TENSOR = text("t") + struct.pack("<I", 2**32 - 1) + b"\xff" * 80_000
HOSTILE = {
    "alignment 0": header(entry("general.alignment", UINT32, struct.pack("<I", 0))),
    "a huge alignment": header(entry("general.alignment", UINT64, b"\xff" * 8)),
    "an alignment in words": header(entry("general.alignment", TEXT, text("32"))),
    "arrays in arrays": header(entry("a", ARRAY, NESTED)),
    "an endless array": header(entry("a", ARRAY, array(UINT64, 2**40))),
    "an endless array of texts": header(entry("a", ARRAY, array(TEXT, 2**26))),
    "an endless text": header(entry("a", TEXT, struct.pack("<Q", 2**63))),
    "countless entries": header(count=2**64 - 1),
    "countless tensors": header(tensors=2**64 - 1),
    "a tensor of countless dimensions": header(tensors=1, more=TENSOR),
    "a value of no type": header(entry("a", 77, b"x")),
    "an array of no type": header(entry("a", ARRAY, array(77, 1, b"x"))),
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("length", [0, 1 << 40], ids=["as it is", "in a terabyte"])
def test_a_hostile_header_is_one_line(tmp_path: Path, data: bytes, length: int) -> None:
    """A sparse file has all the bytes that a header asks for."""
    path = tmp_path / "m.gguf"
    path.write_bytes(data)
    if length:
        os.truncate(path, length)
    with pytest.raises(DataError) as caught:
        read_gguf(path)
    assert "damaged" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_odd_facts_are_no_facts(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    odd = [
        entry("general.architecture", UINT8, b"\7"),
        entry("7.context_length", TEXT, text("many")),
        entry("tokenizer.ggml.tokens", TEXT, text("many")),
    ]
    path.write_bytes(header(*odd) + b"\0" * 64)
    file = read_gguf(path)
    assert (file.architecture, file.context, file.vocabulary) == ("7", 0, 0)
