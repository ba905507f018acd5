"""What an exam says about questions that are worked on in a notebook; solvers interpret it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from keju.types import Sample


@dataclass(frozen=True, kw_only=True)
class NotebookTask:
    """A question with a folder of data, a notebook to analyse it in, and an answer to submit."""

    check: Callable[[Iterable[Sample]], None]
    """Refuses, before the first question, a run that lacks the data of one; ConfigError."""
    prepare: Callable[[Sample, Path], Mapping[str, Any]]
    """Puts a question's data into an empty folder; what it says of that stands in the record."""
    objection: Callable[[Sample, str], str | None]
    """What is wrong with a submitted answer, told to the model once; None if nothing is."""
    answer_form: str
    """What `submit_answer` wants, for its description."""
    max_turns: int
    cell_timeout: float
    """Seconds for one cell."""
    image: str = ""
    """The image of the container to work in; empty for the local sandbox."""
    images: bool = False
    """Whether the model is shown the pictures that cells draw."""
    rerun_all: bool = False
    """Run the whole notebook after each edit, as upstream does, not the edited cell alone."""
    language: Literal["python", "r"] = "python"
