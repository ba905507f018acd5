"""lm-eval's own results on the rows of the tests, and Keju's run on the same rows."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from keju.benchmarks.base import Exam
from keju.types import Sample
from tests.lmeval.task_rows import TASKS

SHOT_SEED = 1234


@contextmanager
def rows_in_memory(data: Path) -> Iterator[None]:
    """Let lm-eval's tasks have the rows of the tests, without Keju's code."""
    import datasets
    from lm_eval.api.task import ConfigurableTask

    def download(task: Any, *_arguments: Any, **_settings: Any) -> None:
        splits = TASKS[task.config.task](data)
        tables = {name: datasets.Dataset.from_list([*rows]) for name, rows in splits.items()}
        task.dataset = datasets.DatasetDict(tables)

    original = ConfigurableTask.download
    ConfigurableTask.download = download
    try:
        yield
    finally:
        ConfigurableTask.download = original


def load_task(manager: Any, name: str, shots: int | None = None) -> Any:
    """Return a task as lm-eval's command loads it."""
    import numpy

    random.seed(0)
    numpy.random.seed(SHOT_SEED)
    task = manager.load([name])["tasks"][name]
    if shots is not None or task.config.num_fewshot is None:
        task.set_config("num_fewshot", shots or 0)
    task.set_fewshot_seed(SHOT_SEED)
    return task


def lm_eval_requests(task: Any, **settings: Any) -> list[tuple[Any, ...]]:
    task.build_all_requests(**settings)
    requests = [instance.args for instance in task.instances]
    return [args[:1] if task.OUTPUT_TYPE == "generate_until" else args for args in requests]


def keju_requests(exam: Exam, samples: Sequence[Sample] | None = None) -> list[tuple[str, ...]]:
    """Return what Keju sends, in lm-eval's form."""
    requests: list[tuple[str, ...]] = []
    for sample in exam.samples if samples is None else samples:
        if exam.protocol.decode == "generate":
            requests.append((exam.render(sample).text,))
            continue
        for part in exam.continuations(sample):
            requests.append((part.text,) if part.rolling else (part.context, part.text))
    return requests


def by_document(samples: Sequence[Mapping[str, Any]], pipeline: str) -> dict[int, Any]:
    return {row["doc_id"]: row for row in samples if row["filter"] == pipeline}
