"""The same seed gives the same questions, on every machine and in every version of Python.

A change that gives others raises `VERSION`, and the digests here follow it.
"""

from __future__ import annotations

import hashlib

import pytest

from keju.benchmarks.fresh.making import VERSION, make_questions
from keju.benchmarks.fresh.tasks import TASKS

DIGESTS = {
    "word_sorting": "2b9d6478e86c6aae",
    "temporal_sequences": "89ac1b980016ad62",
    "reasoning_about_colored_objects": "189f73aa946af162",
    "penguins_in_a_table": "7621118f1bf4fe18",
    "geometric_shapes": "b205558b31b25a82",
    "hyperbaton": "608d5d2b4b07e8a7",
    "formal_fallacies": "22f0cc97a2199d2b",
    "date_understanding": "81e60374646b5dd3",
    "tracking_shuffled_objects_three_objects": "39ea09deaf8f1b7e",
    "tracking_shuffled_objects_seven_objects": "ef5b53295dda7f59",
    "tracking_shuffled_objects_five_objects": "d4985960117b4aca",
    "logical_deduction_three_objects": "4bde1b2bb3243435",
    "logical_deduction_five_objects": "ce80a79ef34ffd72",
    "logical_deduction_seven_objects": "e49bf1bd05ef2c95",
    "multistep_arithmetic_two": "1a8c3c11d7a2bd07",
    "navigate": "d164acf7e8048f6f",
    "dyck_languages": "f8c00ad33fd2b75f",
    "boolean_expressions": "a9b7a42a7901fb5d",
    "object_counting": "3acf9fedb96178d3",
    "web_of_lies": "d8c9e0630e80d71a",
}
"""Of 50 questions of seed 1 at three difficulties in each language, generators of version 1."""


@pytest.mark.parametrize("subset", TASKS)
def test_a_seed_gives_the_questions_that_it_always_gave(subset: str) -> None:
    task, digest = TASKS[subset], hashlib.sha256()
    for difficulty in (0.5, 1.0, 3.0):
        n = min(50, task.space(difficulty) or 50)
        for language in task.languages:
            for question in make_questions(
                task, n, seed=1, difficulty=difficulty, language=language
            ):
                digest.update(f"{question.text}\0{question.target}\0".encode())
    assert (VERSION, digest.hexdigest()[:16]) == (1, DIGESTS[subset])
