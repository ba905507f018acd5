"""Agentic mode as the exam declares it: prompts, settings, and what an answer must be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from keju.benchmarks.metadata import NotebookTask
from keju.errors import ConfigError
from tests.benchmarks.bixbench.conftest import Prepare

AGENTIC = {"mode": "agentic"}


def task_of(exam: Any) -> NotebookTask:
    assert exam.notebook is not None
    return exam.notebook  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("settings", "system", "prompt_parts"),
    [
        ({}, "Multiple Choice Questions", ("<questions>\nWhat is bix-1-q1?\n(A) ", "letter")),
        ({"answer_mode": "open"}, "open-ended questions", ("What is bix-1-q1?\n</questions>",)),
        (
            {"question_source": "hypothesis", "answer_mode": "open"},
            "supports the hypothesis",
            ("<hypothesis>\nHypothesis of bix-1.\n</hypothesis>", '"True" or "False"'),
        ),
    ],
)
def test_the_prompt_has_the_question_the_steps_and_the_guidelines(
    prepare: Prepare, settings: dict[str, Any], system: str, prompt_parts: tuple[str, ...]
) -> None:
    exam = prepare(**AGENTIC, **settings)
    system_message, user_message = exam.render(exam.samples[0]).messages
    assert (system_message.role, user_message.role) == ("system", "user")
    assert system in system_message.content
    for part in (
        *prompt_parts,
        "1. Load Data and Perform Descriptive Statistics:",
        "4. Conclude and Submit Answer:",
        "Use the submit_answer tool",
        "All cells are by default Python cells.",
        "You can only create code cells",
        "AVOID USING PLOTS/IMAGES.",
        "if (!requireNamespace(",
    ):
        assert part in user_message.content
    assert "{language}" not in user_message.content
    assert exam.protocol.name == "agentic"
    assert exam.protocol.temperature == 1.0


def test_the_task_holds_what_the_settings_ask_for(prepare: Prepare) -> None:
    task = task_of(prepare(**AGENTIC))
    assert (task.max_turns, task.cell_timeout, task.image, task.images) == (10, None, "", False)
    settings = {"max_turns": 3, "docker_timeout": 7, "images": True, "rerun_all": True}
    exam = prepare(**AGENTIC, **settings, enable_agentic_docker=True, docker_image="mine:1")
    task = task_of(exam)
    assert (task.max_turns, task.cell_timeout, task.image) == (3, 7, "mine:1")
    assert (task.images, task.rerun_all) == (True, True)
    assert exam.settings["max_turns"] == 3
    assert "AVOID USING" not in exam.render(exam.samples[0]).text
    assert prepare().notebook is None
    in_r = prepare(**AGENTIC, language="r")
    assert (task.language, task_of(in_r).language) == ("python", "r")
    prompt_text = in_r.render(in_r.samples[0]).text
    assert "All cells are by default R cells" in prompt_text
    assert "Python" not in prompt_text


@pytest.mark.parametrize(
    "settings", [{"mode": "agentic", "protocol": "official"}, {"protocol": "agentic"}]
)
def test_mode_and_protocol_must_fit(prepare: Prepare, settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="does not go with mode"):
        prepare(**settings)


def test_capsules_are_looked_for_when_the_run_begins(prepare: Prepare, tmp_path: Path) -> None:
    exam = prepare(**AGENTIC)  # an exam whose capsules are gone can still be scored
    with pytest.raises(ConfigError, match="keju data pull bixbench --capsules"):
        task_of(exam).check(exam.samples)
    for short in ("bix-1", "bix-2"):
        (tmp_path / "own" / short / "Data").mkdir(parents=True)
        (tmp_path / "own" / short / "Data" / "rows.csv").write_text(short)
    exam = prepare(**AGENTIC, capsule_dir=str(tmp_path / "own"))
    task_of(exam).check(exam.samples)
    work = tmp_path / "work"
    work.mkdir()
    facts = task_of(exam).prepare(exam.samples[-1], work)
    assert (work / "rows.csv").read_text() == "bix-2"
    assert facts["files"] == 1


@pytest.mark.parametrize(
    ("settings", "good", "bad"),
    [
        ({}, ["A", "(d)", "B) whatever", " c. ", "0.0002"], ["", "E", "maybe", "42", "Ab initio"]),
        ({"answer_mode": "open"}, ["0.0002", "anything at all"], ["", " "]),
        (
            {"question_source": "hypothesis", "answer_mode": "open"},
            ["True", "false", '"False".'],
            ["yes", "", "A"],
        ),
    ],
)
def test_an_answer_of_the_wrong_form_is_objected_to(
    prepare: Prepare, settings: dict[str, Any], good: list[str], bad: list[str]
) -> None:
    exam = prepare(**AGENTIC, **settings)
    objection = task_of(exam).objection
    assert [objection(exam.samples[0], answer) for answer in good] == [None] * len(good)
    assert all(objection(exam.samples[0], answer) for answer in bad)
