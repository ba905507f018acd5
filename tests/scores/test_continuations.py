"""Continuations: their place in a request's hash, on the wire, in the journal, and in a reading."""

from __future__ import annotations

import asyncio
from dataclasses import replace as replace_fields
from pathlib import Path

import msgspec
import pytest

from keju.answers.reader import LabelReader
from keju.benchmarks.base import Exam, Protocol, Subset
from keju.benchmarks.grading import grade
from keju.config import TaskConfig
from keju.engine.cluster.wire import BlockQuestion, make_question
from keju.errors import ConfigError
from keju.models.registry import fit_sampling
from keju.models.scripted import ScriptedModel
from keju.runs.journal import Journal, Records
from keju.scores.exam_scores import ExamScores
from keju.types import (
    Continuation,
    ContinuationScore,
    Prefix,
    Prompt,
    Record,
    Reply,
    Sample,
    Sampling,
)

SAMPLING = Sampling(form="completion", decode="continuations")
SAMPLE = Sample(
    id="x_0", subset="all", index=0, text="Cats", target="B", choices=("bark", "meow", "fly")
)


class Cats(Exam):
    def render(self, sample: Sample) -> Prompt:
        return Prompt(Prefix(lead="Say: "), sample.text)


def exam(lead: str = " ") -> Cats:
    protocol = Protocol(
        name="p", version="1", reader="label", about="", decode="continuations", label=lead
    )
    readers = {"label": LabelReader("label")}
    return Cats(
        benchmark="x",
        protocol=protocol,
        samples=[SAMPLE],
        subsets=[Subset("all", 0, 1)],
        readers=readers,
    )


def scores(exam: Exam, sampling: Sampling = SAMPLING) -> ExamScores:
    return ExamScores(exam, sampling, list(exam.readers.values()), model="m")


def test_a_request_has_the_options_as_continuations_and_its_hash_covers_them() -> None:
    request = scores(exam()).request(0)
    assert request.continuations == tuple(
        Continuation("Say: Cats", f" {choice}") for choice in SAMPLE.choices
    )
    assert request.hash != scores(exam(lead="")).request(0).hash
    labels = replace_fields(exam().protocol, decode="labels")
    other = exam()
    other.protocol = labels
    assert (
        scores(other, Sampling(form="completion", decode="labels")).request(0).continuations == ()
    )


@pytest.mark.parametrize(
    "continuations",
    [
        (Continuation("Say: Cats", " a"), Continuation("Say: Cats", " b")),
        (Continuation("Tom ", "c"), Continuation("Ann ", "c")),
        (Continuation("", "a whole page", rolling=True),),
    ],
)
def test_a_request_crosses_processes_unchanged(continuations: tuple[Continuation, ...]) -> None:
    request = msgspec.structs.replace(scores(exam()).request(0), continuations=continuations)
    sent = msgspec.msgpack.encode(make_question(0, request))
    question = msgspec.msgpack.decode(sent, type=BlockQuestion)
    received = question.request(request.prompt.prefix, SAMPLING)
    assert received.continuations == continuations
    assert received.hash == request.hash
    assert received.prompt.text == request.prompt.text
    assert sent.count(b"Cats") == 1


def test_the_journal_keeps_the_scores(tmp_path: Path) -> None:
    parts = (ContinuationScore(-1.5, True, 2), ContinuationScore(-4.25))
    reply = Reply(continuations=parts)
    record = Record(bench="x", id="x_0", hash="h" * 32, reply=reply)
    with Journal(tmp_path) as journal:
        journal.append([record])
    (stored,) = Records(tmp_path)
    assert stored.reply == reply
    assert b"continuations" not in msgspec.json.encode(Reply(text="B"))


def test_the_most_likely_option_is_the_answer_and_a_tie_is_flagged() -> None:
    reader = LabelReader("label")

    def read(*values: float) -> tuple[str | None, str, str]:
        reply = Reply(continuations=tuple(ContinuationScore(value) for value in values))
        reading = grade(reply, SAMPLE, reader)
        return reading.answer.value, reading.answer.reason, reading.score.outcome

    assert read(-3.0, -1.0, -2.0) == ("B", "", "correct")
    assert read(-1.0, -1.0, -2.0) == ("A", "tie", "incorrect")
    assert read(-1.0, -2.0) == (None, "no_logprobs", "unparsed")
    assert read(-1.0, float("nan"), -2.0) == (None, "no_logprobs", "unparsed")


def test_the_scripted_model_scores_each_continuation_by_the_request_alone() -> None:
    request = scores(exam()).request(0)
    first, second = (
        asyncio.run(ScriptedModel().ask(request, timeout=1.0)).continuations for _ in range(2)
    )
    assert first is not None
    assert first == second
    assert len(set(first)) == len(SAMPLE.choices)
    assert all(score.logprob < 0 and score.tokens > 0 for score in first)


def test_a_kind_of_model_that_does_not_know_continuations_is_refused() -> None:
    with pytest.raises(ConfigError, match="gives no log-probabilities of given texts"):
        fit_sampling(TaskConfig(model="anthropic:sonnet", datasets=["demo"]), SAMPLING)
    assert (
        fit_sampling(TaskConfig(model="scripted", datasets=["demo"]), SAMPLING)[0].decode
        == "continuations"
    )
