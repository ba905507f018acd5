"""Finding a benchmark's data: one rule, the same for every command.

1. ``local_path`` of the benchmark; a path that does not exist is an error at once.
2. ``data_dir`` (or KEJU_DATA_DIR), which holds one folder a benchmark.
3. The folder that comes with the exam's code.
4. What ``keju data pull`` brought before.
5. A pull, only where a hub was asked for by name and the run is not offline.

Only the last opens a socket. A path is never taken for the name of a data set on a hub.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from keju.errors import DataError
from keju.sources.cache import receipts
from keju.sources.folder import DataFolder, NoFolder
from keju.sources.layouts import HubName, Layout

SNAPSHOTS = "snapshots"
"""The folder of a hub's cache that holds one folder a revision."""


def locate(
    benchmark: str,
    layout: Layout | None,
    *,
    local_path: str | None = None,
    data_dir: str | None = None,
    hub: HubName | None = None,
    offline: bool = False,
    environ: Mapping[str, str] | None = None,
) -> DataFolder:
    """Return the folder that holds `benchmark`'s data; DataError says what was tried.

    A benchmark without a layout makes its questions itself.
    """
    environ = os.environ if environ is None else environ
    if local_path is not None:
        setting = f"dataset_args.{benchmark}.local_path"
        return _folder_at(Path(local_path).expanduser(), benchmark, layout or Layout(), setting)
    if layout is None:
        return NoFolder(benchmark)
    tried = []
    if top := data_dir or environ.get("KEJU_DATA_DIR"):
        setting = "--data-dir" if data_dir else "KEJU_DATA_DIR"
        folder = _below(Path(top).expanduser(), benchmark, layout, setting)
        if folder is not None:
            return folder
        hint = _own_folder_hint(Path(top).expanduser(), benchmark, layout)
        tried.append(f"no folder '{benchmark}' in {top}{hint}")
    if layout.bundled is not None:
        return DataFolder(layout.bundled, layout, origin="bundled")
    if not layout.tables:
        return NoFolder(benchmark, origin="none")
    stored = receipts(benchmark, hub, environ)
    for receipt in stored:
        damage = receipt.damage()
        if not damage:
            return receipt.folder(layout)
        tried.append(f"{damage} has gone or changed since it was pulled")
    if not stored:
        tried.append(f"nothing pulled from {hub or 'a hub'}")
    if hub is not None and not offline:
        from keju.sources.pull import pull

        return pull(benchmark, layout, hub, environ=environ).folder(layout)
    forbidden = f" and offline forbids to ask {hub}" if hub else ""
    raise DataError("data_none", benchmark=benchmark, tried=", ".join(tried), forbidden=forbidden)


def _own_folder_hint(path: Path, benchmark: str, layout: Layout) -> str:
    """What to say where the folder of the benchmark itself was given for the one above it."""
    if not DataFolder(path, layout).holds_data():
        return ""
    local = f"'{path}' as dataset_args.{benchmark}.local_path"
    if path.resolve().name in (benchmark, *layout.folders):
        return f" (it holds the files themselves: give the folder above it, or {local})"
    return f" (it holds the files themselves: give {local})"


def _folder_at(path: Path, benchmark: str, layout: Layout, setting: str) -> DataFolder:
    if not path.exists():
        raise DataError("data_no_path", setting=setting, path=path)
    if not path.is_dir():
        raise DataError("data_no_folder", setting=setting, path=path)
    path = _snapshot(path, setting)
    folder = DataFolder(path, layout)
    if layout.tables and not folder.holds_data():
        shown = layout.stems_of(layout.tables[0])[0]
        raise DataError(
            "data_none_of", setting=setting, path=path, benchmark=benchmark, shown=shown
        )
    return folder


def _below(data_dir: Path, benchmark: str, layout: Layout, setting: str) -> DataFolder | None:
    if not data_dir.is_dir():
        raise DataError("data_no_folder", setting=setting, path=data_dir)
    # The Hugging Face client calls the folder of OWNER/NAME in its cache datasets--OWNER--NAME.
    repos = [hub.repo.replace("/", "--") for hub in layout.hubs.values()]
    others = (*layout.folders, *(f"datasets--{repo}" for repo in repos))
    if data_dir.name in others and (data_dir / SNAPSHOTS).is_dir():
        return _folder_at(data_dir, benchmark, layout, setting)
    for name in (benchmark, *others):
        if (data_dir / name).is_dir():
            return _folder_at(data_dir / name, benchmark, layout, setting)
    return None


def _snapshot(path: Path, setting: str) -> Path:
    """`path` itself or, if it is a data set in a hub's cache, the snapshot to read there.

    That is the one ``refs/main`` names, or the only one.
    """
    if not (path / SNAPSHOTS).is_dir():
        return path
    present = sorted(each for each in (path / SNAPSHOTS).iterdir() if each.is_dir())
    main = path / "refs" / "main"
    current = path / SNAPSHOTS / main.read_text("utf-8").strip() if main.is_file() else None
    if current in present:
        return current
    if len(present) == 1:
        return present[0]
    raise DataError("data_snapshots", setting=setting, path=path, n=len(present))
