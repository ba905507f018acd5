"""Recorded outputs of code-davinci-002 must give the scores that are known for them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from keju.benchmarks.base import Exam
from keju.types import Sample

Counts = dict[str, int]


def _rows(data_dir: Path, setting: str) -> list[dict[str, Any]]:
    name = f"code-davinci-002_{setting}_predictions.jsonl.gz"
    with gzip.open(data_dir / "golden" / "bbh" / name, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _golden(data_dir: Path, setting: str) -> dict[str, Any]:
    path = data_dir / "golden" / "bbh" / f"code-davinci-002_{setting}_golden.json"
    golden: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return golden


def _right_ids(
    exam: Exam, samples: dict[str, Sample], rows: list[dict[str, Any]], reader_name: str
) -> list[str]:
    reader = exam.readers[reader_name]
    right = []
    for row in rows:
        sample = samples[exam.locate(row)]
        value = reader.read(row["output"], sample).value
        if value is not None and reader.matches(value, sample):
            right.append(sample.id)
    return right


def _by_subset(exam: Exam, samples: dict[str, Sample], ids: list[str]) -> Counts:
    counts = {subset.name: 0 for subset in exam.subsets}
    for sample_id in ids:
        counts[samples[sample_id].subset] += 1
    return counts


@pytest.fixture(scope="module")
def cot(data_dir: Path) -> list[dict[str, Any]]:
    return _rows(data_dir, "cot")


@pytest.fixture(scope="module")
def answer_only(data_dir: Path) -> list[dict[str, Any]]:
    return _rows(data_dir, "answer_only")


def _published(data_dir: Path, setting: str) -> Counts:
    subsets = _golden(data_dir, setting)["subsets"]
    return {name: facts["correct"] for name, facts in subsets.items()}


def test_chain_of_thought_with_the_papers_reader(
    exam: Exam, samples: dict[str, Sample], cot: list[dict[str, Any]], data_dir: Path
) -> None:
    right = _right_ids(exam, samples, cot, "paper")
    assert len(right) == 4816
    assert _by_subset(exam, samples, right) == _published(data_dir, "cot")


def test_chain_of_thought_with_the_robust_reader(
    exam: Exam, samples: dict[str, Sample], cot: list[dict[str, Any]]
) -> None:
    """Three replies state their answer and break off before the marker."""
    robust = _right_ids(exam, samples, cot, "robust")
    paper = _right_ids(exam, samples, cot, "paper")
    assert set(robust) - set(paper) == {
        "bbh_dyck_languages_127",
        "bbh_tracking_shuffled_objects_seven_objects_101",
        "bbh_tracking_shuffled_objects_seven_objects_139",
    }
    assert set(paper) <= set(robust)


def test_chain_of_thought_with_evalscopes_reader(
    exam: Exam, samples: dict[str, Sample], cot: list[dict[str, Any]], data_dir: Path
) -> None:
    counts = _by_subset(exam, samples, _right_ids(exam, samples, cot, "evalscope"))
    extra_correct = {"hyperbaton": 1, "ruin_names": 4, "snarks": 6}
    assert sum(counts.values()) == 4827
    assert counts == {
        name: correct + extra_correct.get(name, 0)
        for name, correct in _published(data_dir, "cot").items()
    }
    shares = [counts[subset.name] / len(subset) for subset in exam.subsets]
    assert round(100 * sum(shares) / len(shares), 2) == 73.91


def test_chain_of_thought_with_mcpbrs_reader(
    exam: Exam, samples: dict[str, Sample], cot: list[dict[str, Any]]
) -> None:
    assert _right_ids(exam, samples, cot, "mcpbr") == []


@pytest.mark.parametrize("reader", ["answer-only", "mcpbr"])
def test_answer_only(
    exam: Exam,
    samples: dict[str, Sample],
    answer_only: list[dict[str, Any]],
    data_dir: Path,
    reader: str,
) -> None:
    right = _right_ids(exam, samples, answer_only, reader)
    assert len(right) == 3408
    assert _by_subset(exam, samples, right) == _published(data_dir, "answer_only")


def test_answer_only_with_the_robust_reader(
    exam: Exam, samples: dict[str, Sample], answer_only: list[dict[str, Any]]
) -> None:
    strict = set(_right_ids(exam, samples, answer_only, "answer-only"))
    robust = set(_right_ids(exam, samples, answer_only, "robust"))
    assert strict < robust
    assert len(robust) == 3410
    assert {samples[sample_id].subset for sample_id in robust - strict} == {"dyck_languages"}


MEANS = {
    "cot": ("paper", [73.71, 73.93, 73.48, 74.41]),
    "answer_only": ("answer-only", [52.76, 56.61, 66.44, 45.89]),
}


@pytest.mark.parametrize("setting", MEANS)
def test_means(exam: Exam, samples: dict[str, Sample], data_dir: Path, setting: str) -> None:
    reader, expected = MEANS[setting]
    counts = _by_subset(exam, samples, _right_ids(exam, samples, _rows(data_dir, setting), reader))
    share = {subset.name: counts[subset.name] / len(subset) for subset in exam.subsets}
    means = exam.means()
    values = []
    for mean in means:
        tasks = [sum(share[name] for name in task) / len(task) for task in mean.tasks]
        values.append(100 * sum(tasks) / len(tasks))
    assert [mean.name for mean in means] == [
        "macro_accuracy",
        "macro_23",
        "nlp_12",
        "algorithmic_11",
    ]
    assert [round(value, 2) for value in values] == expected
    summary = _golden(data_dir, setting)["summary"]
    keys = ("macro_27_subsets", "macro_23_tasks", "nlp_12_tasks", "algorithmic_11_tasks")
    assert values == pytest.approx([summary[key] for key in keys], abs=1e-9)


def test_outputs_without_a_marker_are_unparsed(
    exam: Exam, samples: dict[str, Sample], cot: list[dict[str, Any]]
) -> None:
    reader = exam.readers["paper"]
    answers = [(samples[exam.locate(row)], row["output"]) for row in cot]
    without = [s.subset for s, output in answers if reader.read(output, s).reason == "no_marker"]
    assert len(without) == 237
    assert without.count("word_sorting") == 146
    assert without.count("dyck_languages") == 51
