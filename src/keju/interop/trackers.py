"""Results for the experiment trackers W&B and MLflow, written to a local folder.

Both get the same names: ``EXAM/METRIC``, ``EXAM/METRIC_low`` and ``_high``, ``EXAM/outcomes/NAME``
and ``EXAM/subsets/NAME``. Neither gets a question or a reply.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from keju.errors import MissingExtra, TranslatableText
from keju.reporting import format as fmt
from keju.results.schema import ResultEntry, Results, to_document
from keju.runs.run import REPORT, RESULTS

PROJECT = "keju"
LONGEST_NAME = 200
LONGEST_SETTING = 500
# Characters that MLflow refuses in a name, or that would form a path: ``a..b``, ``//``.
_UNSAFE = re.compile(r"[^\w\- ]+")


def metrics_of(results: Results) -> dict[str, float]:
    """Return all numbers of a run by name."""
    numbers: dict[str, float] = {}
    for family in fmt.families(results):
        for entry in family:
            prefix = [entry.name, *filter(None, [entry.arm])]
            prefix += [entry.reader] if len(family) > 1 else []
            for name, value in _list_numbers(entry):
                key = "/".join(_UNSAFE.sub("_", part) or "_" for part in (*prefix, *name))
                key = key[:LONGEST_NAME]
                while key in numbers:  # names that differ only in replaced characters
                    key += "_"
                numbers[key] = float(value)
    return numbers


def _list_numbers(entry: ResultEntry) -> Iterator[tuple[tuple[str, ...], float]]:
    for name, metric in fmt.distinct_metrics(entry).items():
        if metric.value is not None:
            yield (name,), metric.value
        for end, value in zip(("low", "high"), metric.ci95 or (), strict=False):
            yield (f"{name}_{end}",), value
    yield ("n",), entry.n
    if entry.ungraded:
        yield ("ungraded",), entry.ungraded
    yield from ((("outcomes", name), n) for name, n in entry.outcomes.items())
    for row in entry.subsets:
        if row.accuracy is not None:
            yield ("subsets", row.name), row.accuracy
    for name, value in msgspec.structs.asdict(entry.usage).items():
        if isinstance(value, int | float):
            yield ("usage", name), value


def log_to_wandb(results: Results, folder: Path) -> str:
    """Write an offline run of W&B in `folder`, unless ``WANDB_MODE`` sets another mode."""
    try:
        import wandb
    except ImportError:
        raise MissingExtra(TranslatableText("extra_for_export", to="W&B"), "wandb") from None
    mode: Any = os.environ.get("WANDB_MODE", "offline")
    settings = wandb.Settings(silent=True, console="off")
    folder.mkdir(parents=True, exist_ok=True)
    with wandb.init(
        project=os.environ.get("WANDB_PROJECT", PROJECT),
        name=results.run,
        dir=str(folder),
        mode=mode,
        config=results.settings | {"model": results.model},
        job_type="eval",
        settings=settings,
    ) as wandb_run:
        wandb_run.summary.update(metrics_of(results))
        columns = ["exam", "reader", "subset", "accuracy", "low", "high", "n", "ungraded"]
        rows = [
            [
                entry.full_name,
                entry.reader,
                row.name,
                row.accuracy,
                *(row.ci95 or (None, None)),
                row.n,
                row.ungraded,
            ]
            for entry in results.benchmarks
            for row in entry.subsets
        ]
        wandb_run.log({"subsets": wandb.Table(columns=columns, data=rows)})
        place = str(Path(wandb_run.dir).parent)
    if wandb.run is None:  # no other run is active: the service writes all of this one, and ends
        wandb.teardown()
    return place


def log_to_mlflow(results: Results, folder: Path) -> str:
    """Write a run of MLflow to the store in `folder`, or to ``MLFLOW_TRACKING_URI``."""
    try:
        from mlflow import MlflowClient
        from mlflow.entities import Metric, Param, RunTag
    except ImportError:
        raise MissingExtra(TranslatableText("extra_for_export", to="MLflow"), "mlflow") from None
    # a database would need many more packages
    os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
    uri = os.environ.get("MLFLOW_TRACKING_URI") or folder.resolve().as_uri()
    client = MlflowClient(tracking_uri=uri)
    existing_experiment = client.get_experiment_by_name(PROJECT)
    experiment = (
        existing_experiment.experiment_id
        if existing_experiment
        else client.create_experiment(PROJECT)
    )
    run_id = client.create_run(experiment, run_name=results.run).info.run_id
    at = int(time.time() * 1000)
    numbers = [Metric(name, value, at, 0) for name, value in metrics_of(results).items()]
    settings = results.settings | {"model": results.model}
    texts = [
        Param(_UNSAFE.sub("_", key), _to_text(value)[:LONGEST_SETTING])
        for key, value in settings.items()
        if value not in (None, "", {}, [])
    ]
    tags = [RunTag("keju.version", results.version), RunTag("keju.complete", str(results.complete))]
    for start in range(0, len(numbers), 1000):  # the most that one call accepts
        client.log_batch(run_id, metrics=numbers[start : start + 1000])
    client.log_batch(run_id, params=texts[:100], tags=tags)
    client.log_text(run_id, msgspec.json.encode(to_document(results)).decode(), RESULTS)
    if results.folder and (report := Path(results.folder, REPORT)).is_file():
        client.log_artifact(run_id, str(report))
    client.set_terminated(run_id)
    return f"{uri} · {run_id}"


def _to_text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
