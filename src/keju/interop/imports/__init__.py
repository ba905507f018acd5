"""Logs of other tools as runs of Keju: one module a tool, then matching, scoring and comparing."""
