"""Readers that disagree speak up, in eval and in score, with the command that lists the replies."""

from __future__ import annotations

import gzip
import json
import re
import shlex
from pathlib import Path

import pytest

from keju.benchmarks.demo import DEMO
from keju.benchmarks.prepare import prepare_exam
from keju.models.scripted import ScriptedModel
from keju.types import Request
from tests.cli.conftest import Keju

BBH = ("--datasets", "bbh", "--protocol", "paper")


def predictions(folder: Path, data_dir: Path, bare: int) -> Path:
    """Forty right answers of snarks; `bare` of them in a form that the paper's reader misses."""
    exam, _ = prepare_exam("bbh", {"subset_list": ["snarks"]}, data_dir=str(data_dir))
    path = folder / "p.jsonl"
    rows = []
    for index, sample in enumerate(exam.samples[:40]):
        words = "The correct option is ({}), I think." if index < bare else "So the answer is ({})."
        text = words.format(sample.target.strip("()"))
        rows.append(json.dumps({"subset": "snarks", "index": index, "output": text}))
    path.write_text("\n".join(rows))
    return path


@pytest.mark.parametrize("bare", [0, 12])
def test_score_says_when_the_reader_makes_the_score(
    keju: Keju, tmp_path: Path, data_dir: Path, bare: int
) -> None:
    path = predictions(tmp_path, data_dir, bare)
    argv = ("score", *BBH, "--predictions", str(path), "--data-dir", str(data_dir))
    (entry,) = keju(*argv, "--json").json["benchmarks"]
    notices = {notice["code"]: notice["values"] for notice in entry["notices"]}
    if not bare:
        assert "readers_apart" not in notices
        return
    notice_values = notices["readers_apart"]
    assert (notice_values["first_only"], notice_values["second_only"], notice_values["whole"]) == (
        0,
        bare,
        40,
    )
    assert notice_values["p"] == pytest.approx(2 / 2**bare)
    assert notice_values["points"] == pytest.approx(-100 * bare / 40)
    assert f"only 'robust' {bare}" in keju(*argv).out
    two_readers = keju(*argv, "--reader", f"{notice_values['reader']},robust", "--json").json
    assert len(two_readers["disagreements"]) == bare
    assert any(n["code"] == "readers_apart" for n in two_readers["benchmarks"][0]["notices"])


def test_one_reader_that_is_asked_for_has_the_other_beside_it(
    keju: Keju, tmp_path: Path, data_dir: Path
) -> None:
    path = predictions(tmp_path, data_dir, 12)
    argv = ("score", *BBH, "--predictions", str(path), "--data-dir", str(data_dir))
    (entry,) = keju(*argv, "--reader", "paper", "--json").json["benchmarks"]
    assert "readers_apart" in {notice["code"] for notice in entry["notices"]}
    assert entry["metrics"]["accuracy_robust"]["value"] == 1
    (alone,) = keju(*argv, "--reader", "robust", "--json").json["benchmarks"]
    assert "accuracy_robust" not in alone["metrics"]


def test_a_reader_of_another_protocol_is_no_reason_to_warn(
    keju: Keju, tmp_path: Path, data_dir: Path
) -> None:
    golden = data_dir / "golden" / "bbh" / "code-davinci-002_cot_predictions.jsonl.gz"
    if not golden.exists():
        pytest.skip("the recorded replies are not here")
    with gzip.open(golden, "rt", encoding="utf-8") as lines:
        replies = [line for line in lines if '"snarks"' in line]
    path = tmp_path / "p.jsonl"
    path.write_text("".join(replies), "utf-8")
    settings = ("--dataset-args", json.dumps({"bbh": {"subset_list": ["snarks"]}}))
    argv = ("score", *BBH, *settings, "--predictions", str(path), "--data-dir", str(data_dir))
    ran = keju(*argv, "--reader", "paper,answer-only", "--json").json
    right, wrong = (entry["metrics"]["accuracy"]["value"] for entry in ran["benchmarks"])
    assert right - wrong > 0.5
    assert all(n["code"] != "readers_apart" for e in ran["benchmarks"] for n in e["notices"])
    # The other way round the headline is of the reader that does not fit.
    ran = keju(*argv, "--reader", "answer-only,paper", "--json").json
    assert any(n["code"] == "readers_apart" for n in ran["benchmarks"][0]["notices"])


