"""Evaluate a model of known skill on fresh exams."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from keju import task
from keju.benchmarks.prepare import prepare_exams
from keju.config import TaskConfig
from keju.models.scripted import ScriptedModel
from keju.task import FinishedTask
from keju.types import Request, Sample

Skill = Callable[[Sample, float], float]
"""The chance of a right answer to a question at a difficulty."""
SUBSETS = ["temporal_sequences", "word_sorting"]
ARGS = {"seed": 7, "n": 20, "subset_list": SUBSETS}


def falling(sample: Sample, difficulty: float) -> float:
    """Nearly always right at half of the published size, and hardly ever at four times it."""
    return 1 / (1 + (difficulty / 1.5) ** 3)


def evaluate(
    monkeypatch: pytest.MonkeyPatch, run_id: str, skill: Skill = falling, **run_settings: Any
) -> FinishedTask:
    """A run of fresh_bbh below ``runs``; the same question has the same fate in every run."""
    settings: dict[str, Any] = {"model": "scripted", "datasets": ["fresh_bbh"], "run_id": run_id}
    settings["dataset_args"] = {"fresh_bbh": ARGS | run_settings.pop("args", {})}
    config = TaskConfig(**settings, **run_settings)
    samples_by_text = {
        exam.render(sample).text: (sample, exam.difficulty or 1.0)
        for exam, _ in prepare_exams(config)
        for sample in exam.samples
    }

    def script(request: Request) -> str:
        sample, difficulty = samples_by_text[request.prompt.text]
        fate = int(sha256(sample.id.encode()).hexdigest(), 16) % 10**6 / 10**6
        right = fate < skill(sample, difficulty)
        wrong = "(A)" if sample.target != "(A)" else "(B)"
        answer = sample.target if right else wrong
        chinese = any("\u4e00" <= letter <= "\u9fff" for letter in sample.text)
        return f"所以答案是 {answer}。" if chinese else f"So the answer is {answer}."

    monkeypatch.setattr(task, "make_model", lambda _: ScriptedModel(script=script))
    finished = task.run_exams(config, report=run_settings.get("report", True))
    assert Path(finished.folder).name == run_id
    return finished
