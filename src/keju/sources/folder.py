"""Data folders: the layout that an exam declares, the search for its folder, and its tables, read
only. Keju records the hash of every file that it reads.

An exam asks for a logical table (``test``, ``val/law``) and declares a `Layout`. The layout has the
possible paths of each table without suffix, the hubs that offer it, and published facts about it.
Code that reads, pulls or checks data only uses the layout and knows no exam.

All commands find a benchmark's data by the same rule (`locate`):

1. ``local_path`` of the benchmark; a path that does not exist is an error at once.

2. ``data_dir`` (or KEJU_DATA_DIR), with one folder per benchmark.

3. The folder that comes with the exam's code.

4. The data that ``keju data pull`` has downloaded.

5. A pull, only if a hub was requested by name and the run is not offline.

Only the last step opens a socket. Keju never takes a path for the name of a data set on a hub.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from hashlib import file_digest
from json import JSONDecoder
from pathlib import Path
from typing import Any, Literal, NamedTuple

from keju.bounds import unpack_gzip
from keju.errors import DataError, TranslatableText, join_hints
from keju.files import TABLE
from keju.sources.files import (
    DiskFiles,
    NoFiles,
    ReadableFiles,
    ZipFiles,
    as_json,
    read_whole,
    table_rows,
)
from keju.sources.sheets import CountColumns, SheetFile, SheetSettings, open_sheet

HubName = Literal["huggingface", "modelscope"]
HUB_NAMES: tuple[HubName, ...] = ("huggingface", "modelscope")

SUFFIXES = (
    ".jsonl", ".jsonl.gz", ".json", ".json.gz", ".csv", ".csv.gz", ".parquet",
)  # fmt: skip
"""Suffixes of a table's file, the plainest first."""

_SHARD = re.compile(r"-(\d{5})-of-(\d{5})$")
"""The numbering of a table's parts on hubs: ``test-00000-of-00001.parquet``."""


@dataclass(frozen=True)
class HubRepo:
    """A data set on a hub and the requested revision."""

    repo: str
    revision: str


@dataclass(frozen=True)
class CompanionFiles:
    """Official files that are on no hub, at a pinned commit of their GitHub repository."""

    repo: str
    commit: str
    names: tuple[str, ...]
    needed_for: str
    """The purpose of the files, for the message if they are unreachable."""


@dataclass(frozen=True)
class Layout:
    """The files of an exam, as the exam declares them."""

    tables: tuple[str, ...] = ()
    stems: tuple[str, ...] = ("{table}", "data/{table}", "main/{table}")
    """Templates with ``{table}``, or ``{split}`` and ``{subject}`` of a table ``split/subject``."""
    own_stems: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Templates for single tables whose files have other names."""
    optional: frozenset[str] = frozenset()
    """Tables that may be missing from a complete folder."""
    archives: tuple[str, ...] = ()
    """Zip files that may hold the tables."""
    texts: tuple[str, ...] = ()
    """Plain files that belong to a complete folder."""
    capsules: str = ""
    """A pattern for the data files of questions, which are only pulled on request."""
    with_capsules: bool = False
    decoder: JSONDecoder = TABLE
    """The JSON that its JSON Lines hold; `keju.files.LOG` also has ``Infinity``."""
    folders: tuple[str, ...] = ()
    """Other names of its folder below a data directory."""
    hubs: Mapping[HubName, HubRepo] = field(default_factory=dict)
    companions: CompanionFiles | None = None
    bundled: Path | None = None
    """The folder of data that comes with the code, if there is one."""
    rows: Mapping[str, int] = field(default_factory=dict)
    """The published number of rows of each table."""
    cached_as: str = ""
    """Its name in the cache of pulled data; the benchmark's by default."""
    checksums: Path | None = None
    """A file in the format of ``sha256sum`` with the official files, under any paths."""

    def sha256(self, name: str) -> str | None:
        """Return the hash of the official file called `name`, in any folder.

        If official files in several folders have this name, the last folder must be equal too.
        """
        return self._digests.get(_short_path(name)) or self._digests.get(name.rpartition("/")[2])

    @cached_property
    def _digests(self) -> dict[str, str]:
        lines = [] if self.checksums is None else self.checksums.read_text("utf-8").splitlines()
        digests: dict[str, str] = {}
        repeated: set[str] = set()
        for digest, path in (line.split("  ", 1) for line in lines):
            name = path.rpartition("/")[2]
            repeated |= {name} & digests.keys()
            digests[name] = digests[_short_path(path)] = digest
        return {path: digest for path, digest in digests.items() if path not in repeated}

    def stems_of(self, table: str) -> list[str]:
        """Return the possible paths of `table` without suffix, best first."""
        if table in self.own_stems:
            return list(self.own_stems[table])
        split, _, subject = table.partition("/")
        fitting = [s for s in self.stems if subject or "{subject}" not in s]
        return [s.format(table=table, split=split, subject=subject) for s in fitting]

    def wants(self, path: str) -> bool:
        """Whether `path` of a repository is a file that Keju needs."""
        is_listed_file = path in self.archives or path in self.texts
        if self.with_capsules and fnmatchcase(path, self.capsules):
            return True
        return is_listed_file or stem_of(path) in self._wanted_stems

    @cached_property
    def _wanted_stems(self) -> frozenset[str]:
        return frozenset(stem for table in self.tables for stem in self.stems_of(table))


