"""Detects which tool wrote a log, and reads the log with the module of that tool."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from keju.errors import DataError, UsageError
from keju.interop.imports import evalscope, inspect_log, lm_eval, opencompass, verifiers_log
from keju.interop.imports.log import LogSource, ModelLog
from keju.interop.logs import eee


class LogFormat(NamedTuple):
    """How the logs of one tool are found and read."""

    find: Callable[[LogSource], list[str]]
    read: Callable[[LogSource, Sequence[str]], ModelLog]


TOOLS: dict[str, LogFormat] = {
    module.TOOL: LogFormat(module.find, module.read)
    for module in (evalscope, lm_eval, inspect_log, opencompass, verifiers_log, eee)
}


class FoundLog(NamedTuple):
    """The files of a log, and the tool that wrote it."""

    source: LogSource
    tool: str
    names: Sequence[str]


def is_log(path: Path) -> bool:
    """Whether a known tool could have written the file or folder at `path`."""
    source = LogSource(path)
    return any(tool.find(source) for tool in TOOLS.values())


def find_log(path: Path, tool: str | None = None) -> FoundLog:
    """Find the log at `path`; UsageError if no tool, or more than one, could have written it."""
    source = LogSource(path)
    names = {name: TOOLS[name].find(source) for name in ([tool] if tool else TOOLS)}
    tools = [name for name, files in names.items() if files]
    if not tools:
        if tool:
            raise UsageError("import_no_log_of", path=path, tool=tool)
        raise UsageError("import_no_log", path=path, tools=[*TOOLS])
    if len(tools) > 1:
        raise UsageError("import_several_tools", path=path, tools=[*tools])
    return FoundLog(source, tools[0], names[tools[0]])


@contextmanager
def structure_errors(log_files: FoundLog) -> Iterator[None]:
    """Turn errors about a log with an unexpected structure into a DataError with its place."""
    try:
        yield
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        values = {"tool": log_files.tool, "kind": type(error).__name__, "problem": str(error)}
        raise DataError("import_strange_log", path=log_files.source.path, **values) from None


def read_log(log_files: FoundLog) -> ModelLog:
    """Read a log. Raise UsageError if it has no rows."""
    path = log_files.source.path
    with structure_errors(log_files):
        log = TOOLS[log_files.tool].read(log_files.source, log_files.names)
    if not any(part.rows for part in log.parts):
        raise UsageError("import_no_rows", path=path, tool=log.tool)
    return log
