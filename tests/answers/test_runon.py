"""A model that invents further questions is cut there."""

from __future__ import annotations

import pytest

from keju.answers.runon import cut_run_on


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("B.\n\nQ: Next?\nA: C", ("B.\n", True)),
        ("B.\nQ: Next?\n\nQ: And?", ("B.", True)),
        ("B. Q: not at the start of a line", ("B. Q: not at the start of a line", False)),
        ("Q: repeated question\nA: B", ("Q: repeated question\nA: B", False)),
        ("\n\nQ: repeated question\nA: B", ("\n\nQ: repeated question\nA: B", False)),
        ("Q: repeated\nA: B\nQ: next", ("Q: repeated\nA: B", True)),
        ("B\nQ:no space", ("B\nQ:no space", False)),
        ("", ("", False)),
    ],
)
def test_cut_where_a_new_question_begins(text: str, expected: tuple[str, bool]) -> None:
    assert cut_run_on(text, ("Q: ",)) == expected


def test_the_earliest_of_several_starts_counts() -> None:
    assert cut_run_on("B\n问题：x\nQuestion: y", ("Question:", "问题：")) == ("B", True)


def test_no_starts_no_cut() -> None:
    assert cut_run_on("B\nQ: x", ()) == ("B\nQ: x", False)
