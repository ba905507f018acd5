"""The stand-in for Anthropic's API refuses what the published schema refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.anthropic_schema import NEW, OLD
from tests.support.anthropic_server import (
    KEY,
    AnthropicMessage,
    AnthropicPlan,
    AnthropicServer,
    tool_use,
)

USER = {"role": "user", "content": "Q"}
TOOL = {"name": "add", "input_schema": {"type": "object"}}
MARK = {"type": "ephemeral"}
CALL = tool_use("add", {}, "toolu_1")


def post(
    server: AnthropicServer, body: dict[str, Any], version: str | None = NEW, key: str = KEY
) -> tuple[int, dict[str, Any]]:
    headers = {"content-type": "application/json", "authorization": f"Bearer {key}"}
    headers |= {"anthropic-version": version} if version else {}
    reply = server.respond("POST", "/v1/messages", headers, json.dumps(body).encode())
    return reply.status, json.loads(reply.body)


def body(model: str = "claude-opus-4-6", **fields: Any) -> dict[str, Any]:
    fields_of_body = {"model": model, "max_tokens": 2000, "messages": [USER]} | fields
    return {name: value for name, value in fields_of_body.items() if value is not ...}


def from_assistant(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def from_user(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def text(words: str = "A", **extra_fields: Any) -> dict[str, Any]:
    return {"type": "text", "text": words} | extra_fields


def result(key: str = "toolu_1", **extra_fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": key} | extra_fields


FITTING = [
    body(),
    body(system="S", stop_sequences=["END"], metadata={"user_id": None}, service_tier="auto"),
    body(tools=[TOOL], tool_choice={"type": "any", "disable_parallel_tool_use": True}),
    body(thinking={"type": "enabled", "budget_tokens": 1024, "display": "omitted"}),
    body("claude-haiku-4-5", messages=[USER, from_assistant(text("The"))]),
    body(output_config={"effort": "max"}, cache_control=MARK | {"ttl": "1h"}),
]

REFUSED = {
    "an unknown key": body(seed=1),
    "an unknown key below": body(messages=[USER | {"name": "x"}]),
    "an unknown key of a block": body(messages=[from_user(text(mood="x"))]),
    "no max_tokens": body(max_tokens=...),
    "max_tokens over the cap": body("claude-haiku-4-5", max_tokens=64_001),
    "no messages": body(messages=[]),
    "empty text": body(messages=[from_user(text(""))]),
    "empty content": body(messages=[from_user()]),
    "a stop of white space": body(stop_sequences=["\n\n"]),
    "trailing white space": body("claude-haiku-4-5", messages=[USER, from_assistant(text("The "))]),
    "a begun turn": body(messages=[USER, from_assistant(text("The"))]),
    "a system role": body(messages=[{"role": "system", "content": "S"}, USER]),
    "the assistant first": body(messages=[from_assistant(text()), USER]),
    "neighbours of one role": body(messages=[USER, USER]),
    "a tool's name": body(tools=[TOOL | {"name": "a.b"}]),
    "two tools of one name": body(tools=[TOOL, TOOL]),
    "a call's id": body(messages=[USER, from_assistant(CALL | {"id": "a b"}), from_user(result("a b"))]),
    "input as a text": body(messages=[USER, from_assistant(CALL | {"input": "{}"}), from_user(result())]),
    "a call without a result": body(messages=[USER, from_assistant(CALL), from_user(text())]),
    "a call at the end": body(messages=[USER, from_assistant(CALL)]),
    "a result without a call": body(messages=[from_user(result())]),
    "a result twice": body(messages=[USER, from_assistant(CALL), from_user(result(), result())]),
    "text before a result": body(messages=[USER, from_assistant(CALL), from_user(text(), result())]),
    "a call that was never made": body(messages=[USER, from_assistant(CALL), from_user(result())]),
    "thinking that was never issued": body(
        messages=[USER, from_assistant({"type": "thinking", "thinking": "x", "signature": "y"}, text()), USER]
    ),
    "a document of the assistant": body(
        messages=[USER, from_assistant({"type": "document", "source": {"type": "text"}}), USER]
    ),
    "a small budget": body(thinking={"type": "enabled", "budget_tokens": 1023}),
    "a budget over the limit": body(thinking={"type": "enabled", "budget_tokens": 2000}),
    "thinking and a forced tool": body(
        thinking={"type": "adaptive"}, tools=[TOOL], tool_choice={"type": "any"}
    ),
    "a kind of thinking": body("claude-opus-5-5", thinking={"type": "disabled"}),
    "a choice without tools": body(tool_choice={"type": "auto"}),
    "a choice of no tool": body(tools=[TOOL], tool_choice={"type": "tool", "name": "sub"}),
    "none with a parallel flag": body(
        tools=[TOOL], tool_choice={"type": "none", "disable_parallel_tool_use": True}
    ),
    "a fifth mark": body(messages=[from_user(*[text(cache_control=MARK)] * 5)]),
    "a mark on thinking": body(
        messages=[USER, from_assistant({"type": "thinking", "thinking": "x", "signature": "y",
                              "cache_control": MARK}, text()), USER]
    ),
    "a longer mark after a shorter one": body(
        messages=[from_user(text(cache_control=MARK), text(cache_control=MARK | {"ttl": "1h"}))]
    ),
    "temperature": body(temperature=1.0),
    "an effort": body("claude-haiku-4-5", output_config={"effort": "low"}),
}  # fmt: skip


@pytest.mark.parametrize("document", FITTING)
def test_what_fits(document: dict[str, Any]) -> None:
    status, reply = post(AnthropicServer(), document)
    assert status == 200, reply


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    status, reply = post(AnthropicServer(), REFUSED[name])
    assert status == 400, reply
    assert reply["error"]["type"] == "invalid_request_error"


def test_headers_and_models() -> None:
    server = AnthropicServer()
    assert post(server, body(), key="wrong")[0] == 401
    assert post(server, body(), version=None)[0] == 400
    assert post(server, body("claude-nobody"))[0] == 404


@pytest.mark.parametrize(
    ("model", "fields", "status"),
    [
        ("claude-opus-4-6", {"temperature": 0}, 200),
        ("claude-opus-4-6", {"temperature": 0, "top_p": 1}, 400),
        ("claude-opus-4-6", {"temperature": 1.1}, 400),
        ("claude-opus-4-8", {"temperature": 1}, 400),
        ("claude-sonnet-5", {"temperature": 1}, 200),
        ("claude-sonnet-5", {"temperature": 0}, 400),
        ("claude-opus-4-6", {"temperature": 0, "thinking": {"type": "adaptive"}}, 400),
    ],
)
def test_sampling_of_the_old_version(model: str, fields: dict[str, Any], status: int) -> None:
    assert post(AnthropicServer(), body(model, **fields), OLD)[0] == status


def test_a_changed_history_is_found_out() -> None:
    server = AnthropicServer(AnthropicPlan(lambda *_: AnthropicMessage([CALL], thinks="Hm.")))
    first_body = body("claude-sonnet-5-5", tools=[TOOL])
    _, reply = post(server, first_body)
    encoded_content = server.issued[0]

    def status_of_next(content: bytes, **fields: Any) -> int:
        document = (
            first_body
            | {"messages": [USER, from_assistant(text("HERE")), from_user(result())]}
            | fields
        )
        encoded_body = (
            json.dumps(document).encode().replace(json.dumps([text("HERE")]).encode(), content)
        )
        headers = {"content-type": "application/json", "x-api-key": KEY, "anthropic-version": NEW}
        return server.respond("POST", "/v1/messages", headers, encoded_body).status

    assert status_of_next(encoded_content) == 200
    assert status_of_next(json.dumps(reply["content"]).encode()) == 400  # written anew
    assert status_of_next(encoded_content.replace(b"Hm.", b"Ha.")) == 400
    assert status_of_next(json.dumps([CALL]).encode()) == 400  # without its thinking
    assert status_of_next(encoded_content, tools=[TOOL, TOOL | {"name": "sub"}]) == 400
    assert status_of_next(encoded_content, system="Another.") == 400
