"""A notebook: its cells, their rendering for the model, and the stored file."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass, field
from typing import Any, Final

SHOWN_EACH_END: Final = 1500
"""Characters of an output that are shown from its beginning, and from its end."""
NAME: Final = "notebook.ipynb"


@dataclass
class NotebookCell:
    """A code cell and its result of the last run."""

    source: str
    output: str = ""
    images: tuple[bytes, ...] = field(default=(), repr=False)
    """PNG files."""
    ran: int = 0
    """The number of cells that had run including this one; 0 if it never ran."""


class Notebook:
    """The cells of one episode."""

    def __init__(self, language: str = "python") -> None:
        self.language = language
        self.cells: list[NotebookCell] = []

    def put(self, source: str, index: int | None) -> int:
        """Replace the cell at `index`, or append one if there is none; return its index."""
        if index is None or index >= len(self.cells):
            self.cells.append(NotebookCell(source))
            return len(self.cells) - 1
        self.cells[index] = NotebookCell(source)
        return index

    def render_markdown(self) -> str:
        """Return all cells with their outputs, each output shortened."""
        parts = []
        for index, cell in enumerate(self.cells):
            parts.append(f"### Cell {index}:\n{_fence(cell.source, self.language)}")
            if short_output := shorten(cell.output):
                parts.append(f"### Output {index}:\n{_fence(short_output)}")
        return "\n".join(parts)

    def to_document(self) -> dict[str, Any]:
        """Return the notebook in Jupyter's format 4.5."""
        names = {"python": ("python3", "Python 3"), "r": ("ir", "R")}
        name, title = names[self.language]
        spec = {"name": name, "display_name": title, "language": self.language}
        return {
            "nbformat": 4,
            "nbformat_minor": 5,
            "metadata": {"kernelspec": spec, "language_info": {"name": self.language}},
            "cells": [_cell_document(index, cell) for index, cell in enumerate(self.cells)],
        }


def _cell_document(index: int, cell: NotebookCell) -> dict[str, Any]:
    outputs: list[dict[str, Any]] = []
    if cell.output:
        outputs.append({"output_type": "stream", "name": "stdout", "text": _lines(cell.output)})
    for image in cell.images:
        data = {"image/png": base64.b64encode(image).decode()}
        outputs.append({"output_type": "display_data", "metadata": {}, "data": data})
    return {
        "cell_type": "code",
        "id": f"cell-{index}",
        "metadata": {},
        "execution_count": cell.ran or None,
        "source": _lines(cell.source),
        "outputs": outputs,
    }


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def prepare_source(source: str, language: str) -> str:
    """Return a cell's code for its kernel: the R kernel does not support ``%%bash``."""
    magic, _, script = source.lstrip().partition("\n")
    if language != "r" or magic.strip() != "%%bash":
        return source
    return _BASH_IN_R % json.dumps(script, ensure_ascii=False)


_BASH_IN_R = """local({
  out <- suppressWarnings(system2("bash", stdout = TRUE, stderr = TRUE, input = %s))
  cat(out, sep = "\\n")
  if (!is.null(attr(out, "status"))) stop("bash ended with exit code ", attr(out, "status"))
})"""


# Consecutive backticks; the fence needs one more than these: "```".
_BACKTICKS = re.compile("`{3,}")


def _fence(text: str, language: str = "") -> str:
    """Return `text` in a fence that is longer than any fence inside it."""
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def shorten(text: str) -> str:
    """Return `text` with the middle of a long text replaced by a note about its length."""
    text = text.strip("\n")
    left_out = len(text) - 2 * SHOWN_EACH_END
    if left_out <= 0:
        return text
    start, end = text[:SHOWN_EACH_END], text[-SHOWN_EACH_END:]
    return f"{start}\n[… {left_out} characters left out …]\n{end}"


def render_listing(tree: dict[str, Any]) -> str:
    """Return a folder as nested JSON: the names of its files, and its folders by name."""
    return json.dumps(tree, indent=2, ensure_ascii=False)
