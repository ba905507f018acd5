"""Loading: nothing is lost, nothing is changed, and what is wrong is named in one line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from keju.benchmarks.base import Exam
from keju.errors import ConfigError, DataError
from tests.benchmarks.ceval.conftest import OPTIONS, write

Evaluate = Callable[..., Exam]


def test_real_val_is_complete(real: Evaluate) -> None:
    exam = real()
    assert len(exam.samples) == 1346
    assert len(exam.subsets) == 52
    assert Counter(s.target for s in exam.samples) == {"A": 310, "B": 338, "C": 344, "D": 354}
    assert len({sample.id for sample in exam.samples}) == 1346
    assert exam.data.notes == ()
    assert exam.warnings == ()
    assert len(exam.data.files) == 105  # 52 dev, 52 val, the mapping
    assert set(exam.errata) == {
        "ceval_advanced_mathematics_val_3",
        "ceval_college_chemistry_val_14",
        "ceval_computer_network_val_12",
    }
    for subset in exam.subsets:
        rows = exam.samples[subset.start : subset.stop]
        assert {row.subset for row in rows} == {subset.name}
        assert [row.index for row in rows] == list(range(len(subset)))
    assert exam.subsets[0].title == "计算机网络"


def test_real_test_split_says_before_any_call_that_it_has_no_labels(real: Evaluate) -> None:
    exam = real(split="test", few_shot_num=0)
    assert len(exam.samples) == 12342
    assert len(exam.errata) == 34
    assert {sample.target for sample in exam.samples} == {""}
    assert exam.data.notes == ("no labels: no score, only outcome counts and predictions",)
    assert not any(name.startswith("dev/") for name in exam.data.files)


def test_a_sample_is_described_as_published(evaluate: Evaluate) -> None:
    exam = evaluate()
    document = exam.describe(exam.samples[1])
    (message,) = document["input"]
    assert set(message) == {"id", "content"}
    assert document["choices"] == ["动物", "植物", "动物", "石头"]
    assert (document["target"], document["id"], document["group_id"]) == ("C", 1, 1)
    assert document["subset_key"] == "logic"
    assert document["metadata"] == {"id": 1, "explanation": "", "subject": "logic"}
    assert exam.samples[1].id == "ceval_logic_val_1"
    assert exam.errata == {"ceval_logic_val_1": "options A and C are identical"}


@pytest.mark.parametrize(
    "row",
    [
        {"subject": "logic", "id": 1},
        {"subject": "logic", "id": "1"},
        {"subject": "逻辑学", "id": 1},
        {"subset": "logic", "index": 1},
        {"id": "ceval_logic_val_1"},
        {"subject": "logic", "id": "ceval_logic_val_1"},
    ],
)
def test_a_predictions_row_finds_its_sample(evaluate: Evaluate, row: dict[str, object]) -> None:
    assert evaluate().locate(row) == "ceval_logic_val_1"


def test_a_predictions_row_without_its_key_says_which(evaluate: Evaluate) -> None:
    with pytest.raises(KeyError, match="subject"):
        evaluate().locate({"id": 1})
    assert evaluate().locate({"subject": "nonsense", "id": 1}) == "ceval_nonsense_val_1"


def test_row_counts_that_are_not_the_published_ones_are_noted(evaluate: Evaluate) -> None:
    assert evaluate().data.notes == (
        "logic: 2 val rows, published 22",
        "law: 1 val rows, published 24",
    )
    (warning,) = evaluate().warnings
    assert warning.text().endswith("logic has 2 of 22, law has 1 of 24")


def test_the_test_split_is_scored_where_the_files_carry_answers(
    evaluate: Evaluate, small: Path
) -> None:
    rows = [["0", "问", "一", "二", "三", "四", "D"], ["1", "问二", "一", "二", "三", "四", ""]]
    write(small / "test" / "logic_test.csv", [*OPTIONS, "answer"], rows)
    exam = evaluate(split="test", subset_list=["logic"])
    assert [sample.target for sample in exam.samples] == ["D", ""]
    assert exam.data.notes[-1] == "1 of 2 rows have no label: no score for them"


def test_a_byte_order_mark_is_no_part_of_the_first_column(evaluate: Evaluate, small: Path) -> None:
    path = small / "val" / "law_val.csv"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert evaluate(subset_list=["law"]).samples[0].text == "法官属于____。"


def test_missing_files_are_an_error_not_a_smaller_exam(evaluate: Evaluate, small: Path) -> None:
    (small / "val" / "law_val.csv").unlink()
    with pytest.raises(DataError, match=r"law_val\.csv is missing"):
        evaluate()
    assert len(evaluate(subset_list=["logic"]).samples) == 2
    with pytest.raises(DataError, match="is missing"):
        evaluate(subset_list=None)


@pytest.mark.parametrize(
    ("header", "row", "blamed"),
    [
        ([*OPTIONS, "answer"], ["0", "问", "一", "二", "三", "四", "E"], "answer 'E'"),
        ([*OPTIONS, "answer"], ["0", "问", "一", "二", "三", "四", ""], "answer ''"),
        ([*OPTIONS, "answer"], ["0", " ", "一", "二", "三", "四", "A"], "question is empty"),
        ([*OPTIONS, "answer"], ["x", "问", "一", "二", "三", "四", "A"], "id 'x'"),
        (OPTIONS, ["0", "问", "一", "二", "三", "四"], "column answer"),
        ([*OPTIONS, "answer"], ["0", "问", "一", "二"], "column C, D, answer"),
        ([*OPTIONS, "answer"], ["0", "问", "一", "二", "三", "四", "A", "?"], "more values"),
    ],
)
def test_broken_rows_are_named(
    evaluate: Evaluate, small: Path, header: list[str], row: list[str], blamed: str
) -> None:
    write(small / "val" / "law_val.csv", header, [row])
    with pytest.raises(DataError, match=blamed) as error:
        evaluate()
    assert "row 1" in str(error.value)
    assert "\n" not in str(error.value)


def test_repeated_ids_and_empty_files_are_refused(evaluate: Evaluate, small: Path) -> None:
    row = ["0", "问", "一", "二", "三", "四", "A"]
    write(small / "val" / "law_val.csv", [*OPTIONS, "answer"], [row, row])
    with pytest.raises(DataError, match="id 0 occurs twice"):
        evaluate()
    write(small / "val" / "law_val.csv", [*OPTIONS, "answer"], [])
    with pytest.raises(DataError, match="no rows"):
        evaluate()


def test_a_mapping_in_the_folder_must_agree(evaluate: Evaluate, small: Path) -> None:
    (small / "subject_mapping.json").write_text(
        '{"logic": ["Logic", "逻辑", "Humanities"]}', "utf-8"
    )
    with pytest.raises(DataError, match="subject_mapping"):
        evaluate()


def test_the_examples_are_never_asked(evaluate: Evaluate) -> None:
    with pytest.raises(ConfigError, match="worked examples"):
        evaluate(split="dev")
