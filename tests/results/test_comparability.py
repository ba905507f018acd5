"""The facts that decide whether two scored exams are comparable."""

from __future__ import annotations

from keju.config import Arm
from keju.results.comparability import (
    describe_tools,
    has_exam_limit,
    is_comparable,
    judge_conditions,
    reader_key,
)
from keju.results.scored_exam import mismatches
from keju.runs.manifest import Manifest
from tests.results.fake_exam import make_exam, make_job, make_scored


def test_tools_are_described_with_all_their_settings() -> None:
    assert describe_tools(Arm(name="plain")) is None
    server = {"name": "calc", "command": "python", "args": ["server.py"]}
    words = describe_tools(Arm.model_validate({"name": "tools", "servers": [server]}))
    assert words is not None
    assert words.startswith("calc (python server.py")
    other = describe_tools(
        Arm.model_validate({"name": "tools", "servers": [{**server, "args": ["other.py"]}]})
    )
    assert other != words


def test_settings_by_subset_are_compared_on_shared_subsets() -> None:
    both, single = make_exam({"a": 1, "b": 1}), make_exam({"a": 1})
    assert is_comparable({"a": 1, "b": 2}, {"a": 1}, both, single)
    assert not is_comparable({"a": 1, "b": 2}, {"a": 3}, both, single)
    assert not is_comparable("x", "y", both, single)


def test_the_reader_and_its_gold_answers_are_conditions() -> None:
    key = reader_key(make_job("1"), 0, "recorded")
    assert (key["reader"], key["gold"], key["filters"]) == ("robust", "recorded", {})


def test_a_judge_is_described_by_what_changes_its_verdicts() -> None:
    judge = {"model": "j", "strategy": "llm", "api_url": "http://one", "repeats": 2}
    conditions = judge_conditions(Manifest(config={"judge": judge}))
    assert conditions == {"judge model": "j", "judge strategy": "llm", "judge repeats": 2}
    assert judge_conditions(Manifest()) == {}


def test_a_limit_of_the_exam_is_not_that_of_the_run() -> None:
    assert has_exam_limit({"limit": 3})
    assert not has_exam_limit({"subset_list": ["a"]})


def test_mismatches_put_the_decisive_ones_first() -> None:
    base = make_scored("1", circumstances={"model": "a"}, conditions={"seed": 1, "exam": "e"})
    arm = make_scored("1", circumstances={"model": "b"}, conditions={"seed": 2, "exam": "e"})
    fields = [(mismatch.field, mismatch.decisive) for mismatch in mismatches(base, arm)]
    assert fields == [("seed", True), ("model", False)]
