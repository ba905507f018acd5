"""Compares a folder with the published data: the rows of every table and the hash of every known
file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import Any, Literal

from keju.errors import DataError, Notice
from keju.sources.folder import DataFolder

Status = Literal["ok", "changed", "missing"]

Hashes = Literal["known", "other", ""]
"""Whether the files are the official (or the pulled) ones; empty if no hash is known."""


@dataclass(frozen=True)
class FileVerification:
    """One table or one plain file, compared with the published one."""

    name: str
    status: Status
    files: tuple[str, ...] = ()
    rows: int | None = None
    published_rows: int | None = None
    sha256: Hashes = ""
    detail: str = ""


@dataclass(frozen=True)
class Verification:
    """The result for one benchmark's folder."""

    benchmark: str
    origin: str
    path: str
    items: list[FileVerification] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        """Whether everything is as published."""
        return all(item.status == "ok" for item in self.items)

    @property
    def rows(self) -> int:
        """Number of rows in all tables."""
        return sum(item.rows or 0 for item in self.items)

    @property
    def file_count(self) -> int:
        """Number of files that were read."""
        return sum(len(item.files) for item in self.items)

    @property
    def summary(self) -> Notice:
        """One line with the tables and files that are ok, changed and missing."""
        names: dict[str, list[str]] = {"ok": [], "changed": [], "missing": []}
        for item in self.items:
            names[item.status].append(item.name)
        parts = [
            Notice(f"data_files_{status}", {"n": len(group)})
            for status, group in names.items()
            if group
        ]
        wrong_names = [*names["changed"], *names["missing"]]
        values: dict[str, Any] = {"name": self.benchmark, "parts": parts}
        if not wrong_names:
            return Notice("data_summary", values)
        shown_names = [*wrong_names[:3], *(["…"] if len(wrong_names) > 3 else [])]
        return Notice("data_summary_wrong", values | {"shown": shown_names})

    def document(self) -> dict[str, Any]:
        """Return the verification as JSON."""
        return {
            "name": self.benchmark,
            "origin": self.origin,
            "path": self.path,
            "sound": self.sound,
            "rows": self.rows,
            "items": [
                {key: value for key, value in asdict(item).items() if value not in (None, "", ())}
                for item in self.items
            ],
        }


def verify(benchmark: str, folder: DataFolder) -> Verification:
    """Read everything that belongs to `benchmark` and compare it with the published data."""
    layout = folder.layout
    result = Verification(benchmark, folder.origin, str(folder.path))
    for table in layout.tables:
        if table not in layout.optional or folder.has(table):
            result.items.append(_check_table(folder, table))
    for name in layout.texts:
        if not folder.exists(name):
            result.items.append(FileVerification(name, "missing"))
            continue
        folder.bytes(name)
        hashes = _compare_hashes(folder, [name], [folder.hashes[name]])
        status: Status = "changed" if hashes == "other" else "ok"
        result.items.append(FileVerification(name, status, (name,), sha256=hashes))
    return result


def _check_table(folder: DataFolder, table: str) -> FileVerification:
    published = folder.layout.rows.get(table)
    if not folder.has(table):
        return FileVerification(table, "missing", published_rows=published)
    files, names = folder.table(table)
    try:
        count = sum(1 for _ in folder.rows(table))
    except DataError as error:
        return FileVerification(
            table, "changed", names, published_rows=published, detail=str(error)
        )
    hashes = _compare_hashes(
        folder, names, [sha256(files.read(name)).hexdigest() for name in names]
    )
    is_unchanged = published in (None, count) and hashes != "other"
    return FileVerification(
        table, "ok" if is_unchanged else "changed", names, count, published, hashes
    )


def _compare_hashes(folder: DataFolder, names: Sequence[str], actual: list[str]) -> Hashes:
    """Return whether the hashes of the files `names` are the official or the pulled ones."""
    official = [folder.layout.sha256(name) or folder.recorded.get(name) for name in names]
    if None in official:
        return ""
    return "known" if official == actual else "other"
