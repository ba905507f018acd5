"""Runs of the open exam with a judge: what candidate and judge say, and the settings."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from keju.config import TaskConfig
from tests.support.open_exam import SIZE
from tests.support.replies import Asked

KEY = "JUDGE_KEY_FOR_TESTS"


class Shown(NamedTuple):
    """The blocks of a judge's prompt; a call that only knocks has none."""

    question: str = ""
    target: str = ""
    answer: str = ""


def parts(asked: Asked) -> Shown:
    found = re.findall(r"\[begin (\w+) (\w+)\]\n(.*?)\n\[end \1 \2\]", asked.text, re.DOTALL)
    return Shown(**{name: re.sub(r"(?m)^\| ", "", text) for name, _, text in found})


def candidate(asked: Asked) -> str:
    """Right in other words, wrong, or the target's very text, by thirds."""
    number = int(re.findall(r"\d+", asked.text + " 0")[0])
    return [f"It is {number + 1}.", f"It is {number}.", str(number + 1)][number % 3]


def verdict(asked: Asked) -> str:
    """What a good judge says."""
    shown = parts(asked)
    right = shown.target in re.findall(r"\d+", shown.answer)
    return f"I compared them. <grade>{'correct' if right else 'incorrect'}</grade>"


def wait_for(event: Callable[[], bool]) -> None:
    while not event():
        time.sleep(0.002)


def both(asked: Asked) -> str:
    """An endpoint at which candidate and judge are served."""
    return verdict(asked) if asked.body["model"] == "judge" else candidate(asked)


def config(folder: Path, url: str, judge: dict[str, Any] | None, **more: Any) -> TaskConfig:
    settings: dict[str, Any] = {
        "model": "m",
        "api_url": url,
        "datasets": ["open"],
        "work_dir": str(folder),
        "run_id": "r",
        "retry_interval": 0.01,
        "judge": None if judge is None else {"model": "judge", "api_key_var": KEY} | judge,
    }
    return TaskConfig(**(settings | more))


def entry(results: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = results["benchmarks"][0]
    return found


RIGHT = sum(n % 3 != 1 for n in range(SIZE))
PREFLIGHTS = 2
"""The judge's endpoint is tried before the candidate sits, and again before it grades."""
JUDGED = sum(n % 3 != 2 for n in range(SIZE))
