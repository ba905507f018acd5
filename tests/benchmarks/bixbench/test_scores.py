"""Recorded runs give the recorded scores; metrics count what they say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from keju.benchmarks.prepare import choose_readers
from keju.errors import ConfigError, DataError
from keju.results.schema import to_document
from keju.results.score import score_predictions
from keju.scores.tally import Tally
from keju.types import Answer, Outcome, Reading, Score
from tests.benchmarks.bixbench.conftest import Prepare, write
from tests.results.fake_exam import entry_of

GOLDEN = "v{}_gpt-4o_mcq-refusal-False_predictions.jsonl"


def test_golden_run_of_version_1_0(data_dir: Path) -> None:
    results = score_predictions(
        "bixbench",
        data_dir / "golden" / "bixbench" / GOLDEN.format("1.0"),
        protocol="official",
        data_dir=str(data_dir),
        dataset_args={"data_version": "1.0", "all_questions": True},
        readers=["official", "robust"],
    )
    for entry in to_document(results)["benchmarks"]:
        assert entry["outcomes"]["correct"] == 95
        assert entry["outcomes"]["incorrect"] == 201
        assert entry["metrics"]["precision"]["value"] == 95 / 296
        assert entry["metrics"]["coverage"]["value"] == 1.0
        assert entry["metrics"]["accuracy"]["clusters"] == 53


def test_golden_run_of_version_1_5_by_its_letters(data_dir: Path, tmp_path: Path) -> None:
    source = data_dir / "golden" / "bixbench" / GOLDEN.format("1.5")
    rows = [json.loads(line) for line in source.read_text().splitlines()]
    for row in rows:
        letter = row["predicted"]
        row["output"] = f"<answer> {letter} </answer>" if len(letter) == 1 else f"SOR{letter}"
    write(tmp_path / "p.jsonl", rows)
    results = score_predictions(
        "bixbench",
        tmp_path / "p.jsonl",
        protocol="official",
        data_dir=str(data_dir),
        gold="recorded",
    )
    (entry,) = to_document(results)["benchmarks"]
    assert entry["outcomes"]["correct"] == 74
    assert entry["outcomes"]["unparsed"] == 4
    assert entry["n"] == 205


def test_recorded_options_lose_their_labels_and_keep_their_refusal(prepare: Prepare) -> None:
    exam = prepare(protocol="official")
    row = {"choices": ["(A) x", "(B) y (A) z", "(C) w"], "target": "B", "unsure": "C"}
    recorded_sample = exam.as_recorded(exam.samples[0], row, gold=True)
    assert recorded_sample.choices == ("x", "y (A) z", "w")
    assert (recorded_sample.target, recorded_sample.order, recorded_sample.metadata["refusal"]) == (
        "B",
        (),
        "C",
    )
    plain = exam.as_recorded(exam.samples[0], {"output": "A"}, gold=False)
    assert plain == exam.samples[0]


def test_rows_are_found_by_question_id_in_any_case(prepare: Prepare) -> None:
    exam = prepare()
    assert exam.locate({"question_id": "BIX-1-Q1"}) == "bixbench_bix-1-q1"
    assert exam.locate({"id": "bixbench_bix-1-q1"}) == "bixbench_bix-1-q1"
    with pytest.raises(KeyError, match="question_id"):
        exam.locate({"capsule_uuid": "x"})
    hypotheses = prepare(question_source="hypothesis")
    assert hypotheses.locate({"capsule_uuid": "UUID-bix-1"}) == hypotheses.samples[0].id


def test_predictions_of_the_other_version_are_refused(data_dir: Path) -> None:
    with pytest.raises(DataError, match="has no question"):
        score_predictions(
            "bixbench",
            data_dir / "golden" / "bixbench" / GOLDEN.format("1.0"),
            protocol="official",
            data_dir=str(data_dir),
        )


def tallied(outcomes: list[Outcome | None], values: dict[int, float], epochs: int = 1) -> Tally:
    tally = Tally(len(outcomes) // epochs, epochs)
    for unit, outcome in enumerate(outcomes):
        if outcome is not None:
            value = values.get(unit, float(outcome == "correct"))
            tally.add(unit, Reading("x", Answer("A"), Score(value, outcome)))
    return tally


def metrics(prepare: Prepare, tally: Tally, **args: Any) -> dict[str, Any]:
    entry = entry_of(prepare(**args), tally, reader="environment")
    metric_values: dict[str, Any] = entry["metrics"]
    return metric_values


def test_precision_coverage_and_reward(prepare: Prepare) -> None:
    scores = metrics(prepare, tallied(["correct", "refused", "incorrect"], {}))
    assert scores["accuracy"]["value"] == pytest.approx(1 / 3)
    assert (scores["precision"]["value"], scores["precision"]["n"]) == (0.5, 2)
    assert scores["coverage"]["value"] == pytest.approx(2 / 3)
    assert scores["reward"]["value"] == pytest.approx(1 / 3)
    assert scores["reward"]["std"] == pytest.approx(2**0.5 / 3)


def test_ungraded_answers_leave_the_reward_and_are_counted(prepare: Prepare) -> None:
    scores = metrics(prepare, tallied(["correct", "ungraded", "error"], {}))
    assert (scores["reward"]["value"], scores["reward"]["n"]) == (None, 1)
    assert scores["reward"]["bounds"] == pytest.approx([1 / 3, 1])
    assert (scores["reward"]["ungraded"], scores["reward"]["error"]) == (1, 1)
    ungraded_scores = metrics(prepare, tallied(["ungraded"] * 3, {}))
    assert (ungraded_scores["reward"]["value"], ungraded_scores["reward"]["std"]) == (None, None)


def test_the_reward_counts_partly_right_answers(prepare: Prepare) -> None:
    scores = metrics(prepare, tallied(["correct", "incorrect", "incorrect"], {0: 0.7, 1: 0.2}))
    assert scores["reward"]["value"] == pytest.approx(0.3)


def test_accuracy_by_category_and_by_mode(prepare: Prepare) -> None:
    scores = metrics(prepare, tallied(["correct", "incorrect", "correct"], {}))
    by_category = {k: (v["value"], v["n"]) for k, v in scores.items() if "[category=" in k}
    assert by_category == {
        "accuracy[category=Genomics]": (pytest.approx(2 / 3), 3),
        "accuracy[category=Imaging]": (1.0, 1),
        "accuracy[category=RNA-seq]": (0.5, 2),
    }
    assert scores["accuracy[eval_mode=range_verifier]"]["value"] == 0.0
    assert scores["accuracy[eval_mode=str_verifier]"]["title"] == "accuracy, eval mode str_verifier"
    assert scores["accuracy[category=Genomics]"]["method"] == "clustered"
    assert scores["accuracy[category=RNA-seq]"]["ci95"] is None  # one capsule


def test_repeats_count_inside_their_question(prepare: Prepare) -> None:
    outcomes: list[Outcome | None] = [
        "correct", "correct", "incorrect", "correct", "refused", "incorrect",
    ]  # fmt: skip
    scores = metrics(prepare, tallied(outcomes, {}, epochs=2))
    assert scores["accuracy[category=RNA-seq]"]["value"] == pytest.approx(0.75)
    assert scores["accuracy[category=RNA-seq]"]["n"] == 2
    assert (scores["precision"]["value"], scores["precision"]["n"]) == (pytest.approx(1 / 2), 3)
    assert (scores["coverage"]["value"], scores["coverage"]["n"]) == (pytest.approx(5 / 6), 3)
    reward = scores["reward"]
    assert (reward["value"], reward["n"], reward["answers"]) == (pytest.approx(1 / 2), 3, 6)


def test_readers_stand_side_by_side(prepare: Prepare) -> None:
    names = [reader.name for reader in choose_readers(prepare(), None)]
    assert names == ["environment", "robust"]
    official = prepare(protocol="official")
    assert [reader.name for reader in choose_readers(official, None)] == ["official", "robust"]
    free = prepare(answer_mode="open")
    assert [reader.name for reader in choose_readers(free, None)] == ["native", "tolerant"]
    with pytest.raises(ConfigError, match="has no reader 'robust'"):
        choose_readers(free, ["robust"])


def test_published_figures_stand_only_beside_the_same_questions(prepare: Prepare) -> None:
    (reference,) = prepare().references
    assert reference.overall == {"accuracy": 74 / 205}
    assert prepare(data_version="1.0", all_questions=True).references
    for args in (
        {"with_refusal": True},
        {"data_version": "1.0"},
        {"answer_mode": "open"},
        {"question_source": "hypothesis"},
    ):
        assert prepare(**args).references == ()
