"""A judge as a model: a reply without a verdict is a failed attempt, asked again by the engine."""

from __future__ import annotations

from typing import Any

import msgspec

from keju.judges.prompts import Kind
from keju.judges.verdicts import read_verdict
from keju.models.base import Model
from keju.types import Fault, Reply, Request, Sampling, Usage

EXCERPT = 120
"""Characters of an unreadable reply that are kept with the fault."""


class Judge(Model):
    """Asks another model and checks that there is a verdict in what it says.

    Attempts without one were paid for: their tokens count with the reply that ends the matter.
    """

    def __init__(self, model: Model, kind: Kind) -> None:
        self.name = model.name
        self.slots = model.slots
        self._model = model
        self._kind = kind
        self._paid: dict[str, Usage] = {}

    async def start(self) -> None:
        """Start the model behind."""
        await self._model.start()

    async def preflight(self, sampling: Sampling) -> None:
        """Check the model behind."""
        await self._model.preflight(sampling)

    async def close(self) -> None:
        """Close the model behind."""
        await self._model.close()

    def facts(self) -> dict[str, Any]:
        """The facts of the model behind."""
        return self._model.facts()

    async def ask(self, request: Request, *, timeout: float) -> Reply:
        """One attempt; a reply without one clear verdict is a fault of kind ``malformed``."""
        reply = await self._model.ask(request, timeout=timeout)
        if reply.error is not None:
            return reply
        paid = _sum(self._paid.pop(request.hash, Usage()), reply.usage)
        reply = msgspec.structs.replace(reply, usage=paid)
        verdict = read_verdict(reply.text, request.prompt.tail, self._kind)
        if verdict.value is not None:
            return reply
        self._paid[request.hash] = paid
        excerpt = " ".join(reply.text.split())[-EXCERPT:]
        fault = Fault("malformed", f"{verdict.reason} in the judge's reply: …{excerpt}")
        return msgspec.structs.replace(reply, error=fault)


def _sum(first: Usage, second: Usage) -> Usage:
    return Usage(
        first.input + second.input,
        first.output + second.output,
        first.cached + second.cached,
        first.reasoning + second.reasoning,
    )
