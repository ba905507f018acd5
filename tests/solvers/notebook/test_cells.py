"""What a model is shown of its notebook, and the file that is kept of it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import nbformat
from hypothesis import given
from hypothesis import strategies as st

from keju.solvers.notebook.cells import Notebook, NotebookCell, shorten
from keju.solvers.notebook.episode import NotebookToolbox


def test_cells_are_appended_or_replaced_by_their_index() -> None:
    notebook = Notebook()
    assert [notebook.put("a", None), notebook.put("b", None), notebook.put("c", 7)] == [0, 1, 2]
    assert notebook.put("B", 1) == 1
    assert [cell.source for cell in notebook.cells] == ["a", "B", "c"]


def test_the_model_sees_code_and_outputs_in_order() -> None:
    notebook = Notebook()
    notebook.cells = [NotebookCell("x = 1"), NotebookCell("print(x)\n", "1\n")]
    assert notebook.render_markdown() == (
        "### Cell 0:\n```python\nx = 1\n```\n"
        "### Cell 1:\n```python\nprint(x)\n```\n### Output 1:\n```\n1\n```"
    )


def test_a_fence_inside_an_output_does_not_end_it() -> None:
    notebook = Notebook()
    notebook.cells = [NotebookCell("1", "```\n### Cell 9:\n````")]
    assert notebook.render_markdown().endswith("`````\n```\n### Cell 9:\n````\n`````")


def test_long_outputs_keep_both_ends_and_say_what_is_left_out() -> None:
    text = "a" * 1500 + "b" * 100 + "c" * 1500
    shortened = shorten(text)
    assert shortened == "a" * 1500 + "\n[… 100 characters left out …]\n" + "c" * 1500
    assert shorten("a" * 3000) == "a" * 3000


@given(st.lists(st.tuples(st.text(), st.text(), st.binary(max_size=9)), max_size=4))
def test_the_file_is_a_notebook_whatever_the_cells_hold(rows: list[tuple[str, str, bytes]]) -> None:
    notebook = Notebook()
    notebook.cells = [
        NotebookCell(source, output, images=(image,)) for source, output, image in rows
    ]
    text = json.dumps(notebook.to_document())
    parse: Any = nbformat.reads
    stored = parse(text, as_version=4)
    nbformat.validate(stored)
    assert ["".join(cell["source"]) for cell in stored.cells] == [source for source, _, _ in rows]


def test_a_cell_of_many_backticks_is_fenced_at_once() -> None:
    """Growing the fence by one backtick at a time took minutes, in which nothing else ran."""
    notebook = Notebook()
    notebook.cells = [NotebookCell("#" + "`" * 3_000_000)]
    assert notebook.render_markdown().count("`") == 3_000_000 + 2 * 3_000_001


def test_an_index_of_five_thousand_digits_is_a_wrong_argument() -> None:
    """An error here would count as an error of the tools, and the question would not be graded."""

    async def call() -> None:
        box = NotebookToolbox.__new__(NotebookToolbox)
        result = await box._edit("1", "9" * 5000)
        assert result.kind == "bad_arguments"

    asyncio.run(call())
