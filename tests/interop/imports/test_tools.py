"""A real log of each tool gives the accuracy that the tool reported, or every row that differs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.interop.imports.conftest import Import, exam_of

pytestmark = pytest.mark.slow

# log, benchmark, tool, version, protocol, reader, rows, the tool's figure, ids that differ
CASES = [
    ("evalscope", "bbh", "evalscope", "1.14.1", "evalscope", "evalscope", 12, 0.6667, ()),
    ("evalscope", "mmlu_pro", "evalscope", "1.14.1", "evalscope", "evalscope", 9, 0.5556, ()),
    ("evalscope", "ceval", "evalscope", "1.14.1", "evalscope", "evalscope", 8, 0.75, ()),
    (
        "lm-eval/bbh", "bbh", "lm-eval", "0.4.13", "paper", "paper", 12, 1 / 3,
        ("date_understanding_1", "date_understanding_5",
         "boolean_expressions_1", "boolean_expressions_5"),
    ),
    ("lm-eval/mmlu_pro", "mmlu_pro", "lm-eval", "0.4.13", "official", "l1", 9, 1 / 3, ()),
    ("lm-eval/ceval", "ceval", "lm-eval", "0.4.13", "lm-eval", "first-capital", 8, 0.25, ()),
    (
        "inspect/bbh.eval", "bbh", "inspect", "0.3.285", "evalscope", "robust", 12, 10 / 12,
        (),
    ),
    (
        "inspect/mmlu-pro.eval", "mmlu_pro", "inspect", "0.3.285", "evalscope", "inspect", 9,
        4 / 9, (),
    ),
    ("opencompass/chat", "bbh", "opencompass", "", "evalscope", "evalscope", 12, 2 / 3,
     ("date_understanding_5", "boolean_expressions_5")),
    ("opencompass/chat", "mmlu_pro", "opencompass", "", "evalscope", "evalscope", 9, 4 / 9,
     ("9002", "9005", "9013")),
    ("opencompass/chat", "ceval", "opencompass", "", "opencompass", "first-capital", 8, 0.5,
     ("law_val_2",)),
    ("opencompass/base", "ceval", "opencompass", "", "opencompass", "first-capital", 8, 1 / 8, ()),
    ("opencompass/split", "mmlu_pro", "opencompass", "", "evalscope", "robust", 9, 4 / 9,
     ("9002", "9005", "9013")),
    ("opencompass/split", "ceval", "opencompass", "", "opencompass", "first-capital", 8, 0.5,
     ("law_val_2",)),
    ("opencompass/repeats", "bbh", "opencompass", "", "evalscope", "evalscope", 12, 2 / 3,
     ("boolean_expressions_5", "boolean_expressions_5")),
    ("verifiers-0.3", "bixbench", "verifiers", "0.3.1", "environment", "environment", 8, 0.5, ()),
    ("verifiers-0.4", "bixbench", "verifiers", "0.4.0", "environment", "environment", 8, 0.5, ()),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]} {case[1]}")
def test_the_equivalent_reading_is_the_tools_but_for_the_rows_listed(
    case: tuple[Any, ...], imported: Import
) -> None:
    path, name, tool, version, protocol, reader, rows, figure, differing = case
    document = imported(path)
    assert (document["tool"], document["version"]) == (tool, version)
    exam = exam_of(document, name)
    assert (exam["protocol"], exam["reader"]) == (protocol, reader)
    assert (exam["rows"], exam["matched"], exam["errors"]) == (rows, rows, 0)
    assert exam["unmatched"] == []
    assert exam["other_gold"] == []
    reported = next(iter(exam["reported"].values()))
    assert reported == pytest.approx(figure, abs=1e-4)
    assert exam["tool_accuracy"] == pytest.approx(figure, abs=1e-4)
    assert [d["id"] for d in exam["differences"]] == [f"{name}_{row}" for row in differing]
    balance = sum(d["keju"]["score"] - d["tool"]["score"] for d in exam["differences"])
    keju = exam["keju_accuracy"][reader]
    assert keju * rows == pytest.approx(exam["tool_accuracy"] * rows + balance)


def test_a_difference_shows_its_reason(imported: Import) -> None:
    correct_in_keju, next_difference, *_ = exam_of(imported("lm-eval/bbh"), "bbh")["differences"]
    assert correct_in_keju["reply"].endswith("So the answer is (B)")
    assert correct_in_keju["target"] == "(B)"
    assert correct_in_keju["tool"] == {"answer": "(B", "score": 0.0, "target": "(B)"}
    assert correct_in_keju["keju"]["answer"] == "(B)"
    assert correct_in_keju["keju"]["outcome"] == "correct"
    assert next_difference["keju"] == {
        "answer": None, "score": 0.0, "outcome": "unparsed", "reason": "no_marker",
    }  # fmt: skip
    assert next_difference["where"].startswith("samples_bbh_cot_fewshot_date_understanding_")


@pytest.mark.parametrize(
    ("path", "permuted"),
    [("evalscope", 9), ("inspect/mmlu-pro.eval", 9), ("lm-eval/mmlu_pro", 0)],
)
def test_permuted_options_are_found_and_scored_in_their_order(
    path: str, permuted: int, imported: Import
) -> None:
    exam = exam_of(imported(path), "mmlu_pro")
    assert exam["permuted"] == permuted
    assert exam["other_gold"] == []


@pytest.mark.parametrize(
    ("path", "metric"), [("lm-eval/ceval", "acc,none"), ("opencompass/base", "accuracy")]
)
def test_log_likelihoods_of_options_decide_by_label(
    path: str, metric: str, imported: Import
) -> None:
    document = imported(path)
    exam = exam_of(document, "ceval")
    assert exam["keju_accuracy"]["first-capital"] == exam["reported"][metric]
    assert document["results"]["benchmarks"][0]["outcomes"]["unparsed"] == 0


def test_an_error_of_the_tool_is_no_wrong_answer(imported: Import) -> None:
    document = imported("inspect/mmlu-pro-with-an-error.json")
    exam = exam_of(document, "mmlu_pro")
    assert (exam["rows"], exam["matched"], exam["errors"]) == (4, 4, 1)
    entry = document["results"]["benchmarks"][0]
    assert entry["outcomes"]["error"] == 1
    assert entry["metrics"]["accuracy"]["n"] == 3
    assert entry["metrics"]["accuracy"]["value"] is None  # one of four has no grade
    assert entry["metrics"]["accuracy"]["bounds"] == pytest.approx([1 / 4, 2 / 4])
    assert "accuracy_worst" in entry["metrics"]


@pytest.mark.parametrize(("path", "questions"), [("verifiers-0.4", 4), ("opencompass/repeats", 6)])
def test_replies_to_one_question_are_epochs(path: str, questions: int, imported: Import) -> None:
    document = imported(path)
    assert document["results"]["benchmarks"][0]["repeats"] == 2
    assert document["results"]["benchmarks"][0]["n"] == questions
