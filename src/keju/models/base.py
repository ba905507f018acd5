"""What the engine needs of a model: one attempt at a time, no retries, no surprises."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import msgspec

from keju.errors import EndpointError
from keju.models.faults import fault_text
from keju.types import Fault, Reply, Request, Sampling

BRIEF = 16
"""Tokens of a reply that only shows that a request is taken."""


class NotReady(EndpointError):
    """The endpoint at `place` does not work at present; `fault` may pass.

    `lasting` is what is wrong where it does not.
    """

    def __init__(self, place: str, fault: Fault, lasting: EndpointError | None = None) -> None:
        super().__init__(f"{place} is not ready ({fault_text(fault)})")
        self.place = place
        self.fault = fault
        self.lasting = lasting


class Model(ABC):
    """Answers requests. One `ask` is one attempt: its channel alone decides on another.

    `ask` never raises for what the endpoint did: a failed attempt is a `Reply` whose `error` says
    what kind of fault it was. It raises only on cancellation and on programming errors.
    """

    name: str
    """The model's name as it stands in results."""
    slots: int | None = None
    """The most requests it can usefully work on at once; None if the user decides."""
    batches: bool = False
    """It gathers what waits into batches of its own: `slots` requests are kept in flight, whatever
    the limit for endpoints is, and one subset follows the other."""

    api: str = "endpoint_of_openai"
    """What it expects at its address, as a code of the catalogues."""
    acts: bool = False
    """Whether it takes requests with turns and tools."""
    fixed_history: bool = False
    """Whether it refuses a conversation from which earlier turns were left out."""

    async def start(self) -> None:
        """Open connections or load weights; raise EndpointError or UsageError in one line."""

    async def preflight(self, sampling: Sampling) -> None:
        """Make one cheap call that shows that the address, key and model are right.

        With ``sampling.decode`` of ``labels`` it also shows that log-probabilities are given.
        Raises EndpointError with one line that names the cause; NotReady where it may pass.
        """

    def briefly(self, sampling: Sampling) -> Sampling:
        """`sampling` for a reply of a few words, where only the call itself matters."""
        return msgspec.structs.replace(sampling, max_tokens=BRIEF)

    def patience(self, sampling: Sampling, usual: float) -> float:
        """Seconds for one attempt, where the user allows `usual` ones."""
        return usual

    @abstractmethod
    async def ask(self, request: Request, *, timeout: float) -> Reply:
        """Make one attempt, within `timeout` seconds."""

    async def close(self) -> None:
        """Let go of connections and memory."""

    def facts(self) -> dict[str, Any]:
        """What determines the replies, for the manifest: never a secret."""
        return {"name": self.name}


def seed_of(request: Request) -> int | None:
    """The seed that a request is sampled with, or None for none."""
    if request.seed is not None:
        return request.seed
    seed: int | None = request.sampling.extra.get("seed", request.sampling.seed)
    return seed
