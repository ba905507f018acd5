"""The tasks and groups that lm-eval has: their names, cached on disk, and how one is loaded."""

from __future__ import annotations

import io
import logging
import os
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from fnmatch import fnmatchcase
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from keju.benchmarks.lm_eval_tasks.sources import TaskFolder, serve_data, stay_offline
from keju.errors import (
    ConfigError,
    KejuError,
    MissingExtra,
    TranslatableText,
    UsageError,
    near_hint,
)
from keju.files import write_json
from keju.sources.fetch import cache_root

EXTRA: Final = "lm-eval"
PACKAGE: Final = "lm_eval"
CACHE: Final = "lm_eval"
"""The folder of names and prompts in Keju's cache."""
YAML: Final = (".yaml", ".yml")
RANDOM_SEED, NUMPY_SEED = 0, 1234
"""The seeds that lm-eval sets before it loads tasks; some shuffle options while they load."""


class TaskName(msgspec.Struct, frozen=True, omit_defaults=True):
    """One name in lm-eval's index."""

    name: str
    kind: str
    """``task``, ``py_task``, ``group`` or ``tag``."""
    path: str = ""
    """Its YAML file; empty for tags."""
    tasks: tuple[str, ...] = ()
    """The tasks of a tag."""
    output: str = ""
    """How it asks the model: ``generate_until``, ``multiple_choice``, …"""


class LoadedTasks(NamedTuple):
    """The tasks and groups of a name, as lm-eval's objects."""

    tasks: dict[str, Any]
    groups: dict[str, Any]
    fingerprints: dict[str, str]
    """A hash of the data of each task."""


def require_extra(name: str) -> None:
    """Raise MissingExtra in one line where lm-eval is not installed."""
    try:  # a folder called lm_eval, such as one with data, would count as a module
        metadata.version(PACKAGE)
    except metadata.PackageNotFoundError:
        raise MissingExtra(TranslatableText("lm_eval.extra", name=name), EXTRA) from None


def package_version() -> str:
    """Return the version of the installed package."""
    return metadata.version(PACKAGE)


def cache_folder() -> Path:
    """Return the folder of Keju's cache for lm-eval's names and prompts."""
    return cache_root(os.environ) / CACHE


def list_names(pattern: str, include_paths: Sequence[str] = ()) -> list[TaskName]:
    """Return the names that contain `pattern`, or match it if it has ``*``, ``?`` or ``[``."""
    require_extra(f"list --lm-eval {pattern}")
    folded = pattern.casefold()
    has_wildcard = any(character in folded for character in "*?[")
    return [
        entry
        for name, entry in sorted(_read_names(include_paths).items())
        if (fnmatchcase(name.casefold(), folded) if has_wildcard else folded in name.casefold())
    ]


def _read_names(include_paths: Sequence[str]) -> dict[str, TaskName]:
    """Return all names: of the package from the cache, of other folders from their files."""
    path = cache_folder() / f"names-{package_version()}.json"
    names: dict[str, TaskName] | None = None
    try:
        names = msgspec.json.decode(path.read_bytes(), type=dict[str, TaskName])
    except (OSError, msgspec.DecodeError):
        pass
    # Another installation of the same version is in another folder.
    if names is None or not _is_of_this_package(names):
        sys.stderr.write(TranslatableText("lm_eval.indexing").text() + "\n")
        names = _index([_package_folder()])
        write_json(path, msgspec.to_builtins(names))
    for folder in include_paths:
        if not Path(folder).expanduser().is_dir():
            raise ConfigError("lm_eval.no_include", path=folder)
        names |= _index([Path(folder).expanduser()])
    return names


def _package_folder() -> Path:
    spec = find_spec(PACKAGE)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "tasks"


def _is_of_this_package(names: Mapping[str, TaskName]) -> bool:
    folder = str(_package_folder())
    return any(entry.path.startswith(folder) for entry in names.values())


def _index(folders: list[Path]) -> dict[str, TaskName]:
    from lm_eval.tasks._index import TaskIndex

    with quiet():
        entries = TaskIndex.build(folders)
    return {
        name: TaskName(
            name,
            entry.kind.name.lower(),
            str(entry.yaml_path or ""),
            tuple(sorted(entry.tags)) if entry.kind.name == "TAG" else (),
            str((entry.cfg or {}).get("output_type") or ""),
        )
        for name, entry in entries.items()
    }


