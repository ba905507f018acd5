"""What it costs to compare two runs of 12,032 questions, held against scoring one of them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from perf.exam import data_dir
from perf.measure import NotMeasured, Row, alternate, cpu, in_child

ROUNDS = 3
LIMIT = 1.5
EXAM = "mmlu_pro"
PREDICTIONS = "_predictions.jsonl.gz"


def measure() -> Iterator[Row]:
    """CPU of ``keju compare`` of two stored runs over that of ``keju score`` of one, in turns."""
    data = data_dir()
    files = sorted(Path(data, "golden", EXAM).glob(f"*{PREDICTIONS}")) if data else []
    if len(files) < 2:
        raise NotMeasured("needs the recorded outputs of two models")
    with tempfile.TemporaryDirectory() as folder:
        settings = {"datasets": [EXAM], "data_dir": str(data), "work_dir": folder}
        for name, file in zip(("one", "two"), files, strict=False):
            in_child(store, settings=settings | {"run_id": name}, file=str(file))
        sides = alternate(
            ROUNDS,
            lambda: float(in_child(compare_two, folder=folder).value),
            lambda: float(in_child(score_one, folder=folder).value),
        )
    limit = f"{LIMIT:g}x of scoring one ({sides.peer:.2f} s)"
    title = "compare: two runs of 12,032 questions"
    yield Row(title, f"{sides.keju:.2f} s", limit, sides.ratio, sides.ratio <= LIMIT)


def store(settings: dict[str, Any], file: str) -> None:
    """Sit the exam with a model that says what was recorded."""
    from keju.config import TaskConfig
    from keju.engine.job import make_jobs
    from keju.models.scripted import ScriptedModel
    from keju.results.predictions import Predictions
    from keju.task import run_exams

    config = TaskConfig(**settings, model="scripted", protocol="official")
    (job,) = make_jobs(config)
    reply_texts = {
        job.request(place).prompt.tail: row["output"]
        for place, row, _ in Predictions(job.exam, Path(file))
    }
    model = ScriptedModel(script=lambda request: reply_texts[request.prompt.tail])
    with mock.patch("keju.task.make_model", return_value=model):
        run_exams(config, report=False)


def score_one(folder: str) -> float:
    """Processor time of scoring one run."""
    from keju.results.schema import to_document
    from keju.results.score import score_run
    from keju.runs.run import open_run

    os.environ["KEJU_CORES"] = "1"  # `cpu` counts this process alone
    before = cpu()
    to_document(score_run(open_run("one", folder)))
    return cpu() - before


def compare_two(folder: str) -> float:
    """Processor time of comparing both."""
    from keju.results.compare import compare

    before = cpu()
    comparison = compare("one", "two", work_dir=folder)
    assert comparison.document["comparisons"][0]["n"] == 12_032
    return cpu() - before
