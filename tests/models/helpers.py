"""What the tests of models share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from keju.models.openai.client import OpenAIModel
from keju.types import Message, Prefix, Prompt, Reply, Request, Sampling

KEY = "sk-MARKED-0123456789"
Result = TypeVar("Result")


def request_of(
    tail: str = "2 + 2?",
    *,
    sampling: Sampling | None = None,
    prefix: Prefix | None = None,
    labels: str = "",
    seed: int | None = None,
    cue: str = "",
) -> Request:
    """A request with defaults for what a test does not care about."""
    shared = prefix or Prefix((Message("system", "Be brief."),), "Q: ")
    return Request(Prompt(shared, tail, cue), sampling or Sampling(), "hash", labels, seed)


def use(model: OpenAIModel, work: Callable[[OpenAIModel], Awaitable[Result]]) -> Result:
    """Run `work` with a started model and close it."""

    async def session() -> Result:
        await model.start()
        try:
            return await work(model)
        finally:
            await model.close()

    return asyncio.run(session())


def ask(model: OpenAIModel, request: Request | None = None, *, timeout: float = 10.0) -> Reply:
    """One attempt."""
    return use(model, lambda m: m.ask(request or request_of(), timeout=timeout))
