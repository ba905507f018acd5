"""What loading checks, changes and reports."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from keju.benchmarks import registry
from keju.benchmarks.base import Exam
from keju.benchmarks.mmlu_pro import MMLU_PRO
from keju.benchmarks.mmlu_pro.metadata import CATEGORIES
from keju.errors import DataError
from keju.sources.folder import DataFolder
from tests.benchmarks.mmlu_pro.conftest import TEST_ROWS, Prepare, row, write


def test_the_registry_finds_it_by_both_names() -> None:
    assert registry.get("mmlu_pro") is MMLU_PRO
    assert registry.get("mmlu-pro") is MMLU_PRO
    assert list(MMLU_PRO.subset_names) == list(CATEGORIES)


def test_samples_carry_what_the_file_says(prepare: Prepare) -> None:
    exam = prepare(subset_list=["HISTORY", "Math"], few_shot_num=0)
    assert [s.id for s in exam.samples] == ["mmlu_pro_11", "mmlu_pro_13", "mmlu_pro_12"]
    assert [(s.name, s.start, s.stop) for s in exam.subsets] == [("math", 0, 2), ("history", 2, 3)]
    assert [s.index for s in exam.samples] == [0, 1, 0]
    assert exam.describe(exam.samples[1]) == {
        "input": [{"id": exam.describe(exam.samples[1])["input"][0]["id"], "content": exam.render(exam.samples[1]).text}],
        "choices": ["six", "seven", "eight", "nine"],
        "target": "A",
        "id": 1,
        "group_id": 1,
        "subset_key": "math",
        "metadata": {"cot_content": "", "subject": "math", "question_id": 13},
    }  # fmt: skip


def test_leading_space_goes_and_trailing_space_stays(prepare: Prepare) -> None:
    exam = prepare(few_shot_num=0)
    assert exam.samples[0].choices == ("three", "four", "five ")
    removed = "leading white space removed from 1 options in 1 test rows (1 of them"
    assert any(note.startswith(removed) for note in exam.data.notes)
    assert any("math: 2 rows, 1351 published" in note for note in exam.data.notes)
    assert exam.warnings[0].text().endswith("math has 2 of 1351")
    assert set(exam.data.files) == {"test.jsonl.gz"}


def test_rows_are_located_by_question_id(prepare: Prepare) -> None:
    exam = prepare()
    assert exam.locate({"question_id": 13, "output": "x"}) == "mmlu_pro_13"
    assert exam.locate({"id": "mmlu_pro_13"}) == "mmlu_pro_13"
    with pytest.raises(KeyError, match="question_id"):
        exam.locate({"index": 0})


def test_the_letter_counts_where_the_index_disagrees(tmp_path: Path) -> None:
    write(tmp_path / "test.jsonl", [row(1, "?", ["x", "y", "x"], "C", answer_index=1)])
    exam = small_exam(tmp_path)
    assert exam.samples[0].target == "C"
    assert "the letter counts" in exam.errata["mmlu_pro_1"]


def test_a_category_without_rows_is_an_error(prepare: Prepare) -> None:
    with pytest.raises(DataError, match="no rows of law; name the subsets"):
        prepare(subset_list=["law"], few_shot_num=0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"answer": "D"}, "row 1: the answer 'D' is none of the labels A to C"),
        ({"options": ["x"]}, "row 1: 1 option;"),
        ({"answer": ""}, "row 1: the answer is empty"),
        ({"question": " "}, "row 1: the question is empty"),
        ({"options": "x,y"}, "'options' should be list and is str"),
        ({"options": ["x", 3]}, "not text"),
        ({"question_id": "x11"}, "'question_id' should be int and is str"),
        ({"question": None}, "'question' should be str and is missing"),
        ({"category": "maths"}, "unknown category 'maths'.*math"),
        ({"question_id": 13}, "row 3: question_id 13 occurs twice"),
    ],
)
def test_a_wrong_row_is_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    write(tmp_path / "test.jsonl", [TEST_ROWS[0] | change, *TEST_ROWS[1:]])
    with pytest.raises(DataError, match=message):
        small_exam(tmp_path)


def test_missing_data_is_an_error_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(DataError) as error:
        small_exam(tmp_path)
    assert "\n" not in str(error.value)
    write(tmp_path / "test.jsonl", TEST_ROWS)
    assert len(small_exam(tmp_path).samples) == 2
    with pytest.raises(DataError, match="validation"):
        small_exam(tmp_path, few_shot_num=1)


def small_exam(path: Path, **args: Any) -> Exam:
    settings: dict[str, Any] = {"subset_list": ["math"], "few_shot_num": 0} | args
    folder = DataFolder(path, MMLU_PRO.layout)
    return MMLU_PRO.prepare(MMLU_PRO.Args(**settings), folder, seed=7)


def test_the_real_data(exam: Exam, data_dir: Path) -> None:
    facts = json.loads((data_dir / "mmlu_pro" / "categories.json").read_text())
    assert list(CATEGORIES) == facts["order_in_seed"]
    assert facts["test_rows"] == CATEGORIES
    assert {s.name: len(s) for s in exam.subsets} == CATEGORIES
    assert len(exam.samples) == len({s.id for s in exam.samples}) == 12_032
    assert exam.warnings == ()
    assert not any(choice[:1].isspace() for s in exam.samples for choice in s.choices)
    assert exam.data.notes == (
        "leading white space removed from 495 options in 480 test rows"
        " (470 of them had it before the gold option only)",
    )
    assert exam.samples[0].metadata["question_id"] == 10356
    targets = {s.id: s.target for s in exam.samples}
    assert targets["mmlu_pro_3983"] == "C"
    assert "mmlu_pro_3983" in exam.errata
    chance = [exam.chance(s) or 0.0 for s in exam.samples]
    assert round(100 * sum(chance) / len(chance), 2) == 11.09


def test_csv_keeps_numbers_and_lists_as_text(tmp_path: Path) -> None:
    with (tmp_path / "test.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, list(TEST_ROWS[0]))
        table.writeheader()
        for fields in TEST_ROWS:
            table.writerow(fields | {"options": json.dumps(fields["options"])})
    args = MMLU_PRO.Args(subset_list=["math"], few_shot_num=0)
    exam = MMLU_PRO.prepare(args, DataFolder(tmp_path, MMLU_PRO.layout), seed=0)
    (tmp_path / "lines").mkdir()
    write(tmp_path / "lines" / "test.jsonl", TEST_ROWS)
    lines = DataFolder(tmp_path / "lines", MMLU_PRO.layout)
    csv_exam = MMLU_PRO.prepare(args, lines, seed=0)
    assert exam.samples == csv_exam.samples
    assert exam.errata == csv_exam.errata
