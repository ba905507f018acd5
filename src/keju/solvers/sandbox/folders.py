"""Reads and changes folders in which a model's code may work at the same time.

Such code can replace a folder by a link to a folder of the host between two steps of Keju. So every
access here starts at an open folder and follows no link: the kernel of the system refuses it. No
function is recursive, so folders may be nested to any depth. Names are bytes.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
import subprocess
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from keju.solvers.sandbox.supervisor_process import mapped_bytes, removal_commands

OPENAT2: Final = 437
"""The system call's number, the same on every processor; Linux has it since version 5.6."""
RESOLVE_NO_LINKS: Final = 0x01 | 0x02 | 0x04 | 0x08
"""Flags of openat2: no other file system, no link of /proc, no symbolic link, nothing above the
start."""
NOT_AVAILABLE: Final = (errno.ENOSYS, errno.EPERM, errno.EINVAL, errno.E2BIG)
"""Errors of openat2 in an old kernel, or with a filter that does not allow it."""
FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
PATH_ONLY: Final = getattr(os, "O_PATH", os.O_RDONLY)
DEEPEST: Final = 3500
"""Longest path in bytes; the system accepts no path of more than 4,096."""
MOST_ENTRIES: Final = 200_000
BLOCK: Final = 4096
"""The least number of bytes that an entry of a folder takes."""
MOST_PENDING: Final = 16
PENDING: Final = 64 << 20
"""Number of files that may wait in sockets, and the bytes that each further file counts for."""
MOST_LISTED: Final = 2000
"""Number of files that a listing names; the others are counted."""
DEEPEST_LISTED: Final = 64
"""Levels of folders that a listing shows; deeper entries are counted."""


class TooDeepError(OSError):
    """Folders are nested deeper than a path can be long."""

    def __init__(self) -> None:
        super().__init__(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))


class OpenFolder(NamedTuple):
    """A folder that is open while it is visited."""

    path: bytes
    """The path from the start; empty for the start itself."""
    descriptor: int
    entries: Iterator[os.DirEntry[str]]


@contextmanager
def open_folder(folder: Path) -> Iterator[int]:
    """Open a folder; raise OSError if it is a link or not a folder."""
    try:
        descriptor = os.open(folder, FOLDER)
    except PermissionError:
        with open_folder(folder.parent) as parent:
            unlock(parent, os.fsencode(folder.name))
        descriptor = os.open(folder, FOLDER)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_below(start: int, path: bytes, flags: int = FOLDER) -> int:
    """Open the entry at `path` below an open folder; raise OSError if any part of it is a link."""
    flags |= os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return _openat2(start, path or b".", flags)
    except OSError as error:
        if error.errno not in NOT_AVAILABLE:
            raise
    descriptor = os.open(".", FOLDER, dir_fd=start)
    *folders, last_name = path.split(b"/") if path else [b"."]
    try:
        for name in folders:
            below = os.open(name, FOLDER, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = below
        return os.open(last_name, flags, dir_fd=descriptor)
    finally:
        os.close(descriptor)


def _openat2(start: int, path: bytes, flags: int) -> int:
    """Call openat2, which the C library does not offer."""
    how = struct.pack("QQQ", flags, 0, RESOLVE_NO_LINKS)
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t]
    call.restype = ctypes.c_long
    descriptor: int = call(OPENAT2, start, path, how, len(how))
    if descriptor < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return descriptor


def walk(folder: Path) -> Iterator[OpenFolder]:
    """Yield a folder and all folders below it, parents first; raise TooDeepError for too long
    paths.

    Entries that disappear meanwhile, or change their type, are left out.
    """
    with open_folder(folder) as start:
        waiting = deque([b""])
        while waiting:
            path = waiting.popleft()
            if len(path) > DEEPEST:
                raise TooDeepError
            with (
                suppress(OSError),
                _open_visited(start, path) as descriptor,
                os.scandir(descriptor) as entries,
            ):
                yield OpenFolder(path, descriptor, _note_folders(entries, path, waiting))


def _note_folders(
    entries: Iterable[os.DirEntry[str]], path: bytes, waiting: deque[bytes]
) -> Iterator[os.DirEntry[str]]:
    """Yield the entries of a folder, and note which of them must be visited."""
    for entry in entries:
        with suppress(OSError):
            if entry.is_dir(follow_symlinks=False):
                waiting.append(_join_path(path, entry.name))
        yield entry


def _join_path(path: bytes, name: str) -> bytes:
    return path + b"/" + os.fsencode(name) if path else os.fsencode(name)


@contextmanager
def _open_visited(start: int, path: bytes) -> Iterator[int]:
    """Open a folder, even if its owner has locked it (mode 000)."""
    try:
        descriptor = open_below(start, path)
    except PermissionError:
        unlock(start, path)
        descriptor = open_below(start, path)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def unlock(start: int, path: bytes) -> None:
    """Restore all rights of a folder's owner; raise OSError if Keju does not own it."""
    descriptor = open_below(start, path, PATH_ONLY | os.O_DIRECTORY)
    try:
        mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
        os.chmod(f"/proc/self/fd/{descriptor}", mode | stat.S_IRWXU)  # noqa: PTH101
    finally:
        os.close(descriptor)


