"""The check of all stories of swaps."""

from __future__ import annotations

from tests.benchmarks.fresh.checks.tracking import answer

__all__ = ["answer"]
