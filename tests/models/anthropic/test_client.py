"""Requests and replies of Anthropic's API, against a server that checks the published schema."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from keju.config import TaskConfig
from keju.models.anthropic.client import MOST_PAUSES, AnthropicModel
from keju.models.anthropic.client import make as make_anthropic
from keju.models.anthropic.sampling import AnthropicSettings, fit
from keju.types import Message, Prefix, Prompt, Reply, Request, Sampling, Tool, Turn
from tests.support.anthropic_schema import NEW, OLD
from tests.support.anthropic_server import (
    KEY,
    AnthropicMessage,
    AnthropicPlan,
    AnthropicServer,
    RawResponse,
    error,
    tool_use,
)

SHOTS = Prefix(
    (
        Message("system", "Be brief."),
        Message("user", "1 + 1?"),
        Message("assistant", "2"),
        Message("user", "2 + 2?"),
        Message("assistant", "4"),
    )
)
LEAD = Prefix((), "Examples.\n\n")
MARK = {"type": "ephemeral"}


def task(server: AnthropicServer, model: str, version: str = NEW) -> TaskConfig:
    return TaskConfig(
        model=f"anthropic:{model}",
        datasets=["demo"],
        api_url=server.url,
        api_key=KEY,  # type: ignore[arg-type]
        model_args={"api_version": version},
    )


def ask(
    server: AnthropicServer,
    *requests: Request,
    model: str = "claude-sonnet-5-5",
    version: str = NEW,
    work: Callable[[AnthropicModel, list[Request]], Any] | None = None,
) -> list[Reply]:
    """Ask in turn, each request with its sampling made fit; or do `work` with them."""
    config = task(server, model, version)

    async def session() -> list[Reply]:
        made = make_anthropic(config)
        await made.start()
        fitted = [
            msgspec.structs.replace(request, sampling=fit(config, request.sampling)[0])
            for request in requests
        ]
        try:
            if work is not None:
                return list(await work(made, fitted))
            return [await made.ask(request, timeout=10) for request in fitted]
        finally:
            await made.close()

    return asyncio.run(session())


def request_of(prompt: Prompt | None = None, **sampling: Any) -> Request:
    chosen = Sampling(**({"temperature": None} | sampling))
    return Request(prompt or Prompt(SHOTS, "3 + 3?"), chosen, "hash")


def answered(answer: Any, request: Request | None = None, **settings: Any) -> Reply:
    """One reply to one request that fits the schema."""
    scripted = answer if callable(answer) else lambda *_: answer
    with AnthropicServer(AnthropicPlan(scripted)) as server:
        (reply,) = ask(server, request or request_of(), **settings)
        assert server.refused == []
        return reply


def sent(request: Request, **settings: Any) -> dict[str, Any]:
    with AnthropicServer() as server:
        (reply,) = ask(server, request, **settings)
        assert reply.error is None, (reply.error, server.refused)
        return server.bodies[0]


def text(words: str, marked: bool = False) -> dict[str, Any]:
    return {"type": "text", "text": words} | ({"cache_control": MARK} if marked else {})


# Requests


def test_shots_as_turns_are_marked_at_the_last_solution() -> None:
    body = sent(request_of())
    assert body["system"] == [text("Be brief.")]
    assert [message["role"] for message in body["messages"]] == ["user", "assistant"] * 2 + ["user"]
    assert body["messages"][3]["content"] == [text("4", marked=True)]
    assert body["messages"][4]["content"] == [text("3 + 3?")]


def test_shots_in_one_text_are_marked_before_the_question() -> None:
    (message,) = sent(request_of(Prompt(LEAD, "3 + 3?")))["messages"]
    assert message["content"] == [text("Examples.\n\n", marked=True), text("3 + 3?")]


@pytest.mark.parametrize(
    ("prefix", "tail", "system", "messages"),
    [
        (Prefix(), "Q", None, [("user", [text("Q")])]),
        (Prefix((Message("system", "S"),)), "Q", [text("S", True)], [("user", [text("Q")])]),
        (Prefix((), "\n"), "Q", None, [("user", [text("\nQ")])]),
        (Prefix((), "Q"), "\n", None, [("user", [text("Q\n")])]),
        (
            Prefix((Message("user", "A"), Message("user", "B"), Message("assistant", " "))),
            "Q",
            None,
            [("user", [text("A"), text("B", True), text("Q")])],
        ),
    ],
)
def test_empty_texts_are_left_out_and_neighbours_merged(
    prefix: Prefix, tail: str, system: Any, messages: Any
) -> None:
    body = sent(request_of(Prompt(prefix, tail)))
    assert body.get("system") == system
    assert [(m["role"], m["content"]) for m in body["messages"]] == messages


@pytest.mark.parametrize(
    "prefix",
    [
        Prefix((Message("user", "A"), Message("system", "S"))),
        Prefix((Message("assistant", "A"),)),
    ],
)
def test_conversations_that_the_api_has_no_form_for_are_not_sent(prefix: Prefix) -> None:
    with AnthropicServer() as server:
        (reply,) = ask(server, request_of(Prompt(prefix, "Q")))
        assert server.bodies == []
        assert server.refused == []
    assert reply.error is not None
    assert reply.error.kind == "bad_request"
    assert not reply.error.sent


def test_a_begun_turn_where_the_model_goes_on_from_it() -> None:
    prompt = Prompt(Prefix(), "Q", cue="The answer is ")
    extra = {"continue_final_message": True}
    body = sent(request_of(prompt, extra=extra), model="claude-haiku-4-5")
    assert body["messages"][-1] == {"role": "assistant", "content": [text("The answer is")]}
    assert "continue_final_message" not in body


def test_equal_requests_have_equal_bytes() -> None:
    first, second = (sent(request_of(extra={"reasoning_effort": "low"})) for _ in range(2))
    assert json.dumps(first) == json.dumps(second)


def test_the_first_request_of_a_shared_part_goes_ahead_alone() -> None:
    prefix = Prefix((), "Examples. " * 300)
    requests = [request_of(Prompt(prefix, f"{n}?")) for n in range(6)]

    async def together(model: AnthropicModel, asked: list[Request]) -> list[Reply]:
        return await asyncio.gather(*(model.ask(each, timeout=10) for each in asked))

    with AnthropicServer() as server:
        replies = ask(server, *requests, work=together)
    written = [reply.usage.written for reply in replies]
    assert sum(amount > 0 for amount in written) == 1
    for reply in replies:
        assert reply.usage.written + reply.usage.cached > 700
        assert reply.usage.input > reply.usage.written + reply.usage.cached


# Replies


def test_thinking_stands_apart_and_unknown_blocks_give_no_text() -> None:
    blocks = [
        text("The answer "),
        {"type": "hologram", "text": "no answer", "data": [1]},
        text("is (B)."),
    ]
    reply = answered(AnthropicMessage(blocks, thinks="Let me see."))
    assert (reply.text, reply.reasoning) == ("The answer is (B).", "Let me see.")
    assert reply.usage.reasoning == 7
    assert reply.request_id == "req_1"


def test_thinking_that_is_omitted_is_no_reasoning() -> None:
    reply = answered(AnthropicMessage("B", thinks="hidden"))
    assert (reply.text, reply.reasoning) == ("B", "")


@pytest.mark.parametrize(
    ("stop", "finish", "refused"),
    [
        ("end_turn", "stop", False),
        ("stop_sequence", "stop", False),
        ("max_tokens", "length", False),
        ("model_context_window_exceeded", "length", False),
        ("refusal", "refusal", True),
        ("brand_new_reason", "brand_new_reason", False),
    ],
)
def test_why_a_reply_ended(stop: str, finish: str, refused: bool) -> None:
    reply = answered(AnthropicMessage("B", stop))
    assert (reply.finish, reply.refused) == (finish, refused)


def test_an_empty_reply_is_an_empty_answer() -> None:
    reply = answered(AnthropicMessage([], "end_turn"))
    assert (reply.error, reply.text, reply.finish) == (None, "", "stop")


def test_a_refusal_without_content_is_no_error() -> None:
    details = {"stop_details": {"type": "refusal", "category": "cyber", "explanation": None}}
    reply = answered(AnthropicMessage([], "refusal", extra_fields=details))
    assert (reply.error, reply.refused, reply.refusal) == (None, True, "cyber")


def test_a_stop_sequence_that_came_with_the_text_is_cut_off() -> None:
    ended = {"stop_sequence": "END"}
    reply = answered(
        AnthropicMessage("BEND", "stop_sequence", extra_fields=ended), request_of(stop=("END",))
    )
    assert reply.text == "B"


SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}


def test_a_reply_that_pauses_is_sent_back_and_goes_on() -> None:
    def answer(document: dict[str, Any], number: int) -> Any:
        return (
            AnthropicMessage([text("Half "), SEARCH], "pause_turn")
            if number == 0
            else AnthropicMessage("whole.")
        )

    with AnthropicServer(AnthropicPlan(answer)) as server:
        (reply,) = ask(server, request_of())
        assert server.refused == []
        assert server.bodies[1]["messages"][-1]["content"] == [text("Half "), SEARCH]
    assert (reply.text, reply.finish) == ("Half whole.", "stop")
    assert reply.usage.output > 20  # of both


@pytest.mark.parametrize(
    ("stop", "finish"),
    [("end_turn", "stop"), ("max_tokens", "stop"), ("refusal", "refusal")],
)
def test_a_cut_at_white_space_makes_no_answer_of_anything_else(stop: str, finish: str) -> None:
    said = [text("B\n\nmore"), *CALLS]
    reply = answered(AnthropicMessage(said, stop), request_of(stop=("\n\n",)))
    assert (reply.text, reply.refused) == ("B", stop == "refusal")
    if stop == "end_turn":
        assert len(reply.calls) == 2
    else:
        assert (reply.finish, reply.calls) == (finish, ())


def test_a_reply_that_never_ends_is_given_up() -> None:
    with AnthropicServer(
        AnthropicPlan(lambda *_: AnthropicMessage([SEARCH], "pause_turn"))
    ) as server:
        (reply,) = ask(server, request_of())
        assert len(server.bodies) == MOST_PAUSES + 1
    assert reply.error is not None
    assert reply.error.kind == "server"


@pytest.mark.parametrize(
    ("raw", "kind", "wait"),
    [
        (RawResponse(413, b"<html><title>413</title></html>"), "context_length", None),
        (RawResponse(429, error("rate_limit_error", "m"), {"retry-after": "7"}), "rate_limit", 7.0),
        (
            RawResponse(429, error("rate_limit_error", "m", "ramp_limit_exceeded")),
            "rate_limit",
            None,
        ),
        (
            RawResponse(429, error("rate_limit_error", "m", "enforced_spend_limit_reached")),
            "auth",
            None,
        ),
        (
            RawResponse(529, error("overloaded_error", "m"), {"retry-after-ms": "500"}),
            "rate_limit",
            0.5,
        ),
        (RawResponse(500, error("api_error", "m")), "server", None),
        (
            RawResponse(500, error("api_error", "m"), {"x-should-retry": "false"}),
            "bad_request",
            None,
        ),
        (
            RawResponse(400, error("invalid_request_error", "m"), {"x-should-retry": "true"}),
            "server",
            None,
        ),
        (RawResponse(504, error("timeout_error", "m")), "timeout", None),
        (RawResponse(409, error("conflict_error", "m")), "server", None),
        (RawResponse(402, error("billing_error", "m")), "auth", None),
        (RawResponse(403, error("permission_error", "m")), "auth", None),
        (RawResponse(404, error("not_found_error", "m")), "not_found", None),
        (
            RawResponse(400, error("invalid_request_error", "prompt is too long")),
            "context_length",
            None,
        ),
        (RawResponse(400, error("invalid_request_error", "m")), "bad_request", None),
        (
            RawResponse(
                400, error("invalid_request_error", "You have reached your API usage limits.")
            ),
            "auth",
            None,
        ),
        (RawResponse(200, error("overloaded_error", "m")), "rate_limit", None),
        (RawResponse(200, b"<html>"), "malformed", None),
        (RawResponse(200, b"[]"), "malformed", None),
        (RawResponse(200, b'{"content": "text"}'), "malformed", None),
    ],
)
def test_faults(raw: RawResponse, kind: str, wait: float | None) -> None:
    fault = answered(raw).error
    assert fault is not None
    assert (fault.kind, fault.retry_after) == (kind, wait)
    if raw.status != 200:
        assert fault.request_id == "req_1"


@pytest.mark.parametrize("version", [OLD, NEW])
def test_no_key_in_any_header_comes_back(version: str) -> None:
    echo = RawResponse(400, error("invalid_request_error", f"you sent {KEY}"), {"request-id": KEY})
    reply = answered(echo, model="claude-sonnet-4-6", version=version)
    assert KEY not in repr(reply)
    said = answered(
        AnthropicMessage(f"Your key is {KEY}."), model="claude-sonnet-4-6", version=version
    )
    assert said.text == "Your key is [redacted]."


def test_no_key_in_what_a_model_shows_of_itself() -> None:
    model = AnthropicModel(
        AnthropicSettings("m", NEW, None), api_key=KEY, api_url="https://u:pw@there"
    )
    assert repr(model) == "AnthropicModel('m', api_url='https://there/v1')"
    assert KEY not in str(model.facts())
    assert "pw" not in str(model.facts())


def test_a_longer_limit_has_more_time() -> None:
    model = AnthropicModel(AnthropicSettings("claude-opus-4-8", NEW, None))
    times = [model.patience(Sampling(max_tokens=n), 600.0) for n in (1000, 21_333, 42_666)]
    assert times == [600.0, 600.0, 1200.0]


# Tools

CALCULATOR = Tool("calc__add", "Adds.", {"properties": {"a": {"type": "number"}}})
CALLS = [
    tool_use("calc__add", {"a": 1.0, "b": "é"}, "toolu_1"),
    tool_use("calc__add", {}, "toolu_2"),
]


def loop(server: AnthropicServer, model: str, rounds: int = 2) -> list[Reply]:
    """A conversation as the tool loop has it: calls, results, and a last turn without calls."""

    async def episode(made: AnthropicModel, asked: list[Request]) -> list[Reply]:
        replies: list[Reply] = []
        turns: tuple[Turn, ...] = ()
        for number in range(rounds):
            request = msgspec.structs.replace(
                asked[0],
                tools=(CALCULATOR,),
                turns=turns,
                tool_choice="none" if number == rounds - 1 else "auto",
            )
            reply = await made.ask(request, timeout=10)
            replies.append(reply)
            turns += (
                Turn(role="assistant", text=reply.text, calls=reply.calls, native=reply.native),
            )
            for place, call in enumerate(reply.calls):
                kind = "tool_error" if place else "ok"
                turns += (Turn(role="tool", text=f"result {place}", call=call.id, kind=kind),)  # type: ignore[arg-type]
            if reply.calls:
                turns += (Turn(role="user", text="Go on.", images=(b"\x89PNG....", b"?")),)
        return replies

    return ask(server, request_of(), model=model, work=episode)


@pytest.mark.parametrize("model", ["claude-sonnet-5-5", "claude-opus-4-8", "claude-haiku-4-5"])
@pytest.mark.parametrize("thinks", ["Let me add.", "hidden", None])
def test_a_whole_loop_fits_the_schema(model: str, thinks: str | None) -> None:
    if model != "claude-sonnet-5-5" and thinks:
        thinks = None  # they do not think unless they are told to

    def answer(document: dict[str, Any], number: int) -> Any:
        if document["tool_choice"]["type"] == "none":
            return AnthropicMessage("So the answer is (A).", thinks=thinks)
        return AnthropicMessage([text("Adding é."), *CALLS], thinks=thinks)

    with AnthropicServer(AnthropicPlan(answer)) as server:
        replies = loop(server, model, rounds=3)
        assert server.refused == []
        last = server.bodies[-1]
    assert [reply.finish for reply in replies] == ["tool_calls", "tool_calls", "stop"]
    assert [(c.id, c.name, json.loads(c.arguments)) for c in replies[0].calls] == [
        ("toolu_1", "calc__add", {"a": 1.0, "b": "é"}),
        ("toolu_2", "calc__add", {}),
    ]
    assert last["tools"] == [
        {
            "name": "calc__add",
            "description": "Adds.",
            "input_schema": {"type": "object", "properties": {"a": {"type": "number"}}},
        }
    ]
    results = last["messages"][-1]["content"]
    assert results[0] == {
        "type": "tool_result",
        "tool_use_id": "toolu_1",
        "content": [text("result 0")],
    }
    assert results[1]["is_error"] is True
    assert [block["type"] for block in results[2:]] == ["text", "image"]
    assert replies[-1].usage.cached > 0  # the conversation before it was kept


def test_a_cut_call_is_not_run() -> None:
    def answer(document: dict[str, Any], number: int) -> Any:
        return AnthropicMessage([text("I call"), *CALLS], "max_tokens")

    with AnthropicServer(AnthropicPlan(answer)) as server:
        (reply,) = loop(server, "claude-sonnet-5-5", rounds=1)
    assert reply.calls == ()
    assert reply.finish == "length"


def test_a_turn_of_another_api_is_put_as_blocks() -> None:
    """A turn without the service's own words, as a text protocol or another model leaves it."""
    turn, empty = Turn(role="assistant", text="I think."), Turn(role="user", text=" ")
    request = msgspec.structs.replace(
        request_of(), turns=(turn, empty, Turn(role="user", text="Tool said 4."))
    )
    body = sent(request)
    assert body["messages"][-2]["content"] == [text("I think.")]
    assert body["messages"][-1]["content"] == [text("Tool said 4.")]
