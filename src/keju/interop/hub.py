"""A run's results in the format of Hugging Face's model repositories: ``.eval_results/NAME.yaml``.

Each entry is one number on one data set of the hub, in percent. ``notes`` has the method, the
interval and the number of questions. Keju does not know the name of a benchmark's task on the hub,
so it uses the benchmark's own name.
"""

from __future__ import annotations

from typing import Any

import yaml

from keju.benchmarks import registry
from keju.errors import Notice, UsageError
from keju.reporting import format as fmt
from keju.reporting.format import Labels, count, interval
from keju.results.schema import ResultEntry, Results
from keju.runs.manifest import Manifest

SELECTION_SETTINGS = ("limit", "total", "ids", "failed_of")
"""Settings that leave out questions."""


def eval_results(results: Results, manifest: Manifest) -> tuple[str, list[Notice]]:
    """Return the YAML and its notices; UsageError if there is nothing to report."""
    labels, rows, notices = Labels(), [], []
    args = [manifest.config, *manifest.config.get("dataset_args", {}).values()]
    is_partial = any(
        settings.get(key) is not None for settings in args for key in SELECTION_SETTINGS
    )
    for entry, *_ in fmt.families(results):
        repo = _find_repository(entry)
        value = fmt.display_metrics(entry, labels)[0].metric.value
        if repo is None:
            notices.append(Notice("hub_no_dataset", {"exam": entry.name}))
        elif value is None:
            notices.append(Notice("hub_no_value", {"exam": entry.name}))
        else:
            rows.append(_make_row(entry, repo, value, results, labels, is_partial=is_partial))
    if not rows:
        raise (
            UsageError(notices[0].code, **notices[0].values)
            if notices
            else UsageError("export_nothing", run=results.run)
        )
    if is_partial or results.complete is False:
        notices.append(Notice("hub_part", {}))
    return yaml.safe_dump(rows, sort_keys=False, allow_unicode=True, width=100), notices


def _find_repository(entry: ResultEntry) -> str | None:
    """Return the hub's data set with an exam's questions; None if there is none."""
    layout = registry.get(entry.name).layout if entry.name in registry.names() else None
    repo = layout.hubs.get("huggingface") if layout is not None else None
    return repo.repo if repo is not None else None


def _make_row(
    entry: ResultEntry,
    repo: str,
    value: float,
    results: Results,
    labels: Labels,
    *,
    is_partial: bool,
) -> dict[str, Any]:
    headline = fmt.display_metrics(entry, labels)[0]
    notes = [
        f"Keju {results.version}".strip(),
        f"protocol {fmt.protocol_line(entry)}",
        f"reader {entry.reader}",
        headline.title,
        f"95 % interval {interval(headline.metric.ci95)}" if headline.metric.ci95 else "",
        f"n {count(headline.metric.n)}",
        f"arm {entry.arm}" if entry.arm else "",
        "part of the questions" if is_partial else "",
        "run not complete" if results.complete is False else "",
    ]
    row: dict[str, Any] = {
        "dataset": {"id": repo, "task_id": entry.name},
        "value": round(100 * value, 2),
    }
    if results.created:
        row["date"] = results.created[:10]
    return row | {"notes": fmt.printable("; ".join(filter(None, notes)), one_line=True)}
