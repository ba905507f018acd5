"""Checks the state that an episode leaves: runs a question's ``verify`` command in the sandbox.

The command gets a copy of the episode's folder and the files next to the questions. It has no
network and none of Keju's variables. No shell reads it, so the id of a question is always a
single argument. Exit code 0 means that the state is right. A command that does not end, or
that cannot be started, says nothing about the state.
"""

from __future__ import annotations

import asyncio
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from keju.benchmarks.expectations import StateCheck, state_check
from keju.config.arms import INSTANCE, PYTHON, WORKDIR, SandboxSettings
from keju.errors import ConfigError, UsageError
from keju.solvers.mcp.placeholders import VARIABLES, fill_arguments, refuse_nul
from keju.solvers.sandbox.backends import choose_owner
from keju.solvers.sandbox.folders import change_owner, remove, walk
from keju.solvers.sandbox.sandbox import NICE, Sandbox
from keju.solvers.sandbox.supervisor import DEVNULL, PIPE, SupervisedProcess, Supervisor
from keju.types import Sample

MOST_FILES: Final = 64 << 20
"""The most bytes of the files next to the questions."""
LONGEST_OUTPUT: Final = 600
"""Characters of a command's output that its record keeps; the end counts."""
CANNOT_START: Final = (126, 127)
"""Exit codes for a program that cannot be run or does not exist."""
# check_state.py, checks/invoices.sh; not {workdir}/made.py
_SCRIPT = re.compile(r"(?!/)[^{}$\0]+\.(?:py|js|mjs|cjs|ts|rb|pl|R|sh)")
_IN_FOLDER = 'cd "$0" && exec "$@"'
_IS_PROGRAM = 'cd "$0" && command -v -- "$1"'


class FolderTooLargeError(OSError):
    """The files of a folder have more bytes than may be copied."""


def copy_folder(source: Path, target: Path, limit: int) -> None:
    """Copy the files and folders below `source`, of at most `limit` bytes. No link is followed."""
    size = 0
    for visited in walk(source):
        place = target / os.fsdecode(visited.path)
        place.mkdir(exist_ok=True)
        for entry in visited.entries:
            with suppress(FileNotFoundError):
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISLNK(status.st_mode):
                    (place / entry.name).symlink_to(
                        os.readlink(entry.name, dir_fd=visited.descriptor)
                    )
                elif stat.S_ISREG(status.st_mode):
                    size += _copy_file(entry.name, visited.descriptor, place, limit - size)


