"""A folder of an exam's data: what an exam declares about its files, where the folder is, and its
tables, read only; every file that is read leaves its hash.

An exam asks for a logical table (``test``, ``val/law``) and declares a `Layout`: the paths, without
suffix, at which that table may lie, the hubs that carry it, and what was published about it.
Whatever reads, pulls or checks data gets the layout and knows no exam.

Finding a benchmark's data is one rule, the same for every command (`locate`):

1. ``local_path`` of the benchmark; a path that does not exist is an error at once.
2. ``data_dir`` (or KEJU_DATA_DIR), which holds one folder a benchmark.
3. The folder that comes with the exam's code.
4. What ``keju data pull`` brought before.
5. A pull, only where a hub was asked for by name and the run is not offline.

Only the last opens a socket. A path is never taken for the name of a data set on a hub.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from hashlib import file_digest
from pathlib import Path
from typing import Any, Literal, NamedTuple

from keju.bounds import unpack_gzip
from keju.errors import DataError, Hint, join_hints
from keju.sources.files import DiskFiles, Files, NoFiles, ZipFiles, as_json, table_rows, whole

HubName = Literal["huggingface", "modelscope"]
HUB_NAMES: tuple[HubName, ...] = ("huggingface", "modelscope")

SUFFIXES = (
    ".jsonl", ".jsonl.gz", ".json", ".json.gz", ".csv", ".csv.gz", ".parquet",
)  # fmt: skip
"""What a table's file may end in, the plainest first."""

_SHARD = re.compile(r"-(\d{5})-of-(\d{5})$")
"""How hubs number the parts of a table: ``test-00000-of-00001.parquet``."""


@dataclass(frozen=True)
class HubRepo:
    """A data set on a hub and the revision that is asked for."""

    repo: str
    revision: str


@dataclass(frozen=True)
class Companions:
    """Official files that no hub carries, at a pinned commit of their repository on GitHub."""

    repo: str
    commit: str
    names: tuple[str, ...]
    needed_for: str
    """What cannot be done without them, for the message when they are out of reach."""


