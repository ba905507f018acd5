"""AIME: contest problems with whole numbers from 0 to 999 as answers."""

from keju.benchmarks.aime.exam import AIME

__all__ = ["AIME"]
