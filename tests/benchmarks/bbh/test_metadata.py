"""The tables of published facts agree with each other, with the data and with the paper."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from keju.benchmarks.base import Exam
from keju.benchmarks.bbh.metadata import (
    BASELINE_MEANS,
    BASELINES,
    CHOICE_SUBSETS,
    ERRATA,
    MEANS,
    REFERENCES,
    SUBSETS,
    fault_of,
)
from keju.benchmarks.bbh.readers import evalscope_target
from keju.scores.tally import Tally
from keju.types import Sample
from tests.results.fake_exam import entry_of


def test_subsets_and_tasks() -> None:
    assert len(SUBSETS) == 27
    assert len(CHOICE_SUBSETS) == 17
    assert sum(facts.rows for facts in SUBSETS.values()) == 6511
    assert {mean.name: len(mean.tasks) for mean in MEANS} == {
        "macro_accuracy": 27,
        "macro_23": 23,
        "nlp_12": 12,
        "algorithmic_11": 11,
    }
    assert [mean.name for mean in MEANS if mean.group] == ["nlp_12", "algorithmic_11"]
    for mean in MEANS[:2]:
        assert sorted(name for task in mean.tasks for name in task) == sorted(SUBSETS)


def test_the_papers_table(data_dir: Path) -> None:
    path = data_dir / "golden" / "bbh" / "paper_table.json"
    table = json.loads(path.read_text(encoding="utf-8"))
    rows = table["rows"]
    columns = ("random", "human_avg", "human_max")
    for name, figures in BASELINES.items():
        assert figures == tuple(rows[name][column] for column in columns), name
    printed = {"macro_23": "All_avg", "nlp_12": "NLP_avg", "algorithmic_11": "Algorithmic_avg"}
    for metric, name in printed.items():
        assert BASELINE_MEANS[metric] == tuple(rows[name][column] for column in columns)
    fields = {"NLP": table["nlp_tasks"], "algorithmic": table["algorithmic_tasks"]}
    for name, facts in SUBSETS.items():
        assert facts.task in fields[facts.field], name


def test_references_are_shares() -> None:
    assert [reference.name for reference in REFERENCES] == [
        "human average",
        "human maximum",
        "random guessing",
    ]
    assert REFERENCES[0].overall["macro_23"] == pytest.approx(0.677)
    assert REFERENCES[1].subsets["snarks"] == 1.0


def test_kinds_fit_the_targets(exam: Exam) -> None:
    patterns = {
        "bool": {"True", "False"},
        "yes_no": {"Yes", "No", "yes", "no"},
        "valid": {"valid", "invalid"},
    }
    letters = 0
    for sample in exam.samples:
        kind = SUBSETS[sample.subset].kind
        if kind == "choice":
            letters += evalscope_target(sample) in sample.labels
        elif kind == "integer":
            assert str(int(sample.target)) == sample.target
        elif kind in patterns:
            assert sample.target in patterns[kind]
    assert letters == 4071


def test_errata_are_what_the_data_shows(samples: dict[str, Sample]) -> None:
    assert set(ERRATA) <= set(samples)
    text_targets = [
        s.id for s in samples.values() if s.choices and evalscope_target(s) not in s.labels
    ]
    assert sorted(text_targets) == sorted(i for i in ERRATA if "comma" in ERRATA[i].fault)
    for a, b, opposite in (
        ("causal_judgement_32", "causal_judgement_119", True),
        ("causal_judgement_36", "causal_judgement_104", True),
        ("sports_understanding_27", "sports_understanding_155", False),
        ("sports_understanding_80", "sports_understanding_227", False),
    ):
        left_sample, right_sample = samples[f"bbh_{a}"], samples[f"bbh_{b}"]
        assert left_sample.text == right_sample.text
        assert (left_sample.target != right_sample.target) == opposite
    assert len(set(samples["bbh_snarks_86"].choices)) == 1
    assert samples["bbh_snarks_88"].choices == ("The NB",)
    repeated_options = [
        s.id
        for s in samples.values()
        if {"circle", "ellipse"} <= set(s.choices) or {"rectangle", "trapezoid"} <= set(s.choices)
    ]
    assert sorted(repeated_options) == sorted(i for i in ERRATA if "offered too" in ERRATA[i].fault)
    assert len(repeated_options) == 50


def test_an_erratum_belongs_to_the_published_row_only(
    exam: Exam, samples: dict[str, Sample]
) -> None:
    assert set(exam.errata) == set(ERRATA)
    for name, erratum in ERRATA.items():
        assert fault_of(samples[name]) == exam.errata[name] == erratum.fault
        edited = msgspec.structs.replace(samples[name], text=samples[name].text + " ")
        assert fault_of(edited) is None
    assert fault_of(samples["bbh_snarks_0"]) is None


def test_chance(exam: Exam, samples: dict[str, Sample]) -> None:
    assert exam.chance(samples["bbh_temporal_sequences_0"]) == 0.25
    assert exam.chance(samples["bbh_navigate_0"]) == 0.5
    assert exam.chance(samples["bbh_word_sorting_0"]) is None
    assert exam.chance(samples["bbh_snarks_88"]) is None


def test_chance_is_computed_for_subsets_and_headline_alike(exam: Exam) -> None:
    tally = Tally(len(exam.samples))
    entry = entry_of(exam, tally, reader="evalscope")
    by_subset = {subset["name"]: subset.get("chance") for subset in entry["subsets"]}
    assert by_subset["penguins_in_a_table"] == pytest.approx((145 / 5 + 1 / 4) / 146)
    assert by_subset["snarks"] == by_subset["navigate"] == by_subset["formal_fallacies"] == 0.5
    for kind in ("word_sorting", "dyck_languages", "object_counting"):
        assert by_subset[kind] is None
    levels = [level for s in exam.samples if (level := exam.chance(s)) is not None]
    assert entry["metrics"]["chance"]["value"] == pytest.approx(sum(levels) / len(levels))
    assert "random guessing" in [reference["name"] for reference in entry["reference"]]
