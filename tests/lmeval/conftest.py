"""The prompts of lm-eval's own package, from its own environment (``make test-hf`` makes it)."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

ENVIRONMENT = "KEJU_TEST_LM_EVAL"
"""The variable with the Python command of an environment that has lm-eval 0.4.13."""
PRINT_PROMPTS = Path(__file__).with_name("print_prompts.py")

Rows = Sequence[Mapping[str, Any]]
LmEvalPrompts = Callable[..., list[str]]


@pytest.fixture(scope="session")
def lm_eval_prompts() -> LmEvalPrompts:
    """A function of a task's path, its splits and a number: the first prompts of lm-eval."""
    command = os.environ.get(ENVIRONMENT)
    if not command:
        pytest.skip(f"{ENVIRONMENT} is not set: run 'make test-hf' to compare with lm-eval")

    def prompts(config: str, splits: Mapping[str, Rows], count: int, **more: Any) -> list[str]:
        request = json.dumps({"config": config, "splits": splits, "count": count} | more)
        process = subprocess.run(
            [command, str(PRINT_PROMPTS)],
            input=request,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert process.returncode == 0, process.stderr[-2000:]
        printed: list[str] = json.loads(process.stdout[process.stdout.index("[") :])
        return printed

    return prompts
