"""One cheap call that shows whether the address, the key, the model and the settings are right."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from keju.errors import EndpointError, did_you_mean
from keju.models.bodies import FEWEST_LABELS
from keju.models.faults import refused
from keju.models.normalise import normalise
from keju.models.reply_body import read_json
from keju.models.transport import HttpReply, TransportError
from keju.types import Fault, Prefix, Prompt, Request, Sampling

if TYPE_CHECKING:
    from keju.models.openai import OpenAIModel

ATTEMPTS = 6
ATTEMPTS_AT_NO_ENDPOINT = 2
"""A page or a text instead of a reply: a passing fault of a gateway, or the wrong address."""
FIRST_WAIT = 0.5
LONGEST_WAIT = 30.0
"""Seconds; an endpoint that asks for more patience is not ready for a run."""
SMALL, LARGER = 1, 16
"""Limits of the reply: some reasoning models refuse a single token."""
TRANSIENT = ("rate_limit", "server", "timeout", "connection", "malformed")
KEY_ADVICE = "set OPENAI_API_KEY or --api-key"
"""What to do about a key that is missing or refused; a judge's is set elsewhere."""
LISTED_MODELS = 8
PROMPT = Prompt(Prefix(), "Answer with one letter, A or B.", cue="Answer:")
LABELS = "AB"
ANOTHER_ROUTE = {"chat": "completions", "completion": "chat"}


