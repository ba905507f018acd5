"""IFEval: 541 prompts with instructions that a program can check (Zhou et al. 2023)."""

from keju.benchmarks.ifeval.exam import IFEVAL

__all__ = ["IFEVAL"]
