"""Loading: official files in either layout, and one clear line for anything that is wrong."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from keju.benchmarks.base import Exam
from keju.benchmarks.bbh import BBH, BBHArgs
from keju.benchmarks.bbh.exam import parse_options
from keju.benchmarks.registry import get
from keju.errors import DataError
from keju.sources.folder import DataFolder
from keju.types import Sample

COT = (
    "canary GUID x\n-----\nSort words.\n\nQ: a?\nA: Let's think step by step. So the answer is b.\n"
)


def _write(folder: Path, name: str, content: Any) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A data set of one subset with two rows."""
    rows = [{"input": "List: b a", "target": "a b"}, {"input": "List: d c", "target": "c d"}]
    _write(tmp_path, "bbh/word_sorting.json", {"canary": "x", "examples": rows})
    _write(tmp_path, "cot-prompts/word_sorting.txt", COT)
    return tmp_path


def _prepare(folder: Path, **args: Any) -> Exam:
    args = {"subset_list": ["word_sorting"]} | args
    return BBH.prepare(BBHArgs(**args), DataFolder(folder, BBH.layout), seed=1)


def test_rows_ids_and_order(exam: Exam) -> None:
    assert [subset.name for subset in exam.subsets] == list(BBH.subset_names)
    assert len({sample.id for sample in exam.samples}) == 6511
    first_sample = exam.samples[0]
    assert (first_sample.id, first_sample.index, first_sample.target) == (
        "bbh_temporal_sequences_0",
        0,
        "(A)",
    )
    assert exam.data.notes == ()
    assert exam.warnings == ()
    assert exam.data.version == "BIG-Bench-Hard, errata 2"
    assert len(exam.data.files) == 54


OPTION_COUNTS = {
    "date_understanding": {5, 6},
    "disambiguation_qa": {3, 4},
    "geometric_shapes": {10, 11},
    "hyperbaton": {2},
    "movie_recommendation": {4, 5},
    "penguins_in_a_table": {4, 5},
    "reasoning_about_colored_objects": {2, 7, 17, 18},
    "salient_translation_error_detection": {6},
    "temporal_sequences": {4},
    "logical_deduction_seven_objects": {7},
    "navigate": {0},
    "formal_fallacies": {0},
}


@pytest.mark.parametrize("subset", OPTION_COUNTS)
def test_options(exam: Exam, subset: str) -> None:
    counts = {len(sample.choices) for sample in exam.samples if sample.subset == subset}
    assert counts == OPTION_COUNTS[subset]


def test_options_of_a_row(samples: dict[str, Sample]) -> None:
    assert samples["bbh_temporal_sequences_0"].choices[:2] == ("6pm to 9pm", "7am to 11am")
    assert parse_options("x\n(A) one\n(B) two\n(D) no\n- Yes") == ("one", "two")


def test_found_through_the_registry() -> None:
    assert get("bbh").name == get("bigbench-hard").name == "bbh"


def test_only_named_subsets_are_read(small: Path) -> None:
    exam = _prepare(small)
    assert [sample.id for sample in exam.samples] == ["bbh_word_sorting_0", "bbh_word_sorting_1"]
    assert set(exam.data.files) == {"bbh/word_sorting.json", "cot-prompts/word_sorting.txt"}
    assert exam.data.notes == ("word_sorting: 2 rows, published are 250",)
    (warning,) = exam.warnings
    assert warning.text().endswith("word_sorting has 2 of 250")


def test_a_folder_that_holds_the_files_directly(small: Path) -> None:
    assert len(_prepare(small / "bbh").samples) == 2
    shutil.rmtree(small / "cot-prompts")
    assert len(_prepare(small / "bbh", few_shot_num=0).samples) == 2


def test_windows_line_ends_do_not_reach_the_prompt(small: Path) -> None:
    (small / "cot-prompts/word_sorting.txt").write_bytes(COT.replace("\n", "\r\n").encode())
    exam = _prepare(small)
    assert exam.render(exam.samples[0]).text.startswith("Sort words.\n\nQ: a?\n")


def test_a_missing_subset_is_an_error(small: Path) -> None:
    with pytest.raises(DataError, match="no questions for 'snarks'"):
        _prepare(small, subset_list=["word_sorting", "snarks"])


def test_missing_worked_examples_are_an_error(small: Path) -> None:
    (small / "cot-prompts/word_sorting.txt").unlink()
    with pytest.raises(DataError, match="no worked examples for 'word_sorting'"):
        _prepare(small)


def test_missing_answer_only_prompts_are_an_error(small: Path) -> None:
    with pytest.raises(DataError, match=r"answer_only_prompts\.json"):
        _prepare(small, protocol="answer-only")


