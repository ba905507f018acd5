"""The messages between the driver and its actors, as MessagePack.

Ray sends a message above 100 kB through its object store instead of directly. So blocks and reports
stay below that size, unless a single question or answer is larger.
"""

from __future__ import annotations

from typing import Any

import msgspec

from keju.errors import (
    ConfigError,
    DataError,
    EndpointError,
    Interrupted,
    KejuError,
    RunIncomplete,
    UsageError,
)
from keju.progress.display import Pause
from keju.types import (
    Continuation,
    Fault,
    Message,
    Notice,
    Prefix,
    Prompt,
    Reply,
    Request,
    Sampling,
)

LARGEST = 90_000
"""The most bytes of a message, as far as they can be foreseen."""

ERRORS: dict[str, type[KejuError]] = {
    kind.__name__: kind
    for kind in (ConfigError, DataError, UsageError, RunIncomplete, EndpointError, Interrupted)
}


class ActorSettings(msgspec.Struct):
    """The settings that an actor needs to ask its model.

    They include secrets. They are an argument of a call from one process to another, and are
    neither stored nor printed.
    """

    settings: dict[str, Any]
    """The task's settings, without secrets."""
    secrets: dict[str, Any]
    """The key and the headers."""
    samplings: list[Sampling]
    actor: int
    actors: int
    """The number of actors that share the limits of an endpoint. `actor` is the index of this
    one."""
    threads: int
    """Threads for the arithmetic of a model in the actor's process; 0 where there is none."""
    folder: str
    """The driver's current directory, to which paths may be relative."""

    def __repr__(self) -> str:
        return f"Orders(actor={self.actor})"


class WireError(msgspec.Struct):
    """A `KejuError` in the form that is sent."""

    kind: str
    code: str
    values: dict[str, Any]

    @classmethod
    def of(cls, error: KejuError) -> WireError:
        """Return `error` in the form that is sent."""
        kinds = (kind.__name__ for kind in type(error).__mro__)
        kind = next((name for name in kinds if name in ERRORS), UsageError.__name__)
        return cls(kind, error.code, msgspec.to_builtins(error.notice.values))

    @property
    def error(self) -> KejuError:
        """The error as it was raised, with the same code and values."""
        return ERRORS[self.kind](self.code, **self.values)


class ActorReady(msgspec.Struct):
    """The message of an actor when its model is ready; `trouble` if it is not."""

    facts: dict[str, Any] = {}
    limit: int = 1
    """The most requests that it will have in flight."""
    slots: int | None = None
    batches: bool = False
    trouble: WireError | None = None


class BlockQuestion(msgspec.Struct, array_like=True):
    """One request of a block, without the parts that the block shares."""

    key: int
    hash: str
    tail: str
    cue: str = ""
    labels: str = ""
    seed: int | None = None
    attempts: int = 0
    """The most attempts, where a budget pays for fewer than usual; 0 for the usual number."""
    contexts: tuple[str, ...] = ()
    """The different contexts of `continuations`; empty for the prompt's text."""
    continuations: tuple[tuple[int, str, bool], ...] = ()
    """Each continuation: the index of its context, its text, and whether it is rolling."""

    @property
    def size(self) -> int:
        """Its approximate size in bytes."""
        scored = sum(len(text) for _, text, _ in self.continuations) + sum(map(len, self.contexts))
        return 60 + 2 * (len(self.tail) + scored) + len(self.cue)

    def request(self, prefix: Prefix, sampling: Sampling) -> Request:
        """Return the request as the driver made it."""
        prompt = Prompt(prefix, self.tail, self.cue)
        contexts = self.contexts or (prompt.text,)
        continuations = tuple(
            [
                Continuation(contexts[index], text, rolls)
                for index, text, rolls in self.continuations
            ]
        )
        return Request(
            prompt, sampling, self.hash, self.labels, self.seed, continuations=continuations
        )


class RequestBlock(msgspec.Struct, array_like=True):
    """Requests with one prefix and one sampling."""

    sampling: int
    """The index of the sampling in the orders."""
    messages: tuple[Message, ...]
    lead: str
    width: int
    """How many of them may be in flight; 0 for as many as the channel has slots."""
    questions: list[BlockQuestion]

    def requests(self, prefix: Prefix, sampling: Sampling) -> list[Request]:
        """Return the requests as the driver made them."""
        return [question.request(prefix, sampling) for question in self.questions]


def make_question(key: int, request: Request) -> BlockQuestion:
    """Return a request in the form that is sent."""
    prompt = request.prompt
    question = BlockQuestion(
        key, request.hash, prompt.tail, prompt.cue, request.labels, request.seed
    )
    if request.continuations:
        numbers: dict[str, int] = {}
        question.continuations = tuple(
            [
                (numbers.setdefault(part.context, len(numbers)), part.text, part.rolling)
                for part in request.continuations
            ]
        )
        question.contexts = () if list(numbers) == [prompt.text] else tuple(numbers)
    return question


class BlockAnswer(msgspec.Struct, array_like=True):
    """An exchange in the form that is sent."""

    key: int
    reply: Reply
    faults: tuple[Fault, ...] = ()
    seconds: float = 0.0


class ActorReport(msgspec.Struct, array_like=True):
    """The report of an actor on a block, at least once per second."""

    answers: list[bytes]
    """Each an `BlockAnswer`."""
    begun: list[int]
    """The keys of the questions that it is asking now."""
    in_flight: int
    limit: int
    retries: int
    pause: Pause | None = None
    """The reason why its channel sends no more, if there is one."""
    waiting: Notice | None = None
    """The same as a notice with values. The driver shows it in its own language."""
    trouble: WireError | None = None
    """The error that stopped its channel, unless the driver stopped it."""
    oldest: float = 0.0
    """Seconds since the oldest request in flight was sent."""
    odd_wait: str = ""
    """A Retry-After of the endpoint that Keju cannot follow."""


encode = msgspec.msgpack.Encoder().encode
decode_orders = msgspec.msgpack.Decoder(ActorSettings).decode
decode_opened = msgspec.msgpack.Decoder(ActorReady).decode
decode_block = msgspec.msgpack.Decoder(RequestBlock).decode
decode_report = msgspec.msgpack.Decoder(ActorReport).decode
decode_answer = msgspec.msgpack.Decoder(BlockAnswer).decode
