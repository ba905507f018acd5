"""BixBench: questions of computational biology, with options or open (Mitchener et al. 2025)."""

from keju.benchmarks.bixbench.args import BixBenchArgs
from keju.benchmarks.bixbench.benchmark import BixBench
from keju.benchmarks.bixbench.exam import BixBenchExam

__all__ = ["BixBench", "BixBenchArgs", "BixBenchExam"]
