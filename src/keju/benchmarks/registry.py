"""Finding a benchmark by name: Keju's own rooms, and plug-ins through entry points."""

from __future__ import annotations

import importlib.util
import os
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from keju.errors import ConfigError, did_you_mean

if TYPE_CHECKING:
    from keju.benchmarks.base import Benchmark

ENTRY_POINTS = "keju.benchmarks"

ROOMS: dict[str, tuple[str, ...]] = {
    "bbh": ("keju.benchmarks.bbh:BBH", "bigbench-hard"),
    "mmlu_pro": ("keju.benchmarks.mmlu_pro:MMLU_PRO", "mmlu-pro"),
    "ceval": ("keju.benchmarks.ceval:CEVAL", "c-eval"),
    "bixbench": ("keju.benchmarks.bixbench:BIXBENCH",),
    "fresh_bbh": ("keju.benchmarks.fresh:FRESH_BBH", "fresh-bbh"),
    "demo": ("keju.benchmarks.demo:DEMO",),
}
"""One line an exam: its name, where its `Benchmark` is, and its aliases, as the benchmark has them:
a name is looked up without importing any room."""
CUSTOM = "custom:"
"""What marks the path of an exam that is no room of Keju's."""
ALIASES = {alias: name for name, (_, *aliases) in ROOMS.items() for alias in aliases}


@cache
def _plugins() -> dict[str, metadata.EntryPoint]:
    return {point.name: point for point in metadata.entry_points(group=ENTRY_POINTS)}


def names() -> list[str]:
    """The names of all benchmarks, Keju's own first."""
    return [*ROOMS, *sorted(set(_plugins()) - set(ROOMS))]


def is_path(name: str) -> bool:
    """Whether the name of a benchmark is the path of an exam: marked so, or with a separator."""
    return name.startswith((CUSTOM, "~")) or name in (".", "..") or "/" in name or os.sep in name


def get(name: str) -> Benchmark:
    """Return the benchmark called `name` (or an alias of it); ConfigError names the nearest.

    A name with a path separator, or ``custom:PATH``, is an exam of the user's own: a folder or file
    of questions, or a Python file that makes a `Benchmark`.
    """
    if is_path(name):
        from keju.benchmarks.custom import custom_exam

        path = Path(name.removeprefix(CUSTOM)).expanduser()
        if path.suffix == ".py":
            return _from_file(path)
        return custom_exam(path, [*names(), *ALIASES])
    own = ALIASES.get(name, name)
    for taken in dict.fromkeys((name, own)):
        if (taken in ROOMS or taken in ALIASES) and taken in _plugins():
            raise ConfigError("registry_taken", name=taken, plugin=_plugins()[taken].value)
    if own in ROOMS:
        module, _, attribute = ROOMS[own][0].partition(":")
        room: Benchmark = getattr(importlib.import_module(module), attribute)
        return room
    if own in _plugins():
        from keju.benchmarks.base import Benchmark

        point = _plugins()[own]
        where = f"the plug-in '{point.name}' ({point.value})"
        try:
            made = point.load()
        except Exception as error:
            kind = type(error).__name__
            raise ConfigError(
                "registry_not_loaded", where=where, kind=kind, problem=error
            ) from None
        if not isinstance(made, Benchmark):
            raise ConfigError("registry_no_benchmark", where=where)
        return made
    hint = did_you_mean(name, [*names(), *ALIASES])
    if Path(name).exists():
        hint = f"; for the exam at that path write ./{name}"
    raise ConfigError("unknown_benchmark", name=name, hint=hint)


find_benchmark = get
"""The public name of `get`."""


@cache
def _from_file(path: Path) -> Benchmark:
    """The one benchmark that a Python file makes; ConfigError says what is wrong with the file."""
    from keju.benchmarks.base import Benchmark

    spec = importlib.util.spec_from_file_location(f"keju_exam_{path.stem}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ConfigError("registry_no_file", path=path)
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ConfigError(
            "registry_not_loaded", where=path, kind=type(error).__name__, problem=error
        ) from None
    made = [each for each in vars(module).values() if isinstance(each, Benchmark)]
    if len(made) != 1:
        raise ConfigError("registry_makes", path=path, n=len(made))
    return made[0]
