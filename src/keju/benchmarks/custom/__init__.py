"""Custom exams: a folder of questions with an optional ``exam.yaml``, without Python code."""

from keju.benchmarks.custom.exam import Custom, custom_exam

__all__ = ["Custom", "custom_exam"]
