"""Choosing among labels, from the request to the reply."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import msgspec
import pytest

pytest.importorskip("torch", reason="torch is not installed: make test-hf")
pytest.importorskip("transformers", reason="transformers is not installed: make test-hf")

import torch

from keju.errors import EndpointError
from keju.models.hf.replica import DeviceReplica
from keju.types import Prefix, Prompt, Reply, Request
from tests.hf.tiny import CHAT, CHAT_SHOTS, LABELS, Tiny, ask_all, label_requests, model

pytestmark = pytest.mark.slow


def values(replies: list[Reply]) -> list[dict[str, float]]:
    label_values = []
    for reply in replies:
        assert reply.error is None, reply.error
        assert reply.label_logprobs is not None
        label_values.append(reply.label_logprobs)
    return label_values


def truth(tiny: Tiny, request: Request) -> tuple[dict[str, float], float]:
    """Straight from the network: one prompt at a time, log-softmax over everything."""
    text = request.prompt.text
    tokens = tiny.tokenizer(text)["input_ids"]
    with torch.no_grad():
        logs = tiny.net(torch.tensor([tokens])).logits[0, -1].log_softmax(-1)
    shares = {}
    for label in request.labels:
        written = tiny.tokenizer(text + label)["input_ids"]
        assert written[:-1] == tokens
        shares[label] = float(logs[written[-1]])
    return shares, 1 - sum(map(math.exp, shares.values()))


@pytest.mark.parametrize("form", ["tree", "cache", "off"])
def test_every_form_gives_what_the_network_gives(tiny: Tiny, form: str) -> None:
    requests = label_requests()
    replies = ask_all(model(tiny, prefix_reuse=form, batch_size=4), requests)
    for request, reply, label_values in zip(requests, replies, values(replies), strict=True):
        expected, outside = truth(tiny, request)
        assert label_values == pytest.approx(expected, abs=1e-4)
        assert reply.outside_mass == pytest.approx(outside, abs=1e-4)
        assert reply.text == max(expected, key=lambda label: expected[label])
        assert reply.finish == "stop"


def test_usage_tells_what_was_not_computed_again(tiny: Tiny) -> None:
    requests = label_requests()[:7]
    length = len(tiny.tokenizer(requests[0].prompt.prefix.lead)["input_ids"])
    for form, least_computed in (("tree", length - 2), ("cache", length - 2), ("off", 0)):
        replies = ask_all(model(tiny, prefix_reuse=form), requests)
        counts = [reply.usage.cached for reply in replies]
        assert sorted(counts)[0] == 0, "somebody pays for the prefix"
        assert all(least_computed <= count <= length for count in sorted(counts)[1:])
        inputs = [reply.usage.input for reply in replies]
        assert inputs == [len(tiny.tokenizer(r.prompt.text)["input_ids"]) for r in requests]


def test_label_ids_are_told(tiny: Tiny) -> None:
    (reply,) = ask_all(model(tiny), label_requests()[:1])
    assert reply.label_ids is not None
    assert list(reply.label_ids) == list("ABCD")
    assert tiny.tokenizer.decode(reply.label_ids["C"]) == "C"


def test_chat_prompts_are_read_after_the_cue(tiny: Tiny) -> None:
    sampling = msgspec.structs.replace(CHAT, decode="labels")
    request = Request(Prompt(CHAT_SHOTS, "red or blue?", "It is ="), sampling, "h", "AB")
    (reply,) = ask_all(model(tiny), [request])
    text = tiny.tokenizer.apply_chat_template(
        [{"role": m.role, "content": m.content} for m in request.prompt.messages],
        tokenize=False,
        add_generation_prompt=True,
    )
    tokens = tiny.tokenizer(text + "It is =", add_special_tokens=False)["input_ids"]
    with torch.no_grad():
        logs = tiny.net(torch.tensor([tokens])).logits[0, -1].log_softmax(-1)
    (label_values,) = values([reply])
    expected = {label: float(logs[tiny.tokenizer.convert_tokens_to_ids(label)]) for label in "AB"}
    assert label_values == pytest.approx(expected, abs=1e-4)


class Small(DeviceReplica):
    """A device that holds only so many questions at a time, once the run has begun."""

    room = 3
    tried: ClassVar[list[int]] = []
    armed = False

    def _check(self, rows: Sequence[Any]) -> None:
        if self.armed:
            self.tried.append(len(rows))
            if len(rows) > self.room:
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    def run_plain(self, rows: Any) -> Any:
        self._check(rows)
        return super().run_plain(rows)

    def continue_rows(self, prefix: Any, length: int, rows: Any, **options: Any) -> Any:
        self._check(rows)
        return super().continue_rows(prefix, length, rows, **options)

    def run_tree(self, branches: Any) -> Any:
        self._check([question for branch in branches for question in branch.questions])
        return super().run_tree(branches)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> type[Small]:
    """Let every model of the test run on a small device."""

    def choose(_replica: Small, wanted_form: str) -> str:
        return "cache" if wanted_form == "auto" else wanted_form

    def arm(replica: Small) -> bool:
        replica.armed = True
        return False

    monkeypatch.setattr("keju.models.hf.worker.DeviceReplica", Small)
    monkeypatch.setattr("keju.models.hf.worker.best_form", choose)
    monkeypatch.setattr("keju.models.hf.worker.supports_row_attention", arm)
    monkeypatch.setattr(Small, "tried", [])
    return Small


@pytest.mark.parametrize("form", ["tree", "cache", "off"])
@pytest.mark.parametrize("room", [3, 1])
def test_out_of_memory_halves_the_batch_and_goes_on(
    tiny: Tiny, small: type[Small], monkeypatch: pytest.MonkeyPatch, form: str, room: int
) -> None:
    requests = label_requests()
    monkeypatch.setattr(small, "room", 1000)
    expected = values(ask_all(model(tiny, prefix_reuse=form), requests))
    monkeypatch.setattr(small, "room", room)
    replies = ask_all(model(tiny, prefix_reuse=form), requests)
    for label_values, expected_values in zip(values(replies), expected, strict=True):
        assert label_values == pytest.approx(expected_values, abs=1e-4)
    assert max(small.tried) > room, "the test must run out of memory"
    assert small.tried[-1] <= room


def test_a_question_that_fits_nowhere_is_a_fault(
    tiny: Tiny, small: type[Small], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(small, "room", 0)
    replies = ask_all(model(tiny), label_requests()[:3])
    assert [reply.error.kind for reply in replies if reply.error] == ["bad_request"] * 3


def test_other_errors_are_not_swallowed(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("a kernel is broken")

    monkeypatch.setattr("keju.models.hf.scoring.LabelScorer._run_cached", broken)
    with pytest.raises(EndpointError, match="a kernel is broken"):
        ask_all(model(tiny), label_requests()[:3])


def test_a_prompt_too_long_is_a_fault_beside_good_replies(tiny: Tiny) -> None:
    long = Request(Prompt(Prefix(), "word " * 600), LABELS, "h", "AB")
    good, bad = ask_all(model(tiny), [label_requests()[0], long])
    assert good.error is None
    assert bad.error is not None
    assert bad.error.kind == "context_length"