def size_of(folders: Iterable[Path], limit: int) -> int:
    """Return the bytes on disk below folders, counted up to `limit`.

    Links are not followed. Folders that cannot be measured count as more than `limit`.
    """
    size = entries = 0
    try:
        for folder in folders:
            for visited in walk(folder):
                for entry in visited.entries:
                    entries += 1
                    with suppress(OSError):
                        blocks = entry.stat(follow_symlinks=False).st_blocks
                        size += max(blocks * 512, BLOCK)
                    if size > limit or entries > MOST_ENTRIES:
                        return max(size, limit + 1)
    except TooDeepError:
        return limit + 1
    except FileNotFoundError:  # the folder of the sockets was removed with its kernel
        return size
    return size


def count_deleted_bytes(pids: Iterable[int], folder: Path) -> int:
    """Return the bytes on disk of deleted files that processes still hold open.

    `folder` is where the processes can create files. Files that wait in a socket until a process
    receives them cannot be measured. If there are more than MOST_PENDING, each counts as PENDING.
    """
    disk = folder.stat().st_dev
    sizes: dict[int, int] = {}
    pending = 0
    pids = list(pids)
    for pid in pids:
        with suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208
                with suppress(OSError):
                    status = os.stat(f"/proc/{pid}/fd/{name}")  # noqa: PTH116
                    if stat.S_ISSOCK(status.st_mode):
                        pending += _count_waiting_files(Path(f"/proc/{pid}/fdinfo/{name}"))
                    elif stat.S_ISREG(status.st_mode) and not status.st_nlink:
                        sizes[status.st_ino] = (
                            status.st_blocks * 512 if status.st_dev == disk else 0
                        )
    pending_bytes = pending * PENDING if pending > MOST_PENDING else 0
    return max(sum(sizes.values()), mapped_bytes(pids)[1]) + pending_bytes


def _count_waiting_files(info_file: Path) -> int:
    """Return how many files wait in a socket, from the line ``scm_fds: 3``."""
    for line in info_file.read_bytes().splitlines():
        if line.startswith(b"scm_fds:"):
            return int(line.split()[1])
    return 0


def change_owner(folder: Path, user: int | None) -> None:
    """Make a user the owner of a folder and everything in it; links are not followed."""
    if user is None:
        return
    for visited in walk(folder):
        os.fchown(visited.descriptor, user, user)
        for entry in visited.entries:
            with suppress(FileNotFoundError):
                os.chown(entry.name, user, user, dir_fd=visited.descriptor, follow_symlinks=False)


def tree_of(folder: Path, limit: int = MOST_LISTED) -> dict[str, Any]:
    """Return the files of a folder by name, folders as nested objects; links are only named.

    The key ``files`` holds the names of files, ``more`` the number of entries that are not listed.
    """
    tree: dict[str, Any] = {}
    places: dict[bytes, tuple[dict[str, Any], int]] = {b"": (tree, 0)}
    with suppress(TooDeepError):
        for visited in walk(folder):
            if visited.path not in places:  # below a folder that is not listed
                continue
            node, depth = places.pop(visited.path)
            entries = sorted(visited.entries, key=lambda entry: entry.name)
            listed = entries[: max(0, limit)] if depth < DEEPEST_LISTED else []
            limit -= len(listed)
            files = []
            for entry in listed:
                name = entry.name.encode(errors="replace").decode()
                if not _is_folder(entry):
                    files.append(name)
                    continue
                key = f"{name}/" if name in ("files", "more") else name
                node[key] = {}
                places[_join_path(visited.path, entry.name)] = node[key], depth + 1
            if files:
                node["files"] = files
            if unlisted := len(entries) - len(listed):
                node["more"] = unlisted
            if not places:
                break
    return tree


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


@contextmanager
def socket_path(folder: Path, name: str) -> Iterator[str]:
    """Yield a path that leads to a socket in a folder, and to nothing else.

    Raises FileNotFoundError if there is none, and OSError if it is a link, a file or on another
    file system. A connection to `folder`/`name` itself would follow a link to any socket of the
    host.
    """
    with open_folder(folder) as start:
        descriptor = open_below(start, os.fsencode(name), PATH_ONLY)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISSOCK(status.st_mode) or status.st_dev != os.fstat(start).st_dev:
                raise OSError(errno.ENOTSOCK, os.strerror(errno.ENOTSOCK))
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)


def remove(*folders: str | Path) -> None:
    """Remove folders of a model's code after that code has ended."""
    for argv in removal_commands([str(folder) for folder in folders]):
        subprocess.run(argv, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
