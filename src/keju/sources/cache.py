"""What has been pulled: one receipt a benchmark and hub, in Keju's own cache.

A receipt is written last, so data without one (an interrupted pull) is never used; a receipt
whose files have gone or changed in size is not used either.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from keju.files import write_json
from keju.sources.folder import HUB_NAMES, DataFolder, HubName, Layout

_SHOWN_COMMIT = 12


class Stored(msgspec.Struct, frozen=True):
    """One pulled file as it was when it was checked."""

    size: int
    sha256: str


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """What one pull brought, from where, and where it lies."""

    benchmark: str
    hub: HubName
    repo: str
    revision: str
    """What was asked for."""
    commit: str
    """What that resolved to: the hub's commit, or a digest of the content where it names none."""
    path: str
    files: dict[str, Stored]
    companions: str = ""
    """Folder of official files that came from elsewhere."""
    notes: tuple[str, ...] = ()

    @property
    def origin(self) -> str:
        """One short line for manifests and tables."""
        return f"{self.hub} {self.repo}@{self.commit[:_SHOWN_COMMIT]}"

    def damage(self) -> str:
        """The first file that is gone or has another size; empty if all is there."""
        for name, stored in self.files.items():
            file = Path(self.path) / name
            if not file.is_file() or file.stat().st_size != stored.size:
                return str(file)
        return ""

    def folder(self, layout: Layout) -> DataFolder:
        """The pulled files, ready to be read."""
        asked = "" if self.revision == self.commit else f" (asked for as {self.revision})"
        pulled = f"pulled from {self.hub} {self.repo} at {self.commit}{asked}"
        return DataFolder(
            Path(self.path),
            layout,
            origin=self.origin,
            notes=(pulled, *self.notes),
            companions=Path(self.companions) if self.companions else None,
            recorded={name: stored.sha256 for name, stored in self.files.items()},
        )


def cache_root(environ: Mapping[str, str]) -> Path:
    """Keju's cache: KEJU_CACHE_DIR, else ``keju`` below XDG_CACHE_HOME or ``~/.cache``."""
    if environ.get("KEJU_CACHE_DIR"):
        return Path(environ["KEJU_CACHE_DIR"]).expanduser()
    base = environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "keju"


def receipts(benchmark: str, hub: HubName | None, environ: Mapping[str, str]) -> list[Receipt]:
    """The receipts of `benchmark` from `hub`, or from any hub; unreadable ones are left out."""
    stored = []
    for name in HUB_NAMES if hub is None else (hub,):
        try:
            raw = _receipt_file(benchmark, name, environ).read_bytes()
            stored.append(msgspec.json.decode(raw, type=Receipt))
        except (OSError, msgspec.MsgspecError):
            continue
    return stored


def write_receipt(receipt: Receipt, environ: Mapping[str, str]) -> None:
    """Make a finished pull known, all at once."""
    write_json(_receipt_file(receipt.benchmark, receipt.hub, environ), receipt)


def _receipt_file(benchmark: str, hub: HubName, environ: Mapping[str, str]) -> Path:
    return cache_root(environ) / "receipts" / benchmark / f"{hub}.json"
