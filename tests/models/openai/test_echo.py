"""Log-probabilities of given texts from a completions route with ``echo``."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise

import pytest

from keju.errors import ConfigError, EndpointError
from keju.models.openai.client import OpenAIModel
from keju.types import Continuation, ContinuationScore, Prefix, Prompt, Reply, Request, Sampling
from tests.support.echo import is_likeliest, logprob, text_of, tokenize
from tests.support.endpoint import FaultyEndpoint
from tests.support.replies import Plan

SAMPLING = Sampling(form="completion", decode="continuations")
CITY = "The capital of Peru is"
PARTS = (
    Continuation(CITY, " Lima"),
    Continuation(CITY + " ", "La Paz, or not"),
    Continuation("Two words", " and more"),
)


def ask(
    plan: Plan, *requests: Sequence[Continuation], sampling: Sampling = SAMPLING
) -> list[Reply]:
    async def work(url: str) -> list[Reply]:
        model = OpenAIModel("m", api_url=url)
        await model.start()
        try:
            await model.preflight(sampling)
            prompt = Prompt(Prefix(), CITY)
            return [
                await model.ask(
                    Request(prompt, sampling, "h", continuations=tuple(parts)), timeout=10
                )
                for parts in requests
            ]
        finally:
            await model.close()

    with FaultyEndpoint(plan) as endpoint:
        return asyncio.run(work(endpoint.url))


def truth(context: str, text: str, *, start: bool) -> ContinuationScore:
    """The score by the rules of lm-eval, from the model of word pairs itself."""
    stripped = context.rstrip()
    count = len(tokenize(stripped, start))
    pieces = text_of(tokenize(context + text, start))
    pairs = list(pairwise(pieces))[count - 1 :]
    return ContinuationScore(
        sum(logprob(*pair) for pair in pairs),
        all(is_likeliest(*pair) for pair in pairs),
        len(pairs),
    )


@pytest.mark.parametrize("echo", ["texts", "tokens", "single"])
def test_each_kind_of_server_gives_the_sums_of_the_continuations(echo: str) -> None:
    (reply,) = ask(Plan(echo=echo), PARTS)  # type: ignore[arg-type]
    assert reply.error is None
    assert reply.continuations is not None
    for part, score in zip(PARTS, reply.continuations, strict=True):
        expected = truth(part.context, part.text, start=echo == "tokens")
        assert score.logprob == pytest.approx(expected.logprob)
        assert (score.greedy, score.tokens) == (expected.greedy, expected.tokens)
    assert reply.usage.input > 0
    assert reply.model == "m"


def test_one_request_serves_all_continuations_where_the_server_takes_several_prompts() -> None:
    for echo, count in (("texts", 1 + 1), ("single", 1 + len(PARTS))):
        with FaultyEndpoint(Plan(echo=echo)) as endpoint:  # type: ignore[arg-type]

            async def work(url: str) -> None:
                model = OpenAIModel("m", api_url=url)
                await model.start()
                await model.preflight(SAMPLING)
                await model.ask(
                    Request(Prompt(Prefix(), CITY), SAMPLING, "h", continuations=PARTS), timeout=10
                )
                await model.close()

            asyncio.run(work(endpoint.url))
            assert endpoint.stats.answered == count


def test_greedy_continuations_are_noticed() -> None:
    words = [word for word in map(" w{}".format, range(40)) if is_likeliest(" is", word)]
    others = [word for word in map(" w{}".format, range(40)) if not is_likeliest(" is", word)]
    (reply,) = ask(
        Plan(echo="tokens"), [Continuation(CITY, words[0]), Continuation(CITY, others[0])]
    )
    assert reply.continuations is not None
    assert [score.greedy for score in reply.continuations] == [True, False]


def test_long_contexts_lose_their_beginning_and_long_texts_get_windows() -> None:
    long = " ".join(f"w{number}" for number in range(40))
    plan = Plan(echo="tokens", models=("m",), context=12)
    parts = [Continuation(long, " end"), Continuation("", long, rolling=True)]
    requests = [[parts[0]], [parts[1]], [Continuation("", "w1 w2")]]
    truncated, rolling, empty = ask(plan, *requests)
    assert truncated.continuations is not None
    assert truncated.continuations[0] == ContinuationScore(
        logprob(" w39", " end"), is_likeliest(" w39", " end"), 1
    )
    assert rolling.continuations is not None
    pieces = ["<s>", *text_of(tokenize(long))]
    total = sum(logprob(*pair) for pair in pairwise(pieces))
    assert rolling.continuations[0].logprob == pytest.approx(total)
    assert rolling.continuations[0].tokens == len(pieces) - 1
    assert empty.continuations is not None
    expected = logprob("<s>", "w1") + logprob("w1", " w2")
    assert empty.continuations[0].logprob == pytest.approx(expected)


def test_texts_without_a_context_need_the_tokenizer_of_the_server() -> None:
    empty, rolling = ask(
        Plan(echo="texts"), [Continuation("", "Lima")], [Continuation("", "Lima", rolling=True)]
    )
    assert empty.error is not None
    assert "which token begins a text" in empty.error.message
    assert rolling.error is not None
    assert "no route /tokenize" in rolling.error.message


def test_a_server_that_ignores_echo_is_refused_with_the_reason() -> None:
    with pytest.raises(EndpointError, match="the server ignores 'echo'"):
        ask(Plan(), PARTS)
    with pytest.raises(EndpointError, match="gives no log-probabilities of given texts"):
        ask(Plan(logprobs="refused"), PARTS)


def test_a_chat_route_is_refused_before_any_request() -> None:
    with pytest.raises(ConfigError, match="a chat route gives no log-probabilities of given texts"):
        ask(Plan(echo="texts"), PARTS, sampling=Sampling(form="chat", decode="continuations"))


def test_a_wrong_key_or_model_is_named() -> None:
    with pytest.raises(EndpointError, match="key"):
        ask(Plan(echo="tokens", key="sk-right"), PARTS)
    with pytest.raises(EndpointError, match="other"):
        ask(Plan(echo="tokens", models=("other",)), PARTS)


def test_a_fault_of_the_endpoint_is_a_fault_of_the_attempt() -> None:
    plan = Plan(echo="tokens", max_requests=1)
    (reply,) = ask(plan, PARTS)
    assert reply.error is not None
    assert reply.error.kind in ("server", "connection", "rate_limit")
