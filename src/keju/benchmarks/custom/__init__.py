"""Custom exams: a folder of questions with an optional ``exam.yaml``, without Python code."""

from keju.benchmarks.custom.exam import CustomBenchmark, custom_exam

__all__ = ["CustomBenchmark", "custom_exam"]
