"""One cheap call that shows whether the address, the key, the model and the settings are right."""

from __future__ import annotations

from typing import Any

import msgspec

from keju.errors import EndpointError, Notice, nearest
from keju.models.base import NotReady
from keju.models.faults import fault_text
from keju.models.labels import shows_spaces
from keju.models.openai.client import HttpModel, OpenAIModel
from keju.models.openai.wire import FEWEST_LABELS, document_of
from keju.models.transport import HttpReply, TransportError
from keju.types import Fault, Prefix, Prompt, Request, Sampling

SMALL, LARGER = 1, 16
"""Limits of the reply: some reasoning models refuse a single token."""
TRANSIENT = ("rate_limit", "server", "timeout", "connection", "malformed")
LISTED_MODELS = 8
PROMPT = Prompt(Prefix(), "Answer with one letter, A or B.", cue="Answer:")
LABELS = "AB"
ANOTHER_ROUTE = {"chat": "completions", "completion": "chat"}


async def preflight(model: OpenAIModel, sampling: Sampling) -> dict[str, Any]:
    """Check one exam's sampling; return facts for the manifest, or raise EndpointError.

    A limit or a number of log-probabilities that the endpoint refuses is replaced by one that
    it takes, and the run then uses that one as well. Raises NotReady for what may pass.
    """
    bodies, labels = model.bodies, sampling.decode == "labels"
    trial = sampling if labels else _limited(sampling, SMALL)
    while True:
        reply = await _attempt(model, Request(PROMPT, trial, hash="", labels=LABELS))
        if isinstance(reply, HttpReply):
            break
        fault = reply
        if fault.kind in TRANSIENT:
            raise NotReady(model.address.shown, fault)
        if fault.kind != "bad_request":
            raise await _explanation(model, sampling, fault)
        # What the endpoint may have refused is asked for in another way, one thing at a time.
        if "max_completion_tokens" in fault.message and bodies.limit_field == "max_tokens":
            bodies.limit_field = "max_completion_tokens"
        elif labels and bodies.top_logprobs > FEWEST_LABELS:
            bodies.top_logprobs = FEWEST_LABELS
        elif not labels and trial.max_tokens == SMALL:
            trial = _limited(trial, LARGER)
        else:
            raise await _explanation(model, sampling, fault)
    document = document_of(reply.body)
    if labels:
        told = [choice.get("logprobs") for choice in document["choices"]]
        model.spaces = model.spaces or any(shows_spaces(each) for each in told)
    facts = {
        "server": reply.header("server"),
        "reported_model": document.get("model"),
        "system_fingerprint": document.get("system_fingerprint"),
        "top_logprobs": bodies.top_logprobs if labels else None,
        "limit_field": bodies.limit_field if bodies.limit_field != "max_tokens" else None,
    }
    return {
        name: model.redact(value) if isinstance(value, str) else value
        for name, value in facts.items()
        if value
    }


async def _attempt(model: OpenAIModel, request: Request) -> HttpReply | Fault:
    try:
        reply = await model.send(request, model.preflight_timeout)
    except TransportError as error:
        message = model.redact(error.message)
        if error.reached:
            return Fault(error.kind, message)
        code = "endpoint_distrusted" if error.distrusted else "endpoint_unreachable"
        raise endpoint_error(code, model, message) from None
    # Its shape is judged as if free text had been asked for; only then are labels looked for.
    sampling = msgspec.structs.replace(request.sampling, decode="generate")
    as_text = msgspec.structs.replace(request, sampling=sampling)
    fault = model.read(reply, as_text).error
    lacking = model.read(reply, request).error
    if fault is None and lacking is not None:  # by chance, or always
        lasting = endpoint_error("endpoint_no_logprobs", model, Notice("logprobs_left_out"))
        raise NotReady(model.address.shown, lacking, lasting)
    return reply if fault is None else fault


def endpoint_error(code: str, endpoint: HttpModel, problem: Any, **values: Any) -> EndpointError:
    """What is wrong with an endpoint; the settings are those of a candidate.

    Whoever asks for somebody else, such as a judge, puts the names of its own settings in place
    of `key`, `address` and `address_and_model`.
    """
    return EndpointError(
        code,
        url=endpoint.address.shown,
        problem=problem,
        key=Notice("key_setting", {"variable": endpoint.provider.key_variable}),
        address="--api-url",
        address_and_model=Notice("address_and_model_settings"),
        **values,
    )


async def _explanation(model: OpenAIModel, sampling: Sampling, fault: Fault) -> EndpointError:
    """Say what to change, for a failure that will not pass."""
    if fault.kind == "auth" and fault.status in (401, 403):
        code = "endpoint_refused_key" if model.has_key else "endpoint_wants_key"
        return endpoint_error(code, model, fault.message, status=fault.status)
    if fault.kind == "not_found" and fault.status < 400:
        return endpoint_error("endpoint_elsewhere", model, fault.message)
    if fault.kind != "not_found":
        if sampling.decode == "labels" and "logprob" in fault.message.lower():
            return endpoint_error("endpoint_no_logprobs", model, fault.message)
        return endpoint_error("endpoint_refused_request", model, fault_text(fault))
    # The list of models tells a missing model from a missing route.
    name = model.name
    try:
        reply = await model.transport.get(model.address.models, model.preflight_timeout)
        listed = document_of(reply.body)["data"]
        offered = [entry["id"] for entry in listed if isinstance(entry["id"], str)]
    except (TransportError, ValueError, LookupError, TypeError, RecursionError):
        offered = []  # the endpoint does not tell
    if offered and name not in offered:
        near = nearest(name, offered)
        return endpoint_error(
            "endpoint_without_model",
            model,
            "",
            model=name,
            hint=Notice("did_you_mean", {"name": near}) if near else "",
            names=", ".join(offered[:LISTED_MODELS]),
            more=Notice("in_all", {"n": len(offered)}) if len(offered) > LISTED_MODELS else "",
        )
    if offered:
        other = ANOTHER_ROUTE[sampling.form]
        return endpoint_error("endpoint_refused_route", model, fault_text(fault), other=other)
    return endpoint_error("endpoint_without_model_or_route", model, fault_text(fault), model=name)


def _limited(sampling: Sampling, tokens: int) -> Sampling:
    """`sampling` with a reply of at most `tokens`, however the user named the limit."""
    names = ("max_tokens", "max_completion_tokens")
    extra = {k: tokens if k in names else v for k, v in sampling.extra.items()}
    return msgspec.structs.replace(sampling, max_tokens=tokens, extra=extra)
