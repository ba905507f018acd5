"""Finding a benchmark by name: Keju's own rooms, and plug-ins through entry points."""

from __future__ import annotations

import importlib
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING

from keju.errors import ConfigError, did_you_mean

if TYPE_CHECKING:
    from keju.benchmarks.base import Benchmark

ENTRY_POINTS = "keju.benchmarks"

ROOMS = {
    "bbh": "keju.benchmarks.bbh:BBH",
    "mmlu_pro": "keju.benchmarks.mmlu_pro:MMLUPro",
    "ceval": "keju.benchmarks.ceval:CEval",
    "bixbench": "keju.benchmarks.bixbench:BixBench",
    "demo": "keju.benchmarks.demo:Demo",
}
ALIASES = {"bigbench-hard": "bbh", "mmlu-pro": "mmlu_pro", "c-eval": "ceval"}


@cache
def _plugins() -> dict[str, metadata.EntryPoint]:
    return {point.name: point for point in metadata.entry_points(group=ENTRY_POINTS)}


def names() -> list[str]:
    """The names of all benchmarks, Keju's own first."""
    return [*ROOMS, *sorted(set(_plugins()) - set(ROOMS))]


def get(name: str) -> Benchmark:
    """Return the benchmark called `name` (or an alias of it); ConfigError names the nearest."""
    known = ALIASES.get(name, name)
    if known in ROOMS:
        module, _, attribute = ROOMS[known].partition(":")
        cls: type[Benchmark] = getattr(importlib.import_module(module), attribute)
        return cls()
    if known in _plugins():
        plugin: type[Benchmark] = _plugins()[known].load()
        return plugin()
    raise ConfigError(f"unknown benchmark '{name}'{did_you_mean(name, [*names(), *ALIASES])}")