def test_all_replies_that_make_the_difference_are_listed(
    keju: Keju, tmp_path: Path, data_dir: Path
) -> None:
    """Not the first twenty, and not those that both readers find wrong in another way."""
    path = predictions(tmp_path, data_dir, 30)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows[:4]:
        row["output"] = "I cannot say."  # incorrect by one reader, unparsed by the other
    path.write_text("\n".join(map(json.dumps, rows)))
    argv = ("score", *BBH, "--predictions", str(path), "--data-dir", str(data_dir))
    output = keju(*argv, "--reader", "paper,robust").out
    ids = [line.split()[0] for line in output.splitlines() if line.startswith("bbh_snarks_")]
    assert ids == [f"bbh_snarks_{index}" for index in range(4, 30)]
    document = keju(*argv, "--reader", "paper,robust", "--json").json
    assert [row["id"] for row in document["disagreements"]][:26] == ids


def test_eval_says_so_and_its_command_lists_them(
    keju: Keju, monkeypatch: pytest.MonkeyPatch, data_dir: Path
) -> None:
    def answer(request: Request) -> str:
        return "The correct option is (A), I think."

    monkeypatch.setattr("keju.task.make_model", lambda _: ScriptedModel(script=answer))
    ran = keju(
        "eval", "-m", "scripted", *BBH, "--limit", "40", "-q", "--run-id", "r",
        "--dataset-args", '{"bbh": {"subset_list": ["snarks"]}}', "--data-dir", str(data_dir),
    )  # fmt: skip
    assert ran.code == 0, ran.err
    (line,) = [line for line in ran.out.splitlines() if "depends on the reader" in line]
    command = line.partition("): ")[2].removesuffix(" lists them").replace("RUN", "r")
    listing = keju(*shlex.split(command)[1:])
    assert listing.code == 0
    assert "The readers disagree on" in listing.out
    assert keju("report", "r", "--language", "zh", "-o", "zh.html").code == 0
    assert "得分取决于答案提取器" in Path("zh.html").read_text("utf-8")


