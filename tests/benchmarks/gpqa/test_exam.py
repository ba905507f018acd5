"""GPQA on written rows: permutations, grading of permuted options, and private reports."""

from __future__ import annotations

import csv
import random
from pathlib import Path

import pytest

from keju import TaskConfig, run_task
from keju.benchmarks.gpqa.readers import FlexibleReader, StrictReader
from keju.benchmarks.prepare import prepare_exam
from keju.types import LABELS, Sample

ROWS = 198


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    columns = [
        "Question", "Correct Answer", "Incorrect Answer 1", "Incorrect Answer 2",
        "Incorrect Answer 3",
    ]  # fmt: skip
    (tmp_path / "gpqa").mkdir()
    with (tmp_path / "gpqa" / "gpqa_diamond.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        for n in range(ROWS):
            options = [f"right {n}", f"first {n}", f"second {n}", f"third {n}"]
            writer.writerow([f"Secret question {n}?", *options])
    return tmp_path


def test_the_permutations_are_those_of_simple_evals(folder: Path) -> None:
    """simple-evals draws for 198 questions times 4 repeats from one stream."""
    stream = random.Random(0)
    expected = [tuple(stream.sample(range(4), 4)) for _ in range(ROWS * 4)]
    exam, _ = prepare_exam("gpqa", data_dir=str(folder))
    assert [sample.order for sample in exam.samples] == expected
    for sample in exam.samples:
        assert sample.choices[LABELS.index(sample.target)].startswith("right ")
    assert exam.clustered
    assert len({sample.group for sample in exam.samples}) == ROWS


def test_a_part_of_the_repeats_keeps_its_permutations(folder: Path) -> None:
    whole, _ = prepare_exam("gpqa", data_dir=str(folder))
    once, _ = prepare_exam("gpqa", {"permutations": 1}, data_dir=str(folder))
    assert len(once.samples) == ROWS
    assert [s.choices for s in once.samples] == [s.choices for s in whole.samples[:ROWS]]


def test_the_order_of_inspect_is_a_shuffle_with_its_seed(folder: Path) -> None:
    stream, expected = random.Random(42), []
    for _ in range(ROWS):
        order = list(range(4))
        stream.shuffle(order)
        expected.append(tuple(order))
    exam, _ = prepare_exam("gpqa", data_dir=str(folder), protocol="inspect")
    assert [sample.order for sample in exam.samples] == expected


def test_reports_do_not_show_the_questions(folder: Path, tmp_path: Path) -> None:
    settings = TaskConfig(
        model="scripted", datasets=["gpqa"], data_dir=str(folder), limit=4,
        work_dir=str(tmp_path / "runs"), run_id="run",
    )  # fmt: skip
    run_task(settings, progress=False)
    page = (tmp_path / "runs" / "run" / "report.html").read_text("utf-8")
    assert "gpqa_diamond_0" in page
    assert "Secret question" not in page
    assert "right 0" not in page


@pytest.mark.parametrize(
    ("reply", "strict", "flexible"),
    [
        ("So. The answer is (B).", True, True),
        ("The answer is B. Sure.", False, None),
        ("First (A), then (B)", None, True),
        ("I choose beta", None, True),
        ("Final: B", None, True),
        ("Nothing", None, None),
    ],
)
def test_the_readers_of_lm_eval(reply: str, strict: bool | None, flexible: bool | None) -> None:
    sample = Sample(
        id="x", subset="diamond", index=0, text="", target="B",
        choices=("alpha", "beta", "gamma", "delta"),
    )  # fmt: skip
    for reader, expected in ((StrictReader(), strict), (FlexibleReader(), flexible)):
        answer = reader.read(reply, sample)
        right = None if answer.value is None else reader.matches(answer.value, sample)
        assert right is expected, reader.name
