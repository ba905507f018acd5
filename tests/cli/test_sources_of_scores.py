"""What a source says, question by question: stored runs, arms, predictions, other tools' logs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from keju.errors import UsageError
from keju.models.scripted import ScriptedModel
from keju.results.scored_exam import mismatches, scored_exams_of
from keju.types import Request
from tests.cli.conftest import Keju


@pytest.fixture
def evaluate(keju: Keju, monkeypatch: pytest.MonkeyPatch) -> object:
    """Sit the built-in exam; every answer is `letter`."""

    def run(name: str, letter: str = "A", *flags: str) -> None:
        def answer(_: Request) -> str:
            return f"ANSWER: {letter}"

        monkeypatch.setattr("keju.task.make_model", lambda _: ScriptedModel(script=answer))
        ran = keju(
            "eval", "-m", "scripted", "--datasets", "demo", "-q", "--no-report", "--run-id", name,
            *flags,
        )  # fmt: skip
        assert ran.code == 0, ran.err

    return run


def test_a_run_is_what_its_results_say(keju: Keju, evaluate: object) -> None:
    assert callable(evaluate)
    evaluate("one")
    (scored_exam,) = scored_exams_of("one")
    (entry,) = keju("score", "one", "--json").json["benchmarks"]
    scores = [item.score for item in scored_exam]
    assert len(scored_exam) == entry["n"]
    graded = [score for score in scores if score is not None]
    assert sum(graded) / len(graded) == pytest.approx(entry["metrics"]["accuracy"]["value"])
    assert {item.answer for item in scored_exam} <= {"A", None}
    assert all(item.cluster is None for item in scored_exam)
    assert not scored_exam.usage_of("cost", range(len(scored_exam)))
    assert (scored_exam.name, scored_exam.model, scored_exam.arm) == ("one", "scripted", "")


def test_conditions_are_told_from_circumstances(evaluate: object) -> None:
    assert callable(evaluate)
    evaluate("one")
    evaluate("two", "B", "--generation-config", '{"temperature": 0.5}', "--limit", "3")
    evaluate("three", "A", "--seed", "7")
    (first_source,), (second_source,), (three,) = (
        scored_exams_of("one"),
        scored_exams_of("two"),
        scored_exams_of("three"),
    )
    assert not any(mismatch.decisive for mismatch in mismatches(first_source, second_source))
    assert {"temperature", "limit"} <= {
        mismatch.field for mismatch in mismatches(first_source, second_source)
    }
    seed_mismatch = mismatches(first_source, three)[0]
    assert seed_mismatch.decisive
    assert (seed_mismatch.field, seed_mismatch.first, seed_mismatch.second) == ("seed", 42, 7)


def test_strange_sources_are_refused_by_name(evaluate: object) -> None:
    assert callable(evaluate)
    evaluate("one")
    Path("folder").mkdir()
    Path("p.jsonl").write_text(json.dumps({"id": "x", "output": "A"}))
    for source, exam, message in (
        ("absent", None, "no run 'absent'"),
        ("folder", None, "name its exam"),
        ("folder", "demo", "is a folder"),
        ("p.jsonl", None, "--datasets"),
        ("one", "bbh", "does not include bbh"),
    ):
        with pytest.raises(UsageError, match=message):
            scored_exams_of(source, datasets=exam)
