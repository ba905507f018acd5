"""Fresh BBH: new questions of BBH's kinds, generated from a seed, with certain answers."""

from keju.benchmarks.fresh.exam import FRESH_BBH, FreshArgs

__all__ = ["FRESH_BBH", "FreshArgs"]
