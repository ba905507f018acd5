"""Keju's exams as environments of verifiers: ``vf-eval keju-demo``.

verifiers finds an environment as a top-level module such as ``keju_demo``. Its API changed with
0.4: tasksets, tasks and harnesses replaced ``load_environment``. The modules offer the API of the
installed version. In both, Keju asks and grades (`keju.interop.verifiers.exam`), so rewards are
equal to the scores of ``keju eval``.
"""

from __future__ import annotations

import re
from importlib import metadata

from keju.errors import MissingExtra, TranslatableText

FIRST_WITH_TASKSETS = (0, 4)


def has_tasksets() -> bool:
    """Whether the installed verifiers loads tasksets; MissingExtra if it is not installed."""
    try:
        version = metadata.version("verifiers")
    except metadata.PackageNotFoundError:
        raise MissingExtra(TranslatableText("extra_for_verifiers"), "verifiers") from None
    major, minor = (int(part) for part in re.findall(r"\d+", version)[:2])
    return (major, minor) >= FIRST_WITH_TASKSETS
