"""OpenCompass's own layouts: parts, unfinished datasets, splits, verdicts by row or none."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from keju.interop.imports.log import find_task
from keju.interop.imports.opencompass import decide, rule_of
from tests.cli.conftest import Keju
from tests.interop.imports.conftest import DATA, FIXTURES, Import, exam_of

pytestmark = pytest.mark.slow

Log = Callable[[str], Path]


def summarised() -> Iterator[tuple[str, str, float]]:
    """Run, dataset and the figure that OpenCompass printed in the end, in percent."""
    for table in sorted(FIXTURES.glob("opencompass/*/*/summary/*.csv")):
        run = table.relative_to(FIXTURES).parent.parent.as_posix()
        for row in csv.DictReader(table.read_text().splitlines()):
            if row["metric"].startswith(("accuracy", "score")) and "test" not in row["dataset"]:
                yield run, row["dataset"], float(list(row.values())[-1])


@pytest.mark.parametrize(("run", "dataset", "figure"), list(summarised()))
def test_the_rows_of_a_dataset_add_up_to_the_figure_of_the_summary(
    run: str, dataset: str, figure: float, keju: Keju, tmp_path: Path
) -> None:
    """Each dataset alone, so that no two faults can make up for each other."""
    (model,) = (FIXTURES / run / "predictions").iterdir()
    for kind in ("predictions", "results"):
        folder = tmp_path / "alone" / kind / model.name
        folder.mkdir(parents=True)
        for file in (FIXTURES / run / kind / model.name).glob(f"{dataset}*.json"):
            (folder / file.name).write_bytes(file.read_bytes())
    ran = keju("import", str(tmp_path / "alone"), "--data-dir", str(DATA), "--json")
    (exam,) = ran.json["benchmarks"]
    assert exam["matched"] == exam["rows"] > 0
    assert next(iter(exam["reported"].values())) == pytest.approx(figure / 100, abs=1e-4)
    assert exam["tool_accuracy"] == pytest.approx(figure / 100, abs=1e-4)


def predictions(folder: Path, pattern: str) -> list[Path]:
    """Files of predictions below a run."""
    return sorted(folder.glob(f"*/predictions/*/{pattern}"))


def test_a_dataset_that_was_never_finished_is_read(imported: Import) -> None:
    document = imported("opencompass/unfinished")
    exam = exam_of(document, "bbh")
    assert (exam["matched"], exam["reported"], exam["tool_accuracy"]) == (4, {}, None)
    assert document["results"]["benchmarks"][0]["subsets"][0]["population"] == 6


def test_what_is_left_of_an_interrupted_run_is_not_read_twice(imported: Import, log: Log) -> None:
    folder = log("opencompass/chat")
    (file,) = predictions(folder, "bbh-date_understanding.json")
    (partial_file,) = predictions(FIXTURES / "opencompass/unfinished", "tmp_*")
    (file.parent / partial_file.name).write_bytes(partial_file.read_bytes())
    (file.parent / f"tmp_{file.name}").write_bytes(file.read_bytes())
    exam = exam_of(imported(folder), "bbh")
    assert (exam["rows"], exam["tool_accuracy"]) == (12, pytest.approx(2 / 3))


def test_a_lost_part_takes_the_figure_with_it(imported: Import, log: Log) -> None:
    """The rows that are there are read; what is reported is not about them alone."""
    folder = log("opencompass/split")
    predictions(folder, "mmlu_pro_math_0.json")[0].unlink()
    exam = exam_of(imported(folder), "mmlu_pro")
    assert (exam["matched"], exam["reported"]) == (6, {})
    assert exam["differences"] != []


@pytest.mark.parametrize("place", ["predictions/tiny-chat", "elsewhere"])
def test_a_part_alone_is_read_without_the_results_of_the_whole(
    place: str, imported: Import, log: Log
) -> None:
    (file,) = predictions(log("opencompass/split"), "mmlu_pro_math_1.json")
    moved = file.parents[2] / place / file.name
    moved.parent.mkdir(exist_ok=True)
    file.rename(moved)
    exam = exam_of(imported(moved), "mmlu_pro")
    assert (exam["matched"], exam["reported"], exam["tool_accuracy"]) == (2, {}, None)


def test_a_dataset_that_lost_rows_keeps_its_figure(imported: Import, log: Log) -> None:
    folder = log("opencompass/chat")
    (file,) = predictions(folder, "mmlu_pro_math.json")
    rows = json.loads(file.read_text())
    del rows["4"], rows["3"]
    file.write_text(json.dumps(rows))
    exam = exam_of(imported(folder), "mmlu_pro")
    assert (exam["rows"], exam["rows_missing"], exam["reported_n"]) == (7, 2, 9)
    assert exam["reported"]["accuracy"] == pytest.approx(4 / 9)


def test_an_empty_part_is_passed_over(imported: Import, log: Log) -> None:
    """OpenCompass writes one where its cache of sizes is out of date."""
    folder = log("opencompass/split")
    (file,) = predictions(folder, "mmlu_pro_math_1.json")
    file.with_name("mmlu_pro_math_2.json").write_text("{}")
    exam = exam_of(imported(folder), "mmlu_pro")
    assert (exam["rows"], exam["tool_accuracy"]) == (9, pytest.approx(4 / 9))


def test_the_test_split_beside_val_is_told_not_mixed_in(imported: Import) -> None:
    document = imported("opencompass/split")
    assert exam_of(document, "ceval")["rows"] == 8
    assert len(document["unmatched"]) == 3
    for row in document["unmatched"]:
        assert "ceval-test-" in row["where"]
        assert row["reason"].startswith("the log contains another split of the exam too")


def test_the_test_split_alone_has_no_verdicts(imported: Import, log: Log, tmp_path: Path) -> None:
    """It has no answers, so OpenCompass's figure of 0 % says nothing."""
    folder = log("opencompass/split")
    for file in predictions(folder, "*.json"):
        if "-test-" not in file.name:
            file.unlink()
    exam = exam_of(imported(folder), "ceval")
    assert (exam["matched"], exam["reported"], exam["differences"]) == (3, {}, [])
    assert (exam["tool_accuracy"], exam["keju_accuracy"]["first-capital"]) == (None, None)
    manifest = json.loads((tmp_path / "runs" / "r" / "manifest.json").read_text())
    assert manifest["config"]["dataset_args"]["ceval"]["split"] == "test"


