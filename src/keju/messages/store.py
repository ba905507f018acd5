"""Read the texts of Keju from JSON files: one folder per language, one file per package.

A file holds sections, and a section maps names to texts::

    {"messages": {"file_unreadable": "cannot read {where}: {problem}"},
     "labels": {"col.score": "Score"}}

| section | names | languages |
|---|---|---|
| ``messages`` | codes of errors and notices | all |
| ``labels`` | words of tables, pages and the terminal | all |
| ``help`` | ``flag.api_url``, ``command.eval``: English is where the flag is declared | zh |
| ``documentation`` | the English of a docstring of a field | zh |
| ``system``, ``patterns`` | messages of the operating system and of other programs | zh |

An exam keeps its texts in its own folder ``texts`` and adds them with `keju.messages.add_folder`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Literal

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = ("en", "zh")
Sections = dict[str, dict[str, str]]

FOLDER = Path(__file__).parent


def read(file: Path) -> Sections:
    """Return the sections of one file."""
    sections: Sections = json.loads(file.read_bytes())
    return sections


def files_of(language: Language) -> list[Path]:
    """Return the files of a language in the order of their names."""
    return sorted((FOLDER / language).glob("*.json"))


def entries(language: Language) -> Iterator[tuple[Path, str, str, str]]:
    """Yield each text of a language with its file, section and name."""
    for file in files_of(language):
        for section, texts in read(file).items():
            for name, text in texts.items():
                yield file, section, name, text


@cache
def texts(language: Language, section: str) -> Mapping[str, str]:
    """Return all texts of a section in a language, by name."""
    return _sections(language).get(section, {})


@cache
def _sections(language: Language) -> Sections:
    """Return the sections of all files of a language; every file is read once."""
    merged: Sections = {}
    for file in files_of(language):
        for section, named in read(file).items():
            merged.setdefault(section, {}).update(named)
    return merged
