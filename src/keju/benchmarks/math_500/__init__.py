"""MATH-500: 500 competition problems with LaTeX answers (Hendrycks et al. 2021)."""

from keju.benchmarks.math_500.exam import MATH_500

__all__ = ["MATH_500"]