class Preflight:
    """Checks one exam's sampling against one endpoint."""

    def __init__(self, model: OpenAIModel, sampling: Sampling) -> None:
        self._model = model
        self._sampling = sampling
        self._shown = model.address.shown

    async def run(self) -> dict[str, Any]:
        """Return facts for the manifest, or raise EndpointError in one line.

        A limit or a number of log-probabilities that the endpoint refuses is replaced by one that
        it takes, and the run then uses that one as well.
        """
        trial = self._first_trial()
        while True:
            reply, fault = await self._patiently(trial)
            if fault is None:
                return self._facts(reply)
            milder = self._milder(trial, fault)
            if milder is None:
                raise await self._explained(fault)
            trial = milder

    def _first_trial(self) -> Sampling:
        if self._sampling.decode == "labels":
            return self._sampling
        return _limited(self._sampling, SMALL)

    def _milder(self, trial: Sampling, fault: Fault) -> Sampling | None:
        """Another sampling that the endpoint may take, or None if it is not about that."""
        bodies = self._model.bodies
        if fault.kind != "bad_request":
            return None
        if "max_completion_tokens" in fault.message and bodies.limit_field == "max_tokens":
            bodies.limit_field = "max_completion_tokens"
            return trial
        if trial.decode == "labels":
            if bodies.top_logprobs <= FEWEST_LABELS:
                return None
            bodies.top_logprobs = FEWEST_LABELS
            return trial
        return _limited(trial, LARGER) if trial.max_tokens == SMALL else None

    async def _patiently(self, trial: Sampling) -> tuple[HttpReply, Fault | None]:
        """Make the call, again if the failure may pass; EndpointError when it does not."""
        request = Request(PROMPT, trial, hash="", labels=LABELS)
        attempt = 1
        while True:
            reply, fault = await self._attempt(request)
            if reply is not None and (fault is None or fault.kind not in TRANSIENT):
                return reply, fault
            assert fault is not None
            wait = FIRST_WAIT * attempt if fault.retry_after is None else fault.retry_after
            if wait > LONGEST_WAIT:
                raise self._error(f"asks to wait {wait:.0f} s ({_told(fault)})")
            if attempt == (ATTEMPTS_AT_NO_ENDPOINT if fault.kind == "malformed" else ATTEMPTS):
                raise self._exhausted(fault)
            await asyncio.sleep(wait)
            attempt += 1

    def _exhausted(self, fault: Fault) -> EndpointError:
        told = _told(fault)
        if fault.kind == "malformed":
            return self._error(f"is no OpenAI-compatible endpoint ({told}): check --api-url")
        return self._error(f"is not ready after {ATTEMPTS} attempts ({told})")

    async def _attempt(self, request: Request) -> tuple[HttpReply | None, Fault | None]:
        model = self._model
        try:
            reply = await model.send(request, model.preflight_timeout)
        except TransportError as error:
            message = model.redact(error.message)
            if not error.reached:
                advice = "" if error.distrusted else ": is the server running? check --api-url"
                raise EndpointError(
                    f"cannot connect to {self._shown} ({message}){advice}"
                ) from None
            return None, Fault(error.kind, message)
        if not 200 <= reply.status < 300:
            return reply, refused(reply.status, reply.body, reply.header, model.redact)
        answer = normalise(reply.body, _as_text(request), 0.0, model.redact)
        if answer.error is not None:
            return reply, answer.error
        if normalise(reply.body, request, 0.0, model.redact).error is not None:
            raise self._no_logprobs("it leaves them out")
        return reply, None

    def _no_logprobs(self, why: str) -> EndpointError:
        return self._error(
            f"gives no log-probabilities: {why}; choosing among labels needs them, "
            "so take another endpoint, or let the model write its answer (decode: generate)"
        )

    def _facts(self, reply: HttpReply) -> dict[str, Any]:
        bodies = self._model.bodies
        facts: dict[str, Any] = {"server": reply.header("server")}
        told = read_json(reply.body)
        facts["reported_model"] = told.get("model")
        facts["system_fingerprint"] = told.get("system_fingerprint")
        if self._sampling.decode == "labels":
            facts["top_logprobs"] = bodies.top_logprobs
        if bodies.limit_field != "max_tokens":
            facts["limit_field"] = bodies.limit_field
        return {
            name: self._model.redact(value) if isinstance(value, str) else value
            for name, value in facts.items()
            if value
        }

    async def _explained(self, fault: Fault) -> EndpointError:
        """Say what to change, for a failure that will not pass."""
        if fault.kind == "auth" and fault.status in (401, 403):
            advice = KEY_ADVICE
            if self._model.has_key:
                return self._error(f"refused the key ({fault.status}): {advice}; {fault.message}")
            values = {"url": self._shown, "status": fault.status, "advice": advice}
            return EndpointError("endpoint_wants_key", **values)
        if fault.kind == "not_found" and fault.status < 400:
            return self._error(f"is not the endpoint itself: {fault.message}; check --api-url")
        if fault.kind == "not_found":
            return await self._missing(fault)
        if self._sampling.decode == "labels" and "logprob" in fault.message.lower():
            return self._no_logprobs(fault.message)
        return self._error(f"refuses the request ({_told(fault)})")

    async def _missing(self, fault: Fault) -> EndpointError:
        """Tell a missing model from a missing route by the list of models."""
        name, offered = self._model.name, await self._offered()
        if offered and name not in offered:
            more = f", … ({len(offered)} in all)" if len(offered) > LISTED_MODELS else ""
            hint = did_you_mean(name, offered)
            hint = hint if hint.startswith(" (did") else ""
            listed = ", ".join(offered[:LISTED_MODELS])
            return EndpointError(
                f"model '{name}' is not at {self._shown}{hint}; it offers: {listed}{more}"
            )
        if offered:
            other = ANOTHER_ROUTE[self._sampling.form]
            return self._error(f"refuses the route ({_told(fault)}): try --api {other}")
        return self._error(
            f"has no model '{name}' or no such route ({_told(fault)}): check --api-url and --model"
        )

    async def _offered(self) -> list[str]:
        """The names of the endpoint's models; empty if it does not tell."""
        model = self._model
        try:
            reply = await model.transport.get(model.address.models, model.preflight_timeout)
            listed = read_json(reply.body)["data"]
            return [entry["id"] for entry in listed if isinstance(entry["id"], str)]
        except (TransportError, ValueError, LookupError, TypeError, RecursionError):
            return []

    def _error(self, what: str) -> EndpointError:
        return EndpointError(f"{self._shown} {what}")


def _limited(sampling: Sampling, tokens: int) -> Sampling:
    """`sampling` with a reply of at most `tokens`, however the user named the limit."""
    names = ("max_tokens", "max_completion_tokens")
    extra = {k: tokens if k in names else v for k, v in sampling.extra.items()}
    return msgspec.structs.replace(sampling, max_tokens=tokens, extra=extra)


def _as_text(request: Request) -> Request:
    """`request` as if free text had been asked for, so that only its shape is judged."""
    sampling = msgspec.structs.replace(request.sampling, decode="generate")
    return msgspec.structs.replace(request, sampling=sampling)


def _told(fault: Fault) -> str:
    return f"{fault.status}: {fault.message}" if fault.status else fault.message