@dataclass(frozen=True)
class Layout:
    """What an exam declares about its files."""

    tables: tuple[str, ...] = ()
    stems: tuple[str, ...] = ("{table}", "data/{table}", "main/{table}")
    """Templates with ``{table}``, or ``{split}`` and ``{subject}`` of a table ``split/subject``."""
    own_stems: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Tables whose files have names of their own."""
    optional: frozenset[str] = frozenset()
    """Tables that a complete folder may lack."""
    archives: tuple[str, ...] = ()
    """Zip files that may hold the tables."""
    texts: tuple[str, ...] = ()
    """Plain files that belong to a complete folder."""
    capsules: str = ""
    """A pattern for files that questions are worked on with; pulled only where asked for."""
    with_capsules: bool = False
    folders: tuple[str, ...] = ()
    """Other names its folder goes by below a data directory."""
    hubs: Mapping[HubName, HubRepo] = field(default_factory=dict)
    companions: Companions | None = None
    bundled: Path | None = None
    """The folder of data that comes with the code, where there is one."""
    rows: Mapping[str, int] = field(default_factory=dict)
    """Rows of each table as published."""
    checksums: Path | None = None
    """A file in the format of ``sha256sum`` with the official files, by whatever path."""

    def sha256(self, name: str) -> str | None:
        """The hash of the official file called `name`, wherever in the folder it lies."""
        return self._digests.get(name.rpartition("/")[2])

    @cached_property
    def _digests(self) -> dict[str, str]:
        lines = [] if self.checksums is None else self.checksums.read_text("utf-8").splitlines()
        pairs = (line.split("  ", 1) for line in lines)
        return {path.rpartition("/")[2]: digest for digest, path in pairs}

    def stems_of(self, table: str) -> list[str]:
        """The paths, without suffix, at which `table` may lie, best first."""
        if table in self.own_stems:
            return list(self.own_stems[table])
        split, _, subject = table.partition("/")
        fitting = [s for s in self.stems if subject or "{subject}" not in s]
        return [s.format(table=table, split=split, subject=subject) for s in fitting]

    def wants(self, path: str) -> bool:
        """Whether `path` of a repository is one of the files that the tables are read from."""
        own_name = path in self.archives or path in self.texts
        if self.with_capsules and fnmatchcase(path, self.capsules):
            return True
        return own_name or stem_of(path) in self._wanted_stems

    @cached_property
    def _wanted_stems(self) -> frozenset[str]:
        return frozenset(stem for table in self.tables for stem in self.stems_of(table))


def suffix_of(path: str) -> str:
    """The suffix that makes `path` a table; empty if it is none."""
    return next((suffix for suffix in SUFFIXES if path.endswith(suffix)), "")


def stem_of(path: str) -> str | None:
    """`path` without suffix and part number; None if it is no table."""
    suffix = suffix_of(path)
    return _SHARD.sub("", path.removesuffix(suffix)) if suffix else None


def matching(stem: str, names: Iterable[str]) -> list[list[str]]:
    """The files among `names` that are the table `stem`: one list of parts for each suffix."""
    parts: dict[str, list[str]] = {}
    for name in sorted(names):
        if stem_of(name) == stem:
            parts.setdefault(suffix_of(name), []).append(name)
    return [parts[suffix] for suffix in SUFFIXES if suffix in parts]


def missing_parts(names: list[str]) -> int:
    """How many parts of a table that is split into numbered parts are not among `names`."""
    numbers = [_SHARD.search(name.removesuffix(suffix_of(name))) for name in names]
    totals = [int(match[2]) for match in numbers if match]
    return max(totals) - len(names) if totals else 0


Raw = bytes
"""`bytes` itself; `DataFolder` has a method of that name."""

BUILT_IN = "built in"
"""The origin of questions that are in no file."""


class Table(NamedTuple):
    """The files that one logical table is read from, in order."""

    files: Files
    names: tuple[str, ...]


class DataFolder:
    """One benchmark's files. Nothing is ever written to it, and nothing in it is run.

    Rooms ask for logical tables with `rows`, whichever layout and format the folder has, or for
    single files by name. Zip files of a known name are read as if they were unpacked.
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
        """Without a `layout` tables are found by their own names only."""
        self.path = path
        self.layout = layout or Layout(stems=())
        self.origin = origin
        """Where the files came from, e.g. ``huggingface OWNER/NAME@f8cc3bd…``."""
        self.hashes: dict[str, str] = {}
        """Relative path to SHA-256 of each file read so far."""
        self.edited: list[str] = []
        """Files read so far that are not the official ones, or not as they were pulled."""
        self.notes: list[str] = list(notes)
        """What the manifest should say about this data, each in one line."""
        self.recorded = recorded or {}
        """Relative path to SHA-256 of each file as it was pulled."""
        self._companions = companions

    def exists(self, name: str) -> bool:
        """Whether the folder holds the file `name`."""
        return any(name in place.listing(_parent(name)) for place in self._places)

    def first_of(self, names: Iterable[str]) -> str | None:
        """The first of several names that the folder holds a file of."""
        return next((name for name in names if self.exists(name)), None)

    def bytes(self, name: str) -> bytes:
        """The content of `name`, unpacked if its name ends in ``.gz``."""
        place = self._place_of(name)
        raw = self._read(place, name)
        if not name.endswith(".gz"):
            return raw
        where = place.where(name)
        return whole(unpack_gzip(io.BytesIO(raw), where), where)

    def text(self, name: str) -> str:
        """The content of `name` as UTF-8 text, line ends kept as they are."""
        try:
            return self.bytes(name).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            where = self._place_of(name).where(name)
            raise DataError("format_not_utf8", where=where, problem=error.reason) from None

    def json(self, name: str) -> Any:
        """The content of `name` as JSON."""
        return as_json(self.bytes(name), self._place_of(name).where(name))

    def file_rows(self, name: str) -> Generator[dict[str, Any], None, None]:
        """The rows of the file `name`, read bit by bit: it may be larger than memory.

        Its hash is taken when all of it was read.
        """
        place = self._place_of(name)
        with place.open(name) as stream:
            yield from table_rows(stream, name, place.where(name))
            stream.seek(0)
            self._note_hash(place, name, stream)

    def has(self, stem: str) -> bool:
        """Whether the folder holds the logical table `stem`."""
        return self._find(stem) is not None

    def rows(self, stem: str) -> Iterator[dict[str, Any]]:
        """The rows of the logical table `stem` in published order, from whatever file holds it.

        Values are as the format has them: CSV gives text only.
        """
        table = self.table(stem)
        for name in table.names:
            raw = self._read(table.files, name)
            yield from table_rows(raw, name, table.files.where(name))

    def table(self, stem: str) -> Table:
        """The files behind the logical table `stem`; DataError if there are none."""
        table = self._find(stem)
        if table is None:
            shown = [f"{s}.*" for s in self.layout.stems_of(stem) or [stem]]
            raise DataError("source_no_table", path=self.path, stem=stem, shown=shown)
        return table

    def name_of(self, stem: str) -> str:
        """The logical table `stem` as messages call it: the path of its first file."""
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
    def _places(self) -> list[Files]:
        roots = [self.path] if self._companions is None else [self.path, self._companions]
        disks: list[Files] = [DiskFiles(root) for root in roots]
        archives = [self.path / name for name in self.layout.archives]
        present = [path for path in archives if path.is_file()]
        return [*disks, *(ZipFiles(path) for path in present)]

    def _place_of(self, name: str) -> Files:
        """The place that holds `name`, or the first, which then says that it does not."""
        holders = (place for place in self._places if name in place.listing(_parent(name)))
        return next(holders, self._places[0])

    def _find(self, stem: str) -> Table | None:
        stems = dict.fromkeys([*self.layout.stems_of(stem), stem])
        for place in self._places:
            groups = [g for s in stems for g in matching(s, place.listing(_parent(s)))]
            if not groups:
                continue
            names, *others = groups
            if lacking := missing_parts(names):
                raise DataError("source_parts_missing", where=place.where(names[0]), n=lacking)
            for other in others:
                self.note(f"{names[0]} was read, {other[0]} beside it was not")
            return Table(place, tuple(names))
        return None

    def _read(self, place: Files, name: str) -> Raw:
        raw = place.read(name)
        self._note_hash(place, name, io.BytesIO(raw))
        return raw

    def _note_hash(self, place: Files, name: str, content: io.BufferedIOBase) -> None:
        file, digest = place.fingerprint(name, content)
        self.hashes[file] = digest
        official = self.layout.sha256(name) or self.recorded.get(name)
        if official is not None and file != name:  # an archive's hash stands for its files
            content.seek(0)
            digest = file_digest(content, "sha256").hexdigest()
        if official not in (None, digest) and name not in self.edited:
            self.edited.append(name)


