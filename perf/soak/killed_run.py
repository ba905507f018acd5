"""A run that is killed and started again until it is done; and what it leaves behind each time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple
from uuid import uuid4

from keju.runs.journal import FILE, Records
from perf.soak.case import CommandResult

MARK: Final = "SOAK_MARK"
"""A word in the environment of a command, and of all that it starts."""
CLEARED: Final = 30.0
"""Seconds within which everything of a command is gone, on a busy machine."""
INTERRUPTED, INCOMPLETE, NOT_READY = 130, 4, 5
PASSING: Final = ("endpoint_not_ready", "endpoint_unreachable", "no_endpoint_answers")
"""Why a run may refuse to begin while its endpoints misbehave."""
MOST_STARTS: Final = 40
NEVER_MEANT: Final = ("Traceback", "was never retrieved", "was destroyed but it is pending")


class Kill(NamedTuple):
    """When a command gets a signal, in records of its run, and how often."""

    records: int
    signal: int
    times: int = 1


class KilledRun:
    """One run and the commands that work on it, one after the other."""

    def __init__(
        self,
        words: Callable[[int], Sequence[str]],
        run: Path,
        environ: dict[str, str],
        kills: Sequence[Kill],
        other_pids: Callable[[], Sequence[int]] = lambda: (),
    ) -> None:
        """`words` gives the command of a start, by its number from 0; `run` is the run's folder.

        `others` are processes that must be gone with a command, beside those that it started.
        """
        self.run = run
        self.signals: Counter[str] = Counter()
        """Signals that met a command at work."""
        self.ends: Counter[int] = Counter()
        """Exit codes."""
        self.document: dict[str, Any] | None = None
        """The results, when it is done."""
        self.problem = ""
        self.abandoned = False
        """Whether it is left as it is after the first kill."""
        self.mark = uuid4().hex
        self._words, self._environ = words, environ | {MARK: self.mark}
        self._kills, self._other_pids = sorted(kills), other_pids
        self._out, self._err = run.parent / f"{run.name}.out", run.parent / f"{run.name}.err"
        self._child: subprocess.Popen[bytes] | None = None
        self._starts = self._before = self._read = self.records = 0
        self._last_kill: Kill | None = None

    @property
    def hard_kills(self) -> int:
        """Kills that let nothing in flight come in."""
        return self.signals["SIGKILL"] + self.signals["second SIGINT"]

    @property
    def over(self) -> bool:
        """Whether there is nothing more to do: it is done, or something went wrong."""
        abandoned_run = self.abandoned and self._last_kill is not None and self._child is None
        return self.document is not None or bool(self.problem) or abandoned_run

    @property
    def replies(self) -> int:
        """Records that hold a reply."""
        return sum(record.reply.fault is None for record in Records(self.run))

    def step(self) -> None:
        """Start it, kill it or see how it ended, as it stands."""
        self._count()
        if self._child is None:
            self._start()
        elif self._child.poll() is not None:
            self._check_end(self._child.returncode)
        # Not before the command has answered something: it hears no signal before.
        elif self._last_kill is None and self.records > self._before and self._is_due():
            self._kill(self._kills.pop(0))

    def _is_due(self) -> bool:
        """Whether the moment of the next kill has come."""
        return bool(self._kills) and self._kills[0].records <= self.records

    def end(self) -> None:
        """End what still runs."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()

    def _count(self) -> None:
        """Count the whole lines of the journal; a torn end is cut off, whole lines stay."""
        journal = self.run / FILE
        if journal.exists():
            with journal.open("rb") as file:
                file.seek(self._read)
                new = file.read()
            self._read += new.rfind(b"\n") + 1
            self.records += new.count(b"\n")

    def _start(self) -> None:
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self._child = subprocess.Popen(
                list(self._words(self._starts)),
                cwd=self.run.parent,
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )
        self._starts += 1
        self._before, self._last_kill = self.records, None
        if self._starts > MOST_STARTS:
            self.problem = f"started {self._starts} times, and not done"

    def _kill(self, kill: Kill) -> None:
        assert self._child is not None
        self._last_kill = kill
        for number in range(kill.times):
            self._child.send_signal(kill.signal)
            name = signal.Signals(kill.signal).name
            self.signals[f"second {name}" if number else name] += 1
            time.sleep(0.05 if kill.times > 1 else 0)

    def _check_end(self, code: int) -> None:
        """Judge how a command ended."""
        self._child = None
        self.ends[code] += 1
        out, err = (path.read_bytes().decode("utf-8", "replace") for path in (self._out, self._err))
        process = CommandResult(code, out, err)
        self.problem = process.broken or self._wrong_end(process)
        if not self.problem and (survivors := self._survivors()):
            self.problem = f"still there after its end ({code}): {', '.join(survivors)[:300]}"
        if not self.problem and code == 0:
            self.document = json.loads(out)

    def _survivors(self) -> list[str]:
        """What is still there when all of a command should be gone."""
        deadline = time.monotonic() + CLEARED
        while True:
            survivors = [*marked(self.mark), *map(str, self._other_pids())]
            if not survivors or time.monotonic() > deadline:
                return survivors
            time.sleep(0.05)

    def _wrong_end(self, process: CommandResult) -> str:
        """What is wrong with an exit code; empty if it is documented for what was done."""
        last_words = process.err.strip()[-300:]
        if any(word in process.err for word in NEVER_MEANT):
            return f"not meant for a user: {last_words}"
        if process.code in (0, INCOMPLETE):
            return ""  # it was done, or has to be resumed
        if process.code == NOT_READY and _error_code(process.out) in PASSING:
            return ""
        last_kill, expected = self._last_kill, None
        if last_kill is not None:
            late = process.code == -last_kill.signal and _is_whole(process.out)
            # All was printed when the signal came: what is left is to end, by whatever means.
            dies_of_signal = last_kill.signal == signal.SIGKILL or late
            expected = -last_kill.signal if dies_of_signal else INTERRUPTED
        return (
            "" if process.code == expected else f"exit {process.code}, not {expected}: {last_words}"
        )


def _error_code(out: str) -> str:
    try:
        return str(json.loads(out)["error"]["code"])
    except (ValueError, KeyError, TypeError):
        return ""


def _is_whole(out: str) -> bool:
    """Whether results were printed, to the end."""
    try:
        return bool(json.loads(out)["complete"])
    except (ValueError, KeyError, TypeError):
        return False


def marked(mark: str) -> list[str]:
    """The commands of the processes that have a word in their environment, but for this one."""
    commands = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            around = (process / "environ").read_bytes()
            if int(process.name) != os.getpid() and mark.encode() in around:
                command = (process / "cmdline").read_bytes().replace(b"\0", b" ")
                commands.append(command.decode("utf-8", "replace"))
        except OSError:
            continue  # gone in the meantime, or another user's
    return commands
