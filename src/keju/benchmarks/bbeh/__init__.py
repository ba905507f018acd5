"""BIG-Bench Extra Hard (Kazemi et al. 2025): 23 tasks, the successor of BBH, and its mini set."""

from keju.benchmarks.bbeh.exam import BBEH, BBEH_MINI

__all__ = ["BBEH", "BBEH_MINI"]
