"""A model without a network: for tests, demos and dry runs."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from typing import Any

from keju.config import TaskConfig
from keju.models.base import Model
from keju.types import Reply, Request, Usage

Script = Callable[[Request], "Reply | str"]

FINAL_LINES = (
    "So the answer is (A).",
    "So the answer is (B).",
    "So the answer is (C).",
    "So the answer is (D).",
    "So the answer is yes.",
    "So the answer is no.",
)
CHARACTERS_PER_TOKEN = 4
"""A rough count, so that budgets have something to count."""


class ScriptedModel(Model):
    """A stand-in that knows nothing: its answers depend on the request's hash alone.

    With `script` it says what the script says, a text or a whole `Reply`. Labels that no script
    gave log-probabilities for get pseudo-random ones.
    """

    acts = True

    def __init__(self, name: str = "scripted", *, script: Script | str | None = None) -> None:
        self.name = name
        self._script = script

    async def ask(self, request: Request, *, timeout: float) -> Reply:
        """Answer at once."""
        answer = self._script(request) if callable(self._script) else self._script
        if isinstance(answer, Reply):
            return answer
        guess = FINAL_LINES[int(_draw(request, "line") * len(FINAL_LINES))]
        text = guess if answer is None else answer
        usage = Usage(_tokens(request.prompt.text), _tokens(text))
        if request.sampling.decode != "labels" or not request.labels:
            return Reply(text=text, finish="stop", usage=usage, model=self.name)
        # Log-probabilities over the labels that sum to 1 and depend on the hash alone.
        weights = {label: 0.01 + _draw(request, label) for label in request.labels}
        total = sum(weights.values())
        values = {label: math.log(weight / total) for label, weight in weights.items()}
        return Reply(
            text=max(values, key=values.__getitem__) if answer is None else text,
            finish="stop",
            usage=usage,
            label_logprobs=values,
            outside_mass=0.0,
            model=self.name,
        )

    def facts(self) -> dict[str, Any]:
        """The kind of script."""
        kind = "callable" if callable(self._script) else "text" if self._script else "by hash"
        return {"name": self.name, "script": kind}


def make(config: TaskConfig) -> ScriptedModel:
    """The model called ``scripted``."""
    return ScriptedModel(config.model.strip())


def _draw(request: Request, salt: str) -> float:
    """A number in [0, 1) that depends on the request and `salt` alone."""
    digest = hashlib.sha256(f"{request.hash}\0{salt}".encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


def _tokens(text: str) -> int:
    """A rough count, rounded up."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)
