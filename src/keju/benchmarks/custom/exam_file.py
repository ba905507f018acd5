"""``exam.yaml``: what an exam in a folder says about itself, and how it is put into words.

Every key may be left out: the templates are the exam's own, or Keju's plain ones in two languages.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_args

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, ValidationError, field_validator

from keju.benchmarks.wording import (
    ANSWERED,
    Word,
    Wording,
    check_template,
    placeholders,
    put,
    words,
)
from keju.config import DatasetArgs
from keju.config.exams import EXAM_FILES
from keju.config.patterns import compile_pattern
from keju.config.strict import document, explain_error
from keju.errors import ConfigError, DataError, Hint, near_hint
from keju.types import Sample

Kind = Literal["choice", "free"]
Language = Literal["en", "zh"]
ReaderName = Literal["letter", "robust", "exact", "number"]
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
        if value is not None:
            compile_pattern(value)
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
    reader: ReaderName | ReaderRule | None = None
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
    for name in EXAM_FILES:
        path = folder / name
        if path.is_file():
            try:
                return ExamFile(**document(path)), name
            except ConfigError as error:
                raise DataError(str(error)) from None
            except ValidationError as error:
                raise DataError("custom.in_file", path=path, problem=explanation(error)) from None
    return ExamFile(), ""


def explanation(error: ValidationError) -> str:
    """One line; where several forms are possible, what they are."""
    first = str(error.errors()[0]["loc"][0])
    for fault in error.errors():
        if fault["type"] == "value_error":
            return f"{first}: {fault['msg'].removeprefix('Value error, ')}"
    if first == "reader" and len(error.errors()) > 1:
        given = error.errors()[0]["input"]
        hint = near_hint(given, get_args(ReaderName)) if isinstance(given, str) else ""
        return Hint("custom.reader_form", hint=hint)
    if first == "few_shot" and len(error.errors()) > 1:
        return Hint("custom.few_shot_form")
    return str(explain_error(error, ExamFile))


# --- templates ---------------------------------------------------------------------------------

EXAMPLES = "examples"
FIELDS = "fields"
"""Key of `Sample.metadata` that holds the other columns of the row."""

CALLS: dict[Language, dict[str, str]] = {
    "en": {
        "letter": "Think it through, then end with a line 'ANSWER: X'; X is one of {letters}.",
        "letters": "Answer with one of {letters} and nothing else.",
        "robust": "Think it through, then end with a line 'ANSWER: ' followed by the answer alone.",
        "exact": "Reply with the answer and nothing else.",
        "marker": "Think it through, then end with a line '<marker>' followed by the answer alone.",
        "marker_letter": "Think it through, then end with a line '<marker>' followed by one of "
        "{letters}.",
        "regex": "",
    },
    "zh": {
        "letter": "请先思考，最后一行写“答案：X”，X 是 {letters} 之一。",
        "letters": "请只回答 {letters} 中的一个字母。",
        "robust": "请先思考，最后一行写“答案：”，后面只写答案。",
        "exact": "请只写答案。",
        "marker": "请先思考，最后一行写“<marker>”，后面只写答案。",
        "marker_letter": "请先思考，最后一行写“<marker>”，后面写 {letters} 之一。",
        "regex": "",
    },
}
"""What the model is asked to do, by reader; ``letters`` where it only chooses a letter."""

ANSWER_LINES: dict[Language, str] = {"en": "ANSWER: ", "zh": "答案："}


class Templates(NamedTuple):
    """The templates in force, for prompts and manifest."""

    question: str
    """The prompt of one question."""
    whole: str
    """The same with worked examples before it."""
    shot: str
    """One worked example."""
    explained: str
    """One with an explanation; as `shot` where that is the exam's own."""

    def wording(self, system: str | None) -> Wording:
        """The prompts of the exam, a blank line between its worked examples."""
        usual = words("A) text", between=", ")
        names = {name for template in self for name in placeholders(template)}
        own = names - {*usual, "subset", EXAMPLES}
        vocabulary = usual | {name: _column(name) for name in own}
        shown = {**vocabulary, **ANSWERED, "subset": lambda shot: shot.subset}

        def example(shot: Sample) -> str:
            explained = shot.metadata.get("explanation")
            return put(self.explained if explained else self.shot, shown, shot)

        return Wording(
            question=self.question,
            whole=self.whole,
            shot="{example}",
            system_prompt=system or "",
            words=vocabulary,
            shot_words={"example": example},
            shared=("subset",),
        )


def _column(name: str) -> Word:
    """A further column of the row; what is none, as in ``\\boxed{X}``, stays as it is."""
    return lambda sample: str(sample.metadata.get(FIELDS, {}).get(name, f"{{{name}}}"))


def named_columns(exam: ExamFile, args: DatasetArgs) -> frozenset[str]:
    """What the templates name that the exam or the user gives."""
    exams = (exam.template, exam.shot_template, exam.few_shot_template)
    own = (args.prompt_template, args.few_shot_prompt_template)
    return frozenset(name for each in (*exams, *own) for name in placeholders(each or ""))


def templates_of(
    exam: ExamFile,
    kind: Kind,
    reader: str,
    args: DatasetArgs,
    *,
    letters: bool,
    columns: Iterable[str],
    file: Path,
) -> Templates:
    """The user's templates where they are given, else the exam's, else Keju's; all are checked.

    `letters` says that the model only chooses a letter; `columns` are the fields of all rows;
    `file` is the exam file.
    """
    plain = "{question}\n\n{choices}" if kind == "choice" else "{question}"
    marker = exam.reader.marker if isinstance(exam.reader, ReaderRule) else None
    asked = "robust" if reader == "number" else reader
    if kind == "choice":
        asked = {"robust": "letter", "marker": "marker_letter"}.get(reader, asked)
    call = CALLS[exam.language]["letters" if letters else asked].replace("<marker>", marker or "")
    question = args.prompt_template or exam.template or (f"{plain}\n\n{call}" if call else plain)
    own = None if args.prompt_template else exam.few_shot_template
    whole = args.few_shot_prompt_template or own or "{" + EXAMPLES + "}\n\n" + question
    line = ANSWER_LINES[exam.language] if marker is None else f"{marker} "
    line = ("" if letters or reader in ("exact", "regex") else line) + "{answer}"
    shot = exam.shot_template or f"{plain}\n\n{line}"
    explained = shot if letters else f"{plain}\n\n{{explanation}}\n{line}"
    made = Templates(question, whole, shot, exam.shot_template or explained)
    required = ["question"] + (["choices"] if kind == "choice" else [])
    known = {*columns, "subset", *required, *(["letters"] if kind == "choice" else [])}
    asking = "prompt_template" if args.prompt_template else "template"
    asking_all = (
        "few_shot_prompt_template" if args.few_shot_prompt_template else "few_shot_template"
    )
    for setting, template, more, needed in (
        (asking, question, (), required),
        (asking_all, whole, (EXAMPLES,), (*required, EXAMPLES)),
        ("shot_template", shot, ("answer", "explanation"), ("question", "answer")),
    ):
        try:
            check_template(template, known={*known, *more}, required=needed, setting=setting)
        except ConfigError as error:
            if getattr(exam, setting, None) is None:  # the user's own
                raise
            raise ConfigError("custom.in_file", path=file, problem=error) from None
    return made
