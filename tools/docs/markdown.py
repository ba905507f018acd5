"""Markdown of the reference pages, and the docstrings it is made of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import cycle

from keju.config.docs import field_docs
from keju.messages import Language, store
from keju.results.schema import LISTED, NO_GOLD
from tools.docs.fields import PLAIN

LANGUAGES: tuple[Language, ...] = ("en", "zh")
SUFFIXES: dict[Language, str] = {"en": ".md", "zh": ".zh-CN.md"}
NOTE = "<!-- Made from the code by `python -m tools.docs`: change the code, not this page. -->"

# ``keju schema`` of reStructuredText, which is `keju schema` in Markdown.
_LITERAL = re.compile(r"``(.+?)``")


def opening(name: str, title: str, language: Language) -> list[str]:
    """The first lines of a page: its title, and a link to the other language."""
    translation_link = f"[中文]({name}.zh-CN.md)" if language == "en" else f"[English]({name}.md)"
    return [f"# {title}", "", translation_link, "", NOTE, ""]


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table, and the empty line after it."""
    lines = [_row(columns), "|" + "---|" * len(columns)]
    return [*lines, *map(_row, rows), ""]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def code(text: str) -> str:
    """A name, flag or value as it is typed."""
    return f"`{text}`"


def plain(text: str) -> str:
    """A docstring as Markdown; what stands in angle brackets outside of code is no tag."""
    parts = _LITERAL.sub(r"`\1`", text).split("`")
    return "`".join(
        part if is_code else part.replace("<", r"\<")
        for part, is_code in zip(parts, cycle((False, True)), strict=False)
    )


def one_line(text: str) -> str:
    """The same in one line, for a table."""
    return plain(" ".join(text.split()))


untranslated: set[str] = set()
"""English texts that `in_language` found no Chinese for in messages/zh/documentation.json."""


def in_language(text: str, language: Language) -> str:
    """Return a text of the code in a language; English if it has no Chinese yet."""
    sentence = " ".join(text.split())
    if language == "en" or not sentence:
        return plain(_for_files(sentence))
    chinese = store.texts(language, "documentation").get(sentence)
    if chinese is None:
        untranslated.add(sentence)
    return plain(_for_files(chinese or sentence))


def meaning(kind: type, name: str, language: Language) -> str:
    """Return the description of a field: its docstring, or its text in tools/docs/fields.py."""
    if text := field_docs(kind).get(name):
        return in_language(text, language)
    described = PLAIN.get(f"{kind.__name__}.{name}") or PLAIN.get(name)
    if described is None:
        raise LookupError(f"{kind.__name__}.{name} has no docstring and no text in {__file__}")
    english, chinese = described
    return _for_files(english if language == "en" else chinese)


def _for_files(text: str) -> str:
    """What is said of Python, as it holds for JSON and YAML: None is null, a constant its value."""
    for name, value in {"`LISTED`": str(LISTED), "`NO_GOLD`": f"`{NO_GOLD}`"}.items():
        text = text.replace(name, value)
    return re.sub(r"\bNone\b", "null", text)
