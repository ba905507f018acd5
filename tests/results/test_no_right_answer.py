"""A strict reader that finds nothing: the first warning says that 0 is not the model's score."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Keju, keju

__all__ = ["keju"]


@pytest.fixture
def exam(tmp_path: Path) -> Path:
    """Three questions of word arithmetic in the layout of a published exam."""
    rows = [{"question": f"{n} + 1?", "answer": f"#### {n + 1}"} for n in range(3)]
    (tmp_path / "gsm8k").mkdir()
    (tmp_path / "gsm8k" / "test.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "gsm8k" / "train.jsonl").write_text("\n".join(map(json.dumps, rows * 2)))
    return tmp_path


def first_notice(keju: Keju, exam: Path, outputs: list[str]) -> str:
    file = exam / "predictions.jsonl"
    rows = [{"index": n, "output": output} for n, output in enumerate(outputs)]
    file.write_text("\n".join(map(json.dumps, rows)))
    ran = keju(
        "score", "--datasets", "gsm8k", "--predictions", str(file), "--data-dir", str(exam),
        "--json",
    )  # fmt: skip
    (entry,) = ran.json["benchmarks"]
    assert entry["reader"] == "strict-match"
    return str(entry["notices"][0]["code"]) if entry["notices"] else ""


def test_the_first_notice_says_so(exam: Path, keju: Keju) -> None:
    assert first_notice(keju, exam, ["So it is 1.", "A: 2", "3"]) == "reader_finds_nothing"


def test_a_model_that_is_wrong_gets_no_such_notice(exam: Path, keju: Keju) -> None:
    assert first_notice(keju, exam, ["#### 7", "A: 9", "8"]) != "reader_finds_nothing"
    assert first_notice(keju, exam, ["#### 1", "A: 2", "3"]) != "reader_finds_nothing"
