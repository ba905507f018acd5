"""``exam.yaml``: what an exam in a folder says about itself; every key may be left out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, ValidationError, field_validator

from keju.config.strict import explain
from keju.config.text import check_pattern, document
from keju.errors import ConfigError, DataError

NAMES = ("exam.yaml", "exam.yml")

Kind = Literal["choice", "free"]
Language = Literal["en", "zh"]
Text = Annotated[str, Field(min_length=1)]


class ReaderRule(BaseModel):
    """A reader that looks for what the exam's own prompt asks for; exactly one of the two."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    marker: Text | None = None
    """The text before the answer, e.g. ``Final answer:``."""
    regex: Text | None = None
    """A pattern; its first group (or all of it) in its last match is the answer."""

    @field_validator("regex")
    @classmethod
    def _compiles(cls, value: str | None) -> str | None:
        check_pattern(value or "")
        return value


class ExamFile(BaseModel):
    """The settings of an exam in a folder."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str | None = Field(default=None, pattern=r"^\w[\w.-]{0,63}$")
    """What results call it; the folder's name by default."""
    title: str = ""
    about: str = ""
    kind: Kind | None = None
    """Options with letters, or answers in the model's own words; told by the rows by default."""
    questions: list[str] | None = Field(default=None, min_length=1)
    """The files of questions; all of the folder's by default."""
    few_shot: Annotated[int, Field(ge=0)] | Text | None = None
    """How many worked examples, or the file they stand in (then all of them)."""
    template: Text | None = None
    """The prompt of one question."""
    shot_template: Text | None = None
    """One worked example."""
    few_shot_template: Text | None = None
    """The whole prompt with worked examples, ``{examples}``."""
    system_prompt: str | None = None
    reader: Literal["letter", "robust", "exact", "number"] | ReaderRule | None = None
    """How answers are read: ``letter`` of options; ``exact``, ``number``, ``robust`` of texts."""
    language: Language = "en"
    """Language of the prompts that Keju words itself."""
    max_tokens: PositiveInt | None = None

    @field_validator("questions", mode="before")
    @classmethod
    def _one_file(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    @field_validator("reader")
    @classmethod
    def _one_rule(cls, value: Any) -> Any:
        if isinstance(value, ReaderRule) and (value.marker is None) == (value.regex is None):
            raise ValueError("give either 'marker' or 'regex'")
        return value


def read_exam_file(folder: Path) -> tuple[ExamFile, str]:
    """The exam file of a folder and its name; defaults and no name where there is none."""
    for name in NAMES:
        path = folder / name
        if path.is_file():
            return _parse(path), name
    return ExamFile(), ""


def _parse(path: Path) -> ExamFile:
    try:
        return ExamFile(**document(path))
    except ConfigError as error:
        raise DataError(str(error)) from None
    except ValidationError as error:
        raise DataError(f"{path}: {_explained(error)}") from None


def _explained(error: ValidationError) -> str:
    """One line; where several forms are possible, what they are."""
    first = str(error.errors()[0]["loc"][0])
    for fault in error.errors():
        if fault["type"] == "value_error":
            return f"{first}: {fault['msg'].removeprefix('Value error, ')}"
    if first == "reader" and len(error.errors()) > 1:
        return (
            "reader: expected letter, robust, exact or number, or a mapping with 'marker' or "
            "'regex'"
        )
    if first == "few_shot" and len(error.errors()) > 1:
        return "few_shot: expected a number of worked examples, or the name of their file"
    return str(explain(error, ExamFile))
