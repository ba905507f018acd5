"""The embedded model itself: real weights, real text, real log-probabilities."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from keju.models.llama.model import LlamaModel, LlamaSettings
from keju.types import (
    Continuation,
    ContinuationScore,
    Message,
    Prefix,
    Prompt,
    Reply,
    Request,
    Sampling,
)
from tests.support.local_model import real_weights

pytestmark = pytest.mark.slow

TEXT = Sampling(form="completion", max_tokens=8)
CHAT = Sampling(max_tokens=16)
LABELS = Sampling(form="completion", decode="labels")
SHARED = Prefix(
    lead="Which is larger? Answer with the letter.\n\n"
    + "".join(f"(A) {n} (B) {n + 3}\nAnswer: (B\n\n" for n in range(1, 6))
)
SECONDS = 120.0
LOOP = asyncio.Runner()
"""One loop for the whole file: a model keeps its connections from one request to the next."""


@pytest.fixture(scope="module", autouse=True)
def loop_is_closed() -> Iterator[None]:
    """The first fixture of the file, and so the last to end."""
    with LOOP:
        yield


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaModel]:
    loaded = load(tmp_path_factory.mktemp("cache"), LlamaSettings(n_ctx=512, slots=2))
    yield loaded
    LOOP.run(loaded.close())


def load(cache: Path, settings: LlamaSettings) -> LlamaModel:
    path = real_weights()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KEJU_CACHE_DIR", str(cache))
        loaded = LlamaModel("embedded", path, settings)
        LOOP.run(loaded.start())
    return loaded


def ask(model: LlamaModel, prompt: Prompt | str, sampling: Sampling, **more: Any) -> Reply:
    seconds = more.pop("timeout", SECONDS)
    shown = Prompt(Prefix(), prompt) if isinstance(prompt, str) else prompt
    return LOOP.run(model.ask(Request(shown, sampling, "hash", **more), timeout=seconds))


def test_text_is_continued(model: LlamaModel) -> None:
    reply = ask(model, "The capital of France is", TEXT)
    assert reply.error is None
    assert reply.text.startswith(" Paris")
    assert (reply.finish, reply.usage.input, reply.usage.output) == ("length", 5, 8)
    assert reply.model == "embedded"
    assert reply.seconds > 0
    assert ask(model, "The capital of France is", TEXT).text == reply.text


def test_a_chat_goes_through_the_template(model: LlamaModel) -> None:
    turns = (Message("system", "Answer in one word."),)
    reply = ask(model, Prompt(Prefix(turns), "What is the capital of France?"), CHAT)
    assert "Paris" in reply.text
    assert "<|im" not in reply.text
    assert reply.finish == "stop"
    assert reply.usage.input > 20


def test_a_cue_is_continued_and_not_repeated(model: LlamaModel) -> None:
    prompt = Prompt(Prefix(), "What is the capital of France?", cue="The capital of France is")
    reply = ask(model, prompt, CHAT)
    assert reply.text.startswith(" Paris")


def test_a_request_that_llama_cpp_refuses_is_that_samples_fault(model: LlamaModel) -> None:
    broken = msgspec.structs.replace(TEXT, extra={"grammar": "root ::= ("})
    reply = ask(model, "The capital of France is", broken)
    assert reply.error is not None
    assert reply.error.kind == "bad_request"
    assert "\n" not in reply.error.message


def test_stop_strings_and_limits(model: LlamaModel) -> None:
    counting = msgspec.structs.replace(TEXT, max_tokens=24, stop=(" 7",))
    reply = ask(model, "1 2 3 4", counting)
    assert (reply.text, reply.finish) == (" 5 6", "stop")


def test_seeds_decide_where_text_is_drawn(model: LlamaModel) -> None:
    drawn = Sampling(form="completion", temperature=1.0, max_tokens=12)
    first, again, other = (
        ask(model, "Once upon a time", drawn, seed=seed).text for seed in (7, 7, 8)
    )
    assert first == again
    assert first != other


def test_a_prompt_beyond_the_context_is_that_samples_fault(model: LlamaModel) -> None:
    for sampling, labels in ((TEXT, ""), (LABELS, "AB")):
        reply = ask(model, "x " * 900, sampling, labels=labels)
        assert reply.error is not None
        assert reply.error.kind == "context_length"
        assert "512" in reply.error.message
        assert "model_args.n_ctx" in reply.error.message


def test_the_context_in_force_is_recorded(tmp_path: Path) -> None:
    """llama.cpp rounds 288 tokens up: a prompt of some 400 is read, and the facts say why."""
    rounded = load(tmp_path, LlamaSettings(n_ctx=288))
    assert ask(rounded, "x " * 400, TEXT).error is None
    too_long = ask(rounded, "x " * 600, TEXT).error
    assert too_long is not None
    assert rounded.facts()["context"] == 512
    assert "512" in too_long.message


def test_all_labels_have_values_and_the_ids_are_told(model: LlamaModel) -> None:
    reply = ask(model, Prompt(SHARED, "(A) 40 (B) 43\nAnswer: ("), LABELS, labels="AB")
    assert reply.error is None
    assert reply.label_logprobs is not None
    assert set(reply.label_logprobs) == {"A", "B"}
    assert reply.label_logprobs["B"] > reply.label_logprobs["A"]
    assert reply.label_ids == {"A": [49], "B": [50]}
    assert reply.outside_mass is not None
    inside = sum(math.exp(value) for value in reply.label_logprobs.values())
    assert reply.outside_mass == pytest.approx(1 - inside, abs=1e-6)


def test_a_label_far_down_the_list_is_still_found(model: LlamaModel) -> None:
    reply = ask(model, "The capital of France is", LABELS, labels="ABCDEFGHIJ")
    assert reply.label_logprobs is not None
    assert set(reply.label_logprobs) == set("ABCDEFGHIJ")
    assert min(reply.label_logprobs.values()) < -9


def test_values_equal_those_of_the_whole_distribution(model: LlamaModel) -> None:
    text = Prompt(SHARED, "(A) 40 (B) 43\nAnswer: (")
    reply = ask(model, text, LABELS, labels="AB")
    fields = {"prompt": text.text, "max_tokens": 1, "logprobs": model.file.vocabulary}
    document = LOOP.run(model._call("/v1/completions", fields | {"temperature": 0}, SECONDS))
    (position,) = document["choices"][0]["logprobs"]["content"]
    exact = {top["id"]: top["logprob"] for top in position["top_logprobs"]}
    assert len(exact) == model.file.vocabulary
    assert sum(map(math.exp, exact.values())) == pytest.approx(1, abs=1e-3)
    assert reply.label_logprobs == pytest.approx({"A": exact[49], "B": exact[50]}, abs=1e-3)


def test_a_prompt_that_ends_with_a_space_asks_for_the_merged_token(model: LlamaModel) -> None:
    spaced = ask(model, "Yes or no? Answer: ", LABELS, labels="AB")
    assert spaced.label_ids == {"A": [330], "B": [389]}
    bare = ask(model, "Yes or no? Answer:", LABELS, labels="AB")
    assert bare.label_ids == {"A": [49], "B": [50]}
    assert bare.usage.input == spaced.usage.input


def test_labels_of_a_chat_stand_behind_the_cue(model: LlamaModel) -> None:
    chat = msgspec.structs.replace(LABELS, form="chat")
    reply = ask(model, Prompt(SHARED, "(A) 40 (B) 43", cue="Answer: ("), chat, labels="AB")
    assert reply.error is None
    assert reply.label_logprobs is not None
    assert set(reply.label_logprobs) == {"A", "B"}
    assert reply.outside_mass is not None
    assert reply.outside_mass < 0.5


def test_prefix_reuse_changes_the_work_and_not_the_values(
    model: LlamaModel, tmp_path: Path
) -> None:
    prompts = [Prompt(SHARED, f"(A) {n} (B) {n + 3}\nAnswer: (") for n in (20, 42)]
    kept = [ask(model, prompt, LABELS, labels="AB") for prompt in prompts]
    fresh_model = load(tmp_path, LlamaSettings(n_ctx=512, slots=1, prefix_reuse=False))
    fresh = [ask(fresh_model, prompt, LABELS, labels="AB") for prompt in prompts]
    LOOP.run(fresh_model.close())
    assert all(reply.usage.cached == 0 for reply in fresh)
    shares = [reply.usage.cached / reply.usage.input for reply in kept[1:]]
    assert min(shares) > 0.7
    for left, right in zip(kept, fresh, strict=True):
        assert left.label_logprobs == pytest.approx(right.label_logprobs, abs=1e-4)


def test_a_call_beyond_its_time_is_given_up(model: LlamaModel) -> None:
    long = Sampling(form="completion", max_tokens=400, extra={"ignore_eos": True})
    reply = ask(model, "Once upon a time", long, timeout=0.2)
    assert reply.error is not None
    assert reply.error.kind == "timeout"
    assert ask(model, "The capital of France is", TEXT).text.startswith(" Paris")


def test_a_cancelled_call_frees_its_slot(model: LlamaModel) -> None:
    long = Sampling(form="completion", max_tokens=400, extra={"ignore_eos": True})
    request = Request(Prompt(Prefix(), "Once upon a time"), long, "hash")

    async def session() -> Reply:
        running = [asyncio.create_task(model.ask(request, timeout=SECONDS)) for _ in range(2)]
        await asyncio.sleep(0.1)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        short = Request(Prompt(Prefix(), "The capital of France is"), TEXT, "hash")
        return await model.ask(short, timeout=SECONDS)

    assert LOOP.run(session()).text.startswith(" Paris")


class Held:
    """Holds llama.cpp, and tells which thread lets go of it."""

    def __init__(self, native: Any) -> None:
        self.native = native
        self.told: list[str] = []
        self.gone = threading.Event()

    def __del__(self) -> None:
        self.told.append(threading.current_thread().name)
        self.gone.set()


@pytest.mark.parametrize("given_up", [True, False])
def test_nobody_waits_for_the_end_of_a_reply_that_was_given_up(
    tmp_path: Path, given_up: bool
) -> None:
    """The end of llama.cpp waits for the batch in work, and no signal is heard meanwhile."""
    own = load(tmp_path, LlamaSettings(n_ctx=512))
    assert own._server is not None
    held = own._server.native = Held(own._server.native)
    told, gone = held.told, held.gone
    del held
    text = "Once upon a time there was a princess. " * 40
    request = Request(Prompt(Prefix(), text), TEXT, "hash")

    async def session() -> None:
        running = asyncio.create_task(own.ask(request, timeout=SECONDS))
        if given_up:
            await asyncio.sleep(0.05)
            running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await own.close()

    LOOP.run(session())
    assert gone.wait(SECONDS)
    assert told == ["keju-llama-release" if given_up else threading.current_thread().name]


def test_a_penalty_has_an_effect_under_either_name(model: LlamaModel) -> None:
    def said(**extra: float) -> str:
        sampling = msgspec.structs.replace(TEXT, max_tokens=24, extra=extra)
        return ask(model, "ha ha ha ha ha ha", sampling).text

    assert said(repetition_penalty=1.8) == said(repeat_penalty=1.8) != said()


def test_facts_name_what_determines_the_replies(model: LlamaModel) -> None:
    facts = model.facts()
    assert facts["sha256"].startswith("b179c952")
    assert (facts["quantisation"], facts["context"], facts["slots"]) == ("Q4_1", 512, 2)
    assert (facts["prefix_reuse"], facts["chat_template_hash"]) == (True, "872be49dbb638044")
    assert facts["xllamacpp"]
    assert msgspec.json.encode(facts)


def test_preflight_lets_it_speak(model: LlamaModel) -> None:
    for sampling in (CHAT, LABELS, msgspec.structs.replace(LABELS, form="chat")):
        LOOP.run(model.preflight(sampling))


def score(model: LlamaModel, *parts: Continuation) -> list[ContinuationScore]:
    sampling = Sampling(form="completion", decode="continuations")
    reply = ask(model, parts[0].context, sampling, continuations=parts)
    assert reply.error is None, reply.error
    assert reply.continuations is not None
    return list(reply.continuations)


def test_a_continuation_of_one_token_has_the_log_probability_of_the_label(
    model: LlamaModel,
) -> None:
    text = SHARED.lead + "(A) 7 (B) 2\nAnswer: ("
    labels = ask(model, text, LABELS, labels="AB").label_logprobs
    assert labels is not None
    scores = score(model, Continuation(text, "A"), Continuation(text, "B"))
    for label, value in zip("AB", scores, strict=True):
        assert value.logprob == pytest.approx(labels[label], abs=0.02)
        assert value.tokens == 1
    assert [value.greedy for value in scores] == [
        labels[label] == max(labels.values()) for label in "AB"
    ]


def test_the_parts_of_a_continuation_add_up(model: LlamaModel) -> None:
    context = "The capital of France is"
    whole, first, rest = score(
        model,
        Continuation(context, " Paris, of course"),
        Continuation(context, " Paris"),
        Continuation(context + " Paris", ", of course"),
    )
    assert whole.logprob == pytest.approx(first.logprob + rest.logprob, abs=0.05)
    assert whole.tokens == first.tokens + rest.tokens
    (rolling,) = score(model, Continuation("", "A cat sat on it.", rolling=True))
    (empty,) = score(model, Continuation("", "A cat sat on it."))
    assert rolling.logprob == pytest.approx(empty.logprob, abs=0.05)
    unlikely = score(model, Continuation(context, " zq"))[0]
    assert unlikely.logprob < first.logprob
