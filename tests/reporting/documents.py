"""Results documents and records made for the tests of the reports."""

from __future__ import annotations

from typing import Any

import msgspec

from keju.results.schema import Results, from_document
from keju.runs.manifest import Manifest
from keju.types import Answer, Fault, Outcome, Reading, Record, Reply, Sample, Score

SUBSETS = ("snarks", "高等数学", "logical_deduction_seven_objects")


def outcomes(**counts: int) -> dict[str, int]:
    names = ("correct", "incorrect", "unparsed", "truncated", "refused", "ungraded", "error")
    return {name: counts.get(name, 0) for name in names}


def entry(reader: str = "paper", **changes: Any) -> dict[str, Any]:
    subsets = [
        {
            "name": name,
            "n": 20,
            "accuracy": 0.5,
            "ci95": [0.2993, 0.7007],
            "outcomes": outcomes(correct=9, incorrect=8, unparsed=1, error=2),
        }
        for name in SUBSETS
    ]
    subsets[2] |= {"accuracy": None, "ci95": None}
    subsets[SUBSETS.index("snarks")]["chance"] = 0.5
    defaults: dict[str, Any] = {
        "name": "bbh",
        "protocol": "evalscope",
        "protocol_version": "7",
        "reader": reader,
        "headline": "macro_accuracy",
        "n": 60,
        "metrics": {
            "accuracy": {"value": 0.5, "ci95": [0.37, 0.63], "n": 54, "method": "wilson"},
            "accuracy_worst": {"value": 0.45, "ci95": None, "n": 60},
            "accuracy_best": {"value": 0.55, "ci95": None, "n": 60},
            "macro_accuracy": {
                "value": 0.512,
                "ci95": [0.38, 0.64],
                "n": 54,
                "title": "mean of 27 subsets",
                "partial": True,
                "method": "clustered",
                "clusters": 9,
                "deff": 1.5,
            },
            "nlp_12": {"value": 0.61, "ci95": [0.5, 0.7], "n": 20, "title": "NLP, mean of 12"},
            "pass@5": {"value": None, "ci95": None, "n": 0},
            "chance": {"value": 0.3101, "ci95": None, "n": 60},
        },
        "outcomes": outcomes(correct=27, incorrect=24, unparsed=3, error=6),
        "subsets": subsets,
        "groups": [
            {"name": "nlp_12", "title": "NLP, mean of 12", "n": 20, "accuracy": 0.61,
             "ci95": [0.5, 0.7], "micro_accuracy": 0.59, "outcomes": outcomes(correct=12)},
        ],
        "reference": [
            {"name": "human average", "overall": {"macro_accuracy": 0.677}, "subsets": {"snarks": 0.767}},
            {"name": "random guessing", "overall": {"macro_accuracy": 0.257}, "subsets": {"snarks": 0.1}},
            {"name": "some model", "overall": {"macro_accuracy": 0.4}, "subsets": {}},
        ],
        "warnings": ["3 of 60 replies (5.0%) hold no answer that the reader can find: compare readers"],
        "usage": {"requests": 61, "input_tokens": 12345},
        "timing": {"seconds": 3.5},
        "errata": {"n": 4},
    }  # fmt: skip
    return defaults | changes


def results(*entries: dict[str, Any], **fields: Any) -> Results:
    return from_document(document(*entries, **fields))


def document(*entries: dict[str, Any], **fields: Any) -> dict[str, Any]:
    benchmarks = list(entries or (entry(),))
    return {
        "schema": 1,
        "run": "tuesday",
        "model": "some-model",
        "benchmarks": benchmarks,
        **fields,
    }


def record(
    index: int,
    outcome: Outcome = "incorrect",
    *,
    subset: str = "snarks",
    text: str = "So the answer is (B).",
    reasoning: str = "",
    epoch: int = 0,
    value: str | None = "(B)",
    order: tuple[int, ...] = (),
) -> Record:
    reply = Reply(text=text, reasoning=reasoning, finish="stop")
    if outcome == "error":
        reply = Reply(error=Fault("timeout", "no answer within 600 s"))
    answer_text = None if outcome in ("error", "unparsed") else value
    reading = Reading(
        "paper",
        Answer(
            answer_text,
            "tolerant" if answer_text else "",
            reason="" if answer_text else "no_marker",
        ),
        Score(float(outcome == "correct"), outcome),
    )
    return Record(
        bench="bbh",
        id=f"bbh_{subset}_{index}",
        epoch=epoch,
        hash=f"{index}",
        target="(A)",
        order=order,
        reply=reply,
        readings=(reading,),
    )


def lookup(bench: str, sample_id: str) -> Sample | None:
    subset, _, index = sample_id.removeprefix(f"{bench}_").rpartition("_")
    return Sample(
        id=sample_id,
        subset=subset,
        index=int(index),
        text=f"Question number {index} of {subset}?",
        target="(A)",
        choices=("the first option", "the second option"),
        order=(0, 1),
    )


def no_questions(bench: str, sample_id: str) -> Sample | None:
    return None


MANIFEST = msgspec.convert({
    "run": "tuesday",
    "model": "some-model",
    "config": {"api_url": "http://localhost:8000/v1", "api_key": "sk-marked-key", "limit": 20, "seed": 7},
    "benchmarks": [
        {
            "name": "bbh",
            "sampling": {"temperature": 0.25, "max_tokens": 2048, "top_p": None},
            "data": {"version": "", "files": {"bbh/a.json": "a" * 64, "bbh/b.json": "b" * 64}},
        }
    ],
    "environment": {"python": "3.11.2", "packages": {"keju": "0.1.0"}},
}, Manifest)  # fmt: skip
