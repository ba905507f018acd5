"""Evaluate a condition in SQL in a child process that has limits and can be killed.

DuckDB's own limits do not bound every function (``range(1000000000)`` ignores them). Therefore the
operating system sets the limits, and the viewer kills the child when time is up or when the browser
has disconnected.

The viewer starts ``python -P -m keju.viewer.condition`` and writes one line of JSON, a
`ConditionQuery`. For each block of replies it then writes one line with the number of bytes that
DuckDB should read at once. The child answers the task and each block with a `ConditionResult`, also
one line of JSON.
"""

from __future__ import annotations

import os
import re
import selectors
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Any, Final

import msgspec

from keju.errors import UsageError
from keju.viewer.damage import PageStopped

START: Final = 60.0
"""Seconds that the child may take to start on a busy machine; no condition runs yet."""
PATIENCE: Final = 10.0
"""Seconds that a condition may take for the first block of lines."""
PATIENCE_MORE: Final = 0.5
"""Seconds that each further block adds; unused seconds of earlier blocks count too."""
MEMORY: Final = 2 << 30
"""Bytes of address space that the child may use."""
AT_ONCE: Final = 2
"""Conditions that are evaluated at the same time; others wait."""
_CHECK_SECONDS: Final = 0.1
"""Seconds between two checks whether the browser has disconnected."""
_ANSWER_LIMIT: Final = 1 << 26
"""Bytes that one answer of the child may have."""
_EXIT_SECONDS: Final = 5.0
"""Seconds to wait for a child whose output has ended."""
_ERRORS_LIMIT: Final = 1 << 14
"""The number of bytes of the child's error output that are searched."""
# The error output of a process that runs out of memory: `MemoryError`, `std::bad_alloc`, `Out of
# Memory Error`, `Cannot allocate memory`.
_MEMORY_ENDED: Final = re.compile(rb"MemoryError|bad_alloc|out of memory|annot allocate", re.I)
_DEATH_SIGNAL: Final = 1
"""PR_SET_PDEATHSIG of Linux: the kernel kills the child when the viewer dies."""

_slots = threading.BoundedSemaphore(AT_ONCE)


class ConditionQuery(msgspec.Struct, frozen=True):
    """The query that the child runs on each block."""

    where: str
    block: str
    """The file that holds a block of lines."""
    query: str
    """SQL with the placeholders ``{where}``, ``{buffer}`` and ``{half}``."""
    shape: str
    """The structure of a line, for DuckDB's from_json."""
    memory: int
    """Bytes of address space that the child may use."""


class ConditionResult(msgspec.Struct, frozen=True):
    """The numbers of the lines that the condition accepts, or the reason why there are none."""

    numbers: list[int] = []
    problem: str = ""
    is_out_of_memory: bool = False


