"""Curves of accuracy against difficulty, from entries of results."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from keju.results.curve import Curve, HalvingPoint
from keju.results.difficulty import curves_of
from keju.results.schema import ResultEntry, Timing, UsageTotals
from keju.results.summarise import summarise
from tests.results.fake_exam import make_exam, make_tally


def make_entry(difficulty: float, right: int, size: int = 100) -> ResultEntry:
    outcomes = "1" * right + "0" * (size - right)
    entry = summarise(
        make_exam({"a": size}),
        make_tally(outcomes),
        reader="robust",
        usage=UsageTotals(),
        timing=Timing(0.0),
    )
    return replace(entry, difficulty=difficulty, arm=f"difficulty-{difficulty:g}")


def test_one_difficulty_makes_no_curve() -> None:
    assert curves_of([make_entry(1.0, 90)]) == []


def test_an_accuracy_that_falls_has_a_slope_and_a_halfway_point() -> None:
    (curve,) = curves_of([make_entry(4.0, 40), make_entry(1.0, 95), make_entry(2.0, 70)])
    assert [point.difficulty for point in curve.points] == [1.0, 2.0, 4.0]
    assert [point.accuracy for point in curve.points] == [0.95, 0.7, 0.4]
    assert curve.verdict == "falls"
    assert curve.slope == pytest.approx(-0.275, abs=0.01)
    assert curve.half is not None
    assert curve.half.reached == "reached"
    assert 2 < (curve.half.difficulty or 0.0) < 4
    assert [subset.subset for subset in curve.subsets] == ["a"]
    assert curve.conclusions[0].code == "curve_falls"


def test_equal_accuracies_show_no_trend() -> None:
    (curve,) = curves_of([make_entry(1.0, 80), make_entry(2.0, 80)])
    assert curve.verdict == "flat"
    assert curve.slope == pytest.approx(0.0)
    assert curve.half is not None
    assert curve.half.reached == "beyond"


@pytest.mark.parametrize(
    ("slope", "p", "verdict"),
    [(-0.1, 0.01, "falls"), (0.1, 0.01, "rises"), (0.1, 0.5, "flat"), (None, None, "nothing")],
)
def test_the_verdict_follows_from_slope_and_p(
    slope: float | None, p: float | None, verdict: str
) -> None:
    curve = Curve(exam="e", protocol="p", reader="r", points=(), half=None, slope=slope, p=p)
    assert curve.verdict == verdict
    assert [notice.code for notice in curve.conclusions] == [f"curve_{verdict}"]


def test_the_adjusted_p_of_a_subset_decides() -> None:
    half = HalvingPoint(reached="at_chance", difficulty=None, ci95=None)
    (point,) = curves_of([make_entry(1.0, 9, 10), make_entry(2.0, 8, 10)])[0].points[:1]
    curve = Curve(
        exam="e", protocol="p", reader="r", subset="s", points=(point,), half=half, slope=-0.1,
        p=0.01, p_adjusted=0.2,
    )  # fmt: skip
    assert [notice.code for notice in curve.conclusions] == ["curve_flat", "curve_at_chance"]
