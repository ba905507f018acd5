"""How a custom exam is put: the exam's own templates, or Keju's plain wording in two languages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from keju.benchmarks.custom.exam_file import ExamFile, Kind, Language, ReaderRule
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
from keju.types import Sample

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


def templates_of(
    exam: ExamFile,
    kind: Kind,
    reader: str,
    args: DatasetArgs,
    *,
    letters: bool,
    columns: Iterable[str],
) -> Templates:
    """The user's templates where they are given, else the exam's, else Keju's; all are checked.

    `letters` says that the model only chooses a letter; `columns` are the fields of all rows.
    """
    plain = "{question}\n\n{choices}" if kind == "choice" else "{question}"
    call = _call(exam, kind, reader, letters=letters)
    question = args.prompt_template or exam.template or (f"{plain}\n\n{call}" if call else plain)
    own = None if args.prompt_template else exam.few_shot_template
    whole = args.few_shot_prompt_template or own or "{" + EXAMPLES + "}\n\n" + question
    line = _answer_line(exam, reader, letters=letters)
    shot = exam.shot_template or f"{plain}\n\n{line}"
    explained = shot if letters else f"{plain}\n\n{{explanation}}\n{line}"
    made = Templates(question, whole, shot, exam.shot_template or explained)
    required = ["question"] + (["choices"] if kind == "choice" else [])
    known = {*columns, "subset", *required, *(["letters"] if kind == "choice" else [])}
    for setting, template, more, needed in (
        ("template", question, (), required),
        ("few_shot_template", whole, (EXAMPLES,), (*required, EXAMPLES)),
        ("shot_template", shot, ("answer", "explanation"), ("question", "answer")),
    ):
        check_template(template, known={*known, *more}, required=needed, setting=setting)
    return made


def _call(exam: ExamFile, kind: Kind, reader: str, *, letters: bool) -> str:
    calls = CALLS[exam.language]
    if letters:
        return calls["letters"]
    if kind == "choice":
        reader = {"robust": "letter", "marker": "marker_letter"}.get(reader, reader)
    call = calls["robust" if reader == "number" else reader]
    marker = exam.reader.marker if isinstance(exam.reader, ReaderRule) else None
    return call.replace("<marker>", marker or "")


def _answer_line(exam: ExamFile, reader: str, *, letters: bool) -> str:
    if letters or reader in ("exact", "regex"):
        return "{answer}"
    if isinstance(exam.reader, ReaderRule) and exam.reader.marker is not None:
        return exam.reader.marker + " {answer}"
    return ANSWER_LINES[exam.language] + "{answer}"