def _short_path(path: str) -> str:
    """Return the last folder and the name of a path: ``dev/law.csv`` of ``data/dev/law.csv``."""
    return "/".join(path.split("/")[-2:])


def suffix_of(path: str) -> str:
    """Return the suffix that makes `path` a table; empty if it is not a table."""
    return next((suffix for suffix in SUFFIXES if path.endswith(suffix)), "")


def stem_of(path: str) -> str | None:
    """Return `path` without suffix and part number; None if it is not a table."""
    suffix = suffix_of(path)
    return _SHARD.sub("", path.removesuffix(suffix)) if suffix else None


def match_files(stem: str, names: Iterable[str]) -> list[list[str]]:
    """Return the files in `names` of the table `stem`: one list of parts for each suffix."""
    parts: dict[str, list[str]] = {}
    for name in sorted(names):
        if stem_of(name) == stem:
            parts.setdefault(suffix_of(name), []).append(name)
    return [parts[suffix] for suffix in SUFFIXES if suffix in parts]


def count_missing_parts(names: list[str]) -> int:
    """Return how many numbered parts of a split table are missing from `names`."""
    numbers = [_SHARD.search(name.removesuffix(suffix_of(name))) for name in names]
    totals = [int(match[2]) for match in numbers if match]
    return max(totals) - len(names) if totals else 0


Raw = bytes
"""`bytes` itself, because `DataFolder` has a method of that name."""

BUILT_IN = "built in"
"""The origin of questions that are not in a file."""


class TableFiles(NamedTuple):
    """The files of one logical table, in order."""

    files: ReadableFiles
    names: tuple[str, ...]


