"""Recorded outputs of two models: every recorded count comes out again."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from keju.benchmarks.base import Exam
from keju.benchmarks.mmlu_pro import (
    official_guess_accuracy,
    official_guess_correct,
)
from keju.scores.tally import Tally
from keju.types import Answer, Reading, Reply, Sample, Score
from tests.benchmarks.mmlu_pro.conftest import Prepare, real_exam

MODELS = ("Meta-Llama-3_1-8B-Instruct", "Mistral-7B-v0.1")


class Recorded(NamedTuple):
    """A recorded run, read with the authors' readers."""

    rows: list[dict[str, Any]]
    samples: list[Sample]
    letters: dict[str, list[str | None]]
    """By reader, in file order."""
    golden: dict[str, Any]
    options: list[int]
    """How many options each row had at the time of the run."""


@pytest.fixture(scope="module", params=MODELS)
def recorded(request: pytest.FixtureRequest, data_dir: Path) -> Recorded:
    folder = data_dir / "golden" / "mmlu_pro"
    with gzip.open(folder / f"{request.param}_predictions.jsonl.gz") as lines:
        rows = [json.loads(line) for line in lines]
    exam = real_exam(data_dir, protocol="official")
    by_id = {sample.id: sample for sample in exam.samples}
    samples = [by_id[exam.locate(row)] for row in rows]
    letters = {
        name: [
            exam.readers[name].read(row["output"], sample).value
            for row, sample in zip(rows, samples, strict=True)
        ]
        for name in ("l1", "l2", "robust")
    }
    golden = json.loads((folder / f"{request.param}_golden.json").read_text())
    return Recorded(rows, samples, letters, golden, options_then(data_dir, samples, golden))


def options_then(data_dir: Path, samples: Sequence[Sample], golden: dict[str, Any]) -> list[int]:
    revisions = json.loads((data_dir / "mmlu_pro" / "revisions.json").read_text())
    changed = revisions["test_rows_changed_since_the_earliest_recorded_predictions"]
    older = {row["question_id"]: len(row["older"]["options"]) for row in changed}
    differ = set(golden["question_ids_where_options_differ"])
    ids = [sample.metadata["question_id"] for sample in samples]
    return [
        older[i] if i in differ else len(sample.choices)
        for i, sample in zip(ids, samples, strict=True)
    ]


def golds(recorded: Recorded, gold_name: str) -> list[str]:
    if gold_name == "recorded_gold":
        return [row["answer"] for row in recorded.rows]
    return [sample.target for sample in recorded.samples]


def counts(recorded: Recorded, gold: Sequence[str], members: Sequence[int]) -> dict[str, Any]:
    counts_by_name: dict[str, Any] = {"n": len(members)}
    for level, name in (("level1", "l1"), ("level2", "l2")):
        letters = recorded.letters[name]
        missing = [i for i in members if letters[i] is None]
        correct = sum(letters[i] == gold[i] for i in members)
        chance = sum(1 / recorded.options[i] for i in missing)
        counts_by_name[f"{level}_none"] = len(missing)
        counts_by_name[f"{level}_correct"] = correct
        counts_by_name[f"{level}_expected_with_uniform_guess"] = pytest.approx(
            correct + chance, abs=6e-4
        )
    return counts_by_name


@pytest.mark.parametrize("gold_name", ["recorded_gold", "current_gold"])
def test_levels_give_the_recorded_counts(recorded: Recorded, gold_name: str) -> None:
    gold = golds(recorded, gold_name)
    members: dict[str, list[int]] = {}
    for i, sample in enumerate(recorded.samples):
        members.setdefault(sample.subset, []).append(i)
    expected = recorded.golden[gold_name]
    counts_by_name = counts(recorded, gold, range(len(gold)))
    assert counts_by_name == {name: expected["overall"][name] for name in counts_by_name}
    assert set(members) == set(expected["categories"])
    for category, category_members in members.items():
        counts_by_name = counts(recorded, gold, category_members)
        assert counts_by_name == {
            name: expected["categories"][category][name] for name in counts_by_name
        }, category


