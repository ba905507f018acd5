"""Fresh BBH: new questions of BBH's kinds, written from a seed, whose answers are certain."""

from keju.benchmarks.fresh.exam import FRESH_BBH, FreshArgs

__all__ = ["FRESH_BBH", "FreshArgs"]
