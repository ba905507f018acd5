"""CMMLU: its rows, the authors' prompt, means by category, and the authors' reader."""

from __future__ import annotations

from pathlib import Path

import pytest

from keju.benchmarks.cmmlu.readers import CMMLUOfficialReader
from keju.benchmarks.prepare import prepare_exam
from keju.types import Sample

SAMPLE = Sample(
    id="x", subset="law", index=0, text="", target="B", choices=("甲", "乙", "丙", "丁")
)


def test_all_subjects_are_there_as_published(data_dir: Path) -> None:
    exam, _ = prepare_exam("cmmlu", data_dir=str(data_dir))
    assert len(exam.subsets) == 67
    assert len(exam.samples) == 11582
    assert exam.warnings == ()
    assert [mean.name for mean in exam.means()] == [
        "average", "STEM", "Humanities", "Social Science", "Other", "China specific",
    ]  # fmt: skip


def test_the_official_prompt_has_five_examples_and_ends_with_the_cue(data_dir: Path) -> None:
    args = {"subset_list": ["农学"]}
    exam, _ = prepare_exam("cmmlu", args, data_dir=str(data_dir))
    text = exam.render(exam.samples[0]).text
    assert text.startswith("以下是关于农学的单项选择题，请直接给出正确答案的选项。\n\n题目：")
    assert text.endswith("\nD. 资金\n答案是：")
    assert text.count("题目：") == 6
    assert text.count("\n答案是：") == 6
    assert exam.protocol.decode == "labels"


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("B。因为……", "B"),
        ("正确答案是：C", "C"),
        ("答案应该是D。", "D"),
        ("故选：A", "A"),
        ("其中A说法有误，C说法正确", "C"),
        ("答案为以下的B项", "B"),
        ("选项中只有D合适", "D"),
        ("甲A乙B", None),
        ("不知道", None),
    ],
)
def test_the_authors_reader(reply: str, letter: str | None) -> None:
    assert CMMLUOfficialReader().read(reply, SAMPLE).value == letter


def test_the_authors_reader_takes_linear_time() -> None:
    for text in ("答案为" * 30_000, "A" * 100_000 + "\n", "正确" * 50_000, "A 正\n" * 20_000):
        CMMLUOfficialReader().read("。" + text, SAMPLE)
