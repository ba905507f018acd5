"""Two schemas become the same samples, and are never mixed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from keju.benchmarks.bixbench import BIXBENCH, BixBenchArgs
from keju.benchmarks.bixbench.data import parse_categories, parse_truth
from keju.errors import ConfigError, DataError
from keju.sources.folder import DataFolder
from tests.benchmarks.bixbench.conftest import (
    CANARY,
    FLAT,
    NESTED,
    Prepare,
    flat,
    inner,
    nested,
    write,
)


def test_version_1_5_is_taken_by_default(prepare: Prepare) -> None:
    exam = prepare()
    ids = [sample.id for sample in exam.samples]
    assert ids == ["bixbench_bix-1-q1", "bixbench_bix-1-q2", "bixbench_bix-2-q1"]
    assert [sample.group for sample in exam.samples] == ["bix-1", "bix-1", "bix-2"]
    assert exam.data.version == "1.5"
    assert list(exam.data.files) == ["BixBench_v1.5.jsonl"]
    assert [subset.name for subset in exam.subsets] == ["v1.5"]
    assert exam.clustered


def test_version_1_0_asks_the_first_question_of_each_capsule(prepare: Prepare) -> None:
    exam = prepare(data_version="1.0")
    ids = [sample.id for sample in exam.samples]
    assert ids == ["bixbench_bix-1-q1", "bixbench_bix-2-q1", "bixbench_bix-3-q1"]
    assert "3 of 5 questions" in exam.data.notes[0]
    all_questions = prepare(data_version="1.0", all_questions=True)
    assert [sample.id.removeprefix("bixbench_") for sample in all_questions.samples] == [
        "bix-1-q1", "bix-1-q3", "bix-2-q1", "bix-2-q2", "bix-3-q1",
    ]  # fmt: skip


@pytest.mark.parametrize("version", [None, "1.5"])
def test_all_questions_of_version_1_5_are_asked_anyway(
    prepare: Prepare, version: str | None
) -> None:
    with pytest.raises(ConfigError, match=r"all_questions .* v1\.5 has one question a row"):
        prepare(data_version=version, all_questions=True)


def test_nan_stays_a_text(prepare: Prepare) -> None:
    exam = prepare(data_version="1.0", answer_mode="open")
    assert exam.samples[-1].target == "NaN"
    choices = prepare(data_version="1.0").samples[-1].choices
    assert "NaN" in choices


def test_hypotheses_are_one_a_capsule(prepare: Prepare) -> None:
    exam = prepare(question_source="hypothesis", shuffle_options=False)
    assert [sample.text for sample in exam.samples] == [
        "Hypothesis of bix-1.",
        "Hypothesis of bix-2.",
    ]
    assert [sample.target for sample in exam.samples] == ["A", "B"]
    assert exam.samples[0].choices == ("True", "False")
    assert exam.subsets[0].name == "hypothesis"
    old = prepare(question_source="hypothesis", data_version="1.0")
    assert [sample.group for sample in old.samples] == ["bix-1", "bix-2"]
    assert any("bix-3" in note for note in old.data.notes)


def test_max_episodes_takes_the_first_rows(prepare: Prepare) -> None:
    exam = prepare(max_episodes=2)
    assert [sample.index for sample in exam.samples] == [0, 1]
    assert exam.subsets[0].population == 3
    assert len(prepare(max_episodes=99).samples) == 3


@pytest.mark.parametrize(
    ("value", "expected"),
    [(True, True), ("True", True), ("False", False), ("false", False), (None, None), ("", None)],
)
def test_truth_is_no_matter_of_non_empty_text(value: Any, expected: bool | None) -> None:
    assert parse_truth(value, "here") is expected


def test_truth_refuses_anything_else() -> None:
    with pytest.raises(DataError, match="should be true or false"):
        parse_truth("maybe", "here")


def test_categories_in_both_notations() -> None:
    assert parse_categories("A, B,A", "here") == ("A", "B")
    assert parse_categories("['A', 'B, C']", "here") == ("A", "B, C")
    assert parse_categories(None, "here") == ()


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([FLAT[0], NESTED[0]], "row 2: version 1.0 after rows of version 1.5"),
        ([FLAT[0] | {"questions": []}], "has both 'questions' and 'question'"),
        ([{"x": 1}], "has neither"),
        ([], "holds no rows"),
        ([FLAT[0], FLAT[0]], "occurs twice"),
        ([flat("bix-1-q1", "a", ["b"], eval_mode="lm_verifier")], "unknown eval_mode"),
        ([flat("bix-1-q1", "5", ["b"], eval_mode="range_verifier")], "must be (lower,upper)"),
        ([flat("bix-1-q1", " ", ["b"])], "'ideal' is empty"),
        ([flat("bix-1-q1", "a", ["b"]) | {"distractors": None}], "'distractors' should be a list"),
        ([flat("bix-1-q1", "a", [])], "'distractors' is empty"),
        ([flat("bix-1-q1", "a", ["b"], question="")], "'question' is empty"),
        ([FLAT[0], flat("bix-1-q7", "a", ["b"], answer=False)], "contradicts its capsule's answer"),
    ],
)
def test_broken_data(tmp_path: Path, rows: list[dict[str, Any]], message: str) -> None:
    write(tmp_path / "BixBench.jsonl", rows)
    with pytest.raises(DataError) as error:
        BIXBENCH.prepare(BixBenchArgs(), DataFolder(tmp_path, BIXBENCH.layout), seed=0)
    assert message in str(error.value)


def test_the_schema_decides_not_the_name_of_the_file(tmp_path: Path) -> None:
    write(tmp_path / "BixBench.jsonl", NESTED)
    folder = DataFolder(tmp_path, BIXBENCH.layout)
    assert BIXBENCH.prepare(BixBenchArgs(), folder, seed=0).data.version == "1.0"
    with pytest.raises(DataError, match=r"holds no BixBench 1\.5; .* is version 1\.0"):
        BIXBENCH.prepare(BixBenchArgs(data_version="1.5"), folder, seed=0)


def test_capsules_without_questions_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "BixBench_v1.0.jsonl", [nested("bix-1", [inner("q1")]), nested("bix-2", "[]")])
    with pytest.raises(DataError, match="row 2: the capsule has no questions"):
        BIXBENCH.prepare(BixBenchArgs(), DataFolder(tmp_path, BIXBENCH.layout), seed=0)


def test_only_the_subset_that_is_asked_can_be_listed(prepare: Prepare) -> None:
    assert prepare(subset_list=["v1.5"]).samples
    with pytest.raises(ConfigError, match=r"the only subset here is 'v1\.5'"):
        prepare(subset_list=["v1.0"])


def test_the_canary_and_the_result_stay_in_the_file(prepare: Prepare) -> None:
    for args in ({}, {"data_version": "1.0"}, {"question_source": "hypothesis"}):
        exam = prepare(**args)
        sample_text = str([exam.describe(sample) for sample in exam.samples]) + str(exam.settings)
        assert CANARY not in sample_text
        assert "the solution" not in sample_text
        assert CANARY not in str([*exam.samples, exam.data, exam.errata])


def test_data_that_is_not_the_published_says_so(prepare: Prepare, tmp_path: Path) -> None:
    exam = prepare()
    assert any("v1.5 has 3 of 205" in warning.text() for warning in exam.warnings)
    assert any("v1.5: 3 rows, published are 205" in note for note in exam.data.notes)
    assert any("v1.0 has 3 of 53" in w.text() for w in prepare(data_version="1.0").warnings)
    write(tmp_path / "BixBench.jsonl", [flat("bix-53-q4", "a", ["b", "c", "d"])])
    edited = BIXBENCH.prepare(BixBenchArgs(), DataFolder(tmp_path, BIXBENCH.layout), seed=0)
    assert edited.errata == {}


def test_real_version_1_5(real: Prepare) -> None:
    exam = real()
    assert exam.warnings == ()
    assert len(exam.samples) == 205
    assert len({sample.group for sample in exam.samples}) == 54
    modes = Counter(sample.metadata["eval_mode"] for sample in exam.samples)
    assert modes == {"llm_verifier": 83, "str_verifier": 61, "range_verifier": 61}
    disputed = ("bix-53-q4", "bix-13-q1", "bix-36-q1")
    revised = ("bix-14-q1", "bix-27-q5", "bix-31-q2")
    underspecified = ("bix-34-q2", "bix-45-q1", "bix-54-q7", "bix-61-q5")
    assert set(exam.errata) == {f"bixbench_{q}" for q in disputed + revised + underspecified}
    assert exam.errata["bixbench_bix-14-q1"].startswith("BixBench-Verified-50 revises its key")
    list_like = [c for s in exam.samples for c in s.metadata["categories"] if "[" in c or "'" in c]
    assert list_like == []


def test_real_version_1_0(real: Prepare) -> None:
    assert real(data_version="1.0").warnings == ()
    assert len(real(data_version="1.0").samples) == 53
    exam = real(data_version="1.0", all_questions=True)
    assert len(exam.samples) == 296
    assert set(exam.errata) == {"bixbench_bix-12-q3", "bixbench_bix-46-q5"}


def test_real_hypotheses(real: Prepare) -> None:
    exam = real(question_source="hypothesis", answer_mode="open")
    assert Counter(sample.target for sample in exam.samples) == {"True": 46, "False": 13}
    old = real(question_source="hypothesis", data_version="1.0")
    assert len(old.samples) == 48
    assert any("bix-23, bix-40, bix-44, bix-48, bix-50" in note for note in old.data.notes)


def test_the_real_canary_never_gets_into_a_sample(real: Prepare, data_dir: Path) -> None:
    folder = DataFolder(data_dir / "bixbench", BIXBENCH.layout)
    canaries = {row["canary"] for row in folder.rows("v1.5")}
    exam = real()
    for sample in exam.samples:
        sample_text = str(exam.describe(sample)) + str(sample)
        assert not any(canary in sample_text for canary in canaries)
