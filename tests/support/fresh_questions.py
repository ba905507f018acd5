"""Questions of fresh exams by seed and difficulty."""

from __future__ import annotations

import random

from hypothesis import strategies as st

from keju.benchmarks.fresh.task import FreshQuestion, FreshTask

SEEDS = st.integers(0, 2**32)


DIFFICULTIES = st.floats(0.25, 4)


def question_of(task: FreshTask, seed: int, difficulty: float) -> FreshQuestion:
    """A question of a task, drawn from a seed."""
    return task.write(task.invent(random.Random(seed), difficulty), "en")
