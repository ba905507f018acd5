"""``exam.yaml``: the description of an exam in a folder, and its prompts.

All keys are optional: templates come from the exam, or are Keju's default ones in two languages.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PositiveInt,
    ValidationError,
    field_validator,
    model_validator,
)

from keju.benchmarks.custom.columns import MEANING_NAMES
from keju.benchmarks.wording import (
    SHOT_WORDS,
    Word,
    Wording,
    check_template,
    fill_from_sample,
    placeholders,
    words,
)
from keju.config import DatasetArgs
from keju.config.exams import EXAM_FILES
from keju.config.patterns import compile_pattern
from keju.config.strict import document, explain_error
from keju.errors import ConfigError, DataError, TranslatableText, near_hint
from keju.types import Decode, Sample

Kind = Literal["choice", "free", "mixed", "math"]
Language = Literal["en", "zh"]
ReaderName = Literal[
    "letter", "robust", "exact", "number", "qwen", "simple-evals", "acc", "acc_norm"
]
OPTION_READERS = ("acc", "acc_norm")
"""Readers that compare the log-probabilities of the options' texts."""
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
    """The name in results; the folder's name by default."""
    title: str = ""
    about: str = ""
    kind: Kind | None = None
    """Options with letters, answers in the model's own words, both (``mixed``), or mathematical
    answers (``math``). By default the rows decide between the first three."""
    questions: list[str] | None = Field(default=None, min_length=1)
    """The files of questions; all of the folder's by default."""
    columns: dict[Text, Text] | None = None
    """The columns of the tables by meaning: ``question``, ``answer``, ``A``, ``subset``."""
    separator: Annotated[str, Field(min_length=1, max_length=1)] | None = None
    """The character between the values of a CSV file; by default the header decides."""
    encoding: Text | None = None
    """The encoding of CSV files, such as ``gb18030``; by default their bytes decide."""
    sheet: Text | None = None
    """The worksheet of XLSX files; by default the only one with questions."""
    few_shot: Annotated[int, Field(ge=0)] | Text | None = None
    """The number of worked examples, or their file (then all of them)."""
    template: Text | None = None
    """The prompt of one question."""
    shot_template: Text | None = None
    """One worked example."""
    few_shot_template: Text | None = None
    """The whole prompt with worked examples, ``{examples}``."""
    system_prompt: str | None = None
    grader: Literal["python"] | None = None
    """``python`` runs each answer as a program against the columns ``tests`` and ``entry_point``.
    """
    reader: ReaderName | ReaderRule | None = None
    """How answers are read: ``letter`` of options; ``exact``, ``number``, ``robust`` of texts;
    ``robust``, ``qwen``, ``simple-evals`` of mathematical answers; ``acc``, ``acc_norm`` of
    ``decode: continuations``."""
    decode: Decode | None = None
    """How options are chosen: the model writes its answer (``generate``), or the likeliest letter
    (``labels``) or text of an option (``continuations``) is its answer."""
    language: Language = "en"
    """Language of the prompts that Keju words itself."""
    max_tokens: PositiveInt | None = None

    @field_validator("questions", mode="before")
    @classmethod
    def _one_file(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    @field_validator("columns")
    @classmethod
    def _known_meanings(cls, value: dict[str, str] | None) -> dict[str, str] | None:
        for name in value or ():
            if name not in MEANING_NAMES:
                hint = near_hint(name, MEANING_NAMES)
                raise ValueError(
                    f"unknown meaning '{name}' (valid: question, answer, A, B, …){hint}"
                )
        return value

    @field_validator("encoding")
    @classmethod
    def _known_encoding(cls, value: str | None) -> str | None:
        if value is not None:
            try:
                " ".encode(value)
            except LookupError:
                raise ValueError(f"unknown encoding '{value}'") from None
        return value

    @field_validator("reader")
    @classmethod
    def _one_rule(cls, value: Any) -> Any:
        if isinstance(value, ReaderRule) and (value.marker is None) == (value.regex is None):
            raise ValueError("give either 'marker' or 'regex'")
        return value

    @model_validator(mode="after")
    def _reader_fits(self) -> ExamFile:
        if self.reader in OPTION_READERS and self.decode != "continuations":
            raise ValueError(f"reader '{self.reader}' needs decode: continuations")
        if self.decode == "continuations" and self.reader not in (None, *OPTION_READERS):
            raise ValueError("decode: continuations has the readers acc and acc_norm")
        return self


def read_exam_file(folder: Path) -> tuple[ExamFile, str]:
    """Return the exam file of a folder and its name; defaults and no name if it has none."""
    for name in EXAM_FILES:
        path = folder / name
        if path.is_file():
            try:
                return ExamFile(**document(path)), name
            except ConfigError as error:
                raise DataError(str(error)) from None
            except ValidationError as error:
                raise DataError(
                    "custom.in_file", path=path, problem=explain_exam_error(error)
                ) from None
    return ExamFile(), ""


def explain_exam_error(error: ValidationError) -> str:
    """Explain the error in one line; if several forms are possible, list them."""
    location = error.errors()[0]["loc"]
    field_name = str(location[0]) if location else ""
    for fault in error.errors():
        if fault["type"] == "value_error":
            place = f"{field_name}: " if location else ""
            return place + fault["msg"].removeprefix("Value error, ")
    if field_name == "reader" and len(error.errors()) > 1:
        value = error.errors()[0]["input"]
        hint = near_hint(value, get_args(ReaderName)) if isinstance(value, str) else ""
        return TranslatableText("custom.reader_form", hint=hint)
    if field_name == "few_shot" and len(error.errors()) > 1:
        return TranslatableText("custom.few_shot_form")
    return str(explain_error(error, ExamFile))


# --- templates ---------------------------------------------------------------------------------

EXAMPLES = "examples"
FIELDS = "fields"
"""Key of `Sample.metadata` that holds the other columns of the row."""

CLOSING_REQUESTS: dict[Language, dict[str, str]] = {
    "en": {
        "letter": "Think it through, then end with a line 'ANSWER: X'; X is one of {letters}.",
        "letters": "Answer with one of {letters} and nothing else.",
        "robust": "Think it through, then end with a line 'ANSWER: ' followed by the answer alone.",
        "exact": "Reply with the answer and nothing else.",
        "boxed": "Please reason step by step, and put your final answer within \\boxed{}.",
        "simple-evals": "Think it through, then end with a line 'Answer: ' followed by the answer "
        "alone.",
        "marker": "Think it through, then end with a line '<marker>' followed by the answer alone.",
        "marker_letter": "Think it through, then end with a line '<marker>' followed by one of "
        "{letters}.",
        "regex": "",
        "python": "Write a Python program that defines `{entry_point}`, in one code block.",
    },
    "zh": {
        "letter": "请先思考，最后一行写“答案：X”，X 是 {letters} 之一。",
        "letters": "请只回答 {letters} 中的一个字母。",
        "robust": "请先思考，最后一行写“答案：”，后面只写答案。",
        "exact": "请只写答案。",
        "boxed": "请逐步推理，并把最终答案写在 \\boxed{} 中。",
        "simple-evals": "请先思考，最后一行写“Answer: ”，后面只写答案。",
        "marker": "请先思考，最后一行写“<marker>”，后面只写答案。",
        "marker_letter": "请先思考，最后一行写“<marker>”，后面写 {letters} 之一。",
        "regex": "",
        "python": "请编写定义 `{entry_point}` 的 Python 程序，放在一个代码块里。",
    },
}
"""The request to the model, by reader; ``letters`` is for protocols that only choose a letter."""

CALL_NAMES: dict[Kind, dict[str, str]] = {
    "choice": {"robust": "letter", "marker": "marker_letter"},
    "free": {"number": "robust"},
    "math": {"robust": "boxed", "qwen": "boxed"},
}
"""The request for a reader, if it is not the one of the same name."""

OPTION_QUESTIONS: dict[Language, str] = {
    "en": "Question: {question}\nAnswer:",
    "zh": "问题：{question}\n答案：",
}
"""The prompt that each option continues."""
OPTION_LEADS: dict[Language, str] = {"en": " ", "zh": ""}
"""The text between such a prompt and an option."""

ANSWER_LINES: dict[Language, str] = {"en": "ANSWER: ", "zh": "答案："}


class PromptTemplates(NamedTuple):
    """The templates in use, for prompts and manifest."""

    question: str
    """The prompt of one question."""
    whole: str
    """The prompt with worked examples before the question."""
    shot: str
    """One worked example."""
    explained: str
    """One with an explanation; equals `shot` if the exam defines that."""

    def wording(self, system: str | None, *, option_texts: bool = False) -> Wording:
        """Return the prompts of the exam, with a blank line between worked examples.

        With `option_texts` the answer of an example is the text of the right option.
        """
        default_words = words("A) text", between=", ")
        names = {name for template in self for name in placeholders(template)}
        column_names = names - {*default_words, "subset", EXAMPLES}
        vocabulary = default_words | {name: _column_word(name) for name in column_names}
        shot_vocabulary = {**vocabulary, **SHOT_WORDS, "subset": lambda shot: shot.subset}
        if option_texts:
            shot_vocabulary["answer"] = lambda shot: shot.choices[shot.labels.index(shot.target)]

        def example(shot: Sample) -> str:
            explained = shot.metadata.get("explanation")
            return fill_from_sample(
                self.explained if explained else self.shot, shot_vocabulary, shot
            )

        return Wording(
            question=self.question,
            whole=self.whole,
            shot="{example}",
            system_prompt=system or "",
            words=vocabulary,
            shot_words={"example": example},
            shared=("subset",),
        )


def _column_word(name: str) -> Word:
    """Return the value of another column; unknown names, as in ``\\boxed{X}``, stay text."""
    return lambda sample: str(sample.metadata.get(FIELDS, {}).get(name, f"{{{name}}}"))


def columns_in_templates(exam: ExamFile, args: DatasetArgs) -> frozenset[str]:
    """Return the names in the templates of the exam and the user."""
    exam_templates = (exam.template, exam.shot_template, exam.few_shot_template)
    user_templates = (args.prompt_template, args.few_shot_prompt_template)
    return frozenset(
        name
        for template in (*exam_templates, *user_templates)
        for name in placeholders(template or "")
    )


def _answer_line(exam: ExamFile, reader: str, call_name: str, *, letters: bool) -> str:
    """Return the last line of a worked example: its answer in the form that prompts ask for."""
    if letters or reader in ("exact", "regex"):
        return "{answer}"
    if call_name == "boxed":
        return "\\boxed{{answer}}"
    if call_name == "simple-evals":
        return "Answer: {answer}"
    marker = _marker_of(exam)
    return f"{ANSWER_LINES[exam.language] if marker is None else f'{marker} '}{{answer}}"


def choose_templates(
    exam: ExamFile,
    kind: Kind,
    reader: str,
    args: DatasetArgs,
    *,
    decode: Decode,
    columns: Iterable[str],
    file: Path,
) -> PromptTemplates:
    """Choose the user's templates if given, else the exam's, else Keju's, and check all of them.

    With a `decode` of ``labels`` the model only chooses a letter; with ``continuations`` it does
    not see the options. `columns` are the fields that all rows have; `file` is the exam file.
    """
    if decode == "continuations":
        return _option_templates(exam, args, columns=columns, file=file)
    letters = decode == "labels"
    form = "{question}\n\n{choices}" if kind == "choice" else "{question}"
    call_name = exam.grader or CALL_NAMES[kind].get(reader, reader)
    request = CLOSING_REQUESTS[exam.language]["letters" if letters else call_name]
    request = request.replace("<marker>", _marker_of(exam) or "")
    question = args.prompt_template or exam.template or "\n\n".join(filter(None, (form, request)))
    exam_whole = None if args.prompt_template else exam.few_shot_template
    whole_template = (
        args.few_shot_prompt_template or exam_whole or "{" + EXAMPLES + "}\n\n" + question
    )
    line = _answer_line(exam, reader, call_name, letters=letters)
    shot = exam.shot_template or f"{form}\n\n{line}"
    explained = shot if letters else f"{form}\n\n{{explanation}}\n{line}"
    templates = PromptTemplates(question, whole_template, shot, exam.shot_template or explained)
    _check_templates(templates, exam, kind, args, columns=columns, file=file)
    return templates


def _option_templates(
    exam: ExamFile, args: DatasetArgs, *, columns: Iterable[str], file: Path
) -> PromptTemplates:
    """Return the templates of prompts that an option continues. The options are not part of it."""
    question = args.prompt_template or exam.template or OPTION_QUESTIONS[exam.language]
    exam_whole = None if args.prompt_template else exam.few_shot_template
    whole_template = (
        args.few_shot_prompt_template or exam_whole or "{" + EXAMPLES + "}\n\n" + question
    )
    shot = exam.shot_template or f"{question}{OPTION_LEADS[exam.language]}{{answer}}"
    templates = PromptTemplates(question, whole_template, shot, shot)
    _check_templates(templates, exam, "free", args, columns=(*columns, "choices"), file=file)
    return templates


def _marker_of(exam: ExamFile) -> str | None:
    """Return the text before the answer that the exam's own reader looks for."""
    return exam.reader.marker if isinstance(exam.reader, ReaderRule) else None


def _check_templates(
    templates: PromptTemplates,
    exam: ExamFile,
    kind: Kind,
    args: DatasetArgs,
    *,
    columns: Iterable[str],
    file: Path,
) -> None:
    """Raise ConfigError if a template lacks a required name or has an unknown one."""
    options = ["choices"] if kind == "choice" else []
    required = ["question", *options]
    known_names = {*columns, "subset", *required, *(["letters"] if options else [])}
    user_question, user_whole = args.prompt_template, args.few_shot_prompt_template
    for setting, template, extra_names, required_names in (
        ("prompt_template" if user_question else "template", templates.question, (), required),
        (
            "few_shot_prompt_template" if user_whole else "few_shot_template",
            templates.whole,
            (EXAMPLES,),
            (*required, EXAMPLES),
        ),
        ("shot_template", templates.shot, ("answer", "explanation"), ("question", "answer")),
    ):
        names = {*known_names, *extra_names}
        try:
            check_template(template, known_names=names, required=required_names, setting=setting)
        except ConfigError as error:
            if getattr(exam, setting, None) is None:  # the user's template
                raise
            raise ConfigError("custom.in_file", path=file, problem=error) from None