def load(name: str, include_paths: Sequence[str], folder: TaskFolder) -> LoadedTasks:
    """Return the tasks of a name or a YAML file, with their data.

    The caller seeds the random numbers (`fixed_seeds`), because building the requests continues the
    same stream. Raise ConfigError or DataError in one line for an unknown name, an unsafe task, and
    missing data.
    """
    require_extra(f"lm_eval:{name}")
    from lm_eval.tasks import TaskManager
    from lm_eval.tasks._index import Entry, Kind

    manager = TaskManager(include_defaults=False)
    names = _read_names(include_paths)
    for entry in names.values():
        path = Path(entry.path) if entry.path else None
        kind = Kind[entry.kind.upper()]
        manager.task_index[entry.name] = Entry(entry.name, kind, path, tags=set(entry.tasks))
    spec = _find_spec(name, names, manager.task_index)
    fingerprints: dict[str, str] = {}
    with stay_offline(folder.offline), serve_data(folder, fingerprints):
        try:
            _refuse_unsafe(name, manager.task_index[spec].yaml_path)
            loaded = manager.load([spec])
        except KejuError:
            raise
        except Exception as error:
            problem = next(iter(str(error).splitlines()), "")
            kind_of_error = type(error).__name__
            values = {"name": name, "kind": kind_of_error, "problem": problem}
            raise ConfigError("lm_eval.not_loaded", **values) from error
    return LoadedTasks(dict(loaded["tasks"]), dict(loaded.get("groups", {})), fingerprints)


def _find_spec(name: str, names: Mapping[str, TaskName], index: dict[str, Any]) -> str:
    """Return the name under which a task, a group or a YAML file is in lm-eval's index.

    lm-eval itself cannot load a group by the path of its file, so a file is added to the index.
    """
    if name in names:
        return name
    if name.endswith(YAML):
        path = Path(name).expanduser().resolve()
        if not path.is_file():
            raise ConfigError("lm_eval.no_file", path=path)
        if own_name := _index_file(path, index):
            return own_name
    raise ConfigError("lm_eval.unknown", name=name, hint=near_hint(name, names))


def _index_file(path: Path, index: dict[str, Any]) -> str:
    """Add the task or group of a YAML file to the index, and return its name."""
    from lm_eval.tasks._index import Entry, Kind
    from lm_eval.tasks._yaml_loader import load_yaml

    try:
        content = load_yaml(path, resolve_func=False)
    except Exception as error:
        problem = " ".join(str(error).split())
        values = {"name": path, "kind": type(error).__name__, "problem": problem}
        raise ConfigError("lm_eval.not_loaded", **values) from error
    kind = Kind.PY_TASK if "class" in content else Kind.GROUP if "group" in content else Kind.TASK
    name = content.get("group" if kind is Kind.GROUP else "task")
    if not isinstance(name, str):
        return ""
    index[name] = Entry(name, kind, path)
    return name


def _refuse_unsafe(name: str, path: Path | None) -> None:
    """Refuse a task that runs the model's code, before its own module is imported."""
    from lm_eval.tasks._yaml_loader import load_yaml

    if path is not None and load_yaml(path, resolve_func=False).get("unsafe_code"):
        raise ConfigError("lm_eval.unsafe", task=name)


@contextmanager
def quiet() -> Iterator[None]:
    """Keep lm-eval's and ``datasets``' own messages off the terminal, except progress there."""
    if not sys.stderr.isatty():
        os.environ.setdefault("TQDM_DISABLE", "1")
    os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")
    loggers = [logging.getLogger(name) for name in (PACKAGE, "lm-eval", "datasets")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        with redirect_stdout(io.StringIO()):  # modules of tasks print on import
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


@contextmanager
def fixed_seeds() -> Iterator[None]:
    """Seed Python and numpy as lm-eval does, and restore their states afterwards."""
    import numpy

    python_state, numpy_state = random.getstate(), numpy.random.get_state()
    random.seed(RANDOM_SEED)
    numpy.random.seed(NUMPY_SEED)
    try:
        yield
    finally:
        random.setstate(python_state)
        numpy.random.set_state(numpy_state)


def clear_cache() -> list[Path]:
    """Delete the cached names and prompts, and return the deleted files."""
    folder = cache_folder()
    files = sorted(path for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else []
    for path in files:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise UsageError("lm_eval.cache_kept", path=path, problem=error.strerror) from None
    return files
