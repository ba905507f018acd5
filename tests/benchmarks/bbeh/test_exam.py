"""BBEH: the authors' rule on 500 written pairs, their means, and both sets of questions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from keju.benchmarks.bbeh.readers import is_equal, normalise_prediction, normalise_target
from keju.benchmarks.prepare import prepare_exam

PAIRS = Path(__file__).with_name("pairs.jsonl")
"""Reply, target and the verdict of the authors' evaluate.py, recorded once."""


def read_pairs() -> list[tuple[str, str, bool]]:
    return [tuple(json.loads(line)) for line in PAIRS.read_text("utf-8").splitlines()]


def test_the_rule_is_that_of_the_authors() -> None:
    pairs = read_pairs()
    assert len(pairs) == 500
    assert 150 < sum(verdict for _, _, verdict in pairs) < 350
    different = [
        (reply, target, verdict)
        for reply, target, verdict in pairs
        if is_equal(normalise_prediction(reply), normalise_target(target)) is not verdict
    ]
    assert different == []


def test_the_full_set_has_its_tasks_and_rows(data_dir: Path) -> None:
    exam, _ = prepare_exam("bbeh", data_dir=str(data_dir))
    assert len(exam.samples) == 4520
    assert len(exam.subsets) == 23
    assert exam.warnings == ()
    assert exam.protocol.headline == "harmonic_mean"
    text = exam.render(exam.samples[0]).text
    assert text.startswith(exam.samples[0].text)
    assert text.endswith('For example, "The answer is: (a)".')


def test_the_mini_set_is_in_the_folder_of_the_full_one(data_dir: Path) -> None:
    exam, _ = prepare_exam("bbeh_mini", data_dir=str(data_dir))
    assert len(exam.samples) == 460
    alone, _ = prepare_exam("bbeh_mini", {"local_path": str(data_dir / "bbeh" / "mini")})
    assert [sample.text for sample in alone.samples] == [sample.text for sample in exam.samples]


@pytest.mark.parametrize(
    ("reply", "target"),
    [
        ("The answer is: no, yes, no", "no, yes, no"),
        ("So the final answer is **(B)**.", "(B)"),
        ("Reasons.\n\nThe answer is 25", "25.0"),
    ],
)
def test_robust_compares_as_the_authors_do(reply: str, target: str, data_dir: Path) -> None:
    exam, _ = prepare_exam("bbeh_mini", data_dir=str(data_dir))
    reader = exam.readers["robust"]
    answer = reader.read(reply, exam.samples[0])
    assert answer.value is not None
    sample = type(exam.samples[0])(id="x", subset="all", index=0, text="", target=target)
    assert reader.matches(answer.value, sample)
