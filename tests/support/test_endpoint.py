"""The endpoint of the tests keeps its own promises."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request
from typing import Any

import pytest

from tests.conftest import REPOSITORY
from tests.support.endpoint import FaultyEndpoint
from tests.support.replies import Plan, prompt_key

_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def call(url: str, body: dict[str, Any] | None = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    with _opener.open(urllib.request.Request(url, data), timeout=10) as reply:
        return json.load(reply)


def outcomes(plan: Plan, prompts: int = 40, attempts: int = 3) -> list[Any]:
    results: list[Any] = []
    with FaultyEndpoint(plan) as endpoint:
        for number in range(prompts * attempts):
            body = {"model": "m", "prompt": f"question {number % prompts}"}
            try:
                results.append(call(f"{endpoint.url}/completions", body)["choices"][0]["text"])
            except (urllib.error.URLError, ConnectionError, json.JSONDecodeError) as error:
                results.append(getattr(error, "code", type(error).__name__))
        stats = call(f"{endpoint.origin}/stats")
    assert stats["distinct"] == prompts
    assert stats["max_attempts"] == attempts
    assert stats["requests"] == prompts * attempts
    return results


def test_faults_depend_on_seed_prompt_and_attempt() -> None:
    faults = {"429": 0.2, "500": 0.2, "drop": 0.1, "malformed": 0.1}
    first_outcomes = outcomes(Plan(faults=faults, seed=1))
    assert first_outcomes == outcomes(Plan(faults=faults, seed=1))
    assert first_outcomes != outcomes(Plan(faults=faults, seed=2))
    assert (
        0.4
        < sum(not isinstance(o, str) or "answer" not in o for o in first_outcomes)
        / len(first_outcomes)
        < 0.8
    )


def test_answers_by_prompt() -> None:
    messages = [{"role": "user", "content": "one"}]
    with FaultyEndpoint(Plan(answers={prompt_key(messages): "found"})) as endpoint:
        reply = call(f"{endpoint.url}/chat/completions", {"model": "m", "messages": messages})
    assert reply["choices"][0]["message"]["content"] == "found"
    assert reply["usage"]["total_tokens"] >= 1


def test_as_a_process() -> None:
    command = [sys.executable, "-m", "tests.support.endpoint", "--text", "hello", "--key", "k"]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            url = json.loads(process.stdout.readline())["url"]
            with pytest.raises(urllib.error.HTTPError, match="401"):
                call(f"{url}/completions", {"model": "m", "prompt": "x"})
            assert call(url.replace("/v1", "/stats"))["faults"] == {"401": 1}
        finally:
            process.terminate()
