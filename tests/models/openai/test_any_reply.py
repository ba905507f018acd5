"""Whatever an endpoint sends is a reply or a fault, and the journal can hold it."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from keju.models.openai.client import OpenAIModel
from keju.models.transport import HttpReply
from keju.types import Prefix, Prompt, Record, Request, Sampling

KEY = "sk-any-0123456789"
NAMES = st.sampled_from(
    [
        "choices",
        "message",
        "content",
        "text",
        "type",
        "refusal",
        "reasoning",
        "reasoning_content",
        "tool_calls",
        "function",
        "arguments",
        "logprobs",
        "top_logprobs",
        "token",
        "logprob",
        "bytes",
        "tokens",
        "token_logprobs",
        "finish_reason",
        "index",
        "usage",
        "prompt_tokens",
        "completion_tokens",
        "prompt_tokens_details",
        "cached_tokens",
        "model",
        "error",
        "code",
        "msg",
        "detail",
        "loc",
        "thinking",
        "summary",
        "id",
        "0",
        "A",
    ]
)
TEXTS = st.sampled_from(["", "A", "(B)", "text", "stop", "length", "\x1b[2J", "\ud83d", KEY, "\0"])
NUMBERS = st.sampled_from([0, -1, 0.5, 1e300, 10**30, float("nan"), float("-inf"), 503, True])
VALUES: Any = st.recursive(
    st.one_of(st.none(), TEXTS, NUMBERS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.one_of(NAMES, TEXTS), inner, max_size=4)
    ),
    max_leaves=12,
)
CHOICES = st.fixed_dictionaries(
    {},
    optional={
        "message": st.one_of(
            VALUES,
            st.fixed_dictionaries(
                {"content": VALUES},
                optional={"tool_calls": VALUES, "reasoning": VALUES, "refusal": VALUES},
            ),
        ),
        "text": VALUES,
        "logprobs": st.one_of(
            VALUES,
            st.fixed_dictionaries({"content": st.lists(VALUES, max_size=3)}),
            st.fixed_dictionaries({"tokens": VALUES, "top_logprobs": VALUES}),
        ),
        "finish_reason": VALUES,
        "index": VALUES,
    },
)
BODIES = st.one_of(
    VALUES,
    st.fixed_dictionaries(
        {"choices": st.lists(CHOICES, max_size=2)},
        optional={"usage": VALUES, "model": VALUES, "error": VALUES},
    ),
    st.fixed_dictionaries({"error": VALUES}),
    st.fixed_dictionaries({"detail": VALUES}),
)
STATUSES = st.sampled_from([200, 201, 204, 302, 400, 401, 404, 409, 422, 429, 500, 503, 599])
SAMPLINGS = [
    Sampling(form=form, decode=decode)
    for form in ("chat", "completion")
    for decode in ("generate", "labels")
]
HEADERS = st.dictionaries(
    st.sampled_from(["location", "retry-after", "retry-after-ms"]),
    st.one_of(TEXTS, st.sampled_from(["http://[", "1e400", "Mon, 01 Jan 9999 00:00:00 -2359"])),
)
MODEL = OpenAIModel("m", api_url="http://127.0.0.1:9/v1", api_key=KEY)


@given(BODIES, STATUSES, st.sampled_from(SAMPLINGS), HEADERS)
def test_every_reply_is_read_and_can_be_stored(
    body: Any, status: int, sampling: Sampling, headers: dict[str, str]
) -> None:
    request = Request(Prompt(Prefix(), "q"), sampling, hash="h", labels="AB")
    reply = MODEL.parse_reply(HttpReply(status, json.dumps(body).encode(), headers.get), request)
    record = Record(bench="b", id="i", hash="h", reply=reply)
    line = msgspec.json.encode(record)
    assert msgspec.json.decode(line, type=Record) == record
    assert KEY.encode() not in line
    if reply.error is not None:
        assert "cannot be read" not in reply.error.message
        assert "\x1b" not in reply.error.message


@given(st.binary(max_size=60), STATUSES)
def test_bytes_of_any_kind_are_a_fault(body: bytes, status: int) -> None:
    request = Request(Prompt(Prefix(), "q"), Sampling(), hash="h")
    assert MODEL.parse_reply(HttpReply(status, body, lambda _: None), request).error is not None