@pytest.mark.parametrize("gold_name", ["recorded_gold", "current_gold"])
def test_the_mean_of_categories(recorded: Recorded, prepare: Prepare, gold_name: str) -> None:
    gold = golds(recorded, gold_name)
    right: dict[str, list[bool]] = {}
    for sample, letter, answer in zip(recorded.samples, recorded.letters["l2"], gold, strict=True):
        right.setdefault(sample.subset, []).append(letter == answer)
    main, macro_14 = prepare().means()
    assert (main.name, macro_14.name) == ("macro_accuracy", "macro_14")
    assert main.tasks == macro_14.tasks
    shares = [sum(right[task[0]]) / len(right[task[0]]) for task in main.tasks]
    expected = recorded.golden[gold_name]["overall"]["macro_category_level2_no_guess"]
    assert sum(shares) / 14 == pytest.approx(expected, abs=1e-6)


def test_the_seeded_guesses_of_the_official_script(recorded: Recorded) -> None:
    level1, level2 = recorded.letters["l1"], recorded.letters["l2"]
    gold = golds(recorded, "recorded_gold")
    expected = recorded.golden["official_script_seed_12345"]
    correct = official_guess_correct(level1, level2, gold)
    assert correct == (expected["level1_correct"], expected["level2_correct"])
    shares = official_guess_accuracy(level1, level2, gold)
    assert shares["l1"] == pytest.approx(expected["level1_accuracy"], abs=1e-6)
    assert shares["l2"] == pytest.approx(expected["level2_accuracy"], abs=1e-6)


def test_robust_agrees_but_where_a_reply_names_several_letters(recorded: Recorded) -> None:
    """The differences from level 1 are lists, corrections, prose and plainly stated answers.

    They are well below one percent.
    """
    pairs = zip(recorded.letters["robust"], recorded.letters["l1"], strict=True)
    assert sum(
        keju_answer != published_answer for keju_answer, published_answer in pairs
    ) < 0.0053 * len(recorded.rows)


def test_expected_with_guess_is_a_metric_beside_the_headline(
    recorded: Recorded, exam: Exam
) -> None:
    """Through grading and tally, over the current gold.

    The recorded figure counts 10 options in one row that has 7 now: 4e-6 of the whole.
    """
    outputs = {s.id: row["output"] for s, row in zip(recorded.samples, recorded.rows, strict=True)}
    tally = Tally(len(exam.samples))
    for unit, sample in enumerate(exam.samples):
        reading = exam.grade(Reply(text=outputs[sample.id]), sample, exam.readers["l1"])
        tally.add(unit, reading)
    expected = recorded.golden["current_gold"]["overall"]
    assert tally.outcome_counts()["correct"] == expected["level1_correct"]
    assert tally.outcome_counts()["unparsed"] == expected["level1_none"]
    metric = exam.extra_metrics(tally)["accuracy_expected_with_guess"]
    share = expected["level1_expected_with_uniform_guess"] / 12_032
    assert metric.value == pytest.approx(share, abs=4e-6)
    assert metric.n == 12_032
    assert metric.ci95
    low, high = metric.ci95
    assert metric.value is not None
    assert low < metric.value < high


def test_errors_and_unasked_questions_are_no_guesses(prepare: Prepare) -> None:
    exam = prepare()
    assert exam.extra_metrics(Tally(2)) == {}
    tally = Tally(2, epochs=2)
    outcomes: list[tuple[float, Any]] = [
        (1.0, "correct"),
        (0.0, "truncated"),
        (0.0, "error"),
    ]
    for unit, (value, outcome) in enumerate(outcomes):
        tally.add(unit, Reading("l1", Answer(), Score(value, outcome)))
    metric = exam.extra_metrics(tally)["accuracy_expected_with_guess"]
    expected_value = (1 + 1 / 3) / 2
    assert (metric.value, metric.n) == (None, 1)  # the other question has no grade
    assert metric.bounds == pytest.approx((expected_value / 2, (expected_value + 1) / 2))
