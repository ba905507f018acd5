"""Finding recorded sets, and comparing what they give with what they must give."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from keju.errors import DataError, did_you_mean
from keju.files import read_json

FOLDER = "golden"
GOLDEN = "_golden.json"
PREDICTIONS = ("_predictions.jsonl", "_predictions.jsonl.gz")

CHECKERS = {
    "bbh": "keju.results.verify.bbh",
    "mmlu_pro": "keju.results.verify.mmlu_pro",
    "ceval": "keju.results.verify.ceval",
    "bixbench": "keju.results.verify.bixbench",
}
"""Benchmark to the module whose ``check`` compares one of its sets."""

COUNT = 0.0
"""Tolerance of whole numbers."""


class Check(NamedTuple):
    """One figure of a recorded set."""

    what: str
    expected: float
    got: float | None
    tolerance: float = COUNT
    part: bool = False
    """Whether it is about a subset, so that it may be summed up while it is as known."""

    @property
    def ok(self) -> bool:
        """Whether the figure is the known one, as far as that is printed."""
        return self.got is not None and math.isclose(
            self.got, self.expected, rel_tol=0.0, abs_tol=self.tolerance
        )


class RecordedSet(NamedTuple):
    """What a model said, and the scores it must give."""

    benchmark: str
    name: str
    predictions: Path
    golden: Path
    data_dir: Path

    @property
    def label(self) -> str:
        """The set as messages call it, e.g. ``mmlu_pro/Mistral-7B-v0.1``."""
        return f"{self.benchmark}/{self.name}"


class Verified(NamedTuple):
    """A recorded set and all its figures."""

    recorded: RecordedSet
    checks: list[Check]

    @property
    def ok(self) -> bool:
        """Whether every figure is the known one."""
        return all(check.ok for check in self.checks)


class Checker(Protocol):
    """A module of this package."""

    def check(self, recorded: RecordedSet, golden: dict[str, Any]) -> list[Check]:
        """Score the set and compare; KeyError names a figure that the golden file lacks."""


def find_sets(data_dir: Path) -> list[RecordedSet]:
    """The recorded sets below `data_dir`; DataError if there is none, or half of one."""
    folder = data_dir / FOLDER
    if not folder.is_dir():
        raise DataError(
            f"{data_dir} has no folder '{FOLDER}' with recorded outputs; see --data-dir"
        )
    found = [
        recorded
        for inner in sorted(folder.iterdir())
        if inner.is_dir()
        for recorded in _sets_in(inner, data_dir)
    ]
    if not found:
        shown = f"NAME{PREDICTIONS[0]} and NAME{GOLDEN}"
        raise DataError(f"{folder} holds no recorded outputs (looked for BENCHMARK/{shown})")
    return found


def _sets_in(folder: Path, data_dir: Path) -> Iterator[RecordedSet]:
    files = {path.name for path in folder.iterdir()}
    goldens = {name.removesuffix(GOLDEN) for name in files if name.endswith(GOLDEN)}
    outputs = {
        name.removesuffix(suffix): name
        for suffix in reversed(PREDICTIONS)
        for name in files
        if name.endswith(suffix)
    }
    for name in sorted({*goldens, *outputs}):
        if name not in outputs:
            raise DataError(f"{folder / (name + GOLDEN)} has no {name}{PREDICTIONS[0]} beside it")
        if name not in goldens:
            raise DataError(f"{folder / outputs[name]} has no {name}{GOLDEN} beside it")
        if folder.name not in CHECKERS:
            hint = did_you_mean(folder.name, CHECKERS)
            raise DataError(f"{folder}: no rule to verify '{folder.name}'{hint}")
        yield RecordedSet(
            folder.name, name, folder / outputs[name], folder / (name + GOLDEN), data_dir
        )


def verify_all(data_dir: Path) -> Iterator[Verified]:
    """Score every recorded set below `data_dir`, one after the other."""
    for recorded in find_sets(data_dir):
        checker: Checker = importlib.import_module(CHECKERS[recorded.benchmark])
        golden = read_json(recorded.golden)
        try:
            checks = checker.check(recorded, golden)
        except (KeyError, TypeError, AttributeError) as error:
            raise DataError(f"{recorded.golden}: not the shape of a golden file: {error}") from None
        if not checks:
            raise DataError(f"{recorded.golden} holds no figure to compare")
        yield Verified(recorded, checks)