class DataFolder:
    """One benchmark's files. Keju never writes to the folder and never runs its content.

    Exams ask for logical tables with `rows`, for any layout and format of the folder, or for single
    files by name. Zip files with a known name are read as if they were unpacked.
    """

    def __init__(
        self,
        path: Path,
        layout: Layout | None = None,
        *,
        origin: str = "folder",
        notes: Sequence[str] = (),
        companions: Path | None = None,
        recorded: Mapping[str, str] | None = None,
    ) -> None:
        """Without a `layout`, tables are found by their own names only."""
        self.path = path
        self.layout = layout or Layout(stems=())
        self.origin = origin
        """The source of the files, e.g. ``huggingface OWNER/NAME@f8cc3bd…``."""
        self.hashes: dict[str, str] = {}
        """Relative path to SHA-256 of each file read so far."""
        self.edited: list[str] = []
        """Files read so far that differ from the official ones, or from the pulled ones."""
        self.notes: list[str] = list(notes)
        """Notes for the manifest about this data, one line each."""
        self.recorded = recorded or {}
        """Relative path to SHA-256 of each file when it was pulled."""
        self._companions = companions

    def exists(self, name: str) -> bool:
        """Whether the folder holds the file `name`."""
        return any(name in files.listing(_parent(name)) for files in self._places)

    def first_of(self, names: Iterable[str]) -> str | None:
        """Return the first of several names that exists as a file in the folder."""
        return next((name for name in names if self.exists(name)), None)

    def bytes(self, name: str) -> bytes:
        """Return the content of `name`, unpacked if its name ends in ``.gz``."""
        files = self._find_place(name)
        raw = self._read(files, name)
        if not name.endswith(".gz"):
            return raw
        where = files.where(name)
        return read_whole(unpack_gzip(io.BytesIO(raw), where), where)

    def text(self, name: str) -> str:
        """Return the content of `name` as UTF-8 text with its line ends unchanged."""
        try:
            return self.bytes(name).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            where = self._find_place(name).where(name)
            raise DataError("format_not_utf8", where=where, problem=error.reason) from None

    def json(self, name: str) -> Any:
        """Return the content of `name` as JSON."""
        return as_json(self.bytes(name), self._find_place(name).where(name))

    def file_rows(self, name: str) -> Generator[dict[str, Any], None, None]:
        """Yield the rows of the file `name` from a stream: it may be larger than memory.

        Its hash is computed after all of it was read.
        """
        files = self._find_place(name)
        with files.open(name) as stream:
            yield from table_rows(stream, name, files.where(name))
            stream.seek(0)
            self._note_hash(files, name, stream)

    @contextmanager
    def open_sheet(
        self, name: str, count_known: CountColumns, settings: SheetSettings | None = None
    ) -> Iterator[SheetFile]:
        """Open a table as a person saved it; its hash is noted if all of it was read."""
        files = self._find_place(name)
        with files.open(name) as stream:
            yield open_sheet(stream, name, files.where(name), count_known, settings)
            stream.seek(0)
            self._note_hash(files, name, stream)

    def has(self, stem: str) -> bool:
        """Whether the folder holds the logical table `stem`."""
        return self._find(stem) is not None

    def rows(self, stem: str) -> Iterator[dict[str, Any]]:
        """Yield the rows of the logical table `stem` in published order, from any file that holds
        it.

        Values keep the types of the format: CSV only gives text.
        """
        table = self.table(stem)
        for name in table.names:
            raw = self._read(table.files, name)
            yield from table_rows(raw, name, table.files.where(name), self.layout.decoder)

    def table(self, stem: str) -> TableFiles:
        """Return the files of the logical table `stem`; raise DataError if there are none."""
        table = self._find(stem)
        if table is None:
            tried_patterns = [f"{s}.*" for s in self.layout.stems_of(stem) or [stem]]
            raise DataError("source_no_table", path=self.path, stem=stem, shown=tried_patterns)
        return table

    def name_of(self, stem: str) -> str:
        """Return the path of the first file of the logical table `stem`, for messages."""
        table = self.table(stem)
        return table.files.where(table.names[0])

    def holds_data(self) -> bool:
        """Whether at least one table of the benchmark is here."""
        return any(self.has(table) for table in self.layout.tables)

    def note(self, line: str) -> None:
        """Add a line for the manifest, once."""
        if line not in self.notes:
            self.notes.append(line)

    @cached_property
    def _places(self) -> list[ReadableFiles]:
        roots = [self.path] if self._companions is None else [self.path, self._companions]
        disks: list[ReadableFiles] = [DiskFiles(root) for root in roots]
        archives = [self.path / name for name in self.layout.archives]
        existing = [path for path in archives if path.is_file()]
        return [*disks, *(ZipFiles(path) for path in existing)]

    def _find_place(self, name: str) -> ReadableFiles:
        """Return the place that holds `name`, or the first place, which then reports the missing
        file."""
        holders = (files for files in self._places if name in files.listing(_parent(name)))
        return next(holders, self._places[0])

    def _find(self, stem: str) -> TableFiles | None:
        stems = dict.fromkeys([*self.layout.stems_of(stem), stem])
        for files in self._places:
            groups = [g for s in stems for g in match_files(s, files.listing(_parent(s)))]
            if not groups:
                continue
            names, *other_groups = groups
            if missing_count := count_missing_parts(names):
                raise DataError(
                    "source_parts_missing", where=files.where(names[0]), n=missing_count
                )
            for group in other_groups:
                self.note(f"{names[0]} was read, {group[0]} next to it was not")
            return TableFiles(files, tuple(names))
        return None

    def _read(self, files: ReadableFiles, name: str) -> Raw:
        raw = files.read(name)
        self._note_hash(files, name, io.BytesIO(raw))
        return raw

    def _note_hash(self, files: ReadableFiles, name: str, content: io.BufferedIOBase) -> None:
        file, digest = files.fingerprint(name, content)
        self.hashes[file] = digest
        official = self.layout.sha256(name) or self.recorded.get(name)
        if official is not None and file != name:  # an archive's hash represents its files
            content.seek(0)
            digest = file_digest(content, "sha256").hexdigest()
        if official not in (None, digest) and name not in self.edited:
            self.edited.append(name)


class NoFolder(DataFolder):
    """The data folder of a benchmark that makes its questions itself."""

    def __init__(self, benchmark: str, origin: str = BUILT_IN) -> None:
        super().__init__(Path(), origin=origin)
        self._benchmark = benchmark

    @cached_property
    def _places(self) -> list[ReadableFiles]:
        return [NoFiles(self._benchmark)]


def _parent(path: str) -> str:
    """Return ``a/b`` for ``a/b/c``, empty for ``c``."""
    return path.rpartition("/")[0]


