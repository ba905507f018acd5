"""Commands against a live endpoint: the published command, a wrong key, the doctor."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Keju
from tests.support.endpoint import FaultyEndpoint
from tests.support.replies import Plan

pytestmark = pytest.mark.slow

KEY = "sk-the-right-key"


@pytest.fixture
def plan() -> Plan:
    """How the endpoint answers."""
    return Plan(key=KEY)


def test_the_published_command_in_a_process_of_its_own(
    endpoint: FaultyEndpoint, tmp_path: Path
) -> None:
    words = ["--model", "m", "--api-url", endpoint.url, "--api-key", KEY]
    words += ["--datasets", "demo", "--limit", "2", "--json"]
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("KEJU_", "OPENAI_"))}
    ran = subprocess.run(
        [sys.executable, "-m", "keju", "eval", *words],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=clean,
    )
    assert ran.returncode == 0, ran.stderr
    (entry,) = json.loads(ran.stdout)["benchmarks"]
    assert entry["n"] == 12
    assert KEY not in ran.stdout + ran.stderr
    assert not any(KEY in f.read_text() for f in tmp_path.rglob("*") if f.is_file())


def test_key_of_the_environment(
    endpoint: FaultyEndpoint, keju: Keju, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
    ran = keju("eval", "-m", "m", "--datasets", "demo", "--limit", "1", "-q", "--json")
    assert ran.code == 0, ran.err
    assert endpoint.stats.answered >= 6


def test_wrong_key_ends_at_once(endpoint: FaultyEndpoint, keju: Keju) -> None:
    words = ("--model", "m", "--api-url", endpoint.url, "--api-key", "sk-wrong")
    ran = keju("eval", *words, "--datasets", "demo", "-q")
    assert ran.code == 5
    assert len(ran.err.splitlines()) == 1
    assert "refused the key (401)" in ran.err
    assert "sk-wrong" not in ran.err


def test_doctor_asks_the_endpoint(endpoint: FaultyEndpoint, keju: Keju) -> None:
    words = ("doctor", "--api-url", endpoint.url, "--json")
    ran = keju(*words, "--model", "m", "--api-key", KEY)
    assert ran.code == 0, ran.out
    assert ran.json["checks"][-1]["status"] == "ok"
    assert keju(*words, "--api-key", KEY).code == 0
    refusal = keju(*words, "--model", "m", "--api-key", "sk-wrong")
    assert refusal.code == 5
    assert "refused the key" in refusal.json["checks"][-1]["remedy"]


@pytest.mark.parametrize(("language", "word"), [("en", "failed"), ("zh", "失败")])
@pytest.mark.parametrize("model", [(), ("--model", "m")])
def test_doctor_names_the_endpoint_that_does_not_answer(
    keju: Keju, language: str, word: str, model: tuple[str, ...]
) -> None:
    words = ("doctor", "--api-url", "http://user:sk-in-url@127.0.0.1:9/v1", *model)
    ran = keju("--language", language, *words)
    (line,) = [
        output_line
        for output_line in ran.out.splitlines()
        if output_line.endswith("http://127.0.0.1:9/v1")
    ]
    assert (ran.code, line.split()[0]) == (5, word), ran.out
    assert "sk-in-url" not in ran.out
    check = keju(*words, "--json").json["checks"][-1]
    assert (check["status"], check["found"]) == ("missing", "http://127.0.0.1:9/v1")
    assert "connection refused" in check["remedy"]


@pytest.mark.parametrize(
    ("language", "message"),
    [("en", "sent: POST {url}/chat/completions, model 'm'"),
     ("zh", "发送的请求：POST {url}/chat/completions，模型“m”")],
)  # fmt: skip
def test_a_refusal_before_the_run_says_what_was_sent_and_no_key(
    keju: Keju, language: str, message: str
) -> None:
    with FaultyEndpoint(Plan(key="right")) as endpoint:
        place = ("--api-url", endpoint.url.replace("://", "://user:sk-in-url@") + "?k=sk-query")
        words = ("-m", "m", *place, "--api-key", "sk-wrong", "--language", language)
        message = message.format(url=endpoint.url)
        ran = keju("eval", *words, "--datasets", "demo", "--limit", "1", "-q")
    assert (ran.code, message in ran.err) == (5, True), ran.err
    assert "sk-" not in ran.err


@pytest.mark.parametrize("use_two", [False, True])
def test_a_long_reply_that_nothing_bounds_is_told_with_the_setting_that_bounds_it(
    keju: Keju, monkeypatch: pytest.MonkeyPatch, data_dir: Path, use_two: bool
) -> None:
    monkeypatch.setattr("keju.engine.session.LONG_REPLY", 0.0)
    monkeypatch.setattr("keju.reporting.live.SLOW_SECONDS", 0.0)
    message = "no max_tokens is set for bbh"
    with FaultyEndpoint(Plan()) as first_endpoint, FaultyEndpoint(Plan()) as second_endpoint:
        places = [
            word
            for server in (first_endpoint, second_endpoint)[: 1 + use_two]
            for word in ("--api-url", server.url)
        ]
        words = ("eval", "-m", "m", *places, "--data-dir", str(data_dir), "--limit", "1")
        bbh = (*words, "--datasets", "bbh", "--dataset-args", "bbh.subset_list=[navigate]")
        ran = keju(*bbh)
        assert (ran.code, ran.err.count(message)) == (0, 1), ran.err
        assert "--generation-config max_tokens=N" in ran.err
        assert "oldest reply: " in ran.err
        assert "没有设置 max_tokens" in keju(*bbh, "--language", "zh").err
        for bounded in (
            (*bbh, "--generation-config", "max_tokens=9"),
            (*words, "--datasets", "demo"),  # whose protocol has a limit
            (*bbh, "-q"),
        ):
            ran = keju(*bounded)
            assert (ran.code, "no max_tokens" in ran.err) == (0, False), ran.err
