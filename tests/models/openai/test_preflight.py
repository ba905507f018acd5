"""The preflight names what is wrong in one line, and takes what an endpoint can do."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from keju.config.address import PATHS
from keju.engine.channel import Channel, ChannelLimits
from keju.engine.endpoint_health import PREFLIGHT_ATTEMPTS
from keju.errors import ConfigError, EndpointError
from keju.models.openai.client import OpenAIModel
from keju.types import Sampling
from tests.models.helpers import KEY, ask, request_of, use
from tests.support.endpoint import FaultyEndpoint
from tests.support.replies import Plan, Raw

LABELS = Sampling(decode="labels")


def fly(
    url: str, sampling: Sampling | None = None, give_up_after: float = 9, **settings: Any
) -> OpenAIModel:
    model = OpenAIModel("m", api_url=url, **({"api_key": KEY} | settings))
    limits = ChannelLimits(
        concurrency=1,
        timeout=9,
        attempts=1,
        give_up_after=give_up_after,
        retry_interval=1e-6,
    )
    channel = Channel(model, limits)

    async def open_channel() -> None:
        try:
            await channel.open([sampling or Sampling()])
        finally:
            await channel.close()

    asyncio.run(open_channel())
    return model


def refusal(plan: Plan, sampling: Sampling | None = None, **settings: Any) -> str:
    with FaultyEndpoint(plan) as endpoint, pytest.raises(EndpointError) as caught:
        fly(endpoint.url, sampling, **settings)
    message = str(caught.value)
    assert "\n" not in message
    assert KEY not in message
    message, _, sent = message.replace(endpoint.url, "URL").rpartition("; sent: ")
    form = sampling.form if sampling is not None else "chat"
    assert sent == f"POST URL{PATHS[form]}, model 'm'"
    return message


def test_refused_connection() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/v1"
    with pytest.raises(EndpointError) as caught:
        fly(url)
    assert str(caught.value) == (
        f"cannot connect to {url} (connection refused): is the server running? check --api-url"
        f"; sent: POST {url}/chat/completions, model 'm'"
    )


def test_wrong_key() -> None:
    assert refusal(Plan(key="another")).startswith(
        "URL refused the key (401): set OPENAI_API_KEY or --api-key; Incorrect API key provided: "
        "[redacted]."
    )


def test_lacking_key() -> None:
    message = refusal(Plan(key="another"), api_key=None)
    assert message == "URL wants a key (401): set OPENAI_API_KEY or --api-key"


def test_wrong_model() -> None:
    assert refusal(Plan(models=("qwen-a", "mm"))) == (
        "model 'm' is not at URL (did you mean 'mm'?); it offers: qwen-a, mm"
    )


def test_wrong_path() -> None:
    with FaultyEndpoint() as endpoint, pytest.raises(EndpointError) as caught:
        fly(f"{endpoint.origin}/v2")
    assert "check --api-url and --model" in str(caught.value)


def test_redirect_is_not_followed() -> None:
    with FaultyEndpoint() as elsewhere:
        message = refusal(Plan(redirect=f"{elsewhere.url}/chat/completions"))
        assert "redirects to" in message
        assert elsewhere.stats.requests == 0


@pytest.mark.parametrize("fault", ["500", "503", "drop", "partial"])
def test_an_endpoint_that_is_not_ready_is_tried_a_few_times(fault: str) -> None:
    plan = Plan(faults={fault: 1.0})
    with FaultyEndpoint(plan) as endpoint, pytest.raises(EndpointError, match="not ready after 6"):
        fly(endpoint.url)
    assert endpoint.stats.requests == PREFLIGHT_ATTEMPTS


@pytest.mark.parametrize("asked", [None, "0", "1000000000", "nan"])
def test_a_rate_limit_at_the_start_is_waited_for(asked: str | None) -> None:
    plan = Plan(first_faults=("429",) * (PREFLIGHT_ATTEMPTS + 4), retry_after=asked)
    with FaultyEndpoint(plan) as endpoint:
        fly(endpoint.url)
    assert endpoint.stats.faults == {"429": PREFLIGHT_ATTEMPTS + 4}


def test_a_rate_limit_at_the_start_is_waited_for_as_long_as_the_user_allows() -> None:
    for asked, seconds, message in (
        (None, 0.1, "limits requests .* and accepted none within 0.1 s"),
        ("1", 1.5, "limits requests .* and accepted none within 1.5 s"),
        ("31", 0.1, "asks to wait 31 s"),
    ):
        plan = Plan(faults={"429": 1.0}, retry_after=asked)
        with FaultyEndpoint(plan) as endpoint, pytest.raises(EndpointError, match=message):
            fly(endpoint.url, give_up_after=seconds)


def test_a_passing_fault_does_not_matter() -> None:
    plan = Plan(first_faults=("503", "drop"), retry_after="0")
    with FaultyEndpoint(plan) as endpoint:
        fly(endpoint.url)
        assert endpoint.stats.faults == {"503": 1, "drop": 1}
        assert endpoint.stats.answered == 1


@pytest.mark.parametrize("fault", ["html", "empty", "malformed"])
def test_what_is_no_model_endpoint(fault: str) -> None:
    message = refusal(Plan(faults={fault: 1.0}))
    assert message.startswith("URL is no OpenAI-compatible endpoint (the reply")
    assert message.endswith("check --api-url")


def test_what_is_no_model_endpoint_is_asked_as_often_as_any() -> None:
    with FaultyEndpoint(Plan(faults={"html": 1.0})) as endpoint, pytest.raises(EndpointError):
        fly(endpoint.url)
    assert endpoint.stats.requests == PREFLIGHT_ATTEMPTS
    with FaultyEndpoint(Plan(first_faults=("html",) * (PREFLIGHT_ATTEMPTS - 1))) as endpoint:
        fly(endpoint.url)
        assert endpoint.stats.requests == PREFLIGHT_ATTEMPTS


def test_silence_is_named() -> None:
    message = refusal(Plan(faults={"stall": 1.0}), preflight_timeout=0.05)
    assert "no reply within 0.05 s" in message


def test_reasoning_models_that_refuse_one_token_pass() -> None:
    with FaultyEndpoint(Plan(min_max_tokens=16)) as endpoint:
        fly(endpoint.url)
        assert endpoint.last_body["max_tokens"] == 16


def test_a_refused_parameter_is_named() -> None:
    message = refusal(Plan(min_max_tokens=17))
    assert message == "URL refuses the request (400: max_tokens must be at least 17, got 16)"


def test_models_that_call_the_limit_otherwise_get_their_name() -> None:
    plan = Plan(answers="ok", unsupported=("max_tokens",))
    sampling = Sampling(max_tokens=100)
    with FaultyEndpoint(plan) as endpoint:
        model = fly(endpoint.url, sampling)
        assert ask(model, request_of(sampling=sampling)).text == "ok"
        assert endpoint.last_body["max_completion_tokens"] == 100
        assert "max_tokens" not in endpoint.last_body
    assert model.facts()["limit_field"] == "max_completion_tokens"


@pytest.mark.parametrize("form", ["chat", "completion"])
@pytest.mark.parametrize("shape", ["openai", "llamacpp"])
def test_labels(form: Any, shape: Any) -> None:
    sampling = Sampling(form=form, decode="labels")
    with FaultyEndpoint(Plan(logprobs=shape)) as endpoint:
        model = fly(endpoint.url, sampling)
        reply = ask(model, request_of(sampling=sampling, labels="ABCD"))
    assert reply.label_logprobs is not None
    assert sorted(reply.label_logprobs) == list("ABCD")
    assert model.facts()["top_logprobs"] == 20


@pytest.mark.parametrize("form", ["chat", "completion"])
def test_fewer_log_probabilities_are_taken_where_20_are_refused(form: Any) -> None:
    sampling = Sampling(form=form, decode="labels")
    with FaultyEndpoint(Plan(max_logprobs=5)) as endpoint:
        model = fly(endpoint.url, sampling)
        assert ask(model, request_of(sampling=sampling, labels="ABCD")).label_logprobs
    assert model.facts()["top_logprobs"] == 5


@pytest.mark.parametrize("logprobs", ["missing", "refused"])
def test_lacking_log_probabilities_are_found_out(logprobs: Any) -> None:
    assert refusal(Plan(logprobs=logprobs), LABELS).startswith("URL gives no log-probabilities: ")


def test_one_reply_without_log_probabilities_is_no_endpoint_without_them() -> None:
    body = b'{"model": "m", "choices": [{"index": 0, "message": {"content": "A"}}]}'
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    once = Raw(data=head % len(body) + body)
    with FaultyEndpoint(Plan(raw=lambda _, attempt: once if attempt < 2 else None)) as endpoint:
        fly(endpoint.url, LABELS)
        assert endpoint.stats.requests == 3


def test_facts() -> None:
    with FaultyEndpoint(Plan(model_name="m-2025")) as endpoint:
        model = fly(endpoint.url + "?key=hidden1")
        use(model, lambda m: m.preflight(Sampling(form="completion")))
    assert model.facts() == {
        "name": "m",
        "endpoint": endpoint.url,
        "server": "keju-test",
        "reported_model": "m-2025",
        "routes": ["chat", "completion"],
        "has_key": True,
    }


def test_fields_of_keju_are_refused_before_any_call() -> None:
    with FaultyEndpoint() as endpoint:
        with pytest.raises(ConfigError, match="extra_body"):
            fly(endpoint.url, Sampling(extra={"stream": True}))
        assert endpoint.stats.requests == 0
