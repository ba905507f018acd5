"""An episode in a notebook: three tools, one live kernel, a work folder that is gone afterwards.

    edit_cell(contents, idx)   write a cell and run it; the kernel keeps its variables
    list_workdir()             the files of the work folder
    submit_answer(answer)      ends the episode; an answer of the wrong form is sent back once

After each turn the model is shown the notebook as Markdown. Nothing that grades enters the sandbox:
the work folder holds what the exam puts there, and the answer is graded outside.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from keju.benchmarks.facts import NotebookTask
from keju.bounds import parse_whole_number
from keju.files import make_file_name, write_json
from keju.solvers.notebook.cells import NAME, Notebook, listing, runnable, shortened
from keju.solvers.notebook.workplaces import Bench, Workplaces
from keju.solvers.sandbox.output import CellResult
from keju.solvers.toolbox import Toolbox, ToolResult, ToolSource
from keju.types import CallKind, Sample, Tool

PLACE: Final = "/workspace/" + NAME


def _tool(name: str, about: str, **arguments: dict[str, Any]) -> Tool:
    """A tool; arguments that may be null need not be given."""
    required = [key for key, own in arguments.items() if "null" not in own.get("type", ())]
    schema = {"type": "object", "properties": arguments, "required": required}
    return Tool(name, about, schema)


def notebook_tools(task: NotebookTask) -> tuple[Tool, ...]:
    """The tools of an exam's notebook."""
    return (
        _tool(
            "edit_cell",
            "Write a code cell of the notebook and run it. Only code cells exist; the kernel keeps"
            " its variables between cells.",
            contents={"type": "string", "description": "The code of the cell."},
            idx={
                "type": ["integer", "null"],
                "description": "The index of the cell to replace; leave it out to append one.",
            },
        ),
        _tool("list_workdir", "List the files of the working directory as nested JSON."),
        _tool(
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
        workplaces: Workplaces,
        folder: Path | None,
    ) -> None:
        """`folder` gets the notebook of each episode; None keeps no notebook."""
        self._task, self._samples = task, samples
        self._workplaces, self._folder = workplaces, folder
        self.tools = notebook_tools(task)

    async def open(self) -> None:
        """See that the data of every question is there, and that kernels can be started."""
        self._task.check(self._samples)
        await self._workplaces.open(self._task.language)

    @asynccontextmanager
    async def episode(self, sample: Sample, epoch: int) -> AsyncIterator[Toolbox]:
        """A fresh work folder with the question's data, and a kernel that works in it."""
        task = self._task
        prepare = partial(task.prepare, sample)
        async with self._workplaces.episode(prepare, task.language) as bench:
            box = NotebookBox(task, sample, bench)
            try:
                yield box
            finally:
                if self._folder is not None:
                    place = self._folder / f"{make_file_name(sample.id)}.{epoch}" / NAME
                    write_json(place, box.notebook.document())

    async def close(self) -> None:
        """End every kernel."""
        await self._workplaces.close()

    def facts(self) -> dict[str, Any]:
        """Where code runs."""
        return {"sandbox": self._workplaces.sandbox.facts()}


class NotebookBox(Toolbox):
    """The tools of one episode."""

    submits = True

    def __init__(self, task: NotebookTask, sample: Sample, bench: Bench) -> None:
        self.tools = notebook_tools(task)
        self.closing = (
            "There are no turns left. Do not call a tool: reply with your final answer alone,"
            f" {task.answer_form}."
        )
        self.reminder = "Call a tool: edit_cell to go on, or submit_answer with your answer."
        self.notebook = Notebook(task.language)
        self._task, self._sample, self._bench = task, sample, bench
        self._objected = self._changed = False
        self._cells_run = 0

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        """Carry out one call; what is wrong with it is told to the model."""
        async with self._bench.turn:
            if name == "edit_cell":
                return await self._edit(arguments.get("contents"), arguments.get("idx"))
            if name == "list_workdir":
                return await self._list()
            return self._submit(arguments.get("answer"))

    async def _list(self) -> ToolResult:
        try:
            return ToolResult(listing(await self._bench.tree()))
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
        before = len(self.notebook.cells)
        place = self.notebook.put(contents, index)
        self._changed = True
        if self._task.rerun_all:
            for other in range(place):
                await self._run(other)
        result = await self._run(place)
        for other in range(place + 1, before) if self._task.rerun_all else ():
            await self._run(other)
        done = f"Appended new cell (#{place})." if place == before else f"Edited cell #{place}."
        told = "\n".join(filter(None, (done, shortened(result.text))))
        images = result.images if self._task.images else ()
        return ToolResult(told, kind_of(result), images, result.seconds)

    async def _run(self, place: int) -> CellResult:
        cell = self.notebook.cells[place]
        result = await self._bench.run(runnable(cell.source, self._task.language))
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
        if objection is not None and not self._objected:
            self._objected = True
            return ToolResult(f"{objection} Submit again.", "bad_arguments")
        return ToolResult("Answer submitted.", final=answer)

    def note(self) -> str | None:
        """The notebook, where a turn has changed it."""
        if not self._changed:
            return None
        self._changed = False
        return f"The notebook ({PLACE}) is now:\n\n{self.notebook.markdown()}"

    def facts(self) -> dict[str, Any]:
        """What was there to work with, and how much work was done."""
        images = sum(len(cell.images) for cell in self.notebook.cells)
        own = {"cells": len(self.notebook.cells), "cells_run": self._cells_run, "images": images}
        return own | self._bench.facts()


def kind_of(result: CellResult) -> CallKind:
    """How a call ended whose cell ended so; an exception of the code is its own affair."""
    if result.timed_out:
        return "timeout"
    return "server_crash" if result.died else "ok"


PYTHON = _tool(
    "python",
    "Run Python code in a sandbox without network and return what it prints, and the value of its"
    " last line. Variables are kept between calls.",
    code={"type": "string", "description": "The code."},
)


class PythonSource(ToolSource):
    """A Python kernel as a tool for any exam."""

    tools = (PYTHON,)

    def __init__(self, workplaces: Workplaces) -> None:
        self._workplaces = workplaces

    async def open(self) -> None:
        """See that the sandbox works."""
        await self._workplaces.open()

    @asynccontextmanager
    async def episode(self, sample: Sample, epoch: int) -> AsyncIterator[Toolbox]:
        """A kernel in an empty folder."""
        async with self._workplaces.episode() as bench:
            yield PythonBox(bench)

    async def close(self) -> None:
        """End every kernel."""
        await self._workplaces.close()

    def facts(self) -> dict[str, Any]:
        """Where code runs."""
        return {"sandbox": self._workplaces.sandbox.facts()}


class PythonBox(Toolbox):
    """One kernel."""

    tools = (PYTHON,)

    def __init__(self, bench: Bench) -> None:
        self._bench = bench

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        """Run code."""
        code = arguments.get("code")
        if not isinstance(code, str):
            return ToolResult("code must be a string", "bad_arguments")
        async with self._bench.turn:
            result = await self._bench.run(code)
        told = shortened(result.text) or "(no output)"
        return ToolResult(told, kind_of(result), seconds=result.seconds)

    def facts(self) -> dict[str, Any]:
        """What became of the kernel."""
        return self._bench.facts()
