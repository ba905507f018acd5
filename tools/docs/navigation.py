"""``llms.txt``: the pages in the order of the site, each with its line of ``docs/index.md``.

The form is that of llmstxt.org: a title, a quotation that says what it is, lists of links.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ABOUT = (
    "Keju examines language models: BBH, MMLU-Pro, C-Eval and BixBench, fresh questions and exams "
    "of your own, with numbers that can be trusted, explained, reproduced and compared. It is a "
    "command, `keju`, and a Python package of the same name."
)
MORE = (
    "Every page is in English; `NAME.zh-CN.md` is the same in Chinese. `keju COMMAND --help` and "
    "`keju schema` tell what the installed version can do."
)
# | [Title](page.md) | what for |
_LINE = re.compile(r"^\| \[[^]]+\]\(([^)]+)\) \| (.+) \|$", re.MULTILINE)


class _Loader(yaml.SafeLoader):
    """Reads ``mkdocs.yml``, in which functions are named by tags."""


_Loader.add_multi_constructor("tag:yaml.org,2002:python/name:", lambda *_: None)


def configuration(root: Path) -> dict[str, Any]:
    """What ``mkdocs.yml`` says."""
    loaded: dict[str, Any] = yaml.load((root / "mkdocs.yml").read_text("utf-8"), _Loader)
    return loaded


def pages(entries: list[Any]) -> Iterator[tuple[str, str]]:
    """The titles and files of a part of the navigation."""
    for entry in entries:
        ((title, target),) = entry.items()
        if isinstance(target, list):
            yield from pages(target)
        else:
            yield title, target


def lines_of_index(root: Path, name: str = "index.md") -> dict[str, str]:
    """What each page is for, by its file."""
    return dict(_LINE.findall((root / "docs" / name).read_text("utf-8")))


def llms_text(root: Path, folder: str = "docs/") -> str:
    """The text of ``llms.txt``; `folder` is where the pages lie, seen from it."""
    purposes = lines_of_index(root)
    lines = ["# Keju", "", f"> {ABOUT}", "", MORE]
    for entry in configuration(root)["nav"]:
        ((title, target),) = entry.items()
        if not isinstance(target, list):
            continue
        lines += ["", f"## {title}", ""]
        for name, file in pages(target):
            lines.append(f"- [{name}]({folder}{file}): {_plain(purposes[file])}")
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    """A line without its links, which are those of another folder."""
    return re.sub(r"\[([^]]+)\]\([^)]*\)", r"\1", text)
