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
}
"""Of 50 questions of seed 1 at three difficulties each, version 1 of the generators."""


@pytest.mark.parametrize("subset", DIGESTS)
def test_a_seed_gives_the_questions_that_it_always_gave(subset: str) -> None:
    digest = hashlib.sha256()
    for difficulty in (0.5, 1.0, 3.0):
        for question in make_questions(TASKS[subset], 50, seed=1, difficulty=difficulty):
            digest.update(f"{question.text}\0{question.target}\0".encode())
    assert (VERSION, digest.hexdigest()[:16]) == (1, DIGESTS[subset])
