"""Attacks from outside: a hostile endpoint, hostile MCP servers and models, hostile files.

Every attack runs commands that users type. After each of them the exit code, the time, the peak of
memory, the terminal, every file that was written and every key are checked; see `judge`.
"""

from __future__ import annotations

from perf.soak.case import Case


def cases() -> list[Case]:
    """Return all attacks."""
    from perf.soak.hostile import endpoint, exams, files, mcp, stored

    parts = (endpoint, mcp, exams, files, stored)
    return [case for part in parts for case in part.cases()]
