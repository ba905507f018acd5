"""Every reader of every exam takes time in proportion to the text.

Four times the text may cost at most ten times the processor time of one run: linear reading costs
four times as much, quadratic sixteen times. The smallest of several trials counts, so that a busy
machine does not matter, and what is too short to be measured passes.
"""

from __future__ import annotations

import gc
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keju.benchmarks.base import Exam, Reader
from keju.benchmarks.prepare import prepare_exam
from keju.types import Reply

pytestmark = pytest.mark.slow

SHORT, LONG = 8_000, 32_000
MOST_GROWTH = 10.0
UNNOTICED = 0.004
"""Seconds below which growth is noise."""
PIECES = (
    "So the answer is ", "the answer is: ", "answer is (", "ANSWER: ", "Answer：", "答案：", "答案是",
    "故选", "选项", "(A)", "A", "B or ", "、", "\\boxed{", "}", "<answer>", "</answer>", "<think>", "**",
    "1,000", "= -5", "[", "]", " ", "\n", "\n\nQ: ", "Question:", "not ", "I", "x",
)  # fmt: skip
EXAMS = ("bbh", "mmlu_pro", "ceval", "bixbench", "demo")


@pytest.fixture(scope="module")
def exams(data_dir: Path) -> dict[str, Exam]:
    return {name: prepare_exam(name, {}, data_dir=str(data_dir))[0] for name in EXAMS}


def seconds(exam: Exam, reader: Reader, text: str) -> float:
    """The least processor time of a few readings."""
    sample, reply, trials = exam.samples[0], Reply(text, finish="stop"), []
    for _ in range(3):
        started = time.process_time()
        exam.grade(reply, sample, reader)
        trials.append(time.process_time() - started)
    return min(trials)


def grows_linearly(exam: Exam, reader: Reader, piece: str) -> bool:
    """Whether a reply that repeats `piece` is read in linear time; measured anew if in doubt."""
    short, long = (piece * (length // len(piece)) for length in (SHORT, LONG))
    for _ in range(3):
        slow = seconds(exam, reader, long)
        if slow < UNNOTICED or slow <= MOST_GROWTH * seconds(exam, reader, short):
            return True
    return False


@pytest.mark.parametrize("name", EXAMS)
@settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(pieces=st.lists(st.sampled_from(PIECES), min_size=1, max_size=4))
def test_no_reader_takes_more_than_linear_time(
    name: str, pieces: list[str], exams: dict[str, Exam]
) -> None:
    exam, piece = exams[name], "".join(pieces)
    gc.disable()
    try:
        slow = [r.name for r in exam.readers.values() if not grows_linearly(exam, r, piece)]
    finally:
        gc.enable()
    assert slow == []
