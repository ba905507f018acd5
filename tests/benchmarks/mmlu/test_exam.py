"""MMLU on written rows in the forms of the hub and of CSV files."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from keju.answers.reader import SimpleEvalsChoiceReader
from keju.benchmarks import registry
from keju.benchmarks.prepare import prepare_exam
from keju.types import Sample

WriteRows = Callable[[Path, str, str, int], None]
SAMPLE = Sample(id="x", subset="law", index=0, text="", target="B", choices=("w", "x", "y", "z"))


def write_hub_rows(folder: Path, subject: str, split: str, rows: int) -> None:
    file = folder / "mmlu" / split / f"{subject}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = (
        json.dumps({"question": f"Question {n}?", "choices": ["w", "x", "y", "z"], "answer": n % 4})
        for n in range(rows)
    )
    file.write_text("\n".join(lines))


def write_csv_rows(folder: Path, subject: str, split: str, rows: int) -> None:
    file = folder / "mmlu" / subject / f"{split}.csv"
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["question", "A", "B", "C", "D", "answer"])
        writer.writerows([f"Question {n}?", "w", "x", "y", "z", "ABCD"[n % 4]] for n in range(rows))


@pytest.mark.parametrize("write", [write_hub_rows, write_csv_rows])
def test_both_layouts_give_the_same_exam(write: WriteRows, tmp_path: Path) -> None:
    for split, rows in (("test", 12), ("dev", 5)):
        write(tmp_path, "us_foreign_policy", split, rows)
    args = {"subset_list": ["us foreign policy"]}
    exam, _ = prepare_exam("mmlu", args, data_dir=str(tmp_path))
    assert [sample.target for sample in exam.samples] == list("ABCD" * 3)
    text = exam.render(exam.samples[1]).text
    assert text.startswith(
        "The following are multiple choice questions (with answers) about us foreign policy.\n\n"
        "Question 0?\nA. w\nB. x\nC. y\nD. z\nAnswer: A\n\nQuestion 1?"
    )
    assert text.endswith("\n\nQuestion 1?\nA. w\nB. x\nC. y\nD. z\nAnswer:")
    assert exam.protocol.label == " "
    assert [notice.code for notice in exam.warnings] == ["not_published_rows"]


def test_the_published_counts_add_up() -> None:
    benchmark = registry.get("mmlu")
    assert len(benchmark.rows) == 57
    assert sum(benchmark.rows.values()) == 14042


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("Thinking.\nAnswer: B", "B"),
        ("**Answer:** $\\boxed{C}$", "C"),
        ("Answer: A, but Answer: B", "A"),
        ("答案：D", "D"),
        ("الإجابة: ب", "B"),
        ("Answer: b", None),
        ("The answer is B.", None),
    ],
)
def test_simple_evals_for_mmlu(reply: str, value: str | None) -> None:
    assert SimpleEvalsChoiceReader(multilingual=True).read(reply, SAMPLE).value == value
