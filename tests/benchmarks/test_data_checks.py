"""Faults in the questions of an exam that a plug-in makes."""

from __future__ import annotations

from typing import Any

import pytest

from keju.benchmarks.data_checks import check_samples
from keju.types import Sample


def sample(number: int, text: str, target: str = "A", **fields: Any) -> Sample:
    choices = fields.pop("choices", ("red", "green"))
    return Sample(
        id=f"q{number}", subset="all", index=number, text=text, target=target, choices=choices,
        **fields,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("samples", "shots", "expected"),
    [
        ([sample(0, "Which?"), sample(1, "Which one?", "B")], [], {}),
        ([sample(0, "Which?"), sample(1, "Which?")], [], {}),
        ([sample(0, "Which?"), sample(1, "Which?", "B")], [], {"two_right_answers": ("q1", "q0")}),
        (
            [sample(0, "Which?", "A", metadata={"passage": "one"}),
             sample(1, "Which?", "B", metadata={"passage": "two"})],
            [sample(2, "Which?", metadata={"passage": "three"})],
            {},
        ),
        (
            [sample(0, "Which?", "(B)", choices=("red", "green", "green "))],
            [],
            {"right_option_twice": ("q0", "B, C")},
        ),
        ([sample(0, "Which?", "A", choices=("red", "green", "green"))], [], {}),
        (
            [sample(0, "Which?"), sample(1, "Why?")],
            [sample(0, " Why?\n", metadata={"explanation": "So."})],
            {"shots_are_questions": ("q1", "")},
        ),
    ],
)  # fmt: skip
def test_faults_of_questions(
    samples: list[Sample], shots: list[Sample], expected: dict[str, tuple[str, str]]
) -> None:
    notices = check_samples("mine", samples, shots)
    assert {n.code: (n.values["where"], n.values["other"]) for n in notices} == expected
    assert all(n.values["n"] == 1 and n.text("zh") != n.text("en") for n in notices)
