"""Runs of the open exam with a judge: what candidate and judge say, and the settings."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from keju.config import TaskConfig
from tests.support.open_exam import SIZE
from tests.support.replies import EndpointRequest

KEY = "JUDGE_KEY_FOR_TESTS"


class PromptBlocks(NamedTuple):
    """The blocks of a judge's prompt; a call that only knocks has none."""

    question: str = ""
    target: str = ""
    answer: str = ""


def prompt_blocks(request: EndpointRequest) -> PromptBlocks:
    blocks = re.findall(r"\[begin (\w+) (\w+)\]\n(.*?)\n\[end \1 \2\]", request.text, re.DOTALL)
    return PromptBlocks(**{name: re.sub(r"(?m)^\| ", "", text) for name, _, text in blocks})


def candidate(request: EndpointRequest) -> str:
    """Right in other words, wrong, or the target's very text, by thirds."""
    number = int(re.findall(r"\d+", request.text + " 0")[0])
    return [f"It is {number + 1}.", f"It is {number}.", str(number + 1)][number % 3]


def verdict(request: EndpointRequest) -> str:
    """What a good judge says."""
    blocks = prompt_blocks(request)
    is_correct = blocks.target in re.findall(r"\d+", blocks.answer)
    return f"I compared them. <grade>{'correct' if is_correct else 'incorrect'}</grade>"


def wait_for(event: Callable[[], bool]) -> None:
    while not event():
        time.sleep(0.002)


def candidate_or_verdict(request: EndpointRequest) -> str:
    """An endpoint at which candidate and judge are served."""
    return verdict(request) if request.body["model"] == "judge" else candidate(request)


def judged_config(
    folder: Path, url: str, judge: dict[str, Any] | None, **changes: Any
) -> TaskConfig:
    settings: dict[str, Any] = {
        "model": "m",
        "api_url": url,
        "datasets": ["open"],
        "work_dir": str(folder),
        "run_id": "r",
        "retry_interval": 0.01,
        "judge": None if judge is None else {"model": "judge", "api_key_var": KEY} | judge,
    }
    return TaskConfig(**(settings | changes))


def benchmark_entry(results: dict[str, Any]) -> dict[str, Any]:
    benchmark: dict[str, Any] = results["benchmarks"][0]
    return benchmark


RIGHT = sum(n % 3 != 1 for n in range(SIZE))
PREFLIGHTS = 2
"""The judge's endpoint is tried before the candidate is asked, and again before it grades."""
JUDGED = sum(n % 3 != 2 for n in range(SIZE))