def test_the_demo_has_two_readers_like_every_other_exam(
    keju: Keju, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And is compared with runs of the time when it had one."""

    def answer(request: Request) -> str:
        return "The correct option is (A).\nI am sure of it."

    monkeypatch.setattr("keju.task.make_model", lambda _: ScriptedModel(script=answer))
    run = ("eval", "-m", "scripted", "--datasets", "demo", "--limit", "4", "--json")
    with monkeypatch.context() as before:
        before.delitem(DEMO.readers, "robust")
        (old,) = keju(*run, "--run-id", "old").json["benchmarks"]
    assert not [name for name in old["metrics"] if name.startswith("accuracy_r")]
    (entry,) = keju(*run, "--run-id", "new").json["benchmarks"]
    assert entry["reader"] == "marker"
    assert entry["metrics"]["accuracy"] == old["metrics"]["accuracy"]
    assert entry["metrics"]["accuracy_robust"]["value"] > entry["metrics"]["accuracy"]["value"]
    assert "keju score new --reader marker,robust lists them" in keju("score", "new").out
    assert len(keju("score", "new", "--reader", "marker,robust", "--json").json["disagreements"])
    compared = keju("compare", "old", "new", "--json")
    assert (compared.code, compared.err) == (0, "")
    assert keju("score", "old", "--json").json["benchmarks"][0]["metrics"] == entry["metrics"]


def test_one_exam_of_a_run_is_read_by_its_own_readers(
    keju: Keju, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its name in the run or by its path; where others lack the readers, the line says how."""

    def answer(request: Request) -> str:
        return "The correct option is (A).\nI am sure of it."

    monkeypatch.setattr("keju.task.make_model", lambda _: ScriptedModel(script=answer))
    (tmp_path / "geo.csv").write_text("question,A,B,answer\nCapital of Italy?,Rome,Paris,A\n")
    (tmp_path / "free.csv").write_text("question,answer\nCapital of Spain?,Madrid\n")
    exam_flags = ("--datasets", "./geo.csv", "./free.csv", "demo", "--limit", "4")
    ran = keju("eval", "-m", "scripted", *exam_flags, "-q", "--run-id", "r")
    refusal = keju("score", "r", "--reader", "letter,robust")
    assert refusal.code == 2
    command = "keju score r --datasets geo --reader letter,robust"
    assert refusal.err.rstrip().endswith(command)
    for name in ("geo", "./geo.csv"):
        read = keju("score", "r", "--datasets", name, "--reader", "letter,robust", "--json").json
        names = [(entry["name"], entry["reader"]) for entry in read["benchmarks"]]
        assert names == [("geo", "letter"), ("geo", "robust")]
        assert keju("audit", "r", "--datasets", name).code == 0
        assert keju("compare", "r", "r", "--datasets", name).code == 0
    wrong_name = keju("score", "r", "--datasets", "goe")
    assert (wrong_name.code, "geo, free, demo" in wrong_name.err) == (2, True)
    # What a result of one exam tells to type does not stumble over the others.
    (line,) = [line for line in ran.out.splitlines() if "depends on the reader" in line]
    command_line = line.partition("): ")[2].removesuffix(" lists them")
    assert command_line == "keju score r --datasets demo --reader marker,robust"
    assert keju(*shlex.split(command_line)[1:]).code == 0


def test_the_reader_of_letters_is_said_to_be_the_rule_of_robust(keju: Keju, tmp_path: Path) -> None:
    (tmp_path / "geo.csv").write_text("question,A,B,answer\nCapital of Italy?,Rome,Paris,A\n")
    for language, words in (("en", "the rule of robust"), ("zh", "robust 对选项的规则")):
        reader_table = keju(
            "list", "readers", "--benchmark", "./geo.csv", "--language", language
        ).out
        (line,) = [
            line
            for line in reader_table.splitlines()
            if line.startswith("geo ") and " letter " in line[:20]
        ]
        assert words in line


def test_a_letter_with_another_options_text_is_not_told_as_a_lack_of_a_marker(
    keju: Keju, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(request: Request) -> str:
        return f"(A) {re.findall(r'[(]B[)] (.+)', request.prompt.tail)[-1]}"

    monkeypatch.setattr("keju.task.make_model", lambda _: ScriptedModel(script=answer))
    chosen = ("--dataset-args", "demo.subset_list=[multistep_arithmetic]", "--limit", "1")
    keju("eval", "-m", "scripted", "--datasets", "demo", *chosen, "-q", "--run-id", "r")
    output = keju("show", "r", "--sample", "demo_multistep_arithmetic_0").out
    (line,) = [line for line in output.splitlines() if line.startswith("marker:")]
    assert "a letter and another option's text" in line


def test_a_published_rule_says_that_think_blocks_were_removed(
    keju: Keju, tmp_path: Path, data_dir: Path
) -> None:
    exam, _ = prepare_exam("bbh", {"subset_list": ["snarks"]}, data_dir=str(data_dir))
    rows = [
        {"subset": "snarks", "index": index, "output": f"<think>Hm.</think>{sample.target}"}
        for index, sample in enumerate(exam.samples[:40])
    ]
    path = tmp_path / "p.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    exam_flags = ("--datasets", "bbh", "--protocol", "answer-only")
    argv = ("score", *exam_flags, "--predictions", str(path), "--data-dir", str(data_dir))
    (entry,) = keju(*argv, "--json").json["benchmarks"]
    notice_values = {notice["code"]: notice["values"] for notice in entry["notices"]}[
        "thinking_cut"
    ]
    assert notice_values == {"replies": 40, "reader": "answer-only"}
    assert "--reader answer-only@raw" in keju(*argv).out
    (raw,) = keju(*argv, "--reader", "answer-only@raw", "--json").json["benchmarks"]
    assert "thinking_cut" not in {notice["code"] for notice in raw["notices"]}
    # the script of the authors compares the whole text, think block and all
    assert (entry["metrics"]["accuracy"]["value"], raw["metrics"]["accuracy"]["value"]) == (1, 0)
