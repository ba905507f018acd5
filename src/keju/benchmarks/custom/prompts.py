"""How a custom exam is put: the exam's own templates, or Keju's plain wording in two languages."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from keju.benchmarks.choices import label_lines
from keju.benchmarks.custom.exam_file import ExamFile, Kind, Language, ReaderRule
from keju.benchmarks.wording import check_template, fill
from keju.types import LABELS, Message, Prefix, Prompt

EXAMPLES = "examples"
PER_QUESTION = ("question", "choices", "letters")

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
_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


class Asked(NamedTuple):
    """What a template is filled with."""

    text: str
    choices: Sequence[str]
    fields: Mapping[str, str]

    def values(self) -> dict[str, str]:
        """By placeholder."""
        return {
            **self.fields,
            "question": self.text,
            "choices": label_lines(self.choices),
            "letters": ", ".join(LABELS[: len(self.choices)]),
        }


class Shot(NamedTuple):
    """One worked example."""

    asked: Asked
    answer: str
    explanation: str


class Wording(NamedTuple):
    """The templates in force."""

    question: str
    """The prompt of one question."""
    whole: str
    """The same with worked examples before it."""
    shot: str
    """One worked example."""
    explained: str
    """One with an explanation; as `shot` where that is the exam's own."""

    def examples(self, shots: Sequence[Shot]) -> str:
        """The worked examples, a blank line between them."""
        return "\n\n".join(self._example(shot) for shot in shots)

    def _example(self, shot: Shot) -> str:
        values = {"answer": shot.answer, "explanation": shot.explanation}
        template = self.explained if shot.explanation else self.shot
        return fill(template, shot.asked.values() | values)


def split(template: str, shared: Mapping[str, str]) -> tuple[str, str]:
    """A template as what all questions of a subset share, filled, and what is their own."""
    own = next((m.start() for m in _PLACEHOLDER.finditer(template) if m[1] not in shared), None)
    end = len(template) if own is None else own
    return fill(template[:end], shared), template[end:]


def render(prefix: Prefix, tail: str, asked: Asked, shared: Mapping[str, str]) -> Prompt:
    """The prompt of one question."""
    return Prompt(prefix, fill(tail, {**asked.values(), **shared}))


def prefix_of(lead: str, system_prompt: str | None) -> Prefix:
    """The shared part of a subset's prompts."""
    turns = (Message("system", system_prompt),) if system_prompt else ()
    return Prefix(turns, lead)


class Templates(NamedTuple):
    """Templates that the user gave for this run."""

    question: str | None = None
    whole: str | None = None


def wording_of(
    exam: ExamFile,
    kind: Kind,
    reader: str,
    given: Templates,
    *,
    letters: bool,
    columns: frozenset[str],
) -> Wording:
    """The user's templates where they are given, else the exam's, else Keju's; all are checked.

    `letters` says that the model only chooses a letter; `columns` are the fields of all rows.
    """
    plain = "{question}\n\n{choices}" if kind == "choice" else "{question}"
    call = _call(exam, kind, reader, letters=letters)
    question = given.question or exam.template or (f"{plain}\n\n{call}" if call else plain)
    joined = "{" + EXAMPLES + "}\n\n" + question
    own = None if given.question else exam.few_shot_template
    whole = given.whole or own or joined
    line = _answer_line(exam, reader, letters=letters)
    shot = exam.shot_template or f"{plain}\n\n{line}"
    reasoned = shot if letters else f"{plain}\n\n{{explanation}}\n{line}"
    wording = Wording(question, whole, shot, exam.shot_template or reasoned)
    _check(wording, kind, columns)
    return wording


def _check(wording: Wording, kind: Kind, columns: frozenset[str]) -> None:
    required = ("question", "choices") if kind == "choice" else ("question",)
    options = ("choices", "letters") if kind == "choice" else ()
    known = {*columns, "subset", "question", *options}
    check_template(wording.question, known=known, required=required, setting="template")
    check_template(
        wording.whole,
        known={*known, EXAMPLES},
        required=(*required, EXAMPLES),
        setting="few_shot_template",
    )
    check_template(
        wording.shot,
        known={*known, "answer", "explanation"},
        required=("question", "answer"),
        setting="shot_template",
    )


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
