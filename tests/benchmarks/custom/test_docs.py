"""The examples of the documentation work as they stand."""

from __future__ import annotations

import re

from tests.benchmarks.custom.conftest import Lay, prepare
from tests.conftest import REPOSITORY

PAGE = REPOSITORY / "docs" / "own-questions.md"


def block(kind: str) -> str:
    match = re.search(rf"```{kind}\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert match
    return match[1]


def test_the_documented_folder_is_an_exam(write_quiz: Lay) -> None:
    shots = block("json") * 2
    files = {
        "europe.csv": block("csv"),
        "few_shot.jsonl": shots.replace('"it"', '"a"', 1).replace(', "category": "europe"', ""),
        "exam.yaml": block("yaml"),
    }
    exam = prepare(write_quiz(files))
    assert exam.benchmark == "capitals"
    assert exam.protocol.max_tokens == 512
    system, question = exam.render(exam.samples[0]).messages
    assert system.content == "You are a geographer."
    assert question.content == (
        "Some examples:\n\n"
        + "\n\n".join(["Capital of Italy?\nA) Paris\nB) Rome\n\nANSWER: B"] * 2)
        + "\n\nCapital of France?\nA) Paris\nB) Rome\nC) Bonn"
    )
    plain = prepare(write_quiz(files), {"few_shot_num": 0})
    assert plain.render(plain.samples[1]).text.startswith("Capital of Peru? (america)\nA) Lima\n")
