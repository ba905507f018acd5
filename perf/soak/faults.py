"""Odd endpoints: every fault mode against the real client, over loopback, in a process of its own.

A mode that passes is met by the first attempt at every question and, unless it must stop the run,
by the preflight's first call. However odd it is: the exit code is right, and every question has
one record, with the reply that counts or its error.
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from pathlib import Path
from typing import Any, Final

from tests.support.endpoint import FaultyEndpoint
from tests.support.replies import EndpointRequest, Plan, Raw

from perf.soak.case import Case
from perf.soak.wire import TEXT, Fate, Mode, modes
from perf.soak.zygote import keju

QUESTIONS: Final = 4
CALM: Final = "So the answer is (B)."
"""What the endpoint answers when it behaves: another text than that of its odd replies."""
EXITS: Final[dict[Fate, int]] = {"answer": 0, "retry": 0, "final": 4, "stop": 5, "limit": 4}
PREFLIGHT: Final = "Answer with one letter"
"""How the preflight's question begins."""
SECONDS: Final = 2.0
"""For one attempt, so that silence is given up soon."""
PATIENCE: Final = 3.0
"""Seconds after which a run ends whose endpoint refuses every request because of a rate limit."""


def cases() -> list[Case]:
    """One case for each mode."""
    return [Case(mode.name, functools.partial(_attack, mode)) for mode in modes()]


def _attack(mode: Mode, folder: Path) -> str:
    """Sit an exam at an endpoint that misbehaves; return what went wrong."""

    def raw(request: EndpointRequest, attempt: int) -> Raw | None:
        if request.text.startswith(PREFLIGHT) and (mode.fate in ("final", "stop") or mode.lasts):
            return None
        repeats = mode.lasts or mode.fate != "retry"
        return mode.raw if repeats or attempt == 0 else None

    words = ("--datasets", "demo", "--work-dir", ".", "--run-id", "r", "--json", "--quiet")
    settings = {"demo": {"size": QUESTIONS, "subset_list": ["boolean_expressions"]}}
    pace = ["--timeout", str(SECONDS), "--retry-interval", "0.01", "--attempts", "3"]
    if mode.fate == "limit":
        pace += ["--give-up-after", str(PATIENCE)]
    with FaultyEndpoint(Plan(answers=CALM, raw=raw)) as endpoint:
        exam = (*words, "--dataset-args", json.dumps(settings), *pace)
        process = keju(folder, "eval", "--model", "m", "--api-url", endpoint.url, *exam)
    if process.broken:
        return process.broken
    if any(ord(sign) < 32 and sign != "\n" for sign in process.err):
        return f"control characters on stderr: {process.err!r}"
    expected = 4 if mode.lasts else EXITS[mode.fate]
    if process.code != expected:
        return f"exit {process.code} instead of {expected}: {process.err.strip()}"
    try:
        results = json.loads(process.out)
    except ValueError:
        return "stdout holds no JSON document"
    return _loss(mode, results, folder / "r" / "records.jsonl")


def _loss(mode: Mode, results: dict[str, Any], journal: Path) -> str:
    """What was lost or doubled; empty if nothing was."""
    records = [json.loads(line) for line in journal.read_bytes().splitlines()]
    times = Counter(record["id"] for record in records)
    if max(times.values(), default=0) > 1:
        return f"records twice: {times}"
    if mode.fate in ("stop", "limit"):
        return ""  # questions without a record are asked when the run is resumed
    answered = not mode.lasts and mode.fate in ("answer", "retry")
    outcomes = results["benchmarks"][0]["outcomes"]
    if len(times) != QUESTIONS or outcomes["error"] != (0 if answered else QUESTIONS):
        return f"{len(times)} records of {QUESTIONS}, {outcomes}"
    texts = {record["reply"].get("text") for record in records}
    expected_text = TEXT if mode.fate == "answer" else CALM
    if answered and texts != {expected_text}:
        return f"other texts than the reply that counts: {texts}"
    return ""
