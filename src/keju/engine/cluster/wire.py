"""What goes between the driver and its actors, as MessagePack.

A message above 100 kB would leave Ray's direct way and go through its object store, so blocks and
reports stay below that as long as a single question or answer does.
"""

from __future__ import annotations

from typing import Any

import msgspec

from keju.engine.display import Pause
from keju.errors import (
    ConfigError,
    DataError,
    EndpointError,
    Interrupted,
    KejuError,
    RunIncomplete,
    UsageError,
)
from keju.types import Fault, Message, Notice, Prefix, Prompt, Reply, Request, Sampling

LARGEST = 90_000
"""Bytes of a message, as far as they can be foreseen."""

ERRORS: dict[str, type[KejuError]] = {
    kind.__name__: kind
    for kind in (ConfigError, DataError, UsageError, RunIncomplete, EndpointError, Interrupted)
}


class Orders(msgspec.Struct):
    """What an actor needs to ask its model. It holds secrets: it is an argument of a call from one
    process to another, and is neither stored nor printed."""

    settings: dict[str, Any]
    """The task's, without what is secret."""
    secrets: dict[str, Any]
    """The key and the headers."""
    samplings: list[Sampling]
    actor: int
    actors: int
    """Among how many the limits of an endpoint are divided, and which of them this is."""
    threads: int
    """For the arithmetic of a model in the actor's process; 0 where there is none."""
    folder: str
    """The driver's current directory, which paths may be relative to."""

    def __repr__(self) -> str:
        return f"Orders(actor={self.actor})"


class Trouble(msgspec.Struct):
    """A `KejuError` on its way."""

    kind: str
    code: str
    values: dict[str, Any]

    @classmethod
    def of(cls, error: KejuError) -> Trouble:
        """What the driver has to know of `error`."""
        kinds = (kind.__name__ for kind in type(error).__mro__)
        kind = next((name for name in kinds if name in ERRORS), UsageError.__name__)
        return cls(kind, error.code, msgspec.to_builtins(error.notice.values))

    @property
    def error(self) -> KejuError:
        """The error as it was raised, in the same words."""
        return ERRORS[self.kind](self.code, **self.values)


class Opened(msgspec.Struct):
    """What an actor tells when its model is ready; `trouble` where it is not."""

    facts: dict[str, Any] = {}
    limit: int = 1
    """The most requests it will have in flight."""
    slots: int | None = None
    batches: bool = False
    trouble: Trouble | None = None


class Question(msgspec.Struct, array_like=True):
    """One request of a block, without what the block shares."""

    key: int
    hash: str
    tail: str
    cue: str = ""
    labels: str = ""
    seed: int | None = None
    attempts: int = 0
    """The most attempts, where a budget pays for fewer than usual; 0 for the usual number."""

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return 60 + 2 * len(self.tail) + len(self.cue)


class Block(msgspec.Struct, array_like=True):
    """Requests with one prefix and one sampling."""

    sampling: int
    """Its number among those of the orders."""
    messages: tuple[Message, ...]
    lead: str
    width: int
    """How many of them may be in flight; 0 for as many as the channel has slots."""
    questions: list[Question]

    def requests(self, prefix: Prefix, sampling: Sampling) -> list[Request]:
        """The requests as the driver made them."""
        return [
            Request(Prompt(prefix, q.tail, q.cue), sampling, q.hash, q.labels, q.seed)
            for q in self.questions
        ]


def question_of(key: int, request: Request) -> Question:
    """A request on its way."""
    prompt = request.prompt
    return Question(key, request.hash, prompt.tail, prompt.cue, request.labels, request.seed)


class Answer(msgspec.Struct, array_like=True):
    """An exchange on its way."""

    key: int
    reply: Reply
    faults: tuple[Fault, ...] = ()
    seconds: float = 0.0


class Report(msgspec.Struct, array_like=True):
    """What an actor tells while it works on a block, at least once a second."""

    answers: list[bytes]
    """Each an `Answer`."""
    begun: list[int]
    """The keys of the questions that it is asking at this moment."""
    in_flight: int
    limit: int
    retries: int
    pause: Pause | None = None
    """What keeps its channel from sending more."""
    waiting: Notice | None = None
    """The same with its values: the driver says it, in its own language."""
    trouble: Trouble | None = None
    """Why its channel sends nothing any more, where the driver did not stop it."""
    oldest: float = 0.0
    """Seconds since the oldest request in flight was sent."""
    odd_wait: str = ""
    """A Retry-After of the endpoint that is no sensible wait."""


encode = msgspec.msgpack.Encoder().encode
decode_orders = msgspec.msgpack.Decoder(Orders).decode
decode_opened = msgspec.msgpack.Decoder(Opened).decode
decode_block = msgspec.msgpack.Decoder(Block).decode
decode_report = msgspec.msgpack.Decoder(Report).decode
decode_answer = msgspec.msgpack.Decoder(Answer).decode
