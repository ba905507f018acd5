"""HumanEval: 164 functions to complete, graded by running them (Chen et al. 2021)."""

from keju.benchmarks.humaneval.exam import HUMANEVAL

__all__ = ["HUMANEVAL"]
