"""The side of the tests: it runs them, calls the program through the pipe and writes the verdict.

The job is a file that is removed before the program starts. A test that raises an error fails. The
first fault of the program names the outcome.
"""

from __future__ import annotations

import builtins
import json
import os
import signal
import sys
import time
from types import CodeType
from typing import Any, NoReturn

from keju.judges.programs.inside.values import Pipe, decode, describe, encode, move_files

WALL = 10.0
"""Seconds of the clock for each second of CPU time: a limit for programs that sleep."""
BROKEN = "tests_broken"
STARTED = b"\n"
"""The line that says that the tests are ready and the program may run."""
FAULTS = frozenset({"syntax", "missing", "exit", "memory", "exception"})
"""The faults that the side of the program may state: a program can write any message."""


class ProgramStopped(BaseException):
    """The program can answer no further call."""


class ProgramError(Exception):
    """An exception of the program whose class the tests do not know."""


class BrokenTests(BaseException):
    """The tests themselves cannot run."""


class ProgramFault:
    """The reason why a program did not pass."""

    def __init__(self, kind: str, text: str) -> None:
        self.kind = kind
        self.text = text.encode("utf-8", "replace").decode()


class CandidateFunction:
    """The program's function, for the tests."""

    def __init__(self, pipe: Pipe, job: dict[str, Any]) -> None:
        self.pipe, self.seconds = pipe, float(job["call_seconds"])
        self.fault: ProgramFault | None = None
        """The fault of the last call, if it had one."""
        self.is_stopped = False
        self.calls = 0

    def start(self, job: dict[str, Any]) -> None:
        """Send the program; raise ProgramStopped if its function cannot be called."""
        order = {name: job[name] for name in ("program", "entry_point", "load_seconds", "paths")}
        reply = self.exchange(order, job["load_seconds"])
        if "ready" not in reply:
            self.stop(stated_fault(reply), str(reply.get("text")))

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self.call(args, keywords)

    def call(
        self, args: Any, keywords: dict[str, Any] | None = None, seconds: float | None = None
    ) -> Any:
        """Call the function; `seconds` limit the CPU time of this call."""
        self.calls += 1
        seconds = seconds or self.seconds
        order = {
            "args": encode(tuple(args)),
            "keywords": encode(keywords or {}),
            "seconds": seconds,
        }
        reply = self.exchange(order, seconds)
        if "fault" in reply:
            self.raise_fault(reply)
        self.fault = None
        try:
            return decode(reply["value"])
        except Exception:
            self.stop("protocol", "a reply that is not a value")

    def exchange(self, order: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Send an order and return the reply; raise ProgramStopped if there is none."""
        if self.is_stopped:
            raise ProgramStopped
        reply = None
        try:
            self.pipe.send(order)
            reply = self.pipe.receive(time.monotonic() + WALL * seconds + 1)
        except TimeoutError:
            self.stop("timeout", f"no result after {WALL * seconds:g} seconds of the clock")
        except OverflowError:
            self.stop("output", "a result longer than 16 MiB")
        except OSError:
            pass
        except Exception:
            self.stop("protocol", "a reply that is not a value")
        if reply is None:
            self.stop("ended", "the process ended")
        if not isinstance(reply, dict):
            self.stop("protocol", "a reply that is not a value")
        return reply

    def stop(self, kind: str, text: str) -> NoReturn:
        """End all further calls."""
        self.fault, self.is_stopped = ProgramFault(kind, text), True
        raise ProgramStopped

    def raise_fault(self, reply: dict[str, Any]) -> NoReturn:
        """Raise the exception of a call."""
        kind, text = stated_fault(reply), str(reply.get("text"))
        if kind != "exception":
            self.stop(kind, text)
        self.fault = ProgramFault(kind, text)
        known_class = getattr(builtins, str(reply.get("name")), None)
        error: Exception = ProgramError(text)
        if isinstance(known_class, type) and issubclass(known_class, Exception):
            try:
                error = known_class(text)
            except Exception:
                pass
        raise error


def stated_fault(reply: dict[str, Any]) -> str:
    """Return the kind of fault that a reply states."""
    kind = reply.get("fault")
    return kind if isinstance(kind, str) and kind in FAULTS else "protocol"


def copy_through_pipe(value: Any) -> Any:
    """Return a value as it would arrive from the program."""
    return decode(encode(value))


def run_code(
    code: CodeType | None, space: dict[str, Any], candidate: CandidateFunction
) -> ProgramFault | None:
    """Run a part of the tests, without code its function ``check``; return the first fault."""
    try:
        if code is not None:
            exec(code, space)
        elif callable(check := space.get("check")):
            check(candidate)
    except ProgramStopped:
        return candidate.fault
    except (ImportError, BrokenTests) as error:
        return candidate.fault or ProgramFault(BROKEN, describe(error))
    except BaseException as error:
        if candidate.fault is not None:
            return candidate.fault
        return ProgramFault("wrong", f"call {candidate.calls}: {describe(error)}")
    return candidate.fault if candidate.is_stopped else None


def fix_random_numbers(job: dict[str, Any]) -> None:
    """Make random tests the same every time; the module takes time to import."""
    if any("random" in text for text in (job["tests"], job["prelude"], *job["parts"].values())):
        import random

        random.seed(0)


def judge(
    job: dict[str, Any], candidate: CandidateFunction, report: int
) -> tuple[dict[str, bool], ProgramFault]:
    """Return the results of the parts and the first fault; say before the program starts."""
    results = dict.fromkeys(job["parts"], False)
    space = {"__name__": "tests", "candidate": candidate, "DATA": job["data"]}
    space |= {"copy_through_pipe": copy_through_pipe, "BrokenTests": BrokenTests}
    try:
        exec(compile(job["prelude"], "prelude.py", "exec"), space)
        tests = compile(job["tests"], "tests.py", "exec")
        parts = {
            name: compile(text, "part.py", "exec") if text else None
            for name, text in job["parts"].items()
        }
        os.write(report, STARTED)
        candidate.start(job)
    except ProgramStopped:
        return results, candidate.fault or ProgramFault("ended", "")
    except BaseException as error:
        return results, ProgramFault(BROKEN, describe(error))
    fix_random_numbers(job)
    space[job["entry_point"]] = candidate
    fault = run_code(tests, space, candidate)
    for name, code in parts.items():
        fault = fault or run_code(code, space, candidate)
        if fault is not None:
            return results, fault
        results[name] = True
    return results, ProgramFault("passed", "")


def main() -> None:
    """Read the job, whose path is the argument, and write its verdict to the standard error."""
    source, target, report = move_files(0, 1, 2)
    with open(sys.argv[1], "rb") as file:  # noqa: PTH123 - pathlib takes time to import
        job = json.load(file)
    os.unlink(sys.argv[1])  # noqa: PTH108
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    results, fault = judge(job, CandidateFunction(Pipe(source, target), job), report)
    verdict = [results, fault.kind, fault.text[:300]]
    os.write(report, json.dumps(verdict).encode() + b"\n")
    os._exit(0)


if __name__ == "__main__":
    main()
