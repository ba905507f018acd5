"""Rotated options: what they cost a model that favours a letter, and one that knows."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from keju.benchmarks.base import Exam
from keju.benchmarks.grading import REFUSAL
from keju.benchmarks.prepare import prepare_exam, prepare_exams
from keju.benchmarks.rotation import rotate_exam, rotation_id
from keju.config import TaskConfig
from keju.engine.job import make_jobs
from keju.errors import ConfigError
from keju.models.scripted import Script, ScriptedModel
from keju.results.schema import to_document
from keju.results.score import score_run
from keju.runs.run import Run
from keju.task import run_exams
from keju.types import Request, Sample
from tests.results.fake_exam import make_exam, make_sample, make_tally

pytestmark = pytest.mark.slow

SIZE = 12


def config(folder: Path, rotations: int, **changes: Any) -> TaskConfig:
    settings: dict[str, Any] = {
        "model": "scripted",
        "datasets": ["demo"],
        "dataset_args": {"demo": {"size": SIZE, "subset_list": ["object_counting"]}},
        "rotate_options": rotations,
        "work_dir": str(folder),
        "run_id": "r",
    }
    return TaskConfig(**(settings | changes))


def entry_of(
    monkeypatch: pytest.MonkeyPatch, task: TaskConfig, script: Script | str
) -> dict[str, Any]:
    monkeypatch.setattr("keju.task.make_model", lambda _: ScriptedModel(script=script))
    finished = run_exams(task, report=False)
    entry: dict[str, Any] = finished.document["benchmarks"][0]
    return entry


def knowing(task: TaskConfig) -> Script:
    """Answers every prompt of the task with its target."""
    (exam, _), *_ = prepare_exams(task)
    key = {exam.render(sample).text: sample.target for sample in exam.samples}

    def answer(request: Request) -> str:
        return f"So the answer is ({key[request.prompt.text]})."

    return answer


def options_of(task: TaskConfig) -> int:
    (exam, _), *_ = prepare_exams(task)
    return len(exam.samples[0].choices)


def test_a_model_that_always_says_a_scores_chance_and_its_bias_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = options_of(config(tmp_path, 1))
    task = config(tmp_path, options)
    entry = entry_of(monkeypatch, task, "So the answer is (A).")
    metrics = entry["metrics"]
    assert entry["n"] == SIZE * options
    assert metrics["accuracy"]["value"] == pytest.approx(1 / options)
    assert metrics["accuracy"]["clusters"] == SIZE
    assert metrics["rotation_consistency"]["value"] == 0
    assert metrics["rotation_consistency"]["n"] == SIZE
    recalls = metrics["position_rstd"]["recalls"]
    assert recalls.pop("A") == 1
    assert set(recalls.values()) == {0}
    bias = metrics["position_bias"]
    assert bias["value"] == pytest.approx(1 - 1 / options)
    assert bias["chosen"]["A"] == SIZE * options
    assert list(bias["expected"].values()) == [pytest.approx(SIZE)] * options
    assert bias["p"] < 1e-6


def test_a_model_that_knows_is_consistent_and_unbiased(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = config(tmp_path, 3)
    metrics = entry_of(monkeypatch, task, knowing(task))["metrics"]
    assert metrics["accuracy"]["value"] == 1
    assert metrics["rotation_consistency"]["value"] == 1
    assert metrics["rotation_consistency"]["by_rotation"] == [1, 1, 1]
    assert metrics["position_rstd"]["value"] == 0
    assert metrics["position_bias"]["value"] == 0
    assert metrics["position_bias"]["p"] == 1


def test_a_stored_run_is_scored_again_with_its_rotations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = entry_of(monkeypatch, config(tmp_path, 3), "So the answer is (B).")
    rescored = to_document(score_run(Run(tmp_path / "r")))["benchmarks"][0]
    assert rescored["metrics"] == entry["metrics"]


def test_rotations_have_ids_orders_and_targets_of_their_own(tmp_path: Path) -> None:
    (plain, _), *_ = prepare_exams(config(tmp_path, 1))
    (exam, _), *_ = prepare_exams(config(tmp_path, 3))
    assert len(exam.samples) == 3 * len(plain.samples) == exam.subsets[-1].stop
    for item, sample in enumerate(plain.samples):
        turns = exam.samples[3 * item : 3 * item + 3]
        assert [turn.id for turn in turns] == [rotation_id(sample.id, k) for k in range(3)]
        assert {turn.group for turn in turns} == {sample.id}
        right = sample.choices[sample.labels.index(sample.target)]
        for k, turn in enumerate(turns):
            assert turn.choices == sample.choices[k:] + sample.choices[:k]
            assert turn.choices[turn.labels.index(turn.target)] == right
    assert list(exam.samples) == exam.samples[:]


def test_the_first_rotation_is_the_same_request_as_without_any(tmp_path: Path) -> None:
    (plain,), (turned,) = make_jobs(config(tmp_path, 1)), make_jobs(config(tmp_path, 2))
    hashes = [turned.request(unit).hash for unit in range(turned.units)]
    assert hashes[::2] == [plain.request(unit).hash for unit in range(plain.units)]
    assert len(set(hashes)) == turned.units


def exam_of_sizes(sizes: dict[str, int], choices: list[int]) -> Exam:
    exam = make_exam(sizes)
    exam.samples = [
        make_sample("a", i, choices=choice_count) for i, choice_count in enumerate(choices)
    ]

    def render(sample: Sample) -> Any:
        from keju.types import Prefix, Prompt

        return Prompt(Prefix(), "\n".join(sample.choices))

    exam.render = render  # type: ignore[method-assign]
    return exam


def test_fewer_options_than_rotations_are_stated_and_more_than_any_has_refused() -> None:
    exam = rotate_exam(exam_of_sizes({"a": 3}, [4, 3, 2]), 4)
    note = "2 questions have fewer than 4 options: some of their rotations repeat an order"
    assert note in [warning.text() for warning in exam.warnings]
    assert note in exam.data.notes
    with pytest.raises(ConfigError, match="fake has at most 4 options, so at most 4 rotations"):
        rotate_exam(exam_of_sizes({"a": 3}, [4, 3, 2]), 5)


def test_errata_and_refusal_options_move_along() -> None:
    exam = exam_of_sizes({"a": 1}, [4])
    exam.errata = {"fake_a_0": "known"}
    exam.samples = [Sample(**_fields(exam.samples[0]) | {"metadata": {REFUSAL: "D"}})]
    turned = rotate_exam(exam, 2)
    assert turned.errata == {"fake_a_0": "known", "fake_a_0#rot1": "known"}
    assert turned.samples[1].metadata[REFUSAL] == "C"


def _fields(sample: Sample) -> dict[str, Any]:
    return {name: getattr(sample, name) for name in Sample.__struct_fields__}


def test_consistency_has_the_bounds_that_replies_without_a_grade_leave() -> None:
    turned = rotate_exam(exam_of_sizes({"a": 10}, [4] * 10), 2)
    tally = make_tally("11" * 7 + "00" + "1e" + "0e", answers="A" * 20)
    metric = turned.metrics(tally)["rotation_consistency"]
    assert (metric.value, metric.n) == (7 / 9, 9), "a wrong one is enough to know it"
    assert metric.bounds == (7 / 10, 8 / 10)


def test_exams_without_labelled_options_are_refused() -> None:
    exam = make_exam({"a": 2})
    with pytest.raises(ConfigError, match="the options are part of the question's text"):
        rotate_exam(exam, 2)
    exam.samples = [make_sample("a", 0, choices=0)]
    with pytest.raises(ConfigError, match="questions without options, such as fake_a_0"):
        rotate_exam(exam, 2)


def test_bbh_is_refused_and_mmlu_pro_is_rotated(data_dir: Path) -> None:
    bbh, _ = prepare_exam("bbh", {"subset_list": ["snarks"]}, data_dir=str(data_dir))
    with pytest.raises(ConfigError, match="bbh: the options are part of the question's text"):
        rotate_exam(bbh, 2)
    pro, _ = prepare_exam("mmlu_pro", {"subset_list": ["history"]}, data_dir=str(data_dir))
    turned = rotate_exam(pro, 3)
    prompts = [turned.render(sample) for sample in turned.samples[:3]]
    assert len({prompt.tail for prompt in prompts}) == 3
    assert len({id(prompt.prefix) for prompt in prompts}) == 1
    tally = make_tally("10u" * len(pro.samples), answers="ABA" * len(pro.samples))
    metric = turned.metrics(tally)["accuracy_expected_with_guess"]
    assert metric.n == len(turned.samples)
    assert metric.clusters == len(pro.samples)
    assert metric.ci95 is not None


def test_a_model_that_goes_by_content_is_suspected_as_often_as_the_test_says() -> None:
    """Two of four orders: the right options stand unevenly, the choices fall where they may."""
    turned = rotate_exam(exam_of_sizes({"a": 60}, [4] * 60), 2)
    draw = random.Random(7)
    alarms, runs = 0, 300
    for _ in range(runs):
        letters = ""
        for _question in range(60):
            weights = [draw.random() ** 3 for _ in range(4)]
            for turn in range(2):
                (option,) = draw.choices(range(4), weights)
                letters += "ABCD"[(option - turn) % 4]
        bias = turned.metrics(make_tally("0" * 120, answers=letters))["position_bias"]
        alarms += bias.details["p"] < 0.05
    assert 0.02 < alarms / runs < 0.09


def test_orders_that_repeat_are_no_further_evidence() -> None:
    turned = rotate_exam(exam_of_sizes({"a": 2}, [4, 2]), 4)
    bias = turned.metrics(make_tally("0" * 8, answers="A" * 8))["position_bias"]
    assert bias.n == 4 + 2
    assert bias.details["chosen"] == {"A": 6, "B": 0, "C": 0, "D": 0}
    assert bias.details["expected"] == pytest.approx({"A": 2, "B": 2, "C": 1, "D": 1})
