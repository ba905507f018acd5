"""BixBench: questions of computational biology, with options or open (Mitchener et al. 2025)."""

from keju.benchmarks.bixbench.args import BixBenchArgs
from keju.benchmarks.bixbench.exam import BIXBENCH, BixBenchExam

__all__ = ["BIXBENCH", "BixBenchArgs", "BixBenchExam"]
