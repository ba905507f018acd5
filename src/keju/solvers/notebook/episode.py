"""An episode in a notebook: three tools, one live kernel, and a temporary work folder.

    edit_cell(contents, idx)   write a cell and run it; the kernel keeps its variables
    list_workdir()             the files of the work folder
    submit_answer(answer)      ends the episode; an answer of the wrong form is sent back once

After each turn the model receives the notebook as Markdown. Nothing that is used for grading enters
the sandbox: the work folder holds the exam's data, and the answer is graded outside.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from keju.benchmarks.metadata import NotebookTask
from keju.bounds import parse_whole_number
from keju.files import make_file_name, write_json
from keju.solvers.notebook.cells import NAME, Notebook, prepare_source, render_listing, shorten
from keju.solvers.notebook.workspaces import Workspace, Workspaces
from keju.solvers.sandbox.output import CellResult
from keju.solvers.toolbox import Toolbox, ToolResult, ToolSource
from keju.types import CallKind, Sample, Tool

PLACE: Final = "/workspace/" + NAME


def _make_tool(name: str, about: str, **arguments: dict[str, Any]) -> Tool:
    """Return a tool; arguments that may be null are optional."""
    required = [
        key
        for key, schema_of_key in arguments.items()
        if "null" not in schema_of_key.get("type", ())
    ]
    schema = {"type": "object", "properties": arguments, "required": required}
    return Tool(name, about, schema)


def notebook_tools(task: NotebookTask) -> tuple[Tool, ...]:
    """Return the tools of an exam's notebook."""
    return (
        _make_tool(
            "edit_cell",
            "Write a code cell of the notebook and run it. Only code cells exist; the kernel keeps"
            " its variables between cells.",
            contents={"type": "string", "description": "The code of the cell."},
            idx={
                "type": ["integer", "null"],
                "description": "The index of the cell to replace; leave it out to append one.",
            },
        ),
        _make_tool("list_workdir", "List the files of the working directory as nested JSON."),
        _make_tool(
            "submit_answer",
            "Submit the final answer. It can be called once and ends the task.",
            answer={"type": "string", "description": f"The answer: {task.answer_form}."},
        ),
    )


class NotebookSource(ToolSource):
    """The notebooks of one exam."""

    def __init__(
        self,
        task: NotebookTask,
        samples: Sequence[Sample],
        workspaces: Workspaces,
        folder: Path | None,
    ) -> None:
        """`folder` gets the notebook of each episode; with None no notebook is stored."""
        self._task, self._samples = task, samples
        self._workplaces, self._folder = workspaces, folder
        self.tools = notebook_tools(task)

    async def open(self) -> None:
        """Check that the data of every question exists, and that kernels can be started."""
        self._task.check(self._samples)
        await self._workplaces.open(self._task.language)

    @asynccontextmanager
    async def episode(self, sample: Sample, epoch: int) -> AsyncIterator[Toolbox]:
        """Yield the tools with a fresh work folder with the question's data, and a kernel in it."""
        task = self._task
        prepare = partial(task.prepare, sample)
        async with self._workplaces.episode(prepare, task.language) as bench:
            box = NotebookToolbox(task, sample, bench)
            try:
                yield box
            finally:
                if self._folder is not None:
                    path = self._folder / f"{make_file_name(sample.id)}.{epoch}" / NAME
                    write_json(path, box.notebook.to_document())

    async def close(self) -> None:
        """End every kernel."""
        await self._workplaces.close()

    def facts(self) -> dict[str, Any]:
        """Return the facts of the sandbox."""
        return {"sandbox": self._workplaces.sandbox.facts()}


