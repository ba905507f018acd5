"""Single replies as rows of a list, and the facts of the page of a reply."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode

from keju.reporting import format as fmt
from keju.reporting.format import Labels
from keju.types import Outcome, Record
from keju.viewer.filters import ReplySelection
from keju.viewer.index import ExamArm
from keju.viewer.run_index import IndexedRun, RunIndex

EXCERPT: Final = 160
RUNS_SEARCHED: Final = 20
"""The number of other runs in which a question is searched, the newest first."""
_ANSWER: Final = 60
_FOLDED: Final = 2_000
"""A part of the prompt with more characters than this is folded."""


def sample_path(stored: IndexedRun, record: Record, selection: ReplySelection) -> str:
    """Return the address of a reply inside a selection."""
    parameters: dict[str, Any] = {"of": ExamArm(record.bench, record.arm).name, "id": record.id}
    if record.epoch:
        parameters["epoch"] = record.epoch
    query = urlencode(parameters) + "&" + selection.query()
    return f"/runs/{quote(stored.name)}/sample?{query.rstrip('&')}"


def list_row(
    stored: IndexedRun, record: Record, selection: ReplySelection, labels: Labels
) -> dict[str, Any]:
    """Return a reply as a row of the list."""
    headline_reading = record.readings[0] if record.readings else None
    value = headline_reading.answer.value if headline_reading else None
    marks = [labels("epoch", n=record.epoch + 1)] if record.epoch else []
    marks += [labels.arm(record.arm)] if record.arm else []
    return {
        "href": sample_path(stored, record, selection),
        "id": fmt.printable(record.id, one_line=True),
        "marks": marks,
        "subset": _subset_of(stored, record),
        "outcome": headline_reading.score.outcome if headline_reading else "error",
        "differ": len({reading.score.outcome for reading in record.readings}) > 1,
        "read": fmt.shorten(fmt.without_canary(value or ""), _ANSWER),
        "target": fmt.shorten(fmt.without_canary(record.target), _ANSWER),
        "excerpt": _end_excerpt(fmt.without_canary(_reply_text(record, labels))),
        "seconds": record.reply.seconds,
        "tokens": record.reply.usage.output,
    }


def _subset_of(stored: IndexedRun, record: Record) -> str:
    """Return the subset of a reply; empty if the exam's data is not loaded yet."""
    if not stored.questions_are_loaded:
        return ""
    questions = stored.questions()
    place = questions.place(record)
    names = questions.subsets.get(record.bench, [])
    return names[place.subset - 1] if place and place.subset else ""


def _reply_text(record: Record, labels: Labels) -> str:
    """Return the text of a reply, or its error."""
    error = record.reply.error
    if error is None:
        return record.reply.text
    kind = labels.get(f"fault.{error.kind}", error.kind)
    return labels("named", name=kind, text=error.message)


def _end_excerpt(text: str) -> str:
    """Return the end of a text on one line, where the answer usually is."""
    text = fmt.printable(text[-4 * EXCERPT :], one_line=True)
    return text if len(text) <= EXCERPT else "…" + text[1 - EXCERPT :]


def other_runs(
    run_index: RunIndex, stored: IndexedRun, record: Record
) -> Iterator[tuple[str, Outcome, str]]:
    """Yield the newest other runs with the same question: name, outcome, address."""
    part = ExamArm(record.bench, record.arm)
    searched_count = 0
    for other_run in run_index:
        exams = {exam.name for exam in other_run.manifest.benchmarks}
        if other_run is stored or record.bench not in exams or searched_count == RUNS_SEARCHED:
            continue
        searched_count += 1
        other_run.index.refresh()
        number = other_run.index.find(part, record.id, record.epoch)
        if number >= 0:
            query = urlencode(
                [
                    ("run", stored.name),
                    ("run", other_run.name),
                    ("of", part.name),
                    ("id", record.id),
                ]
                + ([("epoch", record.epoch)] if record.epoch else [])
            )
            outcome = other_run.index.kinds[other_run.index.kind[number]].outcome
            yield other_run.name, outcome, f"/compare/sample?{query}"


def prompt_turns(current_question: Any) -> list[tuple[str, str, bool]]:
    """Return the turns of a prompt with their roles; long turns except the last one are folded."""
    exam, prompt = (
        current_question.job.exam,
        current_question.job.exam.render(current_question.sample),
    )
    if exam.protocol.form == "completion":
        return [("text", fmt.printable(fmt.without_canary(prompt.text)), False)]
    turns = [(m.role, fmt.printable(fmt.without_canary(m.content))) for m in prompt.cued_messages]
    last_place = len(turns) - 1
    return [
        (role, text, place != last_place and len(text) > _FOLDED)
        for place, (role, text) in enumerate(turns)
    ]


def reply_facts(record: Record, labels: Labels) -> Iterator[tuple[str, str]]:
    """Yield the usage and the identifiers of a reply."""
    reply = record.reply
    values: Mapping[str, Any] = {
        "finish": reply.finish,
        "seconds": f"{reply.seconds:.2f}",
        "tokens_in": fmt.count(reply.usage.input),
        "tokens_out": fmt.count(reply.usage.output),
        "attempts": 1 + len(record.faults),
        "model": reply.model,
        "origin": record.origin,
        "hash": record.hash,
    }
    for name, value in values.items():
        if value:
            yield labels(f"view.fact.{name}"), fmt.printable(str(value), one_line=True)
