"""What the tests of local models share: the real weights, and small GGUF files made here."""

from __future__ import annotations

import os
import struct
from importlib.util import find_spec
from pathlib import Path

import pytest

from keju.models import weights

_STRING, _UINT32 = 8, 4
_F32 = 0


def real_weights() -> Path:
    """The weights of the embedded model; skips where they or the runtime are missing."""
    if find_spec("xllamacpp") is None:
        pytest.skip("xllamacpp is not installed: pip install 'keju[local]'")
    place = weights.find_file(weights.EMBEDDED, os.environ)
    if place is None:
        pytest.skip(f"no weights of the embedded model: {weights.EMBEDDED.command}")
    return place


def small_gguf(
    path: Path, *, architecture: str = "llama", template: str = "", values: int = 64
) -> Path:
    """Write a GGUF file with a header and one tensor; it is whole, and no real model."""
    entries = [
        _text("general.architecture") + struct.pack("<I", _STRING) + _text(architecture),
        _text(f"{architecture}.context_length") + struct.pack("<II", _UINT32, 512),
    ]
    if template:
        entries.append(_text("tokenizer.chat_template") + struct.pack("<I", _STRING))
        entries[-1] += _text(template)
    tensor = _text("token_embd.weight") + struct.pack("<IQIQ", 1, values, _F32, 0)
    header = b"GGUF" + struct.pack("<IQQ", 3, 1, len(entries)) + b"".join(entries) + tensor
    padding = b"\0" * (-len(header) % 32)
    path.write_bytes(header + padding + b"\0" * (4 * values))
    return path


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data
