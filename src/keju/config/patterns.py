"""Patterns that users write: refused where they are none, or where a reply could hang them.

A repeat without an upper bound inside another repeat, such as ``(a+)+$``, can split the same text
in exponentially many ways, and a single long reply would stop the run.
"""

from __future__ import annotations

import importlib
import re
from typing import Any

_BACKTRACKING = frozenset({"MAX_REPEAT", "MIN_REPEAT"})
"""Repeats that give back what they took; possessive ones never do."""


def check_pattern(pattern: str) -> None:
    """Raise ValueError, in one line, if `pattern` is no regular expression or may take for ever."""
    try:
        re.compile(pattern)
        parsed = importlib.import_module("re._parser").parse(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"not a regular expression: {error}") from None
    if _nests(parsed, inside=False):
        raise ValueError(
            "a repeat inside a repeat, such as '(a+)+', can take for ever on a long reply: "
            "bound one of them, or make the inner one possessive ('(a++)+')"
        )


def _nests(node: Any, *, inside: bool) -> bool:
    """Whether an unbounded repeat stands below one that may take place more than once."""
    unbounded = importlib.import_module("re._constants").MAXREPEAT
    for operation, argument in node:
        repeats = str(operation) in _BACKTRACKING
        if repeats and inside and argument[1] is unbounded:
            return True
        below = inside or (repeats and argument[1] > 1)
        if str(operation) == "ATOMIC_GROUP":
            below = False
        if any(_nests(part, inside=below) for part in _parts(argument)):
            return True
    return False


def _parts(argument: Any) -> list[Any]:
    """The sequences of operations inside an operation's argument, wherever they stand in it."""
    if hasattr(argument, "data"):
        return [argument]
    if isinstance(argument, tuple | list):
        return [part for each in argument for part in _parts(each)]
    return []
