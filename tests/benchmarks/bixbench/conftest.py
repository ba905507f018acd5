"""Small data made for the tests, in both schemas, and the real exam where its data is at hand."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from keju.benchmarks.bixbench import BIXBENCH, BixBenchArgs, BixBenchExam
from keju.sources.folder import DataFolder
from keju.types import Sample

Prepare = Callable[..., BixBenchExam]

CANARY = "MADE-UP-CANARY-0000"


def flat(question_id: str, ideal: str, distractors: Sequence[str], **fields: Any) -> dict[str, Any]:
    """One row of version 1.5."""
    short = question_id.rpartition("-")[0]
    return {
        "id": f"row-{question_id}",
        "tag": "bixbench",
        "version": "1.5",
        "question": f"What is {question_id}?",
        "ideal": ideal,
        "distractors": list(distractors),
        "canary": CANARY,
        "capsule_uuid": f"UUID-{short}",
        "short_id": short,
        "question_id": question_id,
        "hypothesis": f"Hypothesis of {short}.",
        "result": "the solution",
        "answer": True,
        "categories": "RNA-seq,Genomics",
        "paper": "",
        "data_folder": "",
        "eval_mode": "str_verifier",
    } | fields


FLAT = [
    flat("bix-1-q1", "0.0002", ["7.8E-05", "0.0003", "1.8E-05"]),
    flat("BIX-1-Q2", "(0.6 , 0.7)", ["(0.8, 0.9)", "(0.3, 0.4)", "(40-50)"],
         eval_mode="range_verifier"),
    flat("bix-2-q1", "Canonical glycolysis", ["Axon guidance", "Muscle contraction", "Imaging"],
         eval_mode="llm_verifier", answer="False", categories="['Imaging', 'Genomics']"),
]  # fmt: skip


def nested(short: str, questions: Any, **fields: Any) -> dict[str, Any]:
    """One row of version 1.0."""
    return {
        "uuid": f"uuid-{short}",
        "short_id": short,
        "hypothesis": f"Hypothesis of {short}.",
        "result": "the solution",
        "answer": False,
        "categories": "Other",
        "paper": "",
        "data_folder": "",
        "questions": questions,
        "canary": CANARY,
    } | fields


def inner(name: str, ideal: str = "yes") -> dict[str, Any]:
    """One question of a capsule of version 1.0."""
    wrong = {f"distractor_{i}": f"wrong {i}" for i in (1, 2, 3)}
    return {"id": name, "question": f"What is {name}?", "ideal_answer": ideal} | wrong


NESTED = [
    nested("bix-1", [inner("bix-1-q1"), inner("bix-1-q3")]),
    nested("bix-2", json.dumps([inner("q1"), inner("q2")])),
    nested("bix-3", str([inner("q1", "NaN")]), answer=None),
]


def write(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that holds both versions, as the real one does."""
    write(tmp_path / "BixBench_v1.5.jsonl", FLAT)
    write(tmp_path / "BixBench_v1.0.jsonl", NESTED)
    return tmp_path


@pytest.fixture
def prepare(folder: Path) -> Prepare:
    """Make the small exam ready with the given settings."""

    def make(**args: Any) -> BixBenchExam:
        data = DataFolder(folder, BIXBENCH.layout)
        exam = BIXBENCH.prepare(BixBenchArgs(**args), data, seed=42)
        assert isinstance(exam, BixBenchExam)
        return exam

    return make


@pytest.fixture(scope="session")
def real(data_dir: Path) -> Prepare:
    """Make the real exam ready with the given settings."""

    def make(**args: Any) -> BixBenchExam:
        data = DataFolder(data_dir / "bixbench", BIXBENCH.layout)
        exam = BIXBENCH.prepare(BixBenchArgs(**args), data, seed=42)
        assert isinstance(exam, BixBenchExam)
        return exam

    return make


def sample(*choices: str, target: str = "A", **metadata: Any) -> Sample:
    """A question with these options."""
    return Sample(
        id="bixbench_made-up",
        subset="v1.5",
        index=0,
        text="Which?",
        target=target,
        choices=choices,
        metadata=metadata,
    )
