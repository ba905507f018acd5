"""Exams whose options are compared by the log-probability of their texts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from keju.benchmarks.base import Exam
from keju.benchmarks.grading import grade
from keju.benchmarks.prepare import prepare_exam
from keju.cli import main
from keju.errors import ConfigError, DataError
from keju.types import ContinuationScore, Reply

ROWS = """question,A,B,C,answer
Capital of France?,Paris,Rome,Bad Homburg vor der Höhe,A
Capital of Italy?,Oslo,Rome,Bonn,B
"""
SHOTS = "question,A,B,answer\nCapital of Spain?,Lima,Madrid,B\n"


def folder(place: Path, exam: str = "decode: continuations\n", shots: str = "") -> Path:
    place.mkdir()
    (place / "rows.csv").write_text(ROWS, "utf-8")
    (place / "exam.yaml").write_text(exam, "utf-8")
    if shots:
        (place / "few_shot.csv").write_text(shots, "utf-8")
    return place


def prepare(place: Path, **settings: object) -> Exam:
    exam, _ = prepare_exam(str(place), settings)
    return exam


def continuations(exam: Exam) -> list[tuple[str, str]]:
    return [(part.context, part.text) for part in exam.continuations(exam.samples[0])]


def test_each_option_continues_the_prompt_which_does_not_show_them(tmp_path: Path) -> None:
    exam = prepare(folder(tmp_path / "capitals", shots=SHOTS))
    assert exam.protocol.decode == "continuations"
    context = "Question: Capital of Spain?\nAnswer: Madrid\n\nQuestion: Capital of France?\nAnswer:"
    options = ("Paris", "Rome", "Bad Homburg vor der Höhe")
    assert continuations(exam) == [(context, f" {option}") for option in options]


def test_chinese_prompts_have_no_space_before_an_option(tmp_path: Path) -> None:
    exam = prepare(folder(tmp_path / "capitals", "decode: continuations\nlanguage: zh\n"))
    assert continuations(exam)[0] == ("问题：Capital of France?\n答案：", "Paris")


def test_the_protocol_can_be_chosen_for_any_exam_with_options(tmp_path: Path) -> None:
    place = folder(tmp_path / "capitals", 'template: "{question} It is"\n')
    exam = prepare(place, protocol="continuations")
    assert continuations(exam)[1] == ("Capital of France? It is", " Rome")


def test_acc_and_acc_norm_differ_where_a_long_option_has_the_lower_sum(tmp_path: Path) -> None:
    exam = prepare(folder(tmp_path / "capitals"))
    sample = exam.samples[0]
    reply = Reply(continuations=tuple(map(ContinuationScore, (-4.0, -5.0, -12.0))))
    values = {
        name: grade(reply, sample, reader).answer.value for name, reader in exam.readers.items()
    }
    # per character: -4/5, -5/4, -12/24
    assert values == {"acc": "A", "acc_norm": "C"}
    assert exam.protocol.reader == "acc"
    normalized = prepare(
        folder(tmp_path / "normalized", "decode: continuations\nreader: acc_norm\n")
    )
    assert normalized.protocol.reader == "acc_norm"
    assert normalized.beside == "acc"


@pytest.mark.parametrize(
    ("exam", "problem"),
    [
        ("reader: acc\n", "reader 'acc' needs decode: continuations"),
        ("decode: continuations\nreader: letter\n", "has the readers acc and acc_norm"),
        ("decode: guesses\n", "decode"),
    ],
)
def test_settings_that_do_not_fit_are_refused(tmp_path: Path, exam: str, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        prepare(folder(tmp_path / "capitals", exam))


def test_questions_without_options_cannot_be_compared(tmp_path: Path) -> None:
    place = folder(tmp_path / "capitals")
    (place / "rows.csv").write_text("question,answer\nCapital of France?,Paris\n", "utf-8")
    with pytest.raises(DataError, match="needs options in every question"):
        prepare(place)
    (place / "exam.yaml").write_text("{}", "utf-8")
    with pytest.raises(ConfigError, match="continuations"):
        prepare(place, protocol="continuations")


def test_a_run_is_resumed_scored_again_and_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place, work = folder(tmp_path / "capitals"), tmp_path / "runs"
    command = [
        *("eval", "--model", "scripted", "--datasets", str(place)),
        *("--work-dir", str(work), "--run-id", "r"),
    ]
    assert main([*command, "--limit", "1"]) == 0
    assert main([*command, "--resume"]) == 0
    lines = (work / "r" / "records.jsonl").read_text("utf-8").splitlines()
    replies = [json.loads(line)["reply"]["continuations"] for line in lines]
    assert [len(reply) for reply in replies] == [3, 3]
    results = json.loads((work / "r" / "results.json").read_text("utf-8"))
    (exam,) = results["benchmarks"]
    before = exam["metrics"]
    assert {"accuracy", "accuracy_acc_norm"} <= set(before)
    assert main(["score", str(work / "r")]) == 0
    after = json.loads((work / "r" / "results.json").read_text("utf-8"))["benchmarks"][0]["metrics"]
    assert after == before
    exported = tmp_path / "exported"
    assert main(["export", str(work / "r"), "--format", "lm-eval", "-o", str(exported)]) == 0
    (samples,) = exported.rglob("samples_*.jsonl")
    row = json.loads(samples.read_text("utf-8").splitlines()[0])
    context = "Question: Capital of France?\nAnswer:"
    assert row["arguments"]["gen_args_1"] == {"arg_0": context, "arg_1": " Rome"}
    assert row["resps"][1][0] == [replies[0][1]["logprob"], replies[0][1].get("greedy", False)]
    report = (work / "r" / "report.html").read_text("utf-8")
    assert "Log-probabilities of the texts" in report
    assert f"{replies[0][0]['logprob']:.3f}" in report
    capsys.readouterr()
