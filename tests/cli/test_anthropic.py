"""``--model anthropic:NAME`` from the command line to the stored run, against the schema."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import keju as package
from keju.config.address import SHORT_NAMES
from keju.errors import EndpointError
from tests.cli.conftest import Keju
from tests.support.anthropic_schema import OLD
from tests.support.anthropic_server import (
    KEY,
    AnthropicMessage,
    AnthropicServer,
    RawResponse,
    error,
    tool_use,
)

pytestmark = pytest.mark.slow

OPENAI_KEY = "sk-openai-never-sent-anywhere"
DEMO = ("--datasets", "demo", "--limit", "2", "-q", "--json")


@pytest.fixture
def server(keju: Keju, monkeypatch: pytest.MonkeyPatch) -> Iterator[AnthropicServer]:
    """The server, and an environment that names it and holds a key of another provider too."""
    with AnthropicServer() as running:
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", running.url)
        monkeypatch.setenv("OPENAI_API_KEY", OPENAI_KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
        yield running


def manifest_of(folder: Path) -> dict[str, Any]:
    (path,) = folder.rglob("manifest.json")
    document: dict[str, Any] = json.loads(path.read_text())
    return document


def records_of(folder: Path) -> list[dict[str, Any]]:
    (path,) = folder.rglob("records.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_short_name_runs_and_the_manifest_says_what_was_asked(
    server: AnthropicServer, keju: Keju, tmp_path: Path
) -> None:
    server.plan.answer = lambda *_: AnthropicMessage("So the answer is (A).", thinks="Hm.")
    ran = keju("eval", "-m", "anthropic:sonnet", *DEMO)
    assert ran.code == 0, ran.err
    assert server.refused == []
    (entry,) = ran.json["benchmarks"]
    assert ran.json["model"] == "anthropic:claude-sonnet-5-5"
    body, headers = server.bodies[-1], server.headers[-1]
    assert body["model"] == "claude-sonnet-5-5"
    assert body["thinking"] == {"type": "adaptive", "display": "summarized"}
    assert "temperature" not in body
    assert headers["anthropic-version"] == "2026-10-21"
    assert headers["authorization"] == f"Bearer {KEY}"
    assert "x-api-key" not in headers
    manifest = manifest_of(tmp_path)
    assert manifest["model"] == manifest["config"]["model"] == "anthropic:claude-sonnet-5-5"
    endpoint = manifest["endpoint"]
    assert endpoint["api_version"] == "2026-10-21"
    assert endpoint["endpoint"] == f"{server.url}/v1"
    assert endpoint["model_info"]["max_tokens"] == 128_000
    assert endpoint["effort"] == "high"
    sampling = manifest["benchmarks"][0]["sampling"]
    assert sampling["temperature"] is None
    assert sampling["max_tokens"] == body["max_tokens"] == 64
    codes = [notice["code"] for notice in entry["notices"]]
    assert codes.count("temperature_not_sent") == 1
    assert "thinking_in_limit" in codes
    assert server.paths == ["/v1/models/claude-sonnet-5-5"]  # read once
    for record in records_of(tmp_path):
        assert record["reply"]["reasoning"] == "Hm."
        assert record["reply"]["text"] == "So the answer is (A)."
        assert record["reply"]["request_id"].startswith("req_")
    stored = "".join(f.read_text() for f in tmp_path.rglob("*") if f.is_file())
    for secret in (KEY, OPENAI_KEY):
        assert secret not in stored + ran.out + ran.err
        assert all(
            OPENAI_KEY not in value
            for sent_headers in server.headers
            for value in sent_headers.values()
        )


def test_a_stored_run_is_resumed_as_the_model_it_was(
    server: AnthropicServer, keju: Keju, tmp_path: Path
) -> None:
    assert keju("eval", "-m", "anthropic:haiku", "--run-id", "r", *DEMO).code == 0
    requests_before = len(server.bodies)
    ran = keju("eval", "--config", "runs/r/manifest.json", "--resume", "-q", "--json")
    assert ran.code == 0, ran.err
    assert len(server.bodies) == requests_before
    assert ran.json["model"] == "anthropic:claude-haiku-5-5"
    assert any(n["code"] == "temperature_not_sent" for n in ran.json["benchmarks"][0]["notices"])


def test_the_old_version_gets_its_key_header_and_keju_s_temperature(
    server: AnthropicServer, keju: Keju, tmp_path: Path
) -> None:
    words = ("-m", "anthropic:claude-sonnet-4-6", "-s", f"model_args.api_version={OLD}")
    ran = keju("eval", *words, *DEMO)
    assert ran.code == 0, ran.err
    assert server.bodies[-1]["temperature"] == 0.0
    assert server.headers[-1]["x-api-key"] == KEY
    assert "authorization" not in server.headers[-1]
    assert manifest_of(tmp_path)["config"]["model_args"] == {"api_version": OLD}
    assert not [n for n in ran.json["benchmarks"][0]["notices"] if "temperature" in n["code"]]
    assert KEY not in ran.out + ran.err + "".join(
        f.read_text() for f in tmp_path.rglob("*") if f.is_file()
    )


REFUSALS = {
    ("-s", "generation_config.temperature=0"): "temperature 0.0 is asked for, and Anthropic's API "
    "has none since version 2026-10-21",
    ("-s", "generation_config.temperature=0", "-s", f"model_args.api_version={OLD}"): "temperature "
    "0.0 is asked for, and claude-sonnet-5-5 refuses it",
    ("-s", "generation_config.seed=1"): "Anthropic's API has no seed",
    ("-s", "generation_config.max_tokens=200000"): "claude-sonnet-5-5 writes at most 128000 tokens",
    ("-s", "generation_config.extra_body.thinking={type: disabled}"): "claude-sonnet-5-5 does not "
    "take thinking 'disabled', only: adaptive, between_tools",
    ("--api", "completions"): "Anthropic's API takes only conversations: give --api chat",
    ("-s", "model_args.version=1"): "unknown key 'version'",
    ("-s", "model_args.like=gpt-5"): "the settings of 'gpt-5' are not known",
}


@pytest.mark.parametrize("words", REFUSALS, ids=lambda words: " ".join(words)[:60])
def test_what_the_api_refuses_is_said_before_anything_is_sent(
    server: AnthropicServer, keju: Keju, words: tuple[str, ...]
) -> None:
    ran = keju("eval", "-m", "anthropic:sonnet", *words, *DEMO)
    assert ran.code == 2, ran.err
    assert REFUSALS[words] in ran.err
    assert ran.err.count("\n") == 1
    assert server.bodies == []
    assert server.refused == []


def test_a_dry_run_refuses_the_same(server: AnthropicServer, keju: Keju) -> None:
    words = ("-s", "generation_config.temperature=0.5", "--dry-run")
    ran = keju("eval", "-m", "anthropic:opus", *words, "--datasets", "demo")
    assert ran.code == 2
    assert "temperature 0.5 is asked for" in ran.err


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("sk-ant-wrong-key-9876", "refused the key (401): set ANTHROPIC_API_KEY or --api-key"),
        (None, "wants a key (401): set ANTHROPIC_API_KEY or --api-key"),
    ],
)
def test_a_wrong_or_lacking_key_is_named_by_its_own_variable(
    server: AnthropicServer,
    keju: Keju,
    monkeypatch: pytest.MonkeyPatch,
    key: str | None,
    message: str,
) -> None:
    if key is None:
        monkeypatch.delenv("ANTHROPIC_API_KEY")
    else:
        monkeypatch.setenv("ANTHROPIC_API_KEY", key)
    ran = keju("eval", "-m", "anthropic:sonnet", *DEMO)
    assert ran.code == 5
    assert message in ran.err
    assert OPENAI_KEY not in ran.err
    assert key is None or key not in ran.err


def test_an_unknown_model_is_told_what_there_is(server: AnthropicServer, keju: Keju) -> None:
    ran = keju("eval", "-m", "anthropic:claude-sonnet-5-6", *DEMO)
    assert ran.code == 5
    assert "model 'claude-sonnet-5-6' is not at" in ran.err
    assert "did you mean 'claude-sonnet-5-5'?" in ran.err


def test_faults_on_the_way_are_retried_and_counted(
    server: AnthropicServer, keju: Keju, tmp_path: Path
) -> None:
    faults = {
        2: RawResponse(429, error("rate_limit_error", "slow down"), {"retry-after": "0.01"}),
        3: RawResponse(529, error("overloaded_error", "overloaded"), {"retry-after": "0.01"}),
        4: RawResponse(500, error("api_error", "oh"), {"retry-after": "0.01"}),
        5: RawResponse(413, b"<html>too large</html>"),
    }

    def answer(document: dict[str, Any], number: int) -> Any:
        return faults.get(number, "So the answer is (A).")

    server.plan.answer = answer
    words = ("--retry-interval", "0.01", "--eval-batch-size", "1", "--error-limit", "0.5")
    ran = keju("eval", "-m", "anthropic:sonnet", *words, *DEMO)
    assert ran.code == 0, ran.err
    kinds = [f["kind"] for record in records_of(tmp_path) for f in record.get("faults", ())]
    assert sorted(kinds) == ["rate_limit", "rate_limit", "server"]
    errors = [r["reply"]["error"] for r in records_of(tmp_path) if "error" in r["reply"]]
    assert [(e["kind"], e["status"]) for e in errors] == [("context_length", 413)]
    assert errors[0]["request_id"].startswith("req_")


def test_a_refusal_is_refused_and_a_cut_reply_truncated(
    server: AnthropicServer, keju: Keju, tmp_path: Path
) -> None:
    details = {"type": "refusal", "category": "bio", "explanation": "no"}

    def answer(document: dict[str, Any], number: int) -> Any:
        if number % 2:
            return AnthropicMessage([], "refusal", extra_fields={"stop_details": details})
        return AnthropicMessage("Let me", "max_tokens")

    server.plan.answer = answer
    ran = keju("eval", "-m", "anthropic:sonnet", "--eval-batch-size", "1", *DEMO)
    assert ran.code == 0, ran.err
    outcomes = ran.json["benchmarks"][0]["outcomes"]
    assert outcomes["refused"] == 6
    assert outcomes["truncated"] == 6
    assert any(record["reply"].get("refusal") == "bio: no" for record in records_of(tmp_path))


def test_what_a_cache_kept_and_gave_is_counted_and_paid_by_its_own_price(
    server: AnthropicServer, keju: Keju, tmp_path: Path
) -> None:
    usage = {
        "input_tokens": 100,
        "output_tokens": 10,
        "cache_creation_input_tokens": 1000,
        "cache_read_input_tokens": 10_000,
    }
    server.plan.answer = lambda *_: AnthropicMessage("(A)", usage=usage)
    price = ("-s", "price={input: 10, output: 100, cached: 1, written: 12.5}")
    ran = keju("eval", "-m", "anthropic:sonnet", *price, *DEMO)
    assert ran.code == 0, ran.err
    counted = ran.json["benchmarks"][0]["usage"]
    assert counted["input_tokens"] == 12 * 11_100
    assert counted["cached_tokens"] == 12 * 10_000
    assert counted["written_tokens"] == 12 * 1000
    assert counted["cost"] == pytest.approx(12 * (100 * 10 + 1000 * 12.5 + 10_000 + 10 * 100) / 1e6)


def test_stops_of_white_space_are_cut_here_and_others_sent(
    server: AnthropicServer, keju: Keju, tmp_path: Path
) -> None:
    server.plan.answer = "(A)\n\nQuestion: another"
    stops = ("-s", 'generation_config.stop=["\\n\\n", "END"]')
    ran = keju("eval", "-m", "anthropic:sonnet", *stops, *DEMO)
    assert ran.code == 0, ran.err
    assert server.bodies[-1]["stop_sequences"] == ["END"]
    assert {record["reply"]["text"] for record in records_of(tmp_path)} == {"(A)"}
    assert any(n["code"] == "stop_cut_here" for n in ran.json["benchmarks"][0]["notices"])


def test_labels_cannot_be_compared(server: AnthropicServer, keju: Keju) -> None:
    protocols = keju("list", "protocols", "--benchmark", "demo", "--json").json["protocols"]
    (name,) = [row["protocol"] for row in protocols if row["decode"] == "labels"][:1] or ["labels"]
    ran = keju("eval", "-m", "anthropic:sonnet", "--protocol", name, *DEMO)
    assert ran.code == 2
    assert "log-probabilities, which Anthropic's API does not give" in ran.err


def test_from_python(server: AnthropicServer, tmp_path: Path) -> None:
    task = {
        "model": "anthropic:opus",
        "datasets": ["demo"],
        "limit": 1,
        "work_dir": str(tmp_path),
        "api_url": f"{server.url}/v1/messages",
        "api_key": KEY,
    }
    results = package.run_task(task)
    assert results["model"] == "anthropic:claude-opus-5-5"
    assert len(server.bodies) == 7
    server.plan.key = "another"
    with pytest.raises(EndpointError) as error:
        package.run_task(task)
    assert KEY not in str(error.value)


def test_the_kind_is_listed_and_examined(server: AnthropicServer, keju: Keju) -> None:
    rows = keju("list", "models", "--json").json["models"]
    assert "anthropic:NAME" in [row["model"] for row in rows]
    ran = keju("doctor", "--model", "anthropic:sonnet", "--json")
    (row,) = [row for row in ran.json["checks"] if row["name"] == "endpoint"]
    assert row["status"] == "ok", row
    assert row["found"] == f"{server.url}/v1 answers as claude-sonnet-5-5"
    assert KEY not in ran.out


def test_a_run_is_replayed_with_the_sampling_it_had(
    server: AnthropicServer, keju: Keju, tmp_path: Path
) -> None:
    words = ("-m", "anthropic:sonnet", "--run-id", "r")
    original_entry = keju("eval", *words, *DEMO).json["benchmarks"][0]
    count = len(server.bodies)
    ran = keju("eval", "-m", "replay:r", *DEMO)
    assert ran.code == 0, ran.err
    replayed_entry = ran.json["benchmarks"][0]
    assert replayed_entry["metrics"] == original_entry["metrics"]
    assert replayed_entry["outcomes"]["error"] == 0
    assert len(server.bodies) == count
    assert (
        keju("score", "runs/r", "--json").json["benchmarks"][0]["metrics"]
        == original_entry["metrics"]
    )


def test_another_program_at_the_address_is_named(server: AnthropicServer, keju: Keju) -> None:
    server.plan.answer = lambda *_: RawResponse(200, b"<html>hello</html>")
    ran = keju("eval", "-m", "anthropic:sonnet", "--retry-interval", "0.001", *DEMO)
    assert ran.code == 5
    assert "is no endpoint of Anthropic's API (" in ran.err


def test_one_run_has_one_version_of_the_api(server: AnthropicServer, keju: Keju) -> None:
    words = ("-m", "anthropic:claude-opus-4-8", "--run-id", "r", "--datasets", "demo", "-q")
    assert keju("eval", *words, "--limit", "1").code == 0
    other_version = ("-s", f"model_args.api_version={OLD}", "--limit", "2")
    ran = keju("eval", *words, *other_version)
    assert ran.code == 2
    assert "differs in the version of the API" in ran.err


def test_arms_with_a_real_server_of_tools(
    server: AnthropicServer, keju: Keju, tmp_path: Path
) -> None:
    """The thinking of every turn goes back unchanged, and the same prompt goes to both arms."""

    def answer(document: dict[str, Any], number: int) -> Any:
        turns = document["messages"]
        if document.get("tools") and turns[-1]["content"][0]["type"] != "tool_result":
            names = [tool["name"] for tool in document["tools"]]
            (name,) = [tool_name for tool_name in names if tool_name.endswith("__calculate")]
            call = tool_use(name, {"expression": f"{number} + 1"}, f"toolu_{number}")
            return AnthropicMessage([call], thinks=f"Thought {number}.")
        return AnthropicMessage("So the answer is (A).", thinks="Done.")

    server.plan.answer = answer
    program = Path(__file__).parents[1] / "support" / "mcp_server.py"
    calc = {"name": "calc", "servers": [{"command": sys.executable, "args": [str(program)]}]}
    Path("arms.yaml").write_text(json.dumps({"arms": [{"name": "baseline"}, calc]}))
    ran = keju("eval", "-c", "arms.yaml", "-m", "anthropic:sonnet", *DEMO)
    assert ran.code == 0, ran.err
    assert server.refused == []
    episodes = [r["reply"] for r in records_of(tmp_path) if r["arm"] == "calc"]
    assert len(episodes) == 12
    for reply in episodes:
        call_turn, result, final = reply["episode"]["turns"]
        assert call_turn["reasoning"].startswith("Thought ")
        assert result["text"] == str(int(call_turn["calls"][0]["id"].removeprefix("toolu_")) + 1)
        assert final["text"] == "So the answer is (A)."
        assert reply["usage"]["cached"] > 0


def test_the_provider_s_own_host_is_not_asked_without_a_key(
    keju: Keju, monkeypatch: pytest.MonkeyPatch
) -> None:
    def connect(*_: Any) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr("keju.models.anthropic.client.AnthropicModel.preflight", connect)
    ran = keju("eval", "-m", "anthropic:sonnet", *DEMO)
    assert ran.code == 2
    key_message = f"model 'anthropic:sonnet', which is '{SHORT_NAMES['anthropic:sonnet']}', "
    assert f"{key_message}needs a key: set ANTHROPIC_API_KEY or --api-key" in ran.err
    for command in ("run", "eval"):
        assert "anthropic:NAME" in keju(command, "--help").out
