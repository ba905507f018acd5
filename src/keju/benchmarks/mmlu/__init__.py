"""MMLU (Hendrycks et al. 2021): 57 subjects, four options a question."""

from keju.benchmarks.mmlu.exam import MMLU

__all__ = ["MMLU"]
