"""The published questions, where the complete data is at hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from keju.benchmarks.fresh.task import FreshQuestion

Published = Callable[[str], list[FreshQuestion]]


@pytest.fixture(scope="session")
def published(data_dir: Path) -> Published:
    """The published questions of a subset, in their order."""

    def rows(subset: str) -> list[FreshQuestion]:
        text = (data_dir / "bbh" / "bbh" / f"{subset}.json").read_text(encoding="utf-8")
        return [FreshQuestion(row["input"], row["target"]) for row in json.loads(text)["examples"]]

    return rows
