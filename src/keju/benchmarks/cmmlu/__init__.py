"""CMMLU (Li et al. 2023): 67 subjects in Chinese, four options a question."""

from keju.benchmarks.cmmlu.exam import CMMLU

__all__ = ["CMMLU"]
