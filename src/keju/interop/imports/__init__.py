"""Imports of other tools' logs as runs: one module for each tool, then matching, scoring and
comparing."""
