"""Estimate the requests and the cost of a matrix, pair by pair; no model is asked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keju.config.matrix import MatrixConfig, MatrixPair
from keju.errors import DataError
from keju.runs.manifest import MANIFEST, Manifest
from keju.task import make_dry_run

BYTES_PER_TOKEN = 4
"""A rough estimate that holds for English and, at three bytes per character, for Chinese."""


def forecast(config: MatrixConfig) -> dict[str, Any]:
    """Return the matrix as ``--dry-run --json`` shows it; raise the errors that a run would raise.

    Input tokens are estimated from the prompts. Output tokens are the average of earlier replies to
    the same exam by the model, or by the other models of the matrix. They are unknown if there are
    no earlier replies.
    """
    outputs = _average_outputs(config)
    rows = [_forecast_pair(pair, outputs) for pair in config.pairs]
    costs = [row["cost_estimate"] for row in rows if row["cost_estimate"] is not None]
    document: dict[str, Any] = {
        "dry_run": True,
        "plan": config.name,
        "models": config.models,
        "exams": config.exams,
        "requests": sum(row["requests"] for row in rows),
        "known": sum(row["known"] for row in rows),
        "asked": sum(row["asked"] for row in rows),
        "prompt_tokens_estimate": sum(row["prompt_tokens_estimate"] for row in rows),
        "cost_estimate": round(sum(costs), 4) if costs else None,
        "budget": config.budget.model_dump(exclude_none=True),
        "runs": rows,
    }
    return document


def _forecast_pair(pair: MatrixPair, outputs: Mapping[str, float]) -> dict[str, Any]:
    expected_run = make_dry_run(pair.config)
    requests = sum(job.units for job in expected_run.jobs)
    asked_requests = requests - expected_run.reused
    size = 0
    for job in expected_run.jobs:
        for sample in job.exam.samples:
            prompt = job.exam.render(sample)
            size += job.epochs * sum(len(message.content.encode()) for message in prompt.messages)
    tokens = size * asked_requests // max(1, requests) // BYTES_PER_TOKEN
    tokens_per_request = outputs.get(pair.run, outputs.get(pair.exam))
    price, cost = pair.config.price, None
    if price is not None:
        output_tokens = (tokens_per_request or 0.0) * asked_requests * price.output
        cost = round((tokens * price.input + output_tokens) / 1e6, 4)
    return {
        "run": pair.run,
        "model": pair.model,
        "exam": pair.exam,
        "requests": requests,
        "known": expected_run.reused,
        "asked": asked_requests,
        "prompt_tokens_estimate": tokens,
        "output_tokens_estimate": None
        if tokens_per_request is None
        else round(tokens_per_request * asked_requests),
        "cost_estimate": cost,
        "warnings": [notice.text() for notice in expected_run.notices],
    }


def _average_outputs(config: MatrixConfig) -> dict[str, float]:
    """Return the output tokens per request so far, by run and by exam."""
    usage_by_name: dict[str, list[tuple[int, int]]] = {}
    for pair in config.pairs:
        folder = Path(pair.config.work_dir) / pair.run
        if not (folder / MANIFEST).is_file():
            continue
        try:
            sessions = Manifest.read(folder).sessions
        except DataError:
            continue
        totals = (
            sum(session.output_tokens for session in sessions),
            sum(session.requests for session in sessions),
        )
        if totals[1]:
            for name in (pair.run, pair.exam):
                usage_by_name.setdefault(name, []).append(totals)
    return {
        name: sum(tokens for tokens, _ in rows) / sum(requests for _, requests in rows)
        for name, rows in usage_by_name.items()
    }
