"""MBPP+: 399 functions to write, graded by running them on many inputs (Liu et al. 2023)."""

from keju.benchmarks.mbpp_plus.exam import MBPP_PLUS

__all__ = ["MBPP_PLUS"]
