"""C-Eval (Huang et al. 2023): 52 subjects of Chinese examinations, four options a question."""

from keju.benchmarks.ceval.exam import CEVAL

__all__ = ["CEVAL"]
