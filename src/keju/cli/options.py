"""All options of the command line, declared once as the rows of one table, ``options.json``.

A command uses a row by its name: as a parameter of its function, or in its list of settings (see
`keju.cli.command`). To add a flag, add a row to the table and its name to the command. A row called
``judge.model`` replaces ``model`` in ``keju judge`` only.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

MODEL, EXAMS, TOOLS, PACE, RUN = "Model", "Exams", "Tools", "Pace and limits", "Run"
ARGUMENTS, PLAIN = "Arguments", "Options"
DATA, ENDPOINT, JUDGE, OUTPUT = "Data", "Endpoint", "Judge", "Output"
FORMS = "Forms"
"""The panel of flags that select another command, such as ``compare --why``."""
MAPPING = "JSON"
"""Metavar of flags with a mapping as value, in JSON or as ``key=value,key=value``."""
ADDRESS = "URL"
"""Metavar of flags with addresses as values. Addresses may contain a password and commas."""
MAPPINGS = "JSON,..."
"""Metavar of flags with a JSON list of mappings as value."""
FILE = "FILE"
"""Metavar of flags with a file to read or to write."""
PORT = "PORT"
"""Metavar of flags with a port."""


class OptionRow(NamedTuple):
    """One row: a flag, or an argument if the spelling is a word such as ``RUN``."""

    name: str
    help: str
    metavar: str = ""
    """The name of the value in the help. With ``X...`` all words up to the next flag are values."""
    kind: Any = str
    """str, int, float, bool (a flag without a value), list (repeatable), or the choices."""
    default: Any = None
    spelling: str = ""
    """``--model -m``; by default from the name. An argument such as ``[RUN]`` is optional."""
    field: str = ""
    """The field of `TaskConfig` that it sets, e.g. ``generation_config.temperature``."""
    variable: str = ""
    """An environment variable with the same effect."""
    panel: str = ""
    """Its group in the help."""

    @property
    def flags(self) -> list[str]:
        """The spellings of a flag, the usual one first; empty for an argument."""
        short_name = self.name.rpartition(".")[2]
        spellings = (self.spelling or "--" + short_name.replace("_", "-")).split()
        return spellings if spellings[0].startswith("-") else []


_KINDS: dict[str, type] = {"int": int, "float": float, "bool": bool, "list": list}


def _read_options() -> dict[str, OptionRow]:
    """Return the rows of ``options.json``, which groups them by panel, by their names."""
    panels = json.loads(Path(__file__).with_suffix(".json").read_bytes())
    return {
        row["name"]: OptionRow(**row | {"kind": _kind_of(row.get("kind"))}, panel=panel)
        for panel, rows in panels.items()
        for row in rows
    }


def _kind_of(kind: str | list[str] | None) -> Any:
    return tuple(kind) if isinstance(kind, list) else _KINDS[kind] if kind else str


OPTIONS = _read_options()
