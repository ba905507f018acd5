"""Request bodies at the price of a concatenation.

All questions of a subset share their worked examples and sampling parameters, so the JSON of
those is made once and kept. What is escaped per request is the question's own text: the escape
of a concatenation is the concatenation of the escapes.
"""

from __future__ import annotations

from typing import Any

import msgspec

from keju.config.task import KEJUS_OWN
from keju.errors import ConfigError
from keju.models.labels import continues_cue
from keju.types import Prefix, Request, Sampling

KEPT_PREFIXES = 256
"""More than any exam has subsets; older ones are forgotten, so memory stays flat."""
MOST_LABELS = 20
"""How many log-probabilities are asked for: the most that OpenAI's and vLLM's chat routes give."""
FEWEST_LABELS = 5
"""What OpenAI's completion route gives."""
CHAT_LABEL_TOKENS = 8
"""Room for a label after a mark or two, where a chat reply cannot be prefilled."""
_encode = msgspec.json.encode


class BodyBuilder:
    """Builds the bodies of one model's requests."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._heads: dict[tuple[int, int], tuple[Prefix, Sampling, bytes]] = {}
        self._top_logprobs = MOST_LABELS
        self._limit = "max_tokens"

    @property
    def top_logprobs(self) -> int:
        """How many log-probabilities a labels request asks for."""
        return self._top_logprobs

    @top_logprobs.setter
    def top_logprobs(self, value: int) -> None:
        self._top_logprobs = value
        self._heads.clear()

    @property
    def limit_field(self) -> str:
        """The name of the field that limits the reply's length."""
        return self._limit

    @limit_field.setter
    def limit_field(self, value: str) -> None:
        self._limit = value
        self._heads.clear()

    def build(self, request: Request) -> bytes:
        """The JSON body of `request`."""
        prompt, sampling = request.prompt, request.sampling
        key = (id(prompt.prefix), id(sampling))
        kept = self._heads.get(key)
        if kept is None:
            kept = self._keep(key, prompt.prefix, sampling)
        seed = request.seed
        if seed is None:
            seed = sampling.extra.get("seed", sampling.seed)
        closing = b'"' if sampling.form == "completion" else b'"}]'
        if continues_cue(request) and sampling.form == "chat":
            closing = b'"},{"role":"assistant","content":' + _encode(prompt.cue) + b"}]"
        end = b"}" if seed is None else b',"seed":%d}' % seed
        return b"".join((kept[2], _encode(prompt.tail)[1:-1], closing, end))

    def _keep(
        self, key: tuple[int, int], prefix: Prefix, sampling: Sampling
    ) -> tuple[Prefix, Sampling, bytes]:
        """Make the shared beginning; the objects are kept with it so that ids stay theirs."""
        if len(self._heads) >= KEPT_PREFIXES:
            del self._heads[next(iter(self._heads))]
        fields = _encode({"model": self._model} | self.fields(sampling))[:-1]
        if sampling.form == "completion":
            opening = b',"prompt":"'
        else:
            turns = b"".join(_encode(message) + b"," for message in prefix.messages)
            opening = b',"messages":[' + turns + b'{"role":"user","content":"'
        head = fields + opening + _encode(prefix.lead)[1:-1]
        self._heads[key] = (prefix, sampling, head)
        return self._heads[key]

    def fields(self, sampling: Sampling) -> dict[str, Any]:
        """The sampling part of a body, without the seed, which may differ by request."""
        fields: dict[str, Any] = {"temperature": sampling.temperature, "top_p": sampling.top_p}
        fields[self._limit] = sampling.max_tokens
        fields = {name: value for name, value in fields.items() if value is not None}
        if sampling.stop:
            fields["stop"] = list(sampling.stop)
        if sampling.decode == "labels":
            fields |= self._label_fields(sampling)
        if "max_completion_tokens" in sampling.extra:
            fields.pop("max_tokens", None)
        return fields | {name: v for name, v in sampling.extra.items() if name != "seed"}

    def _label_fields(self, sampling: Sampling) -> dict[str, Any]:
        if sampling.form == "completion":
            return {self._limit: 1, "logprobs": self._top_logprobs}
        room = 1 if sampling.extra.get("continue_final_message") else CHAT_LABEL_TOKENS
        return {self._limit: room, "logprobs": True, "top_logprobs": self._top_logprobs}


def check_extra(sampling: Sampling) -> None:
    """Refuse body fields that belong to Keju; raises ConfigError."""
    for name in KEJUS_OWN:
        if name in sampling.extra:
            raise ConfigError(f"extra_body cannot set '{name}': Keju sets it for each request")
