"""Replies of many servers become one shape."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import pytest

from keju.models.base import Redactor
from keju.models.openai.wire import normalise
from keju.types import Fault, Prefix, Prompt, Reply, Request, Sampling, Usage
from tests.models.helpers import request_of


def read(
    body: Any, *, labels: str = "", form: Any = "chat", extra: Any = None, **more: Any
) -> Reply:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    decode: Any = "labels" if labels else "generate"
    sampling = Sampling(form=form, decode=decode, extra=extra or {}, **more)
    request = request_of(sampling=sampling, labels=labels, cue="答案：")
    return normalise(raw, request, 1.5, Redactor(["sk-MARKED"]))


def chat(message: dict[str, Any], finish: Any = "stop", **more: Any) -> dict[str, Any]:
    return {"choices": [{"message": message, "finish_reason": finish}], **more}


@pytest.mark.parametrize(
    ("body", "reply"),
    [
        (chat({"content": "B"}), Reply(text="B", finish="stop")),
        (chat({"content": None}, "length"), Reply(finish="length")),
        (chat({}), Reply(finish="stop")),
        (chat({"content": "x"}, None), Reply(text="x")),
        (chat({"content": "x"}, "model_length"), Reply(text="x", finish="length")),
        (
            chat({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}),
            Reply(text="ab", finish="stop"),
        ),
        (
            chat({"content": [{"type": "image", "url": "x"}, {"type": "text", "text": "b"}]}),
            Reply(text="b", finish="stop"),
        ),
        (
            chat({"content": "B", "reasoning_content": "hmm"}),
            Reply(text="B", reasoning="hmm", finish="stop"),
        ),
        (
            chat({"content": "B", "reasoning": "hmm"}),
            Reply(text="B", reasoning="hmm", finish="stop"),
        ),
        (
            chat({"content": "B", "reasoning": {"effort": "low"}}),
            Reply(text="B", finish="stop"),
        ),
        (
            chat({"content": "<think>A?</think>\nB"}),
            Reply(text="B", reasoning="A?", finish="stop", raw="<think>A?</think>\nB"),
        ),
        (
            chat({"content": "<think>so A", "reasoning_content": "hmm"}, "length"),
            Reply(reasoning="hmm\nso A", finish="length", raw="<think>so A"),
        ),
        (chat({"content": None, "refusal": "I cannot"}), Reply(refusal="I cannot", finish="stop")),
        (
            chat({"content": None, "tool_calls": [{"id": "1"}]}, "tool_calls"),
            Reply(finish="tool_calls", tool_calls=({"id": "1"},)),
        ),
        (
            chat({"content": "part"}, "content_filter"),
            Reply(text="part", finish="content_filter"),
        ),
        (chat({"content": "x"}, model="m-1"), Reply(text="x", finish="stop", model="m-1")),
        (
            {"choices": [{"text": " B", "finish_reason": "stop"}]},
            Reply(text=" B", finish="stop"),
        ),
        (
            chat({"content": [{"type": "output_text", "text": "B", "annotations": []}]}),
            Reply(text="B", finish="stop"),
        ),
        (
            chat(
                {
                    "content": [
                        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
                        {"type": "reasoning", "text": "so"},
                        {"type": "text", "text": "B"},
                    ]
                }
            ),
            Reply(text="B", reasoning="hm\nso", finish="stop"),
        ),
        (
            chat({"content": [{"type": "thinking", "thinking": "on and on"}]}, "length"),
            Reply(reasoning="on and on", finish="length"),
        ),
        (
            chat({"content": [{"type": "refusal", "refusal": "I cannot"}]}),
            Reply(refusal="I cannot", finish="stop"),
        ),
        (chat({"content": []}), Reply(finish="stop")),
        (chat({"content": None, "reasoning": "hm"}), Reply(reasoning="hm", finish="stop")),
        ({"choices": [{"message": {"content": "x"}, "text": None}]}, Reply(text="x")),
    ],
)
def test_reply(body: dict[str, Any], reply: Reply) -> None:
    got = read(body)
    assert got.seconds == 1.5
    assert {name: getattr(got, name) for name in Reply.__struct_fields__ if name != "seconds"} == {
        name: getattr(reply, name) for name in Reply.__struct_fields__ if name != "seconds"
    }


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, Usage()),
        ({"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}, Usage(7, 3)),
        ({"prompt_tokens": None, "completion_tokens": 3.0}, Usage(0, 3)),
        (
            {
                "prompt_tokens": 7,
                "completion_tokens": 9,
                "prompt_tokens_details": {"cached_tokens": 5, "audio_tokens": 0},
                "completion_tokens_details": {"reasoning_tokens": 4},
            },
            Usage(7, 9, 5, 4),
        ),
        ({"prompt_tokens": 7, "prompt_cache_hit_tokens": 6}, Usage(7, 0, 6)),
        ({"prompt_tokens": 7, "prompt_tokens_details": None}, Usage(7)),
    ],
)
def test_usage(usage: dict[str, Any] | None, expected: Usage) -> None:
    assert read(chat({"content": "x"}, usage=usage)).usage == expected


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": "7", "completion_tokens": "3.0"}, Usage(7, 3)),
        ({"prompt_tokens": 7.9, "prompt_tokens_details": []}, Usage(7)),
        ({"prompt_tokens": "many", "completion_tokens": True}, Usage()),
        ({"completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": "2"}}, Usage(0, 3, 2)),
        ({"completion_tokens": 3, "completion_tokens_details": "x"}, Usage(0, 3)),
        ({"prompt_tokens": 1e300, "completion_tokens": -3}, Usage()),
        ({"prompt_tokens": "9" * 400, "completion_tokens": 3}, Usage(0, 3)),
        ([], Usage()),
        ("7", Usage()),
    ],
)
def test_odd_counts_never_cost_the_reply(usage: Any, expected: Usage) -> None:
    reply = read(chat({"content": "x"}, usage=usage))
    assert (reply.error, reply.text, reply.usage) == (None, "x", expected)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (rb'{"choices": [{"message": {"content": "\ud83d (B)"}}]}', "\ufffd (B)"),
        (rb'{"choices": [{"message": {"content": "(B) \ude00\ud83d"}}]}', "(B) \ufffd\ufffd"),
        (rb'{"choices": [{"text": "\ud83d\ude00 \ud83d"}]}', "\U0001f600 \ufffd"),
        (b'{"choices": [{"text": "\xed\xa0\xbd B"}]}', "\ufffd B"),
        (b'\xef\xbb\xbf{"choices": [{"text": "B"}]}', "B"),
        (b'{"choices": [{"text": "B"}], "model": 7, "created": {}, "x": [null]}', "B"),
        (b'{"choices": [{"text": "B"}, 5], "usage": {"prompt_tokens": 1e400}}', "B"),
        (b'{"choices": [{"message": {"content": "B", "tool_calls": {}}}]}', "B"),
        (b'{"choices": [{"text": "B", "logprobs": {"token_logprobs": [-Infinity]}}]}', "B"),
    ],
)
def test_a_reply_that_was_paid_for_is_kept(body: bytes, text: str) -> None:
    reply = read(body)
    assert reply.error is None
    assert reply.text == text
    assert msgspec.json.decode(msgspec.json.encode(reply), type=Reply) == reply


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({"choices": []}, "malformed"),
        ({"choices": None}, "malformed"),
        ({}, "malformed"),
        ({"choices": "x"}, "malformed"),
        ({"choices": [{"message": "x"}]}, "malformed"),
        ([], "malformed"),
        (b"", "malformed"),
        (b'{"choices": [', "malformed"),
        (b"<html>hello</html>", "malformed"),
        (b'{"choices": [{"text": "\xff"}]}', "malformed"),
        ({"choices": [{}]}, "malformed"),
        ({"choices": [{"message": None}]}, "malformed"),
        ({"choices": [{"text": 42}]}, "malformed"),
        ({"choices": [None]}, "malformed"),
        (chat({"content": 42}), "malformed"),
        (chat({"content": {"text": "B"}}), "malformed"),
        (chat({"content": False}), "malformed"),
        (chat({"content": [{"type": "hologram", "text": "B"}]}), "malformed"),
        (chat({"content": [{"type": "text", "text": 42}]}), "malformed"),
        (chat({"content": [{"type": ["text"]}, "B", None]}), "malformed"),
        (b"[" * 100_000, "malformed"),
        (b"\xef\xbb\xbf<html>hello</html>", "malformed"),
        (chat({"content": None}, "content_filter"), "content_filter"),
        (chat({"content": ""}, "content_filter"), "content_filter"),
        ({"error": {"message": "busy", "code": 429}}, "rate_limit"),
        ({"error": {"message": "too long", "code": 400}}, "context_length"),
        ({"error": "upstream broke"}, "server"),
    ],
)
def test_what_cannot_be_used_is_a_fault(body: Any, kind: str) -> None:
    reply = read(body)
    assert isinstance(reply.error, Fault)
    assert reply.error.kind == kind
    assert "\n" not in reply.error.message
    assert reply.text == ""


def test_an_echoed_key_is_not_kept_in_a_fault() -> None:
    for body in (b"your key sk-MARKED is bad", {"error": {"message": "key sk-MARKED"}}):
        error = read(body).error
        assert error is not None
        assert "MARKED" not in error.message


def tops(*pairs: tuple[str, float]) -> list[dict[str, Any]]:
    return [{"token": token, "logprob": math.log(share)} for token, share in pairs]


def position(*pairs: tuple[str, float]) -> dict[str, Any]:
    return tops(pairs[0])[0] | {"top_logprobs": tops(*pairs)}


def shares(reply: Reply) -> dict[str, float]:
    assert reply.label_logprobs is not None
    return {label: round(math.exp(v), 6) for label, v in reply.label_logprobs.items()}


def test_labels_of_a_completion_in_openai_shape() -> None:
    top = {"B": math.log(0.4), " B": math.log(0.1), "Ａ": math.log(0.2), "The": math.log(0.1)}
    logprobs = {"tokens": ["The"], "token_logprobs": [math.log(0.1)], "top_logprobs": [top]}
    body = {"choices": [{"text": "The", "finish_reason": "length", "logprobs": logprobs}]}
    reply = read(body, labels="ABCD", form="completion")
    assert shares(reply) == {"B": 0.5, "A": 0.2}
    assert reply.outside_mass == pytest.approx(0.3)
    assert reply.text == "The"


def test_a_label_that_the_protocol_writes_with_a_space() -> None:
    def shares_of(*pairs: tuple[str, float]) -> dict[str, float]:
        body = {"choices": [{"text": "x", "logprobs": {"content": [position(*pairs)]}}]}
        return shares(read(body, labels="ABCD", form="completion", label_lead=" "))

    assert shares_of(("A", 0.6), (" B", 0.2), ("▁C", 0.1), ("x", 0.1)) == {"B": 0.2, "C": 0.1}
    # A server that shows no space at all cannot tell: every spelling counts.
    assert shares_of(("A", 0.6), ("B", 0.2)) == {"A": 0.6, "B": 0.2}


def test_a_server_that_shows_spaces_has_no_label_among_tokens_without() -> None:
    """The first look at 20 tokens may hold none with a space; the next look goes further down."""
    body = {
        "choices": [{"text": "x", "logprobs": {"content": [position(("A", 0.6), ("。", 0.4))]}}]
    }
    sampling = Sampling(form="completion", decode="labels", label_lead=" ")
    request = Request(Prompt(Prefix(), "?"), sampling, "", labels="ABCD")
    known = normalise(json.dumps(body).encode(), request, 0.0, Redactor([]), spaces=True)
    assert known.label_logprobs == {}
    unknown = normalise(json.dumps(body).encode(), request, 0.0, Redactor([]))
    assert shares(unknown) == {"A": 0.6}


def test_sampled_token_counts_where_the_list_leaves_it_out() -> None:
    logprobs = {
        "tokens": ["C"],
        "token_logprobs": [math.log(0.3)],
        "top_logprobs": [{"A": math.log(0.6)}],
    }
    body = {"choices": [{"text": "C", "logprobs": logprobs}]}
    assert shares(read(body, labels="ABCD", form="completion")) == {"A": 0.6, "C": 0.3}


def test_labels_of_a_completion_in_chat_shape() -> None:
    logprobs = {"content": [position(("D", 0.7), (" D", 0.1), ("E", 0.1))]}
    body = {"choices": [{"text": "D", "logprobs": logprobs}]}
    assert shares(read(body, labels="ABCD", form="completion")) == {"D": 0.8}


def test_labels_of_a_chat_are_at_the_first_label_outside_of_reasoning() -> None:
    content = [
        position(("<think>", 1.0)),
        position(("A", 0.9), ("B", 0.1)),
        position(("</think>", 1.0)),
        position(("**", 0.9), ("A", 0.1)),
        position(("C", 0.6), ("A", 0.3)),
        position(("D", 1.0)),
    ]
    body = chat({"content": "**C"})
    body["choices"][0]["logprobs"] = {"content": content}
    assert shares(read(body, labels="ABCD")) == {"C": 0.6, "A": 0.3}


def test_a_chat_without_any_label_gives_none() -> None:
    body = chat({"content": "The"})
    body["choices"][0]["logprobs"] = {"content": [position(("The", 0.9), ("A", 0.1))]}
    reply = read(body, labels="ABCD")
    assert reply.label_logprobs == {}
    assert reply.outside_mass is None


def test_a_prefilled_chat_is_read_at_its_first_token() -> None:
    body = chat({"content": "The"})
    body["choices"][0]["logprobs"] = {"content": [position(("The", 0.9), ("A", 0.1))]}
    reply = read(body, labels="ABCD", extra={"continue_final_message": True})
    assert shares(reply) == {"A": 0.1}


@pytest.mark.parametrize(
    "logprobs",
    [None, {}, [], {"content": []}, {"content": None}, {"content": [None, "x"]}, {"tokens": 3}],
)
def test_missing_logprobs_are_a_fault(logprobs: Any) -> None:
    body = chat({"content": "A"})
    body["choices"][0]["logprobs"] = logprobs
    error = read(body, labels="ABCD").error
    assert error is not None
    assert error.kind == "malformed"
    assert "log-probabilities" in error.message


def test_odd_logprobs_do_not_break_the_reading() -> None:
    logprobs = {
        "content": [{"token": "A", "logprob": None, "top_logprobs": [None, {"token": "A"}]}]
    }
    body = chat({"content": "A"})
    body["choices"][0]["logprobs"] = logprobs
    assert read(body, labels="ABCD").label_logprobs == {}


@pytest.mark.parametrize(
    ("value", "issue"),
    [
        (math.nan, "nan"),
        (None, "nan"),
        ("NaN", "nan"),
        (0.5, "positive"),
        (math.inf, "positive"),
        (0.0, ""),
        (1e-6, ""),
        (-math.inf, ""),
    ],
)
@pytest.mark.parametrize("form", ["chat", "completion"])
def test_log_probabilities_that_cannot_be_right_are_noted(
    value: Any, issue: str, form: Any
) -> None:
    listed = [{"token": "A", "logprob": value}, {"token": "B", "logprob": -1.0}]
    chat_shape = {"content": [listed[1] | {"top_logprobs": listed}]}
    text_shape = {
        "tokens": ["B"],
        "token_logprobs": [-1.0],
        "top_logprobs": [{"A": value, "B": -1}],
    }
    choice = {"message": {"content": "B"}, "logprobs": chat_shape}
    if form == "completion":
        choice = {"text": "B", "logprobs": text_shape}
    assert (
        read(json.dumps({"choices": [choice]}).encode(), labels="AB", form=form).logprob_issue
        == issue
    )
    free = read(json.dumps({"choices": [choice, choice]}).encode(), form=form)
    assert (free.logprob_issue, free.choices) == ("", 2)
