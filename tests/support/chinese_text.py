"""Patterns of Chinese texts."""

from __future__ import annotations

import re

from keju.benchmarks import custom as custom

# `准确率: 5`, `清单 (manifest)`, `a; 另外`: not `原子组 (?>…)`, which is a pattern.
HALF_WIDTH = re.compile(
    r"[\u3400-\u9fff][,;:!?)]|[\u3400-\u9fff] ?\((?!\?)|[,;:] ?[\u3400-\u9fff]|\([\u3400-\u9fff]"
)


PROGRAM = "keju: "
"""Stands before a line of standard error, as with all programs."""
