"""Folders that change while they are read: links, depth, odd names, locked folders, pipes."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from keju.solvers.notebook.cells import render_listing
from keju.solvers.sandbox import folders
from keju.solvers.sandbox.folders import change_owner, remove, size_of, socket_path, tree_of
from tests.solvers.sandbox.rooms import plain_user

NESTED = "import os\nfor _ in range({depth}): os.mkdir('d'); os.chdir('d')"


@pytest.fixture(params=["openat2", "openat"])
def _either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the system call that follows no link, and without it, as in an old kernel."""
    if request.param == "openat":

        def not_there(*_: object) -> int:
            raise OSError(38, "no such call")

        monkeypatch.setattr(folders, "_openat2", not_there)


@pytest.fixture
def exchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A work folder whose folder becomes a link to the host's as soon as it has been listed."""
    host, work = tmp_path / "host", tmp_path / "work"
    for folder in (host / "private", work / "a" / "private"):
        folder.mkdir(parents=True)
    (host / "secret").write_bytes(bytes(100_000))
    (host / "private" / "key").touch()
    scan = os.scandir

    def scan_and_exchange(place: Any) -> Any:
        entries = scan(place)
        entry_list = list(entries)
        if any(entry.name == "a" for entry in entry_list) and not (work / "a").is_symlink():
            for entry in entry_list:
                entry.is_dir(follow_symlinks=False)
            (work / "a").rename(work / "b")
            (work / "a").symlink_to(host)
        return _Entries(entry_list)

    monkeypatch.setattr(os, "scandir", scan_and_exchange)
    return work


class _Entries:
    def __init__(self, entries: list[os.DirEntry[str]]) -> None:
        self._entries = entries

    def __enter__(self) -> Iterator[os.DirEntry[str]]:
        return iter(self._entries)

    def __exit__(self, *_: object) -> None:
        pass

    def __iter__(self) -> Iterator[os.DirEntry[str]]:
        return iter(self._entries)


@pytest.mark.usefixtures("_either_way")
def test_a_folder_that_becomes_a_link_is_not_followed(exchanged: Path) -> None:
    assert tree_of(exchanged) == {"a": {}}


@pytest.mark.usefixtures("_either_way")
def test_sizes_and_owners_of_the_host_stay_untouched(exchanged: Path) -> None:
    assert size_of((exchanged,), 10**9) <= 3 * folders.BLOCK
    (exchanged / "a").unlink()
    (exchanged / "b").rename(exchanged / "a")
    if os.getuid() == 0:
        change_owner(exchanged, 12345)
        assert (exchanged.parent / "host" / "secret").stat().st_uid == 0
        assert exchanged.stat().st_uid == 12345


@pytest.mark.usefixtures("_either_way")
def test_links_are_named_and_never_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc")
    (tmp_path / "file").touch()
    (tmp_path / "files").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        assert tree_of(tmp_path) == {"files/": {}, "files": ["file", "link", "pipe", "socket"]}
        with socket_path(tmp_path, "socket") as place:
            assert Path(place).is_socket()
    for name in ("link", "file", "pipe"):
        with pytest.raises(OSError, match=r"socket|symbolic"), socket_path(tmp_path, name):
            pass
    (tmp_path / "work").symlink_to(tmp_path)
    with pytest.raises(OSError, match=r"Not a directory|symbolic"):
        tree_of(tmp_path / "work")


def test_a_listing_is_short_json_whatever_is_there(tmp_path: Path) -> None:
    code = NESTED.format(depth=1400)
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\x1b[2J\n")).touch()
    try:
        text = render_listing(tree_of(tmp_path))
        assert "\x1b" not in text
        inner, depth = json.loads(text), 0
        while "d" in inner:
            inner, depth = inner["d"], depth + 1
        assert (inner, depth) == ({"more": 1}, folders.DEEPEST_LISTED)
        assert size_of((tmp_path,), 10**9) == 1401 * folders.BLOCK
        change_owner(tmp_path, os.getuid())
    finally:
        remove(tmp_path / "d")
    assert not (tmp_path / "d").exists()


def test_a_listing_counts_what_it_does_not_name(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"f{number}").touch()
    assert tree_of(tmp_path, 3) == {"files": ["f0", "f1", "f2"], "more": 2}


def test_too_deep_counts_as_too_large(tmp_path: Path) -> None:
    code = NESTED.format(depth=2000)
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    try:
        assert size_of((tmp_path,), 10**9) == 10**9 + 1
    finally:
        remove(tmp_path / "d")


LOCKED = """
import os, stat
from pathlib import Path
from keju.solvers.sandbox.folders import remove, size_of, tree_of

work = Path("work")
(work / "locked" / "deeper").mkdir(parents=True)
(work / "locked" / "deeper" / "large").write_bytes(bytes(1_000_000))
for folder in (work / "locked" / "deeper", work / "locked", work):
    folder.chmod(0)
print(size_of((work,), 10**9) > 10**6)
print(tree_of(work))
for folder in (work / "locked" / "deeper", work / "locked", work):
    folder.chmod(0)
remove(work)
print(os.path.lexists(work))
"""


@pytest.mark.skipif(os.getuid() != 0, reason="becomes a plain user")
def test_folders_without_rights_are_measured_listed_and_removed() -> None:
    with plain_user() as user:
        ran = user.run(LOCKED)
        expected = ["True", "{'locked': {'deeper': {'files': ['large']}}}", "False"]
        assert ran.stdout.splitlines() == expected, ran.stderr


@pytest.mark.parametrize("measure", [tree_of, lambda folder: size_of((folder,), 10**9)])
def test_no_file_stays_open(measure: Callable[[Path], Any], tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        measure(tmp_path)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
