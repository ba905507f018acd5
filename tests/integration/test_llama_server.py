"""The whole path against a real OpenAI-compatible server: llama.cpp with the embedded weights."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from keju.models.openai.client import OpenAIModel
from keju.types import Prefix, Prompt, Record, Request, Sampling
from tests.models.helpers import ask
from tests.support.llama_server import LlamaEndpoint
from tests.support.local_model import real_weights

pytestmark = pytest.mark.slow

KEY = "sk-of-the-llama-server"
NAME = "smollm2"
TOLERANCE = 0.02
"""Log-probability: over HTTP a label with a space before it counts too."""
PATIENCE = 120.0
KINDS = '{"demo": {"subset_list": ["boolean_expressions", "object_counting"]}}'
"""Two kinds with short prompts."""
DEMO = ["--datasets", "demo", "--dataset-args", KINDS]


@pytest.fixture(scope="module")
def llama_endpoint() -> Iterator[LlamaEndpoint]:
    with LlamaEndpoint(real_weights(), key=KEY, alias=NAME, context=1024) as running:
        yield running


def keju(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own, as a user would."""
    return subprocess.run(command(*words), capture_output=True, text=True, cwd=folder, env=clean())


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "keju", *words]


def clean() -> dict[str, str]:
    prefixes = ("KEJU_", "OPENAI_")
    environ = {k: v for k, v in os.environ.items() if not k.startswith(prefixes)}
    cache = os.environ.get("KEJU_CACHE_DIR")
    return environ | ({"KEJU_CACHE_DIR": cache} if cache else {})


def at(llama_endpoint: LlamaEndpoint) -> list[str]:
    return ["--model", NAME, "--api-url", llama_endpoint.url, "--api-key", KEY, "--no-report"]


def records(folder: Path, run: str) -> dict[str, Record]:
    lines = (folder / "runs" / run / "records.jsonl").read_bytes().splitlines()
    decoded = [msgspec.json.decode(line, type=Record) for line in lines]
    return {record.id: record for record in decoded}


def entry(ran: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert ran.returncode == 0, ran.stderr
    (entry,) = json.loads(ran.stdout)["benchmarks"]
    assert isinstance(entry, dict)
    return entry


def test_a_chat_exam(llama_endpoint: LlamaEndpoint, tmp_path: Path) -> None:
    words = ["eval", *at(llama_endpoint), *DEMO, "--limit", "1", "--json"]
    words += ["--generation-config", '{"max_tokens": 8}', "--run-id", "chat"]
    results = entry(keju(tmp_path, *words))
    assert results["n"] == 2
    assert results["outcomes"]["error"] == 0
    assert results["usage"]["input_tokens"] > 200
    for record in records(tmp_path, "chat").values():
        assert record.reply.usage.output <= 8
        assert record.reply.model == NAME
    assert not any(KEY in f.read_text() for f in (tmp_path / "runs").rglob("*") if f.is_file())


def test_labels_in_process_and_over_http_agree(
    llama_endpoint: LlamaEndpoint, tmp_path: Path
) -> None:
    exam = [*DEMO, "--protocol", "letters", "--limit", "3", "--no-report"]
    over = entry(keju(tmp_path, "eval", *at(llama_endpoint), *exam, "--json", "--run-id", "http"))
    local = ["--model", "embedded", "--model-args", '{"n_ctx": 1024, "slots": 2}']
    within = entry(keju(tmp_path, "eval", *local, *exam, "--json", "--run-id", "own"))
    assert over["n"] == within["n"] == 6
    http_records, local_records = records(tmp_path, "http"), records(tmp_path, "own")
    assert http_records.keys() == local_records.keys()
    for key, record in local_records.items():
        local_values, http_values = (
            record.reply.label_logprobs,
            http_records[key].reply.label_logprobs,
        )
        assert local_values
        assert http_values
        assert local_values == pytest.approx(http_values, abs=TOLERANCE)
        assert max(local_values, key=local_values.__getitem__) == max(
            http_values, key=http_values.__getitem__
        )
        assert record.reply.label_ids
    assert within["usage"]["cached_tokens"] > within["usage"]["input_tokens"] / 2


def test_stop_strings_and_seeds(llama_endpoint: LlamaEndpoint) -> None:
    def reply_text(text: str, sampling: Sampling, seed: int | None = None) -> str:
        model = OpenAIModel(NAME, api_url=llama_endpoint.url, api_key=KEY)
        reply = ask(model, Request(Prompt(Prefix(), text), sampling, "h", seed=seed), timeout=60)
        assert reply.error is None
        return reply.text

    stopped = Sampling(form="completion", max_tokens=24, stop=(" 7",))
    assert reply_text("1 2 3 4", stopped) == " 5 6"
    random_sampling = Sampling(form="completion", temperature=1.0, max_tokens=12)
    first_text, repeated_text, other_text = (
        reply_text("Once upon a time", random_sampling, seed) for seed in (7, 7, 8)
    )
    assert first_text == repeated_text
    assert first_text != other_text


def test_a_prompt_beyond_the_context_is_that_samples_fault(llama_endpoint: LlamaEndpoint) -> None:
    model = OpenAIModel(NAME, api_url=llama_endpoint.url, api_key=KEY)
    long = Request(Prompt(Prefix(), "x " * 1500), Sampling(form="completion", max_tokens=1), "h")
    reply = ask(model, long, timeout=60)
    assert reply.error is not None
    assert reply.error.kind == "context_length"


def test_a_wrong_key_ends_at_once(llama_endpoint: LlamaEndpoint, tmp_path: Path) -> None:
    words = ["--model", NAME, "--api-url", llama_endpoint.url, "--api-key", "sk-another-key"]
    ran = keju(tmp_path, "eval", *words, "--datasets", "demo", "--limit", "1", "-q")
    assert ran.returncode == 5
    assert len(ran.stderr.splitlines()) == 1
    assert "401" in ran.stderr
    assert "sk-another-key" not in ran.stderr


def test_the_server_ends_on_sigterm() -> None:
    running = LlamaEndpoint(real_weights(), key=KEY, alias=NAME, context=256, slots=1)
    assert running.url.startswith("http://127.0.0.1:")
    assert running.end() == 0


def test_a_killed_run_in_process_is_resumed(tmp_path: Path) -> None:
    real_weights()
    words = ["eval", "--model", "embedded", *DEMO, "--protocol", "letters"]
    words += ["--limit", "9", "-q", "--no-report", "--run-id", "killed", "--json"]
    words += ["--model-args", '{"n_ctx": 1024, "slots": 2}']
    journal = tmp_path / "runs" / "killed" / "records.jsonl"
    running = subprocess.Popen(
        command(*words), cwd=tmp_path, env=clean(), stdout=subprocess.DEVNULL
    )
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and running.poll() is None:
        if journal.is_file() and journal.read_bytes().count(b"\n") >= 2:
            break
        time.sleep(0.02)
    running.send_signal(signal.SIGKILL)
    assert running.wait() == -signal.SIGKILL
    before = journal.read_bytes()
    before = before[: before.rfind(b"\n") + 1]
    assert 2 <= before.count(b"\n") < 18
    results = entry(keju(tmp_path, *words, "--resume"))
    assert results["n"] == 18
    after = journal.read_bytes()
    assert after.startswith(before)
    assert after.count(b"\n") == 18
    assert len(records(tmp_path, "killed")) == 18
