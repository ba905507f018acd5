"""GPQA (Rein et al. 2023): graduate-level questions in biology, chemistry and physics."""

from keju.benchmarks.gpqa.exam import GPQA

__all__ = ["GPQA"]
