"""What a session may change in its run, on manifests made of structs."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from keju.errors import UsageError
from keju.runs.manifest import Manifest, StoredData, StoredExam
from keju.runs.resume_compat import (
    agree_by_subset,
    drop_agreeing,
    find_changed_files,
    find_differences,
    refuse_imported,
    refuse_other_run,
    version_notices,
)


def make_manifest(model: str = "m", **exam: Any) -> Manifest:
    return Manifest(run="r", model=model, benchmarks=[StoredExam(**{"name": "demo", **exam})])


def test_the_same_settings_have_no_differences() -> None:
    assert find_differences(make_manifest(), make_manifest()) == []


def test_another_model_is_always_another_run() -> None:
    differences = find_differences(make_manifest("one"), make_manifest("two"))
    assert [(d.field, d.stored, d.requested, d.is_decisive) for d in differences] == [
        ("model", "one", "two", True)
    ]
    with pytest.raises(UsageError, match="one") as refused:
        refuse_other_run("r", differences, unused=0)
    assert refused.value.code == "run_is_another"


def test_other_questions_are_refused_only_if_replies_would_be_lost() -> None:
    limited = replace(make_manifest(), config={"limit": 5})
    differences = find_differences(make_manifest(), limited)
    assert differences
    assert not any(difference.is_decisive for difference in differences)
    refuse_other_run("r", differences, unused=0)
    with pytest.raises(UsageError) as refused:
        refuse_other_run("r", differences, unused=3)
    assert refused.value.code == "run_would_lose"


def test_values_by_subset_agree_on_the_common_subsets() -> None:
    assert agree_by_subset({"a": 1, "b": 2}, {"a": 1})
    assert not agree_by_subset({"a": 1, "b": 2}, {"a": 2})
    assert not agree_by_subset({"a": 1}, {"a": 1}), "nothing differs"
    assert not agree_by_subset(1, {"a": 1})
    left, right = drop_agreeing({"shots": {"a": 1}, "seed": 1}, {"shots": {"a": 1, "b": 2}})
    assert (left, right) == ({"seed": 1}, {})


def test_versions_that_changed_are_listed_with_both_numbers() -> None:
    before = make_manifest(readers={"robust": 2, "strict": 1})
    today = make_manifest(readers={"robust": 3, "strict": 1, "new": 1}, grading=2)
    (notice,) = version_notices(before, today.benchmarks)
    assert "reader robust@3 (stored: @2)" in notice.values["versions"]
    assert "order of judgement" in notice.values["versions"]
    assert "strict" not in notice.values["versions"]
    assert version_notices(before, before.benchmarks) == []


@pytest.mark.parametrize(
    ("datasets", "changed"), [(["demo"], ["a"]), (["./demo"], ["a", "b", "c"])]
)
def test_an_exam_at_a_path_reads_all_its_files(datasets: list[str], changed: list[str]) -> None:
    before = make_manifest(data=StoredData(files={"a": "1", "b": "1"}))
    before.config = {"datasets": datasets}
    today = make_manifest(data=StoredData(files={"a": "2", "c": "1"}))
    assert find_changed_files(before, today.benchmarks) == changed


def test_an_imported_run_cannot_be_continued() -> None:
    imported = Manifest(run="r", imported=True, origin={"tool": "lm-eval", "version": "0.4"})
    with pytest.raises(UsageError, match=r"lm-eval 0\.4"):
        refuse_imported("r", imported)
    refuse_imported("r", Manifest(run="r"))