def change_results(folder: Path, dataset: str, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change the results of one dataset."""
    (file,) = folder.glob(f"*/results/*/{dataset}.json")
    document = json.loads(file.read_text())
    change(document)
    file.write_text(json.dumps(document))


def test_answers_are_not_taken_for_verdicts_that_do_not_add_up(imported: Import, log: Log) -> None:
    """Another evaluator may not compare them letter by letter."""
    folder = log("opencompass/chat")
    change_results(folder, "ceval-logic", lambda results: results.update(accuracy=100.0))
    exam = exam_of(imported(folder), "ceval")
    assert exam["reported"]["accuracy"] == pytest.approx((5 + 1) / 8)
    assert exam["tool_accuracy"] == pytest.approx(1 / 3)
    assert [row["id"] for row in exam["differences"]] == ["ceval_law_val_2"]


@pytest.mark.parametrize("dataset", ["bbh-boolean_expressions", "bbh-date_understanding"])
def test_without_details_the_rule_gives_the_evaluators_verdicts(
    dataset: str, imported: Import, log: Log
) -> None:
    before = exam_of(imported(log("opencompass/chat")), "bbh")
    folder = log("opencompass/repeats").parent / "chat"
    change_results(folder, dataset, lambda results: results.pop("details"))
    after = exam_of(imported(folder, "--run-id", "without"), "bbh")
    assert after["tool_accuracy"] == pytest.approx(before["tool_accuracy"])
    assert [(d["id"], d["tool"]["score"]) for d in after["differences"]] == [
        (d["id"], d["tool"]["score"]) for d in before["differences"]
    ]


def test_options_chosen_by_perplexity_need_no_results(imported: Import, log: Log) -> None:
    folder = log("opencompass/base")
    for file in folder.glob("*/results/*/*.json"):
        file.unlink()
    exam = exam_of(imported(folder), "ceval")
    assert (exam["reported"], exam["tool_accuracy"]) == ({}, pytest.approx(1 / 8))


def test_older_rows_of_perplexities_have_their_text_under_each_option(
    imported: Import, log: Log
) -> None:
    folder = log("opencompass/base")
    for file in predictions(folder, "*.json"):
        rows = json.loads(file.read_text())
        for row in rows.values():
            del row["origin_prompt"]
        file.write_text(json.dumps(rows))
    exam = exam_of(imported(folder), "ceval")
    assert (exam["matched"], exam["tool_accuracy"]) == (8, pytest.approx(1 / 8))


def test_a_prediction_that_is_no_text_is_an_error(imported: Import, log: Log) -> None:
    folder = log("opencompass/chat")
    (file,) = predictions(folder, "ceval-law.json")
    rows = json.loads(file.read_text())
    rows["0"]["prediction"], rows["1"]["prediction"] = None, [{"prediction": "D", "rollout": {}}]
    file.write_text(json.dumps(rows))
    exam = exam_of(imported(folder), "ceval")
    assert (exam["matched"], exam["errors"]) == (8, 1)


def test_a_models_abbreviation_may_have_slashes(imported: Import, log: Log) -> None:
    folder = log("opencompass/repeats")
    for kind in ("predictions", "results"):
        (model,) = folder.glob(f"*/{kind}/tiny-chat")
        (model.parent / "house").mkdir()
        model.rename(model.parent / "house" / "tiny-chat")
    document = imported(folder)
    assert document["model"] == "house/tiny-chat"
    assert exam_of(document, "bbh")["tool_accuracy"] == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("dataset", "reply", "gold", "is_correct"),
    [
        ("bbh-snarks", "The answer is (A). No, the answer is (B).", "(B)", False),
        ("bbh-snarks", "It may be (B", "(B)", True),
        ("bbh-snarks", "I choose (B)", "(B)", True),
        ("bbh-snarks", "I choose b", "(B)", False),
        ("bbh-navigate", "The answer is: **yes**, surely.", "Yes", True),
        ("bbh-navigate", "Yes or no?\nThe answer is No", "Yes", False),
        ("bbh-word_sorting", "So the answer is ant, bee, cow.", "ant bee cow", True),
        ("bbh-object_counting", "So the answer is 3, 4.", "3 4", False),
        ("ceval-law", "Óptima: A", "A", False),
        ("ceval-law", "答案：A", "A", True),
        ("mmlu_pro-math", "Answer : C\nANSWER: D", "C", True),
        ("mmlu_pro-math", "ANSWER: c", "C", False),
        ("mmlu_pro-math", "ANSWER: **C**", "C", False),
        ("mmlu_pro-math", "84\nas counted", "D. 84\n", True),
        ("mmlu_pro-math", "D. 84", "D. 84\n", False),
        ("mmlu_pro-math", "D", "D. i.e. 84\n", False),
        ("gsm8k-", "84", "84", None),
    ],
)
def test_the_rules_are_those_of_the_tool(
    dataset: str, reply: str, gold: str, is_correct: bool | None
) -> None:
    """Expected values as OpenCompass 0.5.4 gave them."""
    rule = rule_of(find_task("opencompass", dataset))
    assert decide(rule, reply, gold) is is_correct


def test_a_perplexity_that_is_no_number_is_an_error_of_its_row(imported: Import, log: Log) -> None:
    folder = log("opencompass/base")
    (file,) = predictions(folder, "ceval-logic.json")
    text = file.read_text()
    place = text.index('"PPL": ')
    file.write_text(text[:place] + '"PPL": NaN' + text[text.index(",", place) :])
    document = imported(folder)
    exam = exam_of(document, "ceval")
    assert exam["matched"] == exam["rows"]
    assert document["results"]["benchmarks"][0]["outcomes"]["error"] == 1
