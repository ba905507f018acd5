"""How a custom exam is put: the exam's own templates, or Keju's plain wording in two languages."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from keju.benchmarks.choices import label_lines
from keju.benchmarks.custom.exam_file import ExamFile, Kind, Language, ReaderRule
from keju.benchmarks.templates import check_template, fill
from keju.types import LABELS, Message, Prefix, Prompt

EXAMPLES = "examples"
PER_QUESTION = ("question", "choices", "letters")

CALLS: dict[Language, dict[str, str]] = {
    "en": {
        "letter": "Think it through, then end with a line 'ANSWER: X', where X is one of {letters}.",
        "letters": "Answer with one of {letters} and nothing else.",
        "robust": "Think it through, then end with a line 'ANSWER: ' followed by the answer alone.",
        "exact": "Reply with the answer and nothing else.",
        "marker": "Think it through, then end with a line '<marker>' followed by the answer alone.",
        "regex": "",
    },
    "zh": {
        "letter": "请先思考，最后一行写“答案：X”，X 是 {letters} 之一。",
        "letters": "请只回答 {letters} 中的一个字母。",
        "robust": "请先思考，最后一行写“答案：”，后面只写答案。",
        "exact": "请只写答案。",
        "marker": "请先思考，最后一行写“<marker>”，后面只写答案。",
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


class Wording(NamedTuple):
    """The templates in force."""

    question: str
    """The prompt of one question."""
    whole: str
    """The same with worked examples before it."""
    shot: str
    """One worked example."""
    explained: bool
    """Whether the worked examples show their explanations in Keju's own way."""

    def examples(self, shots: Sequence[tuple[Asked, str, str]]) -> str:
        """The worked examples (question, answer, explanation), a blank line between them."""
        return "\n\n".join(self._example(*shot) for shot in shots)

    def _example(self, asked: Asked, answer: str, explanation: str) -> str:
        values = asked.values() | {"answer": answer, "explanation": explanation}
        if self.explained and explanation:
            return fill(self.shot.replace("{answer_line}", "{explanation}\n{answer_line}"), values)
        return fill(self.shot, values)


def split(template: str, shared: Mapping[str, str]) -> tuple[str, str]:
    """A template as what all questions of a subset share, filled, and what is their own."""
    own = next((m.start() for m in _PLACEHOLDER.finditer(template) if m[1] not in shared), None)
    end = len(template) if own is None else own
    return fill(template[:end], shared), template[end:]


def render(prefix: Prefix, tail: str, asked: Asked, shared: Mapping[str, str]) -> Prompt:
    """The prompt of one question."""
    return Prompt(prefix, fill(tail, asked.values() | shared))


def prefix_of(lead: str, system_prompt: str | None) -> Prefix:
    """The shared part of a subset's prompts."""
    turns = (Message("system", system_prompt),) if system_prompt else ()
    return Prefix(turns, lead)


def wording_of(
    exam: ExamFile,
    kind: Kind,
    reader: str,
    *,
    letters: bool,
    template: str | None,
    few_shot_template: str | None,
    columns: frozenset[str],
) -> Wording:
    """The user's templates where they are given, else the exam's, else Keju's; all are checked."""
    plain = "{question}\n\n{choices}" if kind == "choice" else "{question}"
    call = _call(exam, reader, letters=letters)
    question = template or exam.template or (f"{plain}\n\n{call}" if call else plain)
    whole = few_shot_template or exam.few_shot_template or "{" + EXAMPLES + "}\n\n" + question
    shot = exam.shot_template or f"{plain}\n\n{_answer_line(exam, reader, letters=letters)}"
    required = ("question", "choices") if kind == "choice" else ("question",)
    known = {*columns, "subset", "question", *(("choices", "letters") if kind == "choice" else ())}
    check_template(question, known=known, required=required, setting="template")
    check_template(
        whole, known={*known, EXAMPLES}, required=(*required, EXAMPLES), setting="few_shot_template"
    )
    check_template(
        shot,
        known={*known, "answer", "explanation"},
        required=("question", "answer"),
        setting="shot_template",
    )
    return Wording(question, whole, shot, explained=exam.shot_template is None and not letters)


def _call(exam: ExamFile, reader: str, *, letters: bool) -> str:
    calls = CALLS[exam.language]
    if letters:
        return calls["letters"]
    call = calls["robust" if reader == "number" else reader]
    marker = exam.reader.marker if isinstance(exam.reader, ReaderRule) else None
    return call.replace("<marker>", marker or "")


def _answer_line(exam: ExamFile, reader: str, *, letters: bool) -> str:
    if letters or reader in ("exact", "regex"):
        return "{answer}"
    if isinstance(exam.reader, ReaderRule) and exam.reader.marker is not None:
        return exam.reader.marker + " {answer}"
    return ANSWER_LINES[exam.language] + "{answer}"