SNAPSHOTS = "snapshots"
"""The folder of a hub's cache that holds one folder per revision."""


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
    """Return the folder that holds `benchmark`'s data; raise DataError with the places searched.

    A benchmark without a layout makes its questions itself.
    """
    environ = os.environ if environ is None else environ
    if local_path is not None:
        setting = f"dataset_args.{benchmark}.local_path"
        return _open_folder(Path(local_path).expanduser(), benchmark, layout or Layout(), setting)
    if layout is None:
        return NoFolder(benchmark)
    tried = []
    if top := data_dir or environ.get("KEJU_DATA_DIR"):
        setting = "--data-dir" if data_dir else "KEJU_DATA_DIR"
        folder = _find_below(Path(top).expanduser(), benchmark, layout, setting)
        if folder is not None:
            return folder
        hint = _folder_hint(Path(top).expanduser(), benchmark, layout)
        tried.append(TranslatableText("data_no_folder_in", benchmark=benchmark, top=top, hint=hint))
    if layout.bundled is not None:
        return DataFolder(layout.bundled, layout, origin="bundled")
    if not layout.tables:
        return NoFolder(benchmark, origin="none")
    from keju.sources.fetch import load_receipts

    stored = load_receipts(layout.cached_as or benchmark, hub, environ)
    for receipt in stored:
        damage = receipt.find_damage()
        if not damage:
            return receipt.folder(layout)
        tried.append(TranslatableText("data_damaged", damage=damage))
    if not stored:
        tried.append(TranslatableText("data_not_pulled", hub=hub or TranslatableText("data_a_hub")))
    if hub is not None and not offline:
        from keju.sources.pull import pull

        return pull(layout.cached_as or benchmark, layout, hub, environ=environ).folder(layout)
    values = {"tried": join_hints("joined_by_comma", tried), "forbidden": ""}
    if hub:
        values["forbidden"] = TranslatableText("data_offline", hub=hub)
    raise DataError("data_none", benchmark=benchmark, **values)


def is_data_available(
    benchmark: str, layout: Layout | None, *, data_dir: str | None = None
) -> bool:
    """Whether `locate` finds the data of `benchmark` without pulling it."""
    try:
        locate(benchmark, layout, data_dir=data_dir, offline=True)
    except DataError:
        return False
    return True


def _folder_hint(path: Path, benchmark: str, layout: Layout) -> str:
    """Return a hint if the benchmark's own folder was given instead of its parent."""
    if not DataFolder(path, layout).holds_data():
        return ""
    above = path.resolve().name in (benchmark, *layout.folders)
    code = "data_holds_files" if above else "data_holds_files_elsewhere"
    return TranslatableText(code, path=path, benchmark=benchmark)


def _open_folder(path: Path, benchmark: str, layout: Layout, setting: str) -> DataFolder:
    if not path.exists():
        raise DataError("data_no_path", setting=setting, path=path)
    if path.is_file() and len(layout.tables) == 1 and (stem := stem_of(path.name)):
        layout = replace(layout, own_stems={layout.tables[0]: (stem,)})
        return DataFolder(path.parent, layout)
    if not path.is_dir():
        raise DataError("data_no_folder", setting=setting, path=path)
    path = _resolve_snapshot(path, setting)
    folder = DataFolder(path, layout)
    if layout.tables and not folder.holds_data():
        expected_path = layout.stems_of(layout.tables[0])[0]
        raise DataError(
            "data_none_of", setting=setting, path=path, benchmark=benchmark, shown=expected_path
        )
    return folder


def _find_below(data_dir: Path, benchmark: str, layout: Layout, setting: str) -> DataFolder | None:
    if not data_dir.is_dir():
        raise DataError("data_no_folder", setting=setting, path=data_dir)
    # The Hugging Face client calls the folder of OWNER/NAME in its cache datasets--OWNER--NAME.
    repos = [hub.repo.replace("/", "--") for hub in layout.hubs.values()]
    folder_names = (*layout.folders, *(f"datasets--{repo}" for repo in repos))
    if data_dir.name in folder_names and (data_dir / SNAPSHOTS).is_dir():
        return _open_folder(data_dir, benchmark, layout, setting)
    paths = [data_dir / name for name in (benchmark, *folder_names) if (data_dir / name).is_dir()]
    with_data = [path for path in paths if _may_hold_data(path, layout)]
    for path in (*with_data, *paths):
        return _open_folder(path, benchmark, layout, setting)
    return None


def _may_hold_data(path: Path, layout: Layout) -> bool:
    """Whether a folder holds a table of the layout, or is a hub's cache."""
    return (path / SNAPSHOTS).is_dir() or DataFolder(path, layout).holds_data()


def _resolve_snapshot(path: Path, setting: str) -> Path:
    """Return `path`, or for a data set in a hub's cache the snapshot to read.

    That is the snapshot that ``refs/main`` names, or the only one.
    """
    if not (path / SNAPSHOTS).is_dir():
        return path
    snapshots = sorted(folder for folder in (path / SNAPSHOTS).iterdir() if folder.is_dir())
    main = path / "refs" / "main"
    current = path / SNAPSHOTS / main.read_text("utf-8").strip() if main.is_file() else None
    if current in snapshots:
        return current
    if len(snapshots) == 1:
        return snapshots[0]
    raise DataError("data_snapshots", setting=setting, path=path, n=len(snapshots))
