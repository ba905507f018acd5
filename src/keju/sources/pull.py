"""Pulls a benchmark's data from a hub: fetch, check, and then write a receipt."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from keju.errors import DataError
from keju.sources import fetch, huggingface, modelscope
from keju.sources.fetch import PullReceipt, Say, cache_root, load_receipts, write_receipt
from keju.sources.folder import CompanionFiles, HubName, HubRepo, Layout

DEFAULT_HUB: HubName = "huggingface"
CLIENTS: dict[HubName, Callable[[str, Layout, HubRepo, Mapping[str, str], Say], PullReceipt]] = {
    "huggingface": huggingface.pull,
    "modelscope": modelscope.pull,
}
GITHUB_FILES = "https://raw.githubusercontent.com"
"""The host of files on GitHub; GITHUB_RAW_ENDPOINT names another host with the same paths."""


def hub_repo(
    benchmark: str, layout: Layout, hub: HubName, repo: str | None, revision: str | None
) -> HubRepo:
    """Return the data set to pull: the benchmark's published one on `hub`, or the requested one."""
    if not layout.hubs and repo is None:
        raise DataError("pull_no_hub", benchmark=benchmark)
    published_repo = layout.hubs.get(hub)
    if repo is None:
        if published_repo is None:
            hub_names = " or ".join(layout.hubs)
            raise DataError("pull_not_on", benchmark=benchmark, hub=hub, others=hub_names)
        repo = published_repo.repo
    default = "master" if hub == "modelscope" else "main"
    if published_repo is not None and repo == published_repo.repo:
        default = published_repo.revision
    if repo.count("/") != 1 or not all(repo.split("/")):
        raise DataError("hub_no_name", repo=repo)
    return HubRepo(repo, revision or default)


def _find_in_cache(
    benchmark: str, hub: HubName | None, requested: HubRepo | None, environ: Mapping[str, str]
) -> PullReceipt:
    """Return the receipt of undamaged data in the cache, of any source if none is requested."""
    for receipt in load_receipts(benchmark, hub, environ):
        at_source = requested in (None, HubRepo(receipt.repo, receipt.revision))
        if at_source and not receipt.find_damage():
            return receipt
    raise DataError("pull_offline", benchmark=benchmark)


def pull(
    benchmark: str,
    layout: Layout | None,
    hub: HubName | None = None,
    *,
    repo: str | None = None,
    revision: str | None = None,
    offline: bool = False,
    environ: Mapping[str, str] | None = None,
    say: Say = fetch.to_stderr,
) -> PullReceipt:
    """Pull a benchmark's data. Offline, the data must be in the cache."""
    environ = os.environ if environ is None else environ
    if layout is None:
        raise DataError("pull_no_data", benchmark=benchmark)
    source = hub_repo(benchmark, layout, hub or DEFAULT_HUB, repo, revision)
    if offline:
        requested = source if repo or revision else None
        return _find_in_cache(benchmark, hub, requested, environ)
    receipt = CLIENTS[hub or DEFAULT_HUB](benchmark, layout, source, environ, say)
    companions = layout.companions
    if companions is not None and not set(companions.names) <= set(receipt.files):
        receipt = _add_companions(receipt, layout, companions, environ, say)
    write_receipt(receipt, environ)
    return receipt


def _add_companions(
    receipt: PullReceipt,
    layout: Layout,
    companions: CompanionFiles,
    environ: Mapping[str, str],
    say: Say,
) -> PullReceipt:
    """Add the official files that are not on the hub. If they are unreachable, add a note
    instead."""
    base = (environ.get("GITHUB_RAW_ENDPOINT") or GITHUB_FILES).rstrip("/")
    folder = cache_root(environ) / "github" / companions.repo.replace("/", "--") / companions.commit
    try:
        for name in companions.names:
            target, digest = folder / name, layout.sha256(name)
            if not target.is_file() or fetch.sha256_of(target) != digest:
                url = f"{base}/{companions.repo}/{companions.commit}/{name}"
                fetch.download(url, target, secrets={}, sha256=digest)
    except (fetch.HostRefused, fetch.Unreachable, fetch.DamagedDownload) as error:
        note = (
            f"{companions.repo} was out of reach ({error}): {companions.needed_for} "
            f"need {Path(companions.names[0]).parent}/ of it, given with --data-dir"
        )
        say(note)
        return msgspec.structs.replace(receipt, notes=(*receipt.notes, note))
    source = f"{Path(companions.names[0]).parent}/ from {companions.repo} at {companions.commit}"
    return msgspec.structs.replace(receipt, companions=str(folder), notes=(*receipt.notes, source))