class NoFolder(DataFolder):
    """Stands in where a benchmark makes its questions itself."""

    def __init__(self, benchmark: str, origin: str = BUILT_IN) -> None:
        super().__init__(Path(), origin=origin)
        self._benchmark = benchmark

    @cached_property
    def _places(self) -> list[Files]:
        return [NoFiles(self._benchmark)]


def _parent(path: str) -> str:
    """``a/b`` of ``a/b/c``, empty for ``c``."""
    return path.rpartition("/")[0]


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
        tried.append(Hint("data_no_folder_in", benchmark=benchmark, top=top, hint=hint))
    if layout.bundled is not None:
        return DataFolder(layout.bundled, layout, origin="bundled")
    if not layout.tables:
        return NoFolder(benchmark, origin="none")
    from keju.sources.fetch import receipts

    stored = receipts(benchmark, hub, environ)
    for receipt in stored:
        damage = receipt.damage()
        if not damage:
            return receipt.folder(layout)
        tried.append(Hint("data_damaged", damage=damage))
    if not stored:
        tried.append(Hint("data_not_pulled", hub=hub or Hint("data_a_hub")))
    if hub is not None and not offline:
        from keju.sources.pull import pull

        return pull(benchmark, layout, hub, environ=environ).folder(layout)
    values = {"tried": join_hints("joined_by_comma", tried), "forbidden": ""}
    if hub:
        values["forbidden"] = Hint("data_offline", hub=hub)
    raise DataError("data_none", benchmark=benchmark, **values)


def at_hand(benchmark: str, layout: Layout | None, *, data_dir: str | None = None) -> bool:
    """Whether `locate` finds the data of `benchmark` without pulling it."""
    try:
        locate(benchmark, layout, data_dir=data_dir, offline=True)
    except DataError:
        return False
    return True


def _own_folder_hint(path: Path, benchmark: str, layout: Layout) -> str:
    """What to say where the folder of the benchmark itself was given for the one above it."""
    if not DataFolder(path, layout).holds_data():
        return ""
    above = path.resolve().name in (benchmark, *layout.folders)
    code = "data_holds_files" if above else "data_holds_files_elsewhere"
    return Hint(code, path=path, benchmark=benchmark)


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
