"""Whatever Anthropic's API or a gateway sends is a reply or a fault, and the journal can hold it."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from keju.models.anthropic.client import AnthropicModel
from keju.models.anthropic.sampling import AnthropicSettings, gate_of
from keju.models.anthropic.wire import body_of
from keju.models.transport import HttpReply
from keju.types import Prefix, Prompt, Record, Reply, Request, Sampling, Tool, Turn

KEY = "sk-ant-any-0123456789"
TEXTS = st.sampled_from(["", "A", "(B)", "\n", "END", "\x1b[2J", "\ud83d", KEY, "\0", "<think>"])
NUMBERS = st.sampled_from([0, -1, 7, 0.5, 1e300, 10**30, float("nan"), float("inf"), True])
NAMES = st.sampled_from(
    ["type", "text", "thinking", "signature", "data", "id", "name", "input", "content", "error",
     "message", "details", "error_code", "stop_details", "category", "0"]
)  # fmt: skip
VALUES: Any = st.recursive(
    st.one_of(st.none(), TEXTS, NUMBERS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.one_of(NAMES, TEXTS), inner, max_size=4)
    ),
    max_leaves=10,
)
KINDS = ["text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "hologram"]
BLOCKS = st.one_of(
    VALUES,
    st.fixed_dictionaries(
        {"type": st.sampled_from(KINDS)},
        optional=dict.fromkeys(("text", "thinking", "signature", "id", "input"), VALUES)
        | {"name": st.one_of(VALUES, st.just("add"))},
    ),
)
STOPS = [
    "end_turn",
    "max_tokens",
    "stop_sequence",
    "tool_use",
    "refusal",
    "pause_turn",
    "new",
    None,
]
MESSAGES = st.fixed_dictionaries(
    {"content": st.one_of(VALUES, st.lists(BLOCKS, max_size=4))},
    optional={
        "stop_reason": st.one_of(VALUES, st.sampled_from(STOPS)),
        "stop_sequence": VALUES,
        "stop_details": VALUES,
        "usage": st.one_of(
            VALUES,
            st.dictionaries(
                st.sampled_from(
                    ["input_tokens", "output_tokens", "cache_creation_input_tokens",
                     "cache_read_input_tokens", "output_tokens_details"]
                ),
                VALUES,
            ),
        ),
        "model": VALUES,
        "error": VALUES,
    },
)  # fmt: skip
BODIES = st.one_of(VALUES, MESSAGES, st.fixed_dictionaries({"error": VALUES}))
STATUSES = st.sampled_from([200, 204, 302, 400, 401, 404, 413, 429, 500, 529])
HEADERS = st.dictionaries(
    st.sampled_from(["request-id", "x-should-retry", "retry-after", "retry-after-ms", "location"]),
    st.one_of(TEXTS, st.sampled_from(["true", "false", "1e400", "req_1"])),
)
MODEL = AnthropicModel(
    AnthropicSettings("claude-opus-4-6", "2026-10-21", gate_of("claude-opus-4-6")),
    api_url="http://127.0.0.1:9",
    api_key=KEY,
)
PLAIN = Request(Prompt(Prefix(), "Q"), Sampling(max_tokens=9, stop=("\n", "END")), "hash")
ACTING = msgspec.structs.replace(PLAIN, tools=(Tool("add"),))


@given(BODIES, STATUSES, HEADERS, st.sampled_from([PLAIN, ACTING]))
def test_every_reply_is_read_and_can_be_stored(
    body: Any, status: int, headers: dict[str, str], request: Request
) -> None:
    reply = MODEL.parse_reply(
        HttpReply(status, json.dumps(body).encode(), headers.get), request, 0.1
    )
    stored = msgspec.json.encode(
        Record(bench="b", id="i", hash="h", reply=msgspec.structs.replace(reply, native=b""))
    )
    assert KEY.encode() not in stored
    assert msgspec.json.decode(stored, type=Record).reply.text == reply.text
    assert reply.usage.cached + reply.usage.written <= reply.usage.input
    assert (reply.error is not None) or 200 <= status < 300
    assert reply.error is None or "cannot be read" not in reply.error.message
    assert reply.error is None or "\n" not in reply.error.message
    _goes_on(reply, request)


def _goes_on(reply: Reply, request: Request) -> None:
    """What came with calls can be sent back as it was."""
    if not reply.calls or not reply.native:
        return
    turn = Turn(role="assistant", calls=reply.calls, native=reply.native)
    results = [Turn(role="tool", call=call.id, text="4") for call in reply.calls]
    follow_up = msgspec.structs.replace(request, turns=(turn, *results))
    assert reply.native in body_of("m", follow_up).encoded()