class NotebookToolbox(Toolbox):
    """The tools of one episode."""

    submits = True

    def __init__(self, task: NotebookTask, sample: Sample, bench: Workspace) -> None:
        self.tools = notebook_tools(task)
        self.closing = (
            "There are no turns left. Do not call a tool: reply with your final answer alone,"
            f" {task.answer_form}."
        )
        self.reminder = "Call a tool: edit_cell to go on, or submit_answer with your answer."
        self.notebook = Notebook(task.language)
        self._task, self._sample, self._bench = task, sample, bench
        self._has_objected = self._has_changed = False
        self._cells_run = 0

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        """Run one call; the model receives the error of a wrong call."""
        async with self._bench.turn:
            if name == "edit_cell":
                return await self._edit(arguments.get("contents"), arguments.get("idx"))
            if name == "list_workdir":
                return await self._list_folder()
            return self._submit(arguments.get("answer"))

    async def _list_folder(self) -> ToolResult:
        try:
            return ToolResult(render_listing(await self._bench.tree()))
        except OSError as error:
            text = f"The working directory cannot be listed ({error.strerror})."
            return ToolResult(text, "tool_error")

    async def _edit(self, contents: Any, index: Any) -> ToolResult:
        if not isinstance(contents, str):
            return ToolResult("contents must be the code of the cell, as a string", "bad_arguments")
        if isinstance(index, str):
            index = parse_whole_number(index) if parse_whole_number(index) is not None else index
        if index is not None and (type(index) is not int or index < 0):
            return ToolResult("idx must be the index of a cell, or null", "bad_arguments")
        count_before = len(self.notebook.cells)
        position = self.notebook.put(contents, index)
        self._has_changed = True
        if self._task.rerun_all:
            for cell_index in range(position):
                await self._run(cell_index)
        result = await self._run(position)
        for cell_index in range(position + 1, count_before) if self._task.rerun_all else ():
            await self._run(cell_index)
        edit_line = (
            f"Appended new cell (#{position})."
            if position == count_before
            else f"Edited cell #{position}."
        )
        answer_text = "\n".join(filter(None, (edit_line, shorten(result.text))))
        images = result.images if self._task.images else ()
        return ToolResult(answer_text, kind_of(result), images, result.seconds)

    async def _run(self, index: int) -> CellResult:
        cell = self.notebook.cells[index]
        result = await self._bench.run(prepare_source(cell.source, self._task.language))
        self._cells_run += result.ran
        cell.output, cell.images = result.text, result.images
        cell.ran = self._cells_run if result.ran else 0
        return result

    def _submit(self, answer: Any) -> ToolResult:
        if isinstance(answer, bool | int | float):
            answer = str(answer)
        if not isinstance(answer, str):
            return ToolResult("answer must be a string", "bad_arguments")
        objection = self._task.objection(self._sample, answer)
        if objection is not None and not self._has_objected:
            self._has_objected = True
            return ToolResult(f"{objection} Submit again.", "bad_arguments")
        return ToolResult("Answer submitted.", final=answer)

    def note(self) -> str | None:
        """Return the notebook if a turn has changed it."""
        if not self._has_changed:
            return None
        self._has_changed = False
        return f"The notebook ({PLACE}) is now:\n\n{self.notebook.render_markdown()}"

    def facts(self) -> dict[str, Any]:
        """Return the amount of data and of work."""
        images = sum(len(cell.images) for cell in self.notebook.cells)
        notebook_facts = {
            "cells": len(self.notebook.cells),
            "cells_run": self._cells_run,
            "images": images,
        }
        return notebook_facts | self._bench.facts()


def kind_of(result: CellResult) -> CallKind:
    """Return how a call ended from its cell's result; an exception in the code counts as ok."""
    if result.timed_out:
        return "timeout"
    return "server_crash" if result.died else "ok"


PYTHON = _make_tool(
    "python",
    "Run Python code in a sandbox without network and return what it prints, and the value of its"
    " last line. Variables are kept between calls.",
    code={"type": "string", "description": "The code."},
)


class PythonSource(ToolSource):
    """A Python kernel as a tool for any exam."""

    tools = (PYTHON,)

    def __init__(self, workspaces: Workspaces) -> None:
        self._workplaces = workspaces

    async def open(self) -> None:
        """Check that the sandbox works."""
        await self._workplaces.open()

    @asynccontextmanager
    async def episode(self, sample: Sample, epoch: int) -> AsyncIterator[Toolbox]:
        """Yield a kernel in an empty folder."""
        async with self._workplaces.episode() as bench:
            yield PythonToolbox(bench)

    async def close(self) -> None:
        """End every kernel."""
        await self._workplaces.close()

    def facts(self) -> dict[str, Any]:
        """Return the facts of the sandbox."""
        return {"sandbox": self._workplaces.sandbox.facts()}


class PythonToolbox(Toolbox):
    """One kernel."""

    tools = (PYTHON,)

    def __init__(self, bench: Workspace) -> None:
        self._bench = bench
        self.folder = bench.work

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        """Run code."""
        code = arguments.get("code")
        if not isinstance(code, str):
            return ToolResult("code must be a string", "bad_arguments")
        async with self._bench.turn:
            result = await self._bench.run(code)
        output_text = shorten(result.text) or "(no output)"
        return ToolResult(output_text, kind_of(result), seconds=result.seconds)

    def facts(self) -> dict[str, Any]:
        """Return the facts of the kernel."""
        return self._bench.facts()
