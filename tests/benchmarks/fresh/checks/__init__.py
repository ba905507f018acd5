"""A second opinion on every task: reads a question's text alone and answers it another way.

A check shares no code with the generator or the solver of its task; where a task hangs on the
meaning of words, it has a list of its own. Each is a module named as its subset, with a function
`answer`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

Check = Callable[[str], str]


def check_of(subset: str) -> Check:
    """The check of a subset."""
    check: Check = import_module(f"{__name__}.{subset}").answer
    return check
