"""Small data made for the tests, and the real exam where its data is at hand."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from keju.benchmarks.base import Exam
from keju.benchmarks.mmlu_pro import MMLU_PRO
from keju.sources.folder import DataFolder

Prepare = Callable[..., Exam]


def row(question_id: int, question: str, options: list[str], answer: str, **fields: Any) -> Any:
    """One row as the hub has it."""
    return {
        "question_id": question_id,
        "question": question,
        "options": options,
        "answer": answer,
        "answer_index": "ABCDEFGHIJ".index(answer),
        "cot_content": "",
        "category": "math",
        "src": "made for tests",
    } | fields


TEST_ROWS = [
    row(11, "Two and two?", ["three", " four", "five "], "B"),
    row(12, "Who made {choices}?", ["Cai Lun", "Bi Sheng"], "A", category="History"),
    row(13, "Three and three?", ["six", "seven", "eight", "nine"], "A"),
]
POOL_ROWS = [
    row(
        1,
        "One and one?",
        ["two", "N/A", "ten", "N/A"],
        "A",
        cot_content="A: Let's think step by step. It is two. The answer is (A).",
    ),
    row(
        2,
        "One and two?",
        ["four", "three"],
        "B",
        cot_content="A: Let's think step by step. It is three. The answer is (B).",
    ),
]


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    """A data folder with three questions of two categories and two worked examples of math."""
    write(tmp_path / "test.jsonl.gz", TEST_ROWS)
    write(tmp_path / "validation.jsonl", POOL_ROWS)
    return DataFolder(tmp_path, MMLU_PRO.layout)


def write(path: Path, rows: list[Any]) -> None:
    text = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)


@pytest.fixture
def prepare(folder: DataFolder) -> Prepare:
    """Make the small exam ready with the given settings (math only unless they say otherwise)."""

    def make(*, seed: int = 7, **args: Any) -> Exam:
        settings: dict[str, Any] = {"subset_list": ["math"], "few_shot_num": 2} | args
        return MMLU_PRO.prepare(MMLU_PRO.Args(**settings), folder, seed=seed)

    return make


@pytest.fixture(scope="session")
def exam(data_dir: Path) -> Exam:
    """The whole real exam under the default protocol."""
    return real_exam(data_dir)


def real_exam(data_dir: Path, **args: Any) -> Exam:
    real = DataFolder(data_dir / "mmlu_pro", MMLU_PRO.layout)
    return MMLU_PRO.prepare(MMLU_PRO.Args(**args), real, seed=7)
