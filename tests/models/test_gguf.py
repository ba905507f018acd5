"""Headers of GGUF files: what they tell, and what is wrong with them in one line."""

from __future__ import annotations

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
