"""Pulls a data set from the Hugging Face hub through its own client and cache.

The client uses its own settings: HF_HOME, HF_HUB_CACHE, HF_TOKEN, and HF_ENDPOINT for a mirror. It
checks sizes. Keju also checks every file's hash against the repository's listing.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from keju.errors import DataError, MissingExtra
from keju.sources.fetch import PulledFile, PullReceipt, Say, host_of
from keju.sources.folder import HubRepo, Layout

if TYPE_CHECKING:
    from huggingface_hub.hf_api import RepoFile

DEFAULT_ENDPOINT = "https://huggingface.co"

_TRUE = frozenset({"1", "ON", "YES", "TRUE"})
"""Values of the client's variables that mean yes."""


def endpoint(environ: Mapping[str, str]) -> str:
    """Return the address of the hub."""
    return environ.get("HF_ENDPOINT") or DEFAULT_ENDPOINT


def pull(
    benchmark: str, layout: Layout, source: HubRepo, environ: Mapping[str, str], say: Say
) -> PullReceipt:
    """Download the benchmark's files at `source` into the client's cache and check them."""
    try:
        import huggingface_hub as client
        from huggingface_hub.hf_api import RepoFile
    except ImportError:
        raise MissingExtra("pulling from Hugging Face", "data") from None

    if environ.get("HF_HUB_OFFLINE", "").upper() in _TRUE:
        raise DataError("hub_offline")
    address = endpoint(environ)
    token = environ.get("HF_TOKEN", "").strip() or None
    if token is not None and not token.isprintable():
        raise DataError("hub_token")
    cache = environ.get("HF_HUB_CACHE") or None
    if cache is None and environ.get("HF_HOME"):
        cache = str(Path(environ["HF_HOME"]) / "hub")
    with _explaining_errors(source, address), _hide_progress_bars():
        api = client.HfApi(endpoint=address, token=token)
        commit = api.dataset_info(source.repo, revision=source.revision).sha or source.revision
        entries = api.list_repo_tree(
            source.repo, repo_type="dataset", revision=commit, recursive=True
        )
        files = [entry for entry in entries if isinstance(entry, RepoFile)]
        wanted_files = [file for file in files if layout.wants(file.path)]
        if not wanted_files:
            raise DataError("hub_no_files", repo=source.repo, commit=commit, benchmark=benchmark)
        say(f"{source.repo}: {len(wanted_files)} files")
        path = client.snapshot_download(
            source.repo,
            repo_type="dataset",
            revision=commit,
            allow_patterns=[file.path for file in wanted_files],
            cache_dir=cache,
            endpoint=address,
            token=token,
        )
    return PullReceipt(
        benchmark=benchmark,
        hub="huggingface",
        repo=source.repo,
        revision=source.revision,
        commit=commit,
        path=path,
        files={file.path: _check_file(file, Path(path), source) for file in wanted_files},
    )


def _check_file(entry: RepoFile, folder: Path, source: HubRepo) -> PulledFile:
    """Compare a file with the listing's hash; remove a wrong file from the cache."""
    file = folder / entry.path
    size = file.stat().st_size
    with file.open("rb") as content:
        sha256 = hashlib.file_digest(content, "sha256").hexdigest()
    if entry.lfs is not None:
        is_intact = sha256 == entry.lfs.sha256
    else:
        blob = hashlib.sha1(f"blob {size}\0".encode(), usedforsecurity=False)
        with file.open("rb") as content:
            while chunk := content.read(1 << 20):
                blob.update(chunk)
        is_intact = blob.hexdigest() == entry.blob_id
    if not is_intact:
        file.resolve().unlink(missing_ok=True)
        file.unlink(missing_ok=True)
        raise DataError("hub_damaged", path=entry.path, repo=source.repo)
    return PulledFile(size=size, sha256=sha256)


@contextmanager
def _explaining_errors(source: HubRepo, endpoint: str) -> Iterator[None]:
    """Turn the client's errors into one line that says what to do."""
    from httpx import HTTPError
    from huggingface_hub import errors

    host = host_of(endpoint)
    try:
        yield
    except errors.GatedRepoError:
        raise DataError("hub_gated", repo=source.repo, host=host) from None
    except errors.RevisionNotFoundError:
        raise DataError(
            "hub_no_revision", repo=source.repo, host=host, revision=source.revision
        ) from None
    except errors.RepositoryNotFoundError:
        raise DataError("hub_no_repo", repo=source.repo, host=host) from None
    except errors.HfHubHTTPError as error:
        status = error.response.status_code
        if status in (401, 403):
            text = f"{host} refuses {source.repo}: accept its terms there and set HF_TOKEN"
            raise DataError(text) from None
        raise DataError("hub_answers", host=host, status=status, repo=source.repo) from None
    except errors.HFValidationError:
        raise DataError("hub_no_name", repo=source.repo) from None
    except (HTTPError, OSError, RuntimeError) as error:
        cause = " ".join(str(error).split())[:160] or type(error).__name__
        raise DataError("hub_cannot_pull", repo=source.repo, host=host, cause=cause) from None


@contextmanager
def _hide_progress_bars() -> Iterator[None]:
    """Disable progress bars unless stderr is a terminal."""
    from huggingface_hub.utils.tqdm import (
        are_progress_bars_disabled,
        disable_progress_bars,
        enable_progress_bars,
    )

    if sys.stderr.isatty() or are_progress_bars_disabled():
        yield
        return
    disable_progress_bars()
    try:
        yield
    finally:
        enable_progress_bars()
