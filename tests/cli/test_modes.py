"""``keju modes``: two C-Eval runs side by side, and the hint that leads to it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from keju.models.scripted import ScriptedModel
from keju.runs.journal import FILE
from keju.types import Request
from tests.cli.conftest import Keju, Ran

STEM = '["computer_network", "operating_system"]'


@pytest.fixture
def evaluate(keju: Keju, data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    """Sit two subjects of C-Eval; with a chain of thought everything is answered C, else A."""

    def run(mode: str, *flags: str, subjects: str = STEM, name: str = "", extra: str = "") -> Ran:
        def answer(request: Request) -> str:
            return f"答案：{'C' if mode == 'cot' else 'A'}"

        monkeypatch.setattr("keju.task.make_model", lambda _: ScriptedModel(script=answer))
        mode_args = f'"mode": "{mode}", "subset_list": {subjects}, "form": "chat"{extra}'
        args = f'{{"ceval": {{{mode_args}}}}}'
        return keju(
            "eval", "-m", "scripted", "--datasets", "ceval", "-q", "--no-report", "--run-id", name or mode,
            "--protocol", "official", "--dataset-args", args, "--data-dir", str(data_dir), *flags,
        )  # fmt: skip

    return run


def test_both_modes_stand_side_by_side(keju: Keju, evaluate: object) -> None:
    assert callable(evaluate)
    direct_run = evaluate("answer-only")
    assert direct_run.code == 0, direct_run.err
    assert "keju modes" not in direct_run.out
    reasoned_run = evaluate("cot")
    assert reasoned_run.code == 0, reasoned_run.err
    assert reasoned_run.out.splitlines()[-1] == "  keju modes answer-only cot"
    ran = keju("modes", "answer-only", "cot", "--json")
    assert [row["subject"] for row in ran.json["subjects"]] == [
        "computer_network",
        "operating_system",
    ]
    for row in ran.json["subjects"]:
        assert row["difference"] == pytest.approx(row["cot"] - row["answer_only"])
        assert row["ci95"][0] < row["difference"] < row["ci95"][1]
        assert row["title"] in ("计算机网络", "操作系统")
    assert ran.json["overall"]["n"] == sum(row["n"] for row in ran.json["subjects"]) == 38
    text = keju("modes", "answer-only", "cot").out
    assert "computer_network" in text
    assert "计算机网络" in text
    assert "reasoned" in text


def test_categories_are_compared_where_both_runs_have_them(keju: Keju, evaluate: object) -> None:
    assert callable(evaluate)
    for mode in ("answer-only", "cot"):
        assert evaluate(mode, "--limit", "1", subjects="null").code == 0
    ran = keju("modes", "answer-only", "cot", "--json")
    assert len(ran.json["subjects"]) == 52
    names = [row["subject"] for row in ran.json["categories"]]
    assert names == ["STEM", "Social Science", "Humanities", "Other", "hard"]
    lines = [
        line.split()[0] for line in keju("modes", "answer-only", "cot").out.splitlines() if line
    ]
    assert lines.index("STEM") < lines.index("computer_network")


def test_runs_that_do_not_fit_are_refused(keju: Keju, evaluate: object) -> None:
    assert callable(evaluate)
    evaluate("answer-only")
    error = keju("modes", "answer-only", "answer-only").err
    assert "has ceval in mode answer-only, not cot" in error
    keju("eval", "-m", "scripted", "--datasets", "demo", "-q", "--run-id", "d")
    assert "run 'd' does not include ceval" in keju("modes", "d", "answer-only").err
    assert "no run 'absent'" in keju("modes", "absent", "d").err
    assert " is missing; for example: keju " in keju("modes", "d").err


@pytest.mark.parametrize(
    ("extra", "field"),
    [
        (', "few_shot_num": 0', "few_shot_num is 5 in the first and 0 in the second"),
        (', "shuffle_choices": true', "shuffle_choices is False in the first and True"),
        (', "shuffle": true', "shuffle is False in the first and True"),
        (', "split": "test"', "split is 'val' in the first and 'test' in the second"),
    ],
)
def test_unlike_runs_are_neither_compared_nor_proposed(
    keju: Keju, evaluate: object, extra: str, field: str
) -> None:
    assert callable(evaluate)
    evaluate("answer-only")
    reasoned_run = evaluate("cot", extra=extra)
    assert reasoned_run.code == 0, reasoned_run.err
    assert "keju modes" not in reasoned_run.out
    ran = keju("modes", "answer-only", "cot")
    assert (ran.code, field in ran.err) == (2, True), ran.err


def test_scores_are_those_that_score_gives(keju: Keju, evaluate: object) -> None:
    """Lines as version 0.1 wrote them, whose replies say otherwise than their scores."""
    assert callable(evaluate)
    for mode in ("answer-only", "cot"):
        assert evaluate(mode).code == 0
    before = keju("modes", "answer-only", "cot", "--json").json["overall"]["answer_only"]
    journal = Path("runs", "answer-only", FILE)
    lines = [line.rpartition(b',"crc":')[0] for line in journal.read_bytes().splitlines()]
    edited = [
        re.sub(rb'"label_logprobs":{"A":[^,]*', rb'"label_logprobs":{"A":0', x) for x in lines
    ]
    journal.write_bytes(b"".join(line + b"}\n" for line in edited))
    now = keju("modes", "answer-only", "cot", "--json").json["overall"]["answer_only"]
    (entry,) = keju("score", "answer-only", "--json").json["benchmarks"]
    assert now == pytest.approx(entry["metrics"]["accuracy"]["value"])
    assert now != before


def test_only_shared_questions_are_compared(keju: Keju, evaluate: object) -> None:
    assert callable(evaluate)
    evaluate("answer-only", "--limit", "3")
    reasoned_run = evaluate("cot", "--limit", "2")
    assert "keju modes" in reasoned_run.out
    document = keju("modes", "answer-only", "cot", "--json").json
    assert [row["n"] for row in document["subjects"]] == [2, 2]
    assert document["overall"]["n"] == 4


def test_replies_that_nobody_can_read_are_told(
    keju: Keju, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mute = ScriptedModel(script=lambda _: "我不知道。")
    monkeypatch.setattr("keju.task.make_model", lambda _: mute)
    for mode in ("answer-only", "cot"):
        args = f'{{"ceval": {{"mode": "{mode}", "subset_list": {STEM}, "form": "chat"}}}}'
        ran = keju(
            "eval", "-m", "scripted", "--datasets", "ceval", "-q", "--no-report", "--run-id", mode,
            "--protocol", "official", "--dataset-args", args, "--data-dir", str(data_dir),
        )  # fmt: skip
        assert ran.code == 0, ran.err
    output = keju("modes", "answer-only", "cot").out
    assert "warning: 38 of 38 replies (100.00 %) of run 'cot' hold no answer" in output
    codes = [n["code"] for n in keju("modes", "answer-only", "cot", "--json").json["notices"]]
    assert "modes_unread" in codes
