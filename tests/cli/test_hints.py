"""A slip of the pen is told the name that is meant, and a line that can be pasted."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import Keju

SITTING = ("eval", "-m", "scripted", "--datasets", "demo", "--limit", "1", "-q", "--no-report")


@pytest.mark.parametrize(
    ("flag", "pasted"),
    [
        (("--subset", "word_sorting"), "--dataset-args 'demo.subset_list=[word_sorting]'"),
        (
            ("--subsets=word_sorting,dyck_languages",),
            "--dataset-args 'demo.subset_list=[word_sorting,dyck_languages]'",
        ),
        (
            ("--subset-list", "word_sorting", "dyck_languages"),
            "--dataset-args 'demo.subset_list=[word_sorting,dyck_languages]'",
        ),
        (("--shuffle", "true"), "--dataset-args demo.shuffle=true"),
        (("--temperature", "0.5"), "--generation-config temperature=0.5"),
    ],
)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_setting_inside_another_has_no_flag_and_is_told_the_line_that_sets_it(
    keju: Keju, flag: tuple[str, ...], pasted: str, language: str
) -> None:
    ran = keju("--language", language, *SITTING, *flag)
    assert (ran.code, pasted in ran.err) == (2, True), ran.err
    assert keju(*SITTING, "--dry-run", *shlex.split(pasted)).code == 0


def test_a_value_that_may_be_a_key_is_not_said_again(keju: Keju) -> None:
    ran = keju(*SITTING, "--api-key-var", "sk-secret")
    assert (ran.code, "sk-secret" in ran.err) == (2, False)
    assert "--judge api_key_var=VALUE" in ran.err


def test_other_tools_names_of_a_setting_inside_another(keju: Keju) -> None:
    ran = keju("eval", "-m", "scripted", "--datasets", "bbh", "--num-fewshot", "2")
    assert "--dataset-args bbh.few_shot_num=2;" in ran.err


def test_the_exam_of_a_look_is_its_argument(keju: Keju) -> None:
    ran = keju("stats", "demo", "--subset", "word_sorting")
    assert "--dataset-args 'demo.subset_list=[word_sorting]'" in ran.err


@pytest.mark.parametrize("name", ["demo:word_sorting", "multistep_arithmetic"])
def test_a_subset_in_place_of_an_exam_is_told_how_to_choose_it(keju: Keju, name: str) -> None:
    ran = keju("eval", "-m", "scripted", "--datasets", name)
    (line,) = re.findall(r"write (--datasets .*)", ran.err)
    ran = keju("eval", "-m", "scripted", "--dry-run", "--json", *shlex.split(line))
    assert ran.code == 0, ran.err
    assert [exam["subsets"] for exam in ran.json["benchmarks"]] == [1]


@pytest.mark.parametrize(
    ("model", "meant"),
    [
        ("embeded", "embedded"),
        ("Embedded", "embedded"),
        ("smollm2", "embedded"),
        ("smolm2", "embedded"),
        ("script", "scripted"),
        ("sonnet", "anthropic:sonnet"),
        ("antropic:opus", "anthropic:opus"),
        ("claude-sonnet-4-5", "anthropic:claude-sonnet-4-5"),
        ("gguff:small.gguf", "gguf:small.gguf"),
        ("small.gguf", "gguf:small.gguf"),
        ("checkpoint", "hf:checkpoint"),
    ],
)
def test_a_model_without_an_address_that_is_nearly_a_local_one(
    keju: Keju, tmp_path: Path, model: str, meant: str
) -> None:
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "config.json").write_text("{}")
    command = ("eval", "--datasets", "demo", "--dry-run", "--model", model)
    ran = keju(*command)
    assert (ran.code, f"did you mean '{meant}'?" in ran.err) == (2, True), ran.err
    assert "--api-url" in ran.err
    assert keju(*command, "--api-url", "http://127.0.0.1:1/v1").code == 0  # any name is one there


def test_a_model_that_is_like_none_here_needs_an_address(keju: Keju) -> None:
    ran = keju("eval", "--datasets", "demo", "--model", "qwen:7b")
    assert "model 'qwen:7b' needs the address of its endpoint" in ran.err


@pytest.mark.parametrize(
    ("argv", "meant"),
    [
        ((*SITTING, "--sample", "frist"), "first"),
        ((*SITTING, "--order", "randm"), "random"),
        ((*SITTING, "--tools", "pyton"), "python"),
        ((*SITTING, "--reader", "markr"), "marker"),
        ((*SITTING, "--protocol", "leters"), "letters"),
        (("eval", "-m", "scripted", "--datasets", "bhb"), "bbh"),
        (("list", "benchmark"), "benchmarks"),
        (("completion", "bsh"), "bash"),
        (("export", "r", "--format", "cvs"), "csv"),
        (("plot", "r", "--kind", "forst"), "forest"),
        (("model", "pull", "smolm2"), "smollm2"),
        (("eval", "-m", "replay:monda", "--datasets", "demo"), "monday"),
        (("score", "monda"), "monday"),
    ],
)
def test_a_name_out_of_a_list_is_told_the_nearest(
    keju: Keju, argv: tuple[str, ...], meant: str
) -> None:
    keju(*SITTING, "--run-id", "monday")
    ran = keju(*argv)
    assert (ran.code, f"did you mean '{meant}'?" in ran.err) == (2, True), ran.err
