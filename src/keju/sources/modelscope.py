"""Pulls a data set from ModelScope over its public HTTP interface, without a client.

MODELSCOPE_ENDPOINT or MODELSCOPE_DOMAIN names another host, and MODELSCOPE_API_TOKEN opens private
data sets. Files go into Keju's cache, in a folder named after the digest of the listing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from keju.errors import DataError
from keju.sources import fetch
from keju.sources.fetch import PulledFile, PullReceipt, Say, cache_root, host_of
from keju.sources.folder import HubRepo, Layout

DEFAULT_ENDPOINT = "https://www.modelscope.cn"
LISTING, OTHER_LISTING = "repo/tree", "repo/files"
"""The route that lists a data set. Some deployments only have the second route."""

_PAGE = 100
_OK = 200


class _ListingEntry(msgspec.Struct, frozen=True, rename="pascal"):
    """One line of a listing."""

    path: str
    type: str = "blob"
    size: int | None = None
    sha256: str = ""


def pull(
    benchmark: str, layout: Layout, source: HubRepo, environ: Mapping[str, str], say: Say
) -> PullReceipt:
    """Download the benchmark's files at `source` into Keju's cache and check them."""
    hub = _HubDataset(source, environ)
    with hub.explaining_errors():
        wanted_entries = [entry for entry in hub.listing() if layout.wants(entry.path)]
        if not wanted_entries:
            raise DataError("hub_holds_none", repo=source.repo, host=hub.host, benchmark=benchmark)
        say(f"{source.repo}: {len(wanted_entries)} files")
        lines = (
            f"{e.path} {e.size} {e.sha256}" for e in sorted(wanted_entries, key=lambda e: e.path)
        )
        repo = source.repo.replace("/", "--")
        folder = cache_root(environ) / "modelscope" / repo / _digest(lines)
        files = {
            entry.path: hub.fetch_file(entry, folder / entry.path, say) for entry in wanted_entries
        }
    return PullReceipt(
        benchmark=benchmark,
        hub="modelscope",
        repo=source.repo,
        revision=source.revision,
        commit=_digest(f"{name} {stored.sha256}" for name, stored in sorted(files.items())),
        path=str(folder),
        files=files,
        notes=("ModelScope names no commit: the one given is a digest of the content",),
    )


def endpoint(environ: Mapping[str, str]) -> str:
    """Return the address of the hub."""
    configured = environ.get("MODELSCOPE_ENDPOINT") or environ.get("MODELSCOPE_DOMAIN")
    address = (configured or DEFAULT_ENDPOINT).rstrip("/")
    return address if "://" in address else f"https://{address}"


class _HubDataset:
    """One data set at one revision on one host."""

    def __init__(self, source: HubRepo, environ: Mapping[str, str]) -> None:
        self._source = source
        self._base = f"{endpoint(environ)}/api/v1/datasets/{quote(source.repo)}"
        self.host = host_of(self._base)
        token = environ.get("MODELSCOPE_API_TOKEN", "").strip()
        self._secrets = (
            {"Authorization": f"Bearer {token}", "Cookie": f"m_session_id={token}"} if token else {}
        )

    def listing(self) -> list[_ListingEntry]:
        """Return all files of the data set."""
        try:
            entries = list(self._entries_of_pages(LISTING))
        except fetch.HostRefused as error:
            if error.status != 404:
                raise
            entries = list(self._entries_of_pages(OTHER_LISTING))
        files = [entry for entry in entries if entry.type != "tree"]
        for entry in files:  # a hub must not choose where files are written: ../x, /x, a\\b
            path = PurePosixPath(entry.path)
            if path.is_absolute() or ".." in path.parts or set(entry.path) & set("\\\0"):
                raise DataError("source_leaves", path=self._source.repo, name=entry.path)
        return files

    def fetch_file(self, entry: _ListingEntry, target: Path, say: Say) -> PulledFile:
        """Download one file, unless a complete copy exists."""
        if entry.sha256 and target.is_file() and fetch.sha256_of(target) == entry.sha256:
            return PulledFile(size=target.stat().st_size, sha256=entry.sha256)
        query = urlencode({"Revision": self._source.revision, "FilePath": entry.path})
        try:
            digest = fetch.download(
                f"{self._base}/repo?{query}",
                target,
                secrets=self._secrets,
                size=entry.size,
                sha256=entry.sha256 or None,
                say=say,
            )
        except fetch.DamagedDownload as error:
            text = f"{entry.path} of {self._source.repo} arrived damaged: {error}; pull it again"
            raise DataError(text) from None
        return PulledFile(size=target.stat().st_size, sha256=digest)

    def _entries_of_pages(self, path: str) -> Iterator[_ListingEntry]:
        """Yield the entries of all pages. Some deployments send the last page repeatedly."""
        listed_paths: set[str] = set()
        for page in range(1, 1_000):
            query = {
                "Revision": self._source.revision,
                "Root": "/",
                "Recursive": "True",
                "PageNumber": page,
                "PageSize": _PAGE,
            }
            raw = fetch.get(f"{self._base}/{path}?{urlencode(query)}", self._secrets)
            try:
                document: dict[str, Any] = msgspec.json.decode(raw, type=dict[str, Any])
                if document.get("Code", _OK) != _OK:
                    raise fetch.HostRefused(404, str(document.get("Message", "")))
                data = document.get("Data") or {}
                files = data.get("Files") if isinstance(data, dict) else data
                entries = msgspec.convert(files or [], type=list[_ListingEntry])
            except msgspec.MsgspecError:
                raise DataError("hub_no_listing", host=self.host, repo=self._source.repo) from None
            fresh = [entry for entry in entries if entry.path not in listed_paths]
            listed_paths.update(entry.path for entry in fresh)
            yield from fresh
            if len(entries) < _PAGE or not fresh:
                return

    @contextmanager
    def explaining_errors(self) -> Iterator[None]:
        """Turn the host's answers into one line that says what to do."""
        name, host = self._source.repo, self.host
        try:
            yield
        except fetch.Unreachable as error:
            raise DataError("hub_modelscope", name=name, problem=error) from None
        except fetch.HostRefused as error:
            text = f"{host} answers {error} for {name}: try again"
            if error.status in (401, 403):
                text = f"{host} refuses {name}: accept its terms there and set MODELSCOPE_API_TOKEN"
            elif error.status == 404:
                revision = self._source.revision
                text = f"data set {name} does not exist with revision '{revision}' on {host}"
            raise DataError(text) from None


def _digest(lines: Iterator[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:40]
