"""Replies in words: the same as one at a time, whatever the batch looks like."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

pytest.importorskip("torch", reason="torch is not installed: make test-hf")
pytest.importorskip("transformers", reason="transformers is not installed: make test-hf")

import torch

from keju.errors import EndpointError
from keju.models.hf.generation import ReplyInProgress, RunningBatch, draw
from keju.models.hf.replica import DeviceReplica
from keju.types import Prefix, Prompt, Reply, Request, Sampling
from tests.hf.tiny import TEXT, Tiny, ask_all, model, text_requests
from tests.support.hf_writing import alone, written

pytestmark = pytest.mark.slow


def texts(replies: list[Reply]) -> list[str]:
    assert [reply.error for reply in replies if reply.error] == []
    return [reply.raw or reply.text for reply in replies]


@pytest.mark.parametrize("own_steps", [True, False])
@pytest.mark.parametrize("reuse", ["cache", "off"])
@pytest.mark.parametrize("batch_size", [1, 4, 16])
def test_greedy_replies_are_those_of_one_prompt_at_a_time(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch, own_steps: bool, reuse: str, batch_size: int
) -> None:
    monkeypatch.setattr("keju.models.hf.worker.supports_row_attention", lambda _: own_steps)
    requests = text_requests()
    replies = ask_all(model(tiny, prefix_reuse=reuse, batch_size=batch_size), requests)
    assert texts(replies) == [written(tiny, alone(tiny, r, 12)) for r in requests]
    assert {reply.finish for reply in replies} <= {"length", "stop"}
    assert all(reply.usage.output <= 12 for reply in replies)
    saved = [reply.usage.cached for reply in replies]
    assert any(saved) == (reuse == "cache")


def test_replies_of_different_length_make_room_for_others(tiny: Tiny) -> None:
    lengths = [1, 9, 2, 30, 3, 5]
    samplings = {n: msgspec.structs.replace(TEXT, max_tokens=n) for n in lengths}
    requests = [
        msgspec.structs.replace(request, sampling=samplings[lengths[place % len(lengths)]])
        for place, request in enumerate(text_requests(count=8))
    ]
    replies = ask_all(model(tiny, batch_size=3), requests)
    for request, text in zip(requests, texts(replies), strict=True):
        limit = request.sampling.max_tokens
        assert limit is not None
        assert text == written(tiny, alone(tiny, request, limit))


def test_a_stop_string_cuts_the_text(tiny: Tiny) -> None:
    request = text_requests(count=1)[0]
    full_text = written(tiny, alone(tiny, request, 12))
    stop = full_text[len(full_text) // 2 :][:2]
    sampling = msgspec.structs.replace(TEXT, stop=("never there", stop))
    (reply,) = ask_all(model(tiny), [msgspec.structs.replace(request, sampling=sampling)])
    assert reply.text == full_text[: full_text.find(stop)]
    assert reply.finish == "stop"
    assert reply.usage.output < 12 or full_text.endswith(stop)


def test_the_end_token_ends_a_reply_and_is_not_in_it(tiny: Tiny) -> None:
    request = text_requests(count=1)[0]
    tokens = alone(tiny, request, 12)
    ending_model = model(tiny)
    checkpoint = ending_model._checkpoint
    ending_model._checkpoint = type(checkpoint)(
        **vars(checkpoint) | {"eos": frozenset({tokens[3]})}
    )
    (reply,) = ask_all(ending_model, [request])
    end_position = tokens.index(tokens[3])
    assert (reply.raw or reply.text) == written(tiny, tokens[:end_position])
    assert reply.finish == "stop"
    assert reply.usage.output == end_position + 1


def test_a_reply_ends_where_the_context_ends(tiny: Tiny) -> None:
    request = text_requests(count=1)[0]
    length = len(tiny.tokenizer(request.prompt.text)["input_ids"])
    (reply,) = ask_all(model(tiny, max_length=length + 5), [request])
    assert reply.usage.output == 5
    assert reply.finish == "length"


def test_sampling_depends_on_the_seed_and_not_on_the_batch(tiny: Tiny) -> None:
    hot = msgspec.structs.replace(TEXT, temperature=1.0, top_p=0.95)

    def sampled(seed: int, batch_size: int) -> list[str]:
        requests = [msgspec.structs.replace(r, seed=seed) for r in text_requests(hot)]
        return texts(ask_all(model(tiny, batch_size=batch_size), requests))

    first_texts = sampled(1, 2)
    assert first_texts == sampled(1, 16)
    assert first_texts != sampled(2, 16)
    assert first_texts != texts(ask_all(model(tiny), text_requests()))


def test_draws_follow_the_distribution() -> None:
    logits = torch.tensor([[2.0, 1.0, 0.0, -1.0]]).repeat(2000, 1)
    chance = [(n + 0.5) / 2000 for n in range(2000)]
    for temperature in (0.5, 1.0, 2.0):
        tokens = draw(logits, Sampling(temperature=temperature), chance)
        shares = (logits[0] / temperature).softmax(-1).tolist()
        for token, share in enumerate(shares):
            assert tokens.count(token) / 2000 == pytest.approx(share, abs=2e-3)


@pytest.mark.parametrize(
    ("sampling", "allowed"),
    [
        (Sampling(temperature=0.0), {0}),
        (Sampling(temperature=None), {0}),
        (Sampling(temperature=1.0, top_p=0.5), {0}),
        (Sampling(temperature=1.0, top_p=0.7), {0, 1}),
        (Sampling(temperature=1.0, extra={"top_k": 3}), {0, 1, 2}),
        (Sampling(temperature=1.0, extra={"min_p": 0.2}), {0, 1}),
        (Sampling(temperature=1.0, top_p=1.0), {0, 1, 2, 3}),
    ],
)
def test_draws_keep_to_what_is_allowed(sampling: Sampling, allowed: set[int]) -> None:
    logits = torch.tensor([[2.0, 1.0, 0.0, -1.0]]).repeat(400, 1)
    assert set(draw(logits, sampling, [n / 400 for n in range(400)])) == allowed


class Cramped(DeviceReplica):
    """A device whose memory holds a running batch of a few rows only."""

    room = 2
    most_rows = 0

    def run_step(self, tokens: Any, places: Any, mask: Any, cache: Any) -> Any:
        type(self).most_rows = max(self.most_rows, len(tokens))
        if len(tokens) > self.room:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return super().run_step(tokens, places, mask, cache)


def test_out_of_memory_makes_the_batch_smaller(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = text_requests()
    expected = texts(ask_all(model(tiny), requests))
    monkeypatch.setattr("keju.models.hf.worker.DeviceReplica", Cramped)
    assert texts(ask_all(model(tiny, batch_size=8), requests)) == expected
    assert Cramped.most_rows == 8


def test_memory_that_runs_out_while_rows_are_dropped_is_recovered_from(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = text_requests()
    expected = texts(ask_all(model(tiny), requests))
    keep_rows, calls = RunningBatch.keep, []

    def keep(batch: RunningBatch, rows: Sequence[ReplyInProgress]) -> None:
        calls.append(len(rows))
        if len(calls) == 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        keep_rows(batch, rows)

    monkeypatch.setattr(RunningBatch, "keep", keep)
    assert texts(ask_all(model(tiny, batch_size=4), requests)) == expected
    assert len(calls) > 2


class Broken(DeviceReplica):
    """A device that fails for good once it has taken some steps."""

    steps = 0

    def run_step(self, tokens: Any, places: Any, mask: Any, cache: Any) -> Any:
        type(self).steps += 1
        if self.steps > 12:
            raise RuntimeError("CUDA error: an illegal\nmemory access")
        return super().run_step(tokens, places, mask, cache)


def test_a_device_that_breaks_down_leaves_nobody_waiting(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those that were taken up while the batch was running."""
    monkeypatch.setattr("keju.models.hf.worker.DeviceReplica", Broken)
    monkeypatch.setattr("keju.models.hf.worker.supports_row_attention", lambda _: False)
    writer = model(tiny, batch_size=2)

    async def ask() -> list[Reply | BaseException]:
        await writer.start()
        try:
            asking = [writer.ask(request, timeout=60) for request in text_requests()]
            outcomes: list[Reply | BaseException] = await asyncio.gather(
                *asking, return_exceptions=True
            )
            return outcomes
        finally:
            await writer.close()

    broken = [outcome for outcome in asyncio.run(ask()) if not isinstance(outcome, Reply)]
    assert broken
    for error in broken:
        assert isinstance(error, EndpointError)
        assert "broke down on cpu: CUDA error: an illegal memory access" in str(error)


def test_a_reply_that_fits_nowhere_is_a_fault(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keju.models.hf.worker.DeviceReplica", Cramped)
    monkeypatch.setattr("keju.models.hf.worker.supports_row_attention", lambda _: False)
    monkeypatch.setattr(Cramped, "room", 0)
    replies = ask_all(model(tiny, batch_size=4), text_requests(count=1))
    kinds = [reply.error.kind for reply in replies if reply.error is not None]
    assert kinds == ["bad_request"] * 3


def test_a_reply_over_time_is_a_timeout(tiny: Tiny) -> None:
    replies = ask_all(model(tiny), text_requests(count=1), timeout=0.0)
    assert [r.error.kind for r in replies if r.error is not None] == ["timeout"] * 3


def test_reasoning_is_kept_apart(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "keju.models.hf.generation.TextGenerator._decode",
        lambda _self, _tokens: "<think>hm</think> B",
    )
    (reply,) = ask_all(model(tiny), [Request(Prompt(Prefix(), "Q"), TEXT, "h")])
    assert (reply.reasoning, reply.text) == ("hm", "B")
    assert reply.raw == "<think>hm</think> B"
