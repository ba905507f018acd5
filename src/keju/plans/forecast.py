"""What a plan would ask, pair by pair, and what that costs; nobody is asked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keju.config.plan import Pair, PlanConfig
from keju.errors import DataError
from keju.runs.manifest import MANIFEST, Manifest
from keju.task import rehearse

BYTES_PER_TOKEN = 4
"""A rough guide that holds for English and, at three bytes a character, for Chinese."""


def forecast(plan: PlanConfig) -> dict[str, Any]:
    """The plan as ``--dry-run --json`` shows it; whatever would be refused is refused.

    Input tokens are estimated from the prompts. Output is what replies to the same exam took so
    far: of the model itself, else of the other models of the plan; unknown where there are none.
    """
    outputs = _outputs(plan)
    rows = [_row(pair, outputs) for pair in plan.pairs]
    costs = [row["cost_estimate"] for row in rows if row["cost_estimate"] is not None]
    document: dict[str, Any] = {
        "dry_run": True,
        "plan": plan.name,
        "models": plan.models,
        "exams": plan.exams,
        "requests": sum(row["requests"] for row in rows),
        "known": sum(row["known"] for row in rows),
        "asked": sum(row["asked"] for row in rows),
        "prompt_tokens_estimate": sum(row["prompt_tokens_estimate"] for row in rows),
        "cost_estimate": round(sum(costs), 4) if costs else None,
        "budget": plan.budget.model_dump(exclude_none=True),
        "runs": rows,
    }
    return document


def _row(pair: Pair, outputs: Mapping[str, float]) -> dict[str, Any]:
    rehearsal = rehearse(pair.config)
    requests = sum(job.units for job in rehearsal.jobs)
    asked = requests - rehearsal.reused
    size = 0
    for job in rehearsal.jobs:
        for sample in job.exam.samples:
            prompt = job.exam.render(sample)
            size += job.epochs * sum(len(each.content.encode()) for each in prompt.messages)
    tokens = size * asked // max(1, requests) // BYTES_PER_TOKEN
    each = outputs.get(pair.run, outputs.get(pair.exam))
    price, cost = pair.config.price, None
    if price is not None:
        written = (each or 0.0) * asked * price.output
        cost = round((tokens * price.input + written) / 1e6, 4)
    return {
        "run": pair.run,
        "model": pair.model,
        "exam": pair.exam,
        "requests": requests,
        "known": rehearsal.reused,
        "asked": asked,
        "prompt_tokens_estimate": tokens,
        "output_tokens_estimate": None if each is None else round(each * asked),
        "cost_estimate": cost,
        "warnings": [notice.text() for notice in rehearsal.notices],
    }


def _outputs(plan: PlanConfig) -> dict[str, float]:
    """Output tokens of a request so far, by run and by exam."""
    spent: dict[str, list[tuple[int, int]]] = {}
    for pair in plan.pairs:
        folder = Path(pair.config.work_dir) / pair.run
        if not (folder / MANIFEST).is_file():
            continue
        try:
            sessions = Manifest.read(folder).sessions
        except DataError:
            continue
        own = sum(s.output_tokens for s in sessions), sum(s.requests for s in sessions)
        if own[1]:
            for name in (pair.run, pair.exam):
                spent.setdefault(name, []).append(own)
    return {
        name: sum(tokens for tokens, _ in rows) / sum(requests for _, requests in rows)
        for name, rows in spent.items()
    }
