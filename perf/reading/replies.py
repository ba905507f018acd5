"""Recorded replies by key: the text of a reply, and the question as its model saw it.

A key is ``MODEL/SAMPLE``, e.g. ``code-davinci-002/bbh_snarks_3``, with the protocol between them
where a model was asked in several ways, e.g. ``embedded/mcpbr/bbh_snarks_3``. The
repository holds keys and labels; texts come from the folder of real data.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from keju.benchmarks.base import Exam
from keju.benchmarks.prepare import prepare_exam
from keju.results.predictions import Predictions
from keju.types import Sample
from perf.measure import ROOT

CORPUS = ROOT / "tests" / "readers" / "corpus"
EMBEDDED = CORPUS / "embedded-texts.jsonl"
"""Replies of the embedded model: key, exam, protocol, arguments (or shots, null: the protocol's
own) and text."""
MORE = "KEJU_EMBEDDED_TEXTS"
"""Names files with more of them, as PATH does, which the repository does not hold."""


class Written(NamedTuple):
    """A reply, the question that it answers, and the exam that put it."""

    key: str
    text: str
    sample: Sample
    exam: Exam


@dataclass(frozen=True)
class ReplyFile:
    """The recorded replies of one model, and how it was asked."""

    model: str
    benchmark: str
    protocol: str
    file: str
    """Under the data folder."""
    args: Mapping[str, Any] = field(default_factory=dict)


RECORDINGS = (
    ReplyFile(
        "code-davinci-002", "bbh", "paper", "golden/bbh/code-davinci-002_cot_predictions.jsonl.gz"
    ),
    ReplyFile(
        "Meta-Llama-3.1-8B-Instruct",
        "mmlu_pro",
        "official",
        "golden/mmlu_pro/Meta-Llama-3_1-8B-Instruct_predictions.jsonl.gz",
    ),
    ReplyFile(
        "Mistral-7B-v0.1",
        "mmlu_pro",
        "official",
        "golden/mmlu_pro/Mistral-7B-v0.1_predictions.jsonl.gz",
    ),
    ReplyFile(
        "gpt-4o",
        "bixbench",
        "official",
        "golden/bixbench/v1.0_gpt-4o_mcq-refusal-False_predictions.jsonl",
        {"data_version": "1.0", "all_questions": True},
    ),
)

OTHERS = (
    ReplyFile(
        "code-davinci-002 (answer only)",
        "bbh",
        "answer-only",
        "golden/bbh/code-davinci-002_answer_only_predictions.jsonl.gz",
    ),
    ReplyFile(
        "Yi-6b-Chat",
        "mmlu_pro",
        "official",
        "recorded/mmlu_pro/Yi-6b-Chat_predictions.jsonl.gz",
    ),
    ReplyFile(
        "Llama-3.2-3B-Instruct",
        "bbh",
        "paper",
        "recorded/bbh/llama-3.2-3b-instruct_zeroshot_predictions.jsonl.gz",
    ),
)
"""Recordings without labels of the corpus, next to `RECORDINGS`."""


def recorded(recording: ReplyFile, data: Path) -> Iterator[Written]:
    """All replies of a recording, in the order of the file."""
    exam = exam_of(recording.benchmark, recording.protocol, data, **recording.args)
    for place, row, _ in Predictions(exam, data / recording.file):
        sample = exam.as_recorded(exam.samples[place], row, gold=False)
        yield Written(f"{recording.model}/{sample.id}", row["output"] or "", sample, exam)


@cache
def exam_of(benchmark: str, protocol: str, data: Path, **args: Any) -> Exam:
    """An exam with its questions."""
    return prepare_exam(benchmark, args, data_dir=str(data), protocol=protocol, offline=True)[0]


def embedded(data: Path) -> Iterator[Written]:
    """The replies of the embedded model whose texts are here."""
    files = [EMBEDDED, *map(Path, filter(None, os.environ.get(MORE, "").split(os.pathsep)))]
    for row in (msgspec.json.decode(line) for f in files for line in f.read_bytes().splitlines()):
        shots = row.get("shots")
        args = row.get("args", {} if shots is None else {"few_shot_num": shots})
        exam = exam_of(row["benchmark"], row["protocol"], data, **args)
        sample = samples_of(exam)[row["key"].rpartition("/")[2]]
        yield Written(row["key"], row["text"], sample, exam)


@cache
def samples_of(exam: Exam) -> Mapping[str, Sample]:
    """The questions of an exam by id."""
    return {sample.id: sample for sample in exam.samples}


def replies_of(model: str, data: Path) -> dict[str, Written]:
    """The replies of one model by key."""
    recording = next((r for r in RECORDINGS if r.model == model), None)
    replies = recorded(recording, data) if recording else embedded(data)
    return {reply.key: reply for reply in replies if reply.key.startswith(f"{model}/")}
