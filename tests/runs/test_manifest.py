"""What one run may be made of."""

from __future__ import annotations

from pathlib import Path

import pytest

from keju.config import TaskConfig
from keju.errors import UsageError
from keju.runs.manifest import Manifest
from keju.task import make_jobs

FACTS = {
    "sha256": "a", "chat_template_hash": "t", "dtype": "float32", "label_space": False, "threads": 2
}  # fmt: skip


def manifest(folder: Path) -> Manifest:
    config = TaskConfig(model="scripted", datasets=["demo"], run_id=folder.name)
    return Manifest(folder, config, make_jobs(config))


@pytest.mark.parametrize(
    ("fact", "value", "told"),
    [
        ("sha256", "b", "other weights"),
        ("chat_template_hash", "u", "another chat template"),
        ("dtype", "bfloat16", "another dtype"),
        ("label_space", True, "another label_space"),
    ],
)
def test_a_run_is_of_one_local_model_used_in_one_way(
    tmp_path: Path, fact: str, value: object, told: str
) -> None:
    manifest(tmp_path).note_endpoint(FACTS)
    with pytest.raises(UsageError, match=f"was made with {told} under the same name"):
        manifest(tmp_path).note_endpoint(FACTS | {fact: value})
    manifest(tmp_path).note_endpoint(FACTS | {"threads": 4})


def test_what_is_described_is_what_comes_back_from_the_file(tmp_path: Path) -> None:
    manifest(tmp_path).write()
    again = manifest(tmp_path)
    assert again.differences == []
    assert again.trusted
    assert again.ask_again == frozenset()
