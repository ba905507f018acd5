"""Contexts of single answers for pages: the question, the reply, what was read and why."""

from __future__ import annotations

from typing import Any

from keju.reporting import format as fmt
from keju.reporting.assertions import describe_assertions
from keju.reporting.format import Labels
from keju.reporting.gallery import ShownAnswer
from keju.reporting.passages import mark_reply, plain_answer, without_brackets
from keju.types import LABELS, Reading, Record

FOLDED = 1_000
"""A reply with more characters than this is folded."""
_ANSWER_LIMIT = 400
_LINE_LIMIT = 1_000


def case_context(case: ShownAnswer, labels: Labels, place: int = 0) -> dict[str, Any]:
    """Return the context of one answer; `place` selects the language of its titles."""
    record = case.record
    headline_reading = record.readings[0] if record.readings else None
    error = record.reply.error
    return {
        "case": case,
        "id": record.id,
        "bench": record.bench,
        "place": describe_place(case, labels),
        "steps": [(titles[place], text, failed) for titles, text, failed in case.steps],
        "marks": _marks(record, labels),
        "outcome": case.outcome,
        "target": _line(record.target),
        "read": reading_context(headline_reading, labels) if headline_reading else None,
        "others": [
            (reading.reader, reading_context(reading, labels))
            for reading in record.readings[1:]
            if (plain_answer(reading), reading.score.outcome)
            != (_headline_answer(record), case.outcome)
        ],
        "reply": mark_reply(case.reply, record),
        "reply_folded": case.reply.length if case.reply.length > FOLDED else 0,
        "choices": choice_rows(case),
        "logprobs": sorted((record.reply.label_logprobs or {}).items()),
        "option_logprobs": option_logprobs(case),
        "details": _details(record, labels),
        "error": error,
        "error_message": _line(error.message) if error else "",
    }


def describe_place(case: ShownAnswer, labels: Labels) -> str:
    """Return the exam and the subset of an answer."""
    return f"{case.record.bench} · {case.subset or labels('no_subset')}"


def _line(text: str) -> str:
    """Return a text on one line without canaries."""
    return fmt.shorten(fmt.without_canary(text), _LINE_LIMIT)


def _headline_answer(record: Record) -> str:
    return plain_answer(record.readings[0]) if record.readings else ""


def _marks(record: Record, labels: Labels) -> list[str]:
    """Return the repeat and the arm of an answer in words."""
    marks = [labels("epoch", n=record.epoch + 1)] if record.epoch else []
    return [*marks, labels.arm(record.arm)] if record.arm else marks


def _details(record: Record, labels: Labels) -> list[str]:
    """Return how the reply ended, if that is unusual."""
    details = []
    if record.reply.finish and record.reply.finish != "stop":
        details.append(labels("finish", finish=record.reply.finish))
    if record.reply.refusal:
        details.append(labels("refusal_line", text=_line(record.reply.refusal)))
    if record.faults:
        details.append(labels("retried", n=len(record.faults)))
    return details


def choice_rows(case: ShownAnswer) -> list[tuple[str, str, bool, bool]]:
    """Return the options in the order of the prompt: label, text, is target, is the answer."""
    target = without_brackets(case.record.target)
    value = _headline_answer(case.record)
    return [
        (label, choice, label == target, label == value)
        for label, choice in zip(LABELS, case.choices, strict=False)
    ]


def option_logprobs(case: ShownAnswer) -> list[tuple[str, float, bool]]:
    """Return each scored text by its option's label or its number, its log-probability, and whether
    the model would write it."""
    scores = case.record.reply.continuations or ()
    labelled = len(scores) == len(case.choices) <= len(LABELS)
    names = LABELS if labelled else [str(number) for number in range(1, len(scores) + 1)]
    return [(name, score.logprob, score.greedy) for name, score in zip(names, scores, strict=False)]


def reading_context(reading: Reading, labels: Labels) -> dict[str, Any]:
    """Return the context of a reading: the answer, how it was found, or why nothing was read."""
    value, passage = reading.answer.value, reading.answer.passage
    notes = labels("clause_separator").join(_reading_notes(reading, labels))
    return {
        "value": None if value is None else _line(value),
        "notes": labels("in_brackets", text=notes).lstrip(),
        "outcome": reading.score.outcome,
        "passage": _line(passage) if passage else "",
    }


def _reading_notes(reading: Reading, labels: Labels) -> list[str]:
    """Return how a reader found an answer, each fact in a few words."""
    answer = reading.answer
    facts = [
        labels("read_by", reader=reading.reader),
        labels(f"tier.{answer.tier}") if answer.tier else "",
        labels("read_rule", rule=answer.rule) if answer.rule else "",
        labels.reason(answer.reason) if answer.reason else "",
        *(labels(f"sign.{sign}") for sign in answer.signs),
        *_further_answers(reading, labels),
        *describe_assertions(reading.score, labels),
        reading.score.grader,
    ]
    return [fact for fact in facts if fact]


def _further_answers(reading: Reading, labels: Labels) -> list[str]:
    """Return what the reply states in addition to the answer that counts."""
    answer = reading.answer
    facts = []
    if answer.other is not None:
        facts.append(labels("also_states", answer=fmt.shorten(answer.other, _ANSWER_LIMIT)))
    if answer.first is not None:
        facts.append(labels("first_marker", value=fmt.shorten(answer.first, _ANSWER_LIMIT)))
    if answer.cut:
        facts.append(labels("run_on_cut"))
    return facts