def _copy_file(name: str, folder: int, place: Path, limit: int) -> int:
    """Copy one file of an open folder and return its size."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with open(os.open(name, flags, dir_fd=folder), "rb") as stream:  # noqa: PTH123
        mode = os.fstat(stream.fileno()).st_mode
        if not stat.S_ISREG(mode):
            return 0
        copied = 0
        with (place / name).open("xb") as copy:
            while block := stream.read(1 << 20):
                copied += len(block)
                if copied > limit:
                    raise FolderTooLargeError
                copy.write(block)
        (place / name).chmod(0o755 if mode & stat.S_IXUSR else 0o644)
    return copied


class StateChecker:
    """The state checks of one exam in a session."""

    def __init__(
        self,
        folder: Path,
        samples: Sequence[Sample],
        settings: SandboxSettings,
        supervisor: Supervisor,
        at_once: int,
    ) -> None:
        """`folder` is the folder of the questions, and `at_once` the number of episodes."""
        self._folder, self._samples = folder, samples
        self._settings, self._supervisor = settings, supervisor
        self._slots = asyncio.Semaphore(max(1, min(at_once, os.cpu_count() or 1)))
        self._sandbox: Sandbox | None = None
        self._files = Path()

    async def open(self) -> None:
        """Try the sandbox and the programs. Raise UsageError in one line if they do not work."""
        checks = {check for sample in self._samples if (check := state_check(sample)) is not None}
        words = [word for check in checks for word in check.words]
        scripts = [word for word in words if _SCRIPT.fullmatch(word)]
        for script in sorted(scripts):
            if not (self._folder / script).is_file():
                raise UsageError("verify_no_script", file=script, folder=self._folder)
        self._files = self._supervisor.folder("work")
        try:
            await asyncio.to_thread(self._copy_files, words)
        except FolderTooLargeError:
            raise UsageError(
                "verify_files_large", folder=self._folder, most=MOST_FILES >> 20
            ) from None
        read_only = [*self._settings.read_only, str(self._files)]
        self._sandbox = Sandbox(
            self._settings.model_copy(update={"read_only": read_only}),
            self._supervisor,
            kernels=False,
        )
        await self._sandbox.open()
        for program in sorted({self._program(check) for check in checks}):
            trial = await self._run([*self._shell(_IS_PROGRAM), program], {}, 60.0, None)
            if trial.get("exit") != 0:
                raise UsageError("verify_no_program", program=program)

    async def close(self) -> None:
        """Remove the copied files."""
        if self._files != Path():
            await asyncio.to_thread(remove, self._files)

    async def check(self, sample: Sample, state: Path | None) -> dict[str, Any] | None:
        """Return whether the state of an episode is right; None if the question has no check.

        `state` is the folder of the episode; None where no tool could change anything.
        """
        check = state_check(sample)
        if check is None or state is None:
            return None
        async with self._slots:
            try:
                return await self._check_folder(check, sample, state)
            except FolderTooLargeError:
                return {"problem": "the folder is too large"}
            except (OSError, ConfigError) as error:
                return {"problem": " ".join(str(error).split())[:LONGEST_OUTPUT]}

    async def _check_folder(self, check: StateCheck, sample: Sample, state: Path) -> dict[str, Any]:
        values = {INSTANCE: sample.id, WORKDIR: ""}
        refuse_nul(values)
        return await self._run(check.words, values, check.timeout, state)

    def _program(self, check: StateCheck) -> str:
        """Return the program of a command, as the sandbox finds it."""
        assert self._sandbox is not None
        return self._sandbox.backend.python if check.words[0] == PYTHON else check.words[0]

    def _shell(self, script: str) -> list[str]:
        return ["/bin/sh", "-c", script, str(self._files)]

    def _copy_files(self, words: Iterable[str]) -> None:
        """Copy the files next to the questions, and the folders in which commands name files."""
        self._files.chmod(0o755)
        folders = {Path(word).parts[0] for word in words if "/" in word.strip("/")}
        size = 0
        with os.scandir(self._folder) as entries:
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                if entry.is_file():
                    size += entry.stat().st_size
                    if size > MOST_FILES:
                        raise FolderTooLargeError
                    copy = self._files / entry.name
                    copy.write_bytes(Path(entry.path).read_bytes())
                    copy.chmod(0o755 if os.access(entry.path, os.X_OK) else 0o644)
                elif entry.name in folders and entry.is_dir(follow_symlinks=False):
                    copy_folder(Path(entry.path), self._files / entry.name, MOST_FILES - size)

    async def _run(
        self,
        words: Sequence[str],
        values: Mapping[str, str],
        timeout: float,
        state: Path | None,
    ) -> dict[str, Any]:
        """Run a command with a copy of the state; the values of placeholders are data."""
        sandbox = self._sandbox
        assert sandbox is not None
        user = choose_owner() if sandbox.backend.name != "none" else None
        work = self._supervisor.folder("work")
        try:
            if state is not None:
                await asyncio.to_thread(copy_folder, state, work, self._settings.max_work_bytes)
            await asyncio.to_thread(change_owner, work, user)
            room = sandbox.room(work, user)
        except BaseException:
            await asyncio.to_thread(remove, work)
            raise
        command = list(words)
        if values:
            values = {**values, WORKDIR: sandbox.backend.inside(room)[0]}
            program = sandbox.backend.python if words[0] == PYTHON else words[0]
            arguments = fill_arguments(program, words[1:], values)
            variables = [f"{VARIABLES[name]}={value}" for name, value in values.items()]
            command = [*self._shell(_IN_FOLDER), program, *arguments]
            command = ["/usr/bin/env", *variables, *command]
        launch = sandbox.backend.launch(room, command)
        process = await self._supervisor.start(
            launch.argv,
            env=launch.env,
            cwd=launch.cwd,
            stdin=DEVNULL,
            stderr=PIPE,
            memory=room.memory,
            nice=NICE,
            after=launch.after,
            remove=[room.run, work],
        )
        try:
            async with asyncio.timeout(timeout):
                output = await asyncio.gather(*map(_read_end, _streams(process)))
                code = await process.wait()
        except TimeoutError:
            return {"problem": f"no end within {timeout:g} s"}
        finally:
            await process.end()
        text = "".join(output)[-LONGEST_OUTPUT:].strip()
        if code in CANNOT_START or process.reason is not None:
            return {"problem": process.reason or text or f"exit code {code}"}
        return {"ok": code == 0, "exit": code} | ({"output": text} if text else {})


def _streams(process: SupervisedProcess) -> Iterator[asyncio.StreamReader]:
    for stream in (process.stdout, process.stderr):
        assert stream is not None
        yield stream


async def _read_end(stream: asyncio.StreamReader) -> str:
    """Read a stream to its end, and return its last characters."""
    tail = b""
    while block := await stream.read(1 << 16):
        tail = (tail + block)[-4 * LONGEST_OUTPUT :]
    return tail.decode("utf-8", "replace")[-LONGEST_OUTPUT:]
