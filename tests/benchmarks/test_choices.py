"""Labelled options: how they are written out and how they are permuted."""

from __future__ import annotations

import hashlib
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keju.benchmarks.choices import (
    LabelStyle,
    check_choices,
    format_choices,
    permute,
    restore_order,
    rotate_order,
    shuffle_order,
)
from keju.errors import DataError
from keju.types import LABELS, Sample


def sample(n: int, target: str) -> Sample:
    return Sample(
        id="x", subset="s", index=0, text="?", target=target, choices=tuple(map(str, range(n)))
    )


@pytest.mark.parametrize(
    ("style", "lines"),
    [
        ("A) text", "A) one\nB) two"),
        ("A. text", "A. one\nB. two"),
        ("A: text", "A: one\nB: two"),
        ("(A) text", "(A) one\n(B) two"),
        ("A text", "A one\nB two"),
    ],
)
def test_label_lines_in_every_style(style: LabelStyle, lines: str) -> None:
    assert format_choices(["one", "two"], style) == lines


def test_shuffle_order_is_the_documented_draw() -> None:
    digest = hashlib.sha256(b"7:q1").digest()
    order = list(range(10))
    random.Random(int.from_bytes(digest[:8], "big")).shuffle(order)
    assert shuffle_order(10, 7, "q1") == tuple(order)
    assert shuffle_order(10, 7, "q2") != tuple(order)
    assert shuffle_order(10, 8, "q1") != tuple(order)


def test_rotations_bring_every_option_to_every_place() -> None:
    assert rotate_order(4, 0) == (0, 1, 2, 3)
    assert rotate_order(4, 1) == (1, 2, 3, 0)
    columns = zip(*(rotate_order(4, k) for k in range(4)), strict=True)
    assert all(sorted(column) == [0, 1, 2, 3] for column in columns)


@given(st.data())
def test_choices_order_and_target_move_together(data: st.DataObject) -> None:
    n = data.draw(st.integers(2, 26))
    original = sample(n, data.draw(st.sampled_from(LABELS[:n])))
    gold = original.choices[LABELS.index(original.target)]
    permuted = original
    for order in data.draw(st.lists(st.permutations(range(n)), min_size=1, max_size=3)):
        permuted = permute(permuted, order)
        assert permuted.choices == tuple(original.choices[i] for i in permuted.order)
        assert permuted.choices[LABELS.index(permuted.target)] == gold


def test_an_unknown_target_stays_unknown() -> None:
    assert permute(sample(3, ""), (2, 0, 1)).target == ""


def test_what_is_no_permutation_is_refused() -> None:
    with pytest.raises(ValueError, match="not an order of 3 options"):
        permute(sample(3, "A"), (0, 1, 1))


@pytest.mark.parametrize(
    ("choices", "target", "message"),
    [
        (["only"], "A", "f, row 1: 1 option;"),
        (["x"] * 27, "A", "27 options"),
        (["x", "y"], "C", "the answer 'C' is none of the labels A to B"),
        (["x", "y"], "AB", "'AB'"),
    ],
)
def test_impossible_rows_are_refused(choices: list[str], target: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        check_choices(choices, target, "f, row 1")


def test_a_row_without_answer_is_possible() -> None:
    check_choices(["x", "y"], "", "f")


def test_a_recorded_order_moves_target_and_refusal_with_their_options() -> None:
    sample = Sample(
        id="x", subset="s", index=0, text="?", target="B", choices=("u", "v", "w"),
        order=(2, 0, 1), metadata={"refusal": "C"},
    )  # fmt: skip
    reordered = restore_order(sample, (1, 2, 0))
    assert reordered.choices == ("w", "u", "v")
    assert reordered.order == (1, 2, 0)
    assert (reordered.target, reordered.metadata["refusal"]) == ("C", "A")
    assert restore_order(reordered, (2, 0, 1)) == sample


def test_an_order_that_is_not_of_these_options_changes_nothing() -> None:
    sample = Sample(id="x", subset="s", index=0, text="?", target="B", choices=("u", "v"))
    assert restore_order(sample, ()) is sample
    assert restore_order(sample, (0, 1)) is sample
    assert restore_order(sample, (0, 1, 2)) is sample
