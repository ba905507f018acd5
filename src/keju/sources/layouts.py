"""Where an exam's tables lie: in official folders, in hub snapshots, in archives.

An exam asks for a logical table (``test``, ``val/law``) and declares a `Layout`: the paths,
without suffix, at which that table may lie, the hubs that carry it, and what was published about
it. Whatever reads, pulls or checks data gets the layout and knows no exam.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Literal

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
