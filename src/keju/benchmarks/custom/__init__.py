"""Exams of the user's own: a folder of questions and, if wanted, an ``exam.yaml``; no Python."""

from keju.benchmarks.custom.exam import Custom, custom_exam

__all__ = ["Custom", "custom_exam"]
