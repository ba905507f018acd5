"""``keju fresh``: a folder of fresh questions in BBH's layout, which Keju itself reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Keju

pytestmark = pytest.mark.slow

ARGS = ("--subset", "boolean_expressions", "--subset", "word_sorting", "--seed", "7", "-n", "4")


def test_the_folder_has_the_published_layout(keju: Keju) -> None:
    ran = keju("fresh", *ARGS, "-o", "out", "--json")
    assert ran.code == 0, ran.err
    facts = ran.json
    assert (facts["seed"], facts["n"], facts["difficulty"], facts["lang"]) == (7, 4, 1.0, "en")
    written = sorted(str(path) for path in Path("out").rglob("*") if path.is_file())
    assert written == [
        "out/README.md",
        "out/answer_only_prompts.json",
        "out/bbh/boolean_expressions.json",
        "out/bbh/word_sorting.json",
        "out/cot-prompts/boolean_expressions.txt",
        "out/cot-prompts/word_sorting.txt",
        "out/fresh.json",
    ]
    table = json.loads(Path("out/bbh/word_sorting.json").read_text())
    assert [sorted(row) for row in table["examples"]] == [["input", "target"]] * 4
    lines = Path("out/cot-prompts/word_sorting.txt").read_text().splitlines()
    assert lines[1] == "-----"
    assert sum(line.startswith("Q: ") for line in lines) == 3
    prompts = json.loads(Path("out/answer_only_prompts.json").read_text())
    assert "step by step" not in prompts["word_sorting"]
    assert json.loads(Path("out/fresh.json").read_text())["sha256"] == facts["sha256"]


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["evalscope", "paper", "answer-only", "mcpbr"])
def test_keju_sits_the_folder_as_bbh_and_says_that_it_is_not(keju: Keju, protocol: str) -> None:
    assert keju("fresh", *ARGS, "-o", "out").code == 0
    words = ("--data-dir", "out", "--protocol", protocol, "--run-id", "one", "-q", "--json")
    ran = keju("eval", "-m", "scripted", "--datasets", "bbh", *words)
    assert ran.code == 0, ran.err
    entry = ran.json["benchmarks"][0]
    assert entry["n"] == 8
    assert entry["warnings"][0].startswith("fresh questions that Keju drew from seed 7")
    assert any("not the published files" in warning for warning in entry["warnings"])


def test_the_folder_and_the_benchmark_have_the_same_questions(keju: Keju) -> None:
    assert keju("fresh", *ARGS, "-o", "out").code == 0
    table = json.loads(Path("out/bbh/boolean_expressions.json").read_text())
    exam_args = {"seed": 7, "n": 4, "few_shot_num": 0, "subset_list": ["boolean_expressions"]}
    shown_exam = keju(
        "show", "fresh_bbh", "--dataset-args", json.dumps({"fresh_bbh": exam_args}), "--json"
    )
    assert table["examples"][0]["input"] in shown_exam.json["input"][0]["content"]


def test_fresh_questions_are_not_compared_with_others(keju: Keju) -> None:
    for seed in ("7", "8"):
        assert keju("fresh", *ARGS[:4], "--seed", seed, "-n", "4", "-o", seed).code == 0
        words = ("--data-dir", seed, "--run-id", f"run{seed}", "-q")
        assert keju("eval", "-m", "scripted", "--datasets", "bbh", *words).code == 0
    ran = keju("compare", "run7", "run8", "--json")
    assert (ran.code, ran.json["comparable"]) == (3, False)


def test_the_same_exam_may_be_written_again_and_nothing_else(keju: Keju) -> None:
    assert keju("fresh", *ARGS, "-o", "out").code == 0
    assert keju("fresh", *ARGS, "-o", "out").code == 0
    reseeded = keju("fresh", *ARGS[:4], "--seed", "8", "-n", "4", "-o", "out")
    assert reseeded.code == 2
    assert "belongs to something else" in reseeded.err
    Path("out/bbh/word_sorting.json").write_text("mine")
    edited = keju("fresh", *ARGS, "-o", "out")
    assert edited.code == 2
    assert "was changed since" in edited.err
    assert Path("out/bbh/word_sorting.json").read_text() == "mine"


def test_a_readme_of_somebody_else_stays(keju: Keju) -> None:
    Path("out").mkdir()
    Path("out/README.md").write_text("mine")
    ran = keju("fresh", *ARGS, "-o", "out")
    assert ran.code == 2
    assert [path.name for path in Path("out").iterdir()] == ["README.md"]


def test_chinese_questions_are_written_and_told_from_bbh(keju: Keju) -> None:
    ran = keju("fresh", "--subset", "boolean_expressions", "-n", "4", "--lang", "zh", "-o", "out")
    assert ran.code == 0
    assert "fresh_bbh" in ran.out
    refusal = keju("eval", "-m", "scripted", "--datasets", "bbh", "--data-dir", "out", "-q")
    assert refusal.code == 2
    assert "'zh'" in refusal.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--subset", "snarks"), "snarks"),
        (("--difficulty", "9"), "from 0.25 to 4"),
        (("--subset", "boolean_expressions", "-n", "100000"), "has only"),
        (("--subset", "word_sorting", "--lang", "zh"), "no 'word_sorting' in the language 'zh'"),
    ],
)
def test_what_there_is_not_is_refused(keju: Keju, words: tuple[str, ...], message: str) -> None:
    ran = keju("fresh", *words, "-o", "out")
    assert ran.code == 2
    assert message in ran.err
    assert not Path("out").exists()
