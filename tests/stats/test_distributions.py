"""Quantiles and tails against scipy."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as oracle  # type: ignore[import-untyped]

from keju.stats.intervals import (
    Z95,
    chi_squared_survival,
    normal_quantile,
    student_t_quantile,
)

shares = st.floats(1e-6, 1 - 1e-6)


def test_named_points() -> None:
    assert pytest.approx(1.959964, abs=5e-7) == Z95
    assert normal_quantile(0.95) == pytest.approx(1.644854, abs=5e-7)
    assert normal_quantile(0.80) == pytest.approx(0.841621, abs=5e-7)
    assert student_t_quantile(0.975, 4) == pytest.approx(2.7764451, abs=5e-8)


@settings(deadline=None)
@given(shares, st.one_of(st.integers(1, 300), st.floats(1, 1e7)))
def test_t_quantile_is_scipys(p: float, df: float) -> None:
    assert student_t_quantile(p, df) == pytest.approx(oracle.t.ppf(p, df), rel=1e-8, abs=1e-9)


@settings(deadline=None)
@given(st.floats(0, 2000), st.integers(1, 500))
def test_chi_squared_tail_is_scipys(x: float, df: int) -> None:
    expected = float(oracle.chi2.sf(x, df))
    assert chi_squared_survival(x, df) == pytest.approx(expected, rel=1e-9, abs=1e-13)


def test_t_is_symmetric_and_refuses_nonsense() -> None:
    assert student_t_quantile(0.025, 7) == -student_t_quantile(0.975, 7)
    assert student_t_quantile(0.5, 7) == 0
    assert math.isclose(student_t_quantile(0.975, 1e12), Z95, rel_tol=1e-11)
    with pytest.raises(ValueError, match="no t quantile"):
        student_t_quantile(1.0, 5)
    with pytest.raises(ValueError, match="degrees of freedom"):
        chi_squared_survival(1.0, 0)
