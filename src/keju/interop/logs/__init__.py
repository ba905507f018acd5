"""Runs as logs of other tools: Every Eval Ever, Inspect and lm-evaluation-harness.

Each format is one module that writes a log and reads it back. `run_logs` yields the exams of a run
with their answers, and `packing` keeps what the format of a tool has no place for.
"""
