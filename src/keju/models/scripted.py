"""A model without a network: for tests, demos and dry runs."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from keju.config import TaskConfig
from keju.models.base import Model
from keju.models.continuations import make_reply
from keju.models.tokens import schema_tokens, text_tokens
from keju.types import ContinuationScore, Reply, Request, Tool, Usage

Script = Callable[[Request], "Reply | str"]

SEED: Final = TaskConfig.model_fields["seed"].default
"""The default seed, with which the guesses depend on the request alone."""
FINAL_LINES = (
    "So the answer is (A).",
    "So the answer is (B).",
    "So the answer is (C).",
    "So the answer is (D).",
    "So the answer is yes.",
    "So the answer is no.",
)
ANSWER = "So the answer is {}."
# Characters of a calculation: `((-5 + 9) * 4)`, but also `7` and ` - `
_SIGNS = re.compile(r"[\d ()+*/.-]+")
# Two numbers with an operator between them: `9) * 4`; not `2024-01-01`
_SUM = re.compile(r"\d\)* [+*/-] [(-]*\d")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


class ScriptedModel(Model):
    """A fake model whose answers depend only on the request's hash and the seed.

    If it is offered tools and the question holds a calculation, it calls one tool once per episode
    and answers with the number that comes back. So you can try a set-up with tools without a model.
    With `script` it answers with the script's text or `Reply`. Labels and
    continuations without scripted log-probabilities get pseudo-random ones.
    """

    acts = True
    counts = True

    def __init__(
        self, name: str = "scripted", *, script: Script | str | None = None, seed: int = SEED
    ) -> None:
        self.name = name
        self._script = script
        self._salt = "" if seed == SEED else f"\0{seed}"

    async def ask(self, request: Request, *, timeout: float) -> Reply:
        """Answer at once."""
        answer = self._script(request) if callable(self._script) else self._script
        if isinstance(answer, Reply):
            return answer
        if answer is None and (call := _choose_call(request)) is not None:
            usage = Usage(_request_tokens(request), text_tokens(call["arguments"]))
            calls: tuple[dict[str, Any], ...] = ({"id": "call_0", "function": call},)
            return Reply(finish="tool_calls", usage=usage, model=self.name, tool_calls=calls)
        guess = FINAL_LINES[int(_draw(request, "line" + self._salt) * len(FINAL_LINES))]
        text = (_tool_answer(request) or guess) if answer is None else answer
        usage = Usage(_request_tokens(request), text_tokens(text))
        if request.continuations:
            scores = list(_draw_scores(request, self._salt))
            usage = Usage(_request_tokens(request), 0)
            return make_reply(request.continuations, scores, usage, model=self.name)
        if request.sampling.decode != "labels" or not request.labels:
            return Reply(text=text, finish="stop", usage=usage, model=self.name)
        # Log-probabilities over the labels that sum to 1 and only depend on hash and seed.
        weights = {label: 0.01 + _draw(request, label + self._salt) for label in request.labels}
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
        """Return the name and the kind of script."""
        kind = "callable" if callable(self._script) else "text" if self._script else "by hash"
        return {"name": self.name, "script": kind}


def make(config: TaskConfig) -> ScriptedModel:
    """Return the model called ``scripted``."""
    return ScriptedModel(config.model.strip(), seed=config.seed)


def _choose_call(request: Request) -> dict[str, str] | None:
    """Return a tool call with the question's last calculation, for a tool that takes one text.

    None if there is no such tool or calculation, or if a tool has answered already.
    """
    answered = any(turn.role == "tool" for turn in request.turns)
    if not request.tools or request.tool_choice == "none" or answered:
        return None
    calculations = [
        text.strip() for text in _SIGNS.findall(request.prompt.tail) if _SUM.search(text)
    ]
    text_tools = ((tool.name, _text_parameter(tool)) for tool in request.tools)
    tool_name, parameter = next((text_tool for text_tool in text_tools if text_tool[1]), ("", ""))
    if not calculations or not tool_name:
        return None
    return {
        "name": tool_name,
        "arguments": msgspec.json.encode({parameter: calculations[-1]}).decode(),
    }


def _text_parameter(tool: Tool) -> str:
    """Return the parameter of a tool that needs one text and nothing else; empty for other
    tools."""
    schema = tool.parameters
    parameters = schema.get("properties", {})
    needed = schema.get("required") or list(parameters)
    if len(needed) != 1 or not isinstance(parameter_schema := parameters.get(needed[0]), dict):
        return ""
    return str(needed[0]) if parameter_schema.get("type") == "string" else ""


def _tool_answer(request: Request) -> str:
    """Return the answer that a tool gave as a number; empty if there is none."""
    results = [turn.text.strip() for turn in request.turns if turn.role == "tool"]
    return ANSWER.format(results[-1]) if results and _NUMBER.fullmatch(results[-1]) else ""


def _draw(request: Request, salt: str) -> float:
    """Return a number in [0, 1) that only depends on the request and `salt`."""
    digest = hashlib.sha256(f"{request.hash}\0{salt}".encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


def _draw_scores(request: Request, salt: str) -> Iterator[ContinuationScore]:
    """Return pseudo-random scores: a nat or two for each token; one in eight is greedy."""
    for number, part in enumerate(request.continuations):
        tokens = max(1, text_tokens(part.text))
        surprise = 1 + _draw(request, f"{number}\0{part.text}{salt}")
        greedy = _draw(request, f"greedy{number}{salt}") < 1 / 8
        yield ContinuationScore(-surprise * tokens, greedy, tokens)


def _request_tokens(request: Request) -> int:
    """Estimate the tokens of a request for budgets: its prompt, its tools and all later turns."""
    later_texts = [
        part for turn in request.turns for part in (turn.text, *(c.arguments for c in turn.calls))
    ]
    return schema_tokens(request.tools) + sum(map(text_tokens, (request.prompt.text, *later_texts)))