def test_answer_only_prompts_beside_the_data(small: Path) -> None:
    _write(small, "answer_only_prompts.json", {"word_sorting": "Sort.\n\nQ: a\nA: b\n\n"})
    exam = _prepare(small, protocol="answer-only")
    assert exam.render(exam.samples[0]).text == "Sort.\n\nQ: a\nA: b\n\nQ: List: b a\nA:"
    _write(small, "answer_only_prompts.json", {})
    with pytest.raises(DataError, match="no prompt for 'word_sorting'"):
        _prepare(small, protocol="answer-only")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("not json", "is not valid JSON"),
        ([], "holds no examples"),
        ([3], "holds no list of rows"),
        ({"examples": [{"input": 3, "target": "x"}]}, "is not a BBH file"),
        ({"examples": [{"input": "x"}]}, "row 1: the target is empty"),
        ({"examples": []}, "holds no examples"),
    ],
)
def test_odd_files_are_errors_in_one_line(small: Path, content: Any, message: str) -> None:
    _write(small, "bbh/word_sorting.json", content)
    with pytest.raises(DataError) as error:
        _prepare(small)
    assert message in str(error.value)
    assert "word_sorting.json" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("content", ["no dashes at all", "canary -----\nQ: x"])
def test_a_prompt_file_without_its_dashes_is_refused(small: Path, content: str) -> None:
    _write(small, "cot-prompts/word_sorting.txt", content)
    with pytest.raises(DataError, match="no line '-----'"):
        _prepare(small)


def test_predictions_are_located_by_subset_and_index(exam: Exam) -> None:
    assert exam.locate({"subset": "snarks", "index": 3}) == "bbh_snarks_3"
    assert exam.locate({"id": "bbh_snarks_3"}) == "bbh_snarks_3"


ROW = {"input": "Which?\nOptions:\n(A) one\n(B) two", "target": "(B)"}


@pytest.mark.parametrize(
    ("subset", "row", "message"),
    [
        ("snarks", ROW | {"input": " \n"}, "row 2: the input is empty"),
        ("snarks", ROW | {"target": ""}, "row 2: the target is empty"),
        ("snarks", ROW | {"target": "(C)"}, "row 2: the target '(C)' is not one of its options"),
        ("snarks", ROW | {"target": "B"}, "is not one of its options ((A), (B))"),
        ("snarks", ROW | {"input": "Which?"}, "is not one of its options (none)"),
        ("navigate", {"input": "x", "target": "Maybe"}, "'Maybe' is no answer of navigate"),
        ("boolean_expressions", {"input": "x", "target": "yes"}, "is no answer of"),
        ("formal_fallacies", {"input": "x", "target": "true"}, "is no answer of"),
        ("object_counting", {"input": "x", "target": "8.5"}, "is no answer of"),
        ("dyck_languages", {"input": "x", "target": "] a"}, "is no answer of"),
    ],
)
def test_a_row_that_cannot_be_examined_is_named(
    tmp_path: Path, subset: str, row: dict[str, str], message: str
) -> None:
    good = {
        "snarks": ROW,
        "navigate": {"input": "x", "target": "Yes"},
        "boolean_expressions": {"input": "x", "target": "True"},
        "formal_fallacies": {"input": "x", "target": "valid"},
        "object_counting": {"input": "x", "target": "8"},
        "dyck_languages": {"input": "x", "target": "] ]"},
    }
    _write(tmp_path, f"bbh/{subset}.json", {"examples": [good[subset], row]})
    with pytest.raises(DataError) as error:
        _prepare(tmp_path, subset_list=[subset], few_shot_num=0)
    assert message in str(error.value)
    assert f"{subset}.json, row 2" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_prompt_file_with_nothing_after_its_dashes_is_refused(small: Path) -> None:
    _write(small, "cot-prompts/word_sorting.txt", "canary\n-----\n \n")
    with pytest.raises(DataError, match="no worked examples after '-----'"):
        _prepare(small)
    assert len(_prepare(small, few_shot_num=0).samples) == 2
    _write(small, "answer_only_prompts.json", {"word_sorting": " "})
    with pytest.raises(DataError, match="the prompt for 'word_sorting' is empty"):
        _prepare(small, protocol="answer-only")


def test_mcpbr_leaves_out_what_cannot_be_read_and_says_so(small: Path) -> None:
    exam = _prepare(small, protocol="mcpbr", subset_list=["word_sorting", "snarks"])
    assert [subset.name for subset in exam.subsets] == ["word_sorting"]
    warning = exam.warnings[0].text()
    assert warning.startswith(
        "Failed to load BBH subtask snarks, which is left out: bbh: no questions"
    )
    with pytest.raises(DataError, match="no questions for 'snarks'"):
        _prepare(small, protocol="mcpbr", subset_list=["snarks"])


def test_mcpbr_asks_rows_without_a_target_and_others_refuse_them(small: Path) -> None:
    _write(small, "bbh/word_sorting.json", {"examples": [{"input": "List: b a"}]})
    (sample,) = _prepare(small, protocol="mcpbr").samples
    assert sample.target == ""
    with pytest.raises(DataError, match="row 1: the target is empty"):
        _prepare(small)
