"""Answers that fit other questions than their own, and what only looks like it."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from keju.scores.shift_check import MAX_ANSWERS, ShiftFit, ShiftTest, make_placed_answer

SIZE = 200


def fit_of(
    targets: Sequence[str], values: Sequence[str], times: Sequence[float] = ()
) -> ShiftFit | None:
    shift = ShiftTest()
    for place, (target, value) in enumerate(zip(targets, values, strict=True)):
        sent_at = times[place] if times else 0.0
        answer = make_placed_answer("all", target, value, is_right=target == value)
        shift.add(sent_at, place, answer)
    return shift.fit()


def draw_labels(labels: str, seed: int = 1) -> list[str]:
    random_number = random.Random(seed)
    return [random_number.choice(labels) for _ in range(SIZE)]


def shift_values(values: Sequence[str], by: int) -> list[str]:
    return [values[(place - by) % len(values)] for place in range(len(values))]


@pytest.mark.parametrize("by", [1, -1])
@pytest.mark.parametrize("labels", ["AB", "ABCD", "ABCDEFGHIJ"])
def test_a_shift_by_one_is_found_in_both_directions(by: int, labels: str) -> None:
    targets = draw_labels(labels)
    fit = fit_of(targets, shift_values(targets, by))
    assert fit is not None
    assert fit.whole == SIZE
    assert fit.part > SIZE / 3 > 0


def test_a_shift_in_the_order_of_the_requests_is_found() -> None:
    targets = draw_labels("ABCD")
    order = list(range(SIZE))
    random.Random(3).shuffle(order)
    values = shift_values(targets, 1)
    timed_pairs = [(float(place), targets[place], values[place]) for place in order]
    times, shuffled_targets, shuffled_values = zip(*timed_pairs, strict=True)
    assert fit_of(shuffled_targets, shuffled_values, times) is not None
    assert fit_of(shuffled_targets, shuffled_values) is None


@pytest.mark.parametrize(
    ("targets", "values"),
    [
        (draw_labels("ABCD"), draw_labels("ABCD")),
        (draw_labels("ABCD"), draw_labels("ABCD", 2)),
        (draw_labels("ABCD"), ["B"] * SIZE),
        (["yes", "no"] * (SIZE // 2), ["no", "yes"] * (SIZE // 2)),
        (["A"] * (SIZE // 2) + ["B"] * (SIZE // 2), ["A"] * (SIZE // 2) + ["B"] * (SIZE // 2)),
        (["A", "B", "C", "D"] * (SIZE // 4), ["D", "A", "B", "C"] * (SIZE // 4)),
        ([f"text {n}" for n in range(SIZE)], [f"other {n}" for n in range(SIZE)]),
    ],
    ids=["right", "guessed", "one label", "always wrong", "sorted", "next label", "free"],
)
def test_what_is_no_shift(targets: list[str], values: list[str]) -> None:
    assert fit_of(targets, values) is None


def test_no_more_answers_are_kept_than_needed() -> None:
    shift = ShiftTest()
    while not shift.is_full:
        shift.add(0.0, 0.0, make_placed_answer("all", "A", "B", is_right=False))
    assert len(shift._answers) == MAX_ANSWERS
