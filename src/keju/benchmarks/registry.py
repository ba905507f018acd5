"""Finding a benchmark by name: Keju's own rooms, and plug-ins through entry points."""

from __future__ import annotations

import importlib.util
import shlex
import tomllib
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from keju.errors import ConfigError, Hint, did_you_mean, near_hint

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
ALIASES = {alias: name for name, (_, *aliases) in ROOMS.items() for alias in aliases}


@cache
def _plugins() -> dict[str, metadata.EntryPoint]:
    return {point.name: point for point in metadata.entry_points(group=ENTRY_POINTS)}


def names() -> list[str]:
    """The names of all benchmarks, Keju's own first."""
    return [*ROOMS, *sorted(set(_plugins()) - set(ROOMS))]


def get(name: str) -> Benchmark:
    """Return the benchmark called `name` (or an alias of it); ConfigError names the nearest.

    A name with a path separator, or ``custom:PATH``, is an exam of the user's own: a folder or file
    of questions, or a Python file that makes a `Benchmark`.
    """
    from keju.config.exams import is_path, path_of  # brings all settings, which help does not need

    if is_path(name):
        from keju.benchmarks.custom import custom_exam

        path = path_of(name)
        if (plugin := plugin_name(path)) is not None:
            raise ConfigError("benchmark_is_package", path=shlex.quote(str(path)), name=plugin)
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
        where = Hint("place_plugin", name=point.name, value=point.value)
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
    raise ConfigError("unknown_benchmark", name=name, hint=_meant(name))


def _meant(name: str) -> str:
    """What an unknown name may stand for: an exam, a subset of one, something on the disk."""
    places = [Path(name), *(file.parent for file in sorted(Path().glob("*/pyproject.toml")))]
    for place in places:
        if plugin_name(place) == name:
            return Hint("benchmark_not_installed", place=shlex.quote(f"./{place}"))
    if Path(name).exists():
        return Hint("benchmark_at_path", path=f"./{name}")
    known = [*names(), *ALIASES]
    exam, colon, subset = name.partition(":")
    if colon and exam in known:
        return Hint("benchmark_subset", exam=exam, subset=subset)
    if hint := near_hint(name, known):
        return hint
    for own in ROOMS:
        if name in get(own).subset_names:
            return Hint("benchmark_subset", exam=own, subset=name)
    return Hint("benchmark_own", name=name, hint=did_you_mean(name, known))


def plugin_name(folder: Path) -> str | None:
    """The benchmark that the package in a folder brings once it is installed; None for none."""
    try:
        with (folder / "pyproject.toml").open("rb") as file:
            project = tomllib.load(file).get("project", {})
        points = project.get("entry-points", {}).get(ENTRY_POINTS, {})
    except (OSError, ValueError, AttributeError):
        return None
    return next(iter(points), None) if isinstance(points, dict) else None


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
