"""Keju's exams as environments of verifiers: ``vf-eval keju-bbh``.

verifiers finds an environment as a top-level module (``keju_bbh``, ``keju_bixbench``, …). Its API
changed with 0.4: tasksets, tasks and harnesses took the place of ``load_environment``. The modules
offer whichever the installed version asks for. What is asked and how it is graded is Keju's own in
both (`keju.interop.verifiers.exam`), so rewards are the scores of ``keju eval``.
"""

from __future__ import annotations

import re
from importlib import metadata

from keju.errors import Hint, MissingExtra

FIRST_WITH_TASKSETS = (0, 4)


def has_tasksets() -> bool:
    """Whether the installed verifiers loads tasksets; MissingExtra if there is none at all."""
    try:
        version = metadata.version("verifiers")
    except metadata.PackageNotFoundError:
        raise MissingExtra(Hint("extra_for_verifiers"), "verifiers") from None
    major, minor = (int(part) for part in re.findall(r"\d+", version)[:2])
    return (major, minor) >= FIRST_WITH_TASKSETS
