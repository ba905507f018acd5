"""Bodies put together from parts are the bodies one would write out."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keju.errors import ConfigError
from keju.models.openai.wire import KEPT_PREFIXES, BodyBuilder, check_extra
from keju.types import Message, Prefix, Prompt, Request, Sampling
from tests.models.helpers import request_of

texts = st.text(st.characters(codec="utf-8"), max_size=60) | st.sampled_from(
    ['"', "\\", "\\u0041", "\n\r\t", "\x00\x1f", "\u2028", "答案：Ａ", "😀", "\\\\n", '{"a": 1}']
)
samplings = st.builds(
    Sampling,
    form=st.sampled_from(["chat", "completion"]),
    temperature=st.none() | st.sampled_from([0.0, 0.7]),
    top_p=st.none() | st.just(0.9),
    max_tokens=st.none() | st.integers(1, 4096),
    stop=st.lists(texts.filter(bool), max_size=2).map(tuple),
    seed=st.none() | st.integers(0, 99),
    extra=st.dictionaries(st.sampled_from(["top_k", "seed", "metadata"]), st.integers(0, 9)),
)


def plain_body(request: Request) -> dict[str, Any]:
    """The body as one would write it without any cleverness."""
    sampling = request.sampling
    body: dict[str, Any] = {"model": "m"}
    for name in ("temperature", "top_p", "max_tokens", "seed"):
        if getattr(sampling, name) is not None:
            body[name] = getattr(sampling, name)
    if sampling.stop:
        body["stop"] = list(sampling.stop)
    body |= sampling.extra
    if request.seed is not None:
        body["seed"] = request.seed
    if sampling.form == "completion":
        return body | {"prompt": request.prompt.text}
    turns = [{"role": m.role, "content": m.content} for m in request.prompt.messages]
    return body | {"messages": turns}


def no_name_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)


@given(
    st.lists(st.tuples(st.sampled_from(["system", "user", "assistant"]), texts), max_size=3),
    texts,
    st.lists(texts, min_size=1, max_size=3),
    samplings,
    st.none() | st.integers(0, 99),
)
def test_body_equals_the_plain_one(
    turns: list[tuple[Any, str]],
    lead: str,
    tails: list[str],
    sampling: Sampling,
    seed: int | None,
) -> None:
    builder = BodyBuilder("m")
    prefix = Prefix(tuple(Message(role, content) for role, content in turns), lead)
    for tail in tails:
        request = Request(Prompt(prefix, tail), sampling, "h", "", seed)
        body = json.loads(builder.build(request), object_pairs_hook=no_name_twice)
        assert body == plain_body(request)


def test_prefixes_and_samplings_are_told_apart() -> None:
    builder = BodyBuilder("m")
    bodies = set()
    for lead in ("one ", "two "):
        for temperature in (0.0, 1.0):
            sampling = Sampling(temperature=temperature)
            request = request_of(prefix=Prefix((), lead), sampling=sampling)
            assert json.loads(builder.build(request)) == plain_body(request)
            bodies.add(builder.build(request))
    assert len(bodies) == 4


def test_memory_stays_flat_with_a_prefix_per_question() -> None:
    builder = BodyBuilder("m")
    for number in range(3 * KEPT_PREFIXES):
        request = request_of(prefix=Prefix((), f"lead {number} "))
        assert json.loads(builder.build(request))["messages"][0]["content"].startswith(
            f"lead {number} "
        )
    assert len(builder._heads) == KEPT_PREFIXES


def test_cue_is_sent_only_where_the_server_is_told_to_continue_it() -> None:
    builder = BodyBuilder("m")
    assert json.loads(builder.build(request_of(cue="答案：")))["messages"][-1]["role"] == "user"
    extra = {"continue_final_message": True, "add_generation_prompt": False}
    body = json.loads(builder.build(request_of(cue="答案：", sampling=Sampling(extra=extra))))
    assert body["messages"][-1] == {"role": "assistant", "content": "答案："}
    assert body["continue_final_message"] is True
    assert body["add_generation_prompt"] is False


@pytest.mark.parametrize(
    ("sampling", "fields"),
    [
        (Sampling(form="completion", decode="labels"), {"max_tokens": 1, "logprobs": 20}),
        (
            Sampling(decode="labels", max_tokens=2048),
            {"max_tokens": 8, "logprobs": True, "top_logprobs": 20},
        ),
        (
            Sampling(decode="labels", extra={"continue_final_message": True}),
            {"max_tokens": 1, "logprobs": True, "top_logprobs": 20, "continue_final_message": True},
        ),
        (
            Sampling(max_tokens=10, extra={"max_completion_tokens": 99}),
            {"max_completion_tokens": 99},
        ),
        (Sampling(extra={"temperature": None}), {"temperature": None}),
    ],
)
def test_fields(sampling: Sampling, fields: dict[str, Any]) -> None:
    body = json.loads(BodyBuilder("m").build(request_of(sampling=sampling)))
    del body["model"], body["messages" if sampling.form == "chat" else "prompt"]
    assert body == {"temperature": 0.0} | fields


def test_a_changed_number_of_logprobs_reaches_the_next_body() -> None:
    builder = BodyBuilder("m")
    request = request_of(sampling=Sampling(decode="labels"))
    builder.build(request)
    builder.top_logprobs = 5
    assert msgspec.json.decode(builder.build(request))["top_logprobs"] == 5


def test_fields_that_keju_sets_are_refused() -> None:
    with pytest.raises(ConfigError, match="extra_body cannot set 'messages'"):
        check_extra(Sampling(extra={"messages": []}))
