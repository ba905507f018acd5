"""Flags that select a rarely used command, words of newcomers, and names that mean two things."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from keju.cli import FORMS, OTHER_WORDS
from keju.cli.view import _comparison_page, _find_runs
from keju.errors import UsageError
from tests.cli.conftest import Keju

DEMO = ("eval", "-m", "scripted", "--datasets", "demo", "--limit", "2", "-q")


@pytest.mark.parametrize(
    ("form", "command"),
    [
        ("show demo --lengths --json", "stats demo --json"),
        ("show --lengths demo", "stats demo"),
        ("show demo --prompts -o out --json", "prompts demo -o out --json"),
        ("compare a b --why --json", "diff a b --json"),
        ("compare --modes a b", "modes a b"),
        ("view --terminal --once --json", "watch --once --json"),
        ("doctor --verify", "verify"),
        ("compare --why --help", "diff --help"),
    ],
)
def test_a_form_is_the_hidden_command(keju: Keju, form: str, command: str) -> None:
    for name in ("a", "b"):
        assert keju(*DEMO, "--run-id", name).code == 0
    assert keju(*form.split()) == keju(*command.split())


def test_every_form_is_in_the_help_of_its_command(keju: Keju) -> None:
    for command, flag in FORMS:
        assert f"│ {flag} " in keju(command, "--help").out


@pytest.mark.parametrize("word", OTHER_WORDS)
def test_a_word_of_newcomers_names_the_command(keju: Keju, word: str) -> None:
    ran = keju(word)
    assert (ran.code, f"type: keju {OTHER_WORDS[word]}" in ran.err) == (2, True)
    assert "请输入：keju" in keju("--language", "zh", word).err


def test_help_of_a_command_in_two_orders(keju: Keju) -> None:
    assert keju("help", "gate").out == keju("gate", "--help").out


def test_an_exam_wins_over_a_run_of_its_name_and_says_so(keju: Keju) -> None:
    assert keju(*DEMO, "--run-id", "demo").code == 0
    ran = keju("show", "demo")
    assert (ran.code, "(demo, protocol text)" in ran.out) == (0, True)
    assert "'demo' is an exam and a run; this is the exam" in ran.err
    assert "keju show runs/demo" in ran.err
    assert "12 replies" in keju("show", "./runs/demo").out


def test_view_of_two_runs_opens_their_comparison(keju: Keju) -> None:
    for name in ("a", "b"):
        assert keju(*DEMO, "--run-id", name).code == 0
    place, names = _find_runs(["a", "b"], None)
    assert (place, names) == (Path("runs").absolute(), ["a", "b"])
    page = _comparison_page("http://127.0.0.1:9/?token=t", names)
    assert page == "http://127.0.0.1:9/compare?token=t&run=a&run=b"
    assert _find_runs(["a"], None) == (Path("runs/a"), [])
    Path("runs/b").rename("elsewhere")
    with pytest.raises(UsageError, match=r"keju compare a \./elsewhere -o compare\.html"):
        _find_runs(["a", "./elsewhere"], None)


def test_documents_of_hidden_commands_keep_their_keys(keju: Keju) -> None:
    document = json.loads(keju("stats", "demo", "--json").out)
    assert set(document) == {"name", "protocol", "total", "subsets"}
