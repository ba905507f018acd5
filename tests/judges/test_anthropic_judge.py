"""A judge of Anthropic's API beside a candidate of another provider: each key goes to its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from keju.judges.judge import make_judge_task
from keju.results.schema import to_document
from keju.task import run_exams
from tests.support.anthropic_server import KEY, AnthropicPlan, AnthropicServer
from tests.support.endpoint import FaultyEndpoint
from tests.support.judged import RIGHT, benchmark_entry, candidate, judged_config, verdict
from tests.support.open_exam import SIZE
from tests.support.replies import EndpointRequest
from tests.support.replies import Plan as OpenAIPlan

pytestmark = pytest.mark.usefixtures("open_exam")

OPENAI_KEY = "sk-of-the-candidate-0123"


def grade(document: dict[str, Any], number: int) -> str:
    text = "".join(block["text"] for block in document["messages"][-1]["content"])
    return verdict(EndpointRequest("chat", {"messages": [{"role": "user", "content": text}]}, ""))


def test_a_judge_of_anthropic_s_api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        AnthropicServer(AnthropicPlan(grade)) as server,
        FaultyEndpoint(OpenAIPlan(answers=candidate, key=OPENAI_KEY)) as endpoint,
    ):
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        judge = {"model": "anthropic:haiku", "api_key_var": None}
        task = judged_config(tmp_path, endpoint.url, judge, api_key=OPENAI_KEY)
        finished = run_exams(task)
        assert finished.exit_code == 0, finished.message
        assert server.refused == []
        assert {headers["authorization"] for headers in server.headers} == {f"Bearer {KEY}"}
        assert endpoint.last_headers["authorization"] == f"Bearer {OPENAI_KEY}"
    result = benchmark_entry(to_document(finished.results))
    assert result["metrics"]["accuracy"]["value"] == pytest.approx(RIGHT / SIZE)
    judge_notices = [n for n in result["notices"] if n["code"] == "judge_told"]
    assert judge_notices[0]["values"]["notice"]["code"] == "temperature_not_sent"
    manifest = json.loads((tmp_path / "r" / "manifest.json").read_text())
    assert list(manifest["judges"]) == ["anthropic:claude-haiku-5-5"]
    stored = "".join(f.read_text() for f in tmp_path.rglob("*") if f.is_file())
    assert KEY not in stored
    assert OPENAI_KEY not in stored


@pytest.mark.parametrize(
    ("model", "judge", "address", "key"),
    [
        # At the candidate's side only where both have one provider.
        ("m", {"model": "anthropic:opus"}, None, "of-anthropic"),
        ("anthropic:opus", {"model": "anthropic:haiku"}, "http://there/v1", "of-candidate"),
        ("anthropic:opus", {"model": "gpt"}, "http://openai-like/v1", "of-openai"),
        ("m", {"model": "anthropic:opus", "api_url": "http://stranger"}, "http://stranger", None),
    ],
)
def test_where_a_judge_is_and_which_key_it_gets(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    model: str,
    judge: dict[str, Any],
    address: str | None,
    key: str | None,
) -> None:
    for name in ("ANTHROPIC_BASE_URL", "KEJU_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "of-anthropic")
    monkeypatch.setenv("OPENAI_API_KEY", "of-openai")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://openai-like/v1")
    settings = judge | {"api_key_var": None}
    task = judged_config(tmp_path, "http://there/v1", settings, model=model, api_key="of-candidate")
    assert task.judge is not None
    judge_task = make_judge_task(task, task.judge, task.judge.model)
    assert judge_task.api_url == address
    assert (judge_task.api_key.get_secret_value() if judge_task.api_key else None) == key
