"""The check of all paragraphs about an order."""

from __future__ import annotations

from tests.benchmarks.fresh.checks.deduction import answer

__all__ = ["answer"]