class ConditionProcess:
    """A running child; `evaluate_block` returns the numbers of one block."""

    def __init__(
        self, process: subprocess.Popen[bytes], task: ConditionQuery, has_left: Callable[[], bool]
    ) -> None:
        self._process = process
        self._has_left = has_left
        self._is_ready = False
        self._seconds = START
        self._verdict(msgspec.json.encode(task) + b"\n")  # answered when the child is ready
        self._is_ready = True
        self._seconds = PATIENCE

    def evaluate_block(self, buffer: int) -> list[int]:
        """Return the numbers of the present block that the condition accepts.

        Raises UsageError if the condition is not valid, takes too long, needs too much memory or
        ends the child in another way.
        """
        started = monotonic()
        numbers = self._verdict(b"%d\n" % buffer)
        self._seconds += PATIENCE_MORE - (monotonic() - started)
        return numbers

    def _verdict(self, line: bytes) -> list[int]:
        try:
            verdict = msgspec.json.decode(self._answer(line), type=ConditionResult)
        except (BrokenPipeError, EOFError, msgspec.DecodeError):
            raise self._explain_death() from None
        if verdict.is_out_of_memory:
            raise UsageError("view_where_memory", most=MEMORY >> 20)
        if verdict.problem:
            raise UsageError("view_where", problem=verdict.problem)
        return verdict.numbers

    def _explain_death(self) -> UsageError:
        """Return the error for a child that ended without an answer."""
        process = self._process
        try:
            code = process.wait(_EXIT_SECONDS)
        except subprocess.TimeoutExpired:  # it wrote more than an answer may have
            return UsageError("view_where_long")
        errors = process.stderr.read(_ERRORS_LIMIT) if process.stderr is not None else b""
        if _MEMORY_ENDED.search(errors or b""):
            return UsageError("view_where_memory", most=MEMORY >> 20)
        if code == -signal.SIGKILL:
            return UsageError("view_where_killed")
        return UsageError("view_where_died", how=_signal_name(code))

    def _answer(self, line: bytes) -> bytes:
        """Send a line and return the child's line, within the seconds that are left."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None  # noqa: PT018 - both are pipes
        stdin.write(line)
        answer = bytearray()
        end = monotonic() + self._seconds
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            while not answer.endswith(b"\n"):
                if monotonic() > end:
                    if not self._is_ready:
                        raise UsageError("view_where_start", seconds=START)
                    raise UsageError("view_where_slow", seconds=PATIENCE)
                if self._has_left():
                    raise PageStopped
                if selector.select(_CHECK_SECONDS):
                    part = os.read(stdout.fileno(), 1 << 16)
                    answer += part
                    if not part or len(answer) > _ANSWER_LIMIT:
                        raise EOFError
        return bytes(answer)


@contextmanager
def start_evaluation(
    task: ConditionQuery, has_left: Callable[[], bool]
) -> Iterator[ConditionProcess]:
    """Start a child for a condition; it is killed at the end of the block."""
    while not _slots.acquire(timeout=_CHECK_SECONDS):
        if has_left():
            raise PageStopped
    try:
        with subprocess.Popen(
            [sys.executable, "-P", "-m", "keju.viewer.condition"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=_environment(),
        ) as process:
            try:
                yield ConditionProcess(process, task, has_left)
            finally:
                process.kill()
    finally:
        _slots.release()


def _signal_name(code: int) -> str:
    """Return how a process ended: ``SIGSEGV``, or ``exit code 1``."""
    with suppress(ValueError):
        return signal.Signals(-code).name
    return f"exit code {code}"


def _environment() -> dict[str, str]:
    """Return the variables that the child needs to find Python and Keju, without keys of users."""
    variable_names = (
        "PATH",
        "PYTHONPATH",
        "PYTHONHOME",
        "VIRTUAL_ENV",
        "LD_LIBRARY_PATH",
        "SYSTEMROOT",
    )
    return {name: os.environ[name] for name in variable_names if name in os.environ}


def _limit_process(memory: int) -> None:
    """Limit the memory, files and lifetime of this process if the system supports it."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError, AttributeError, TypeError):
        import ctypes

        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL)


def main() -> None:
    """Answer each block that standard input announces."""
    task = msgspec.json.decode(sys.stdin.buffer.readline(), type=ConditionQuery)
    import duckdb

    _limit_process(task.memory)
    with duckdb.connect() as connection:
        quoted = task.block.replace("'", "''")
        for setting in (
            "temp_directory = ''",
            f"allowed_paths = ['{quoted}']",
            "enable_external_access = false",
            "memory_limit = '1GB'",
            "threads = 1",
            "lock_configuration = true",
        ):
            connection.execute(f"SET {setting}")
        _send(ConditionResult())
        for line in sys.stdin.buffer:
            _send(_verdict(duckdb, connection, task, int(line)))


def _send(verdict: ConditionResult) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(verdict) + b"\n")
    sys.stdout.buffer.flush()


def _verdict(duckdb: Any, connection: Any, task: ConditionQuery, buffer: int) -> ConditionResult:
    """Return the numbers of a block that the condition accepts."""
    query = task.query.replace("{buffer}", str(buffer)).replace("{half}", str(buffer // 2))
    try:
        duckdb.SQLExpression(task.where)  # one expression; nothing may follow it
        rows = connection.execute(query.replace("{where}", task.where), [task.block, task.shape])
        return ConditionResult([number for (number,) in rows.fetchall()])
    except (duckdb.OutOfMemoryException, MemoryError):
        return ConditionResult(is_out_of_memory=True)
    except (duckdb.Error, RuntimeError) as error:
        return ConditionResult(problem=str(error).partition("\n")[0] or type(error).__name__)


if __name__ == "__main__":
    main()
