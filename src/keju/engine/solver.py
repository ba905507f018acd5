"""What turns a request into a reply: once asked here, in several turns in `keju.solvers`."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Any

from keju.engine.channel import Channel, Exchange
from keju.errors import Notice
from keju.models.base import Model
from keju.types import Request, Sample, Sampling


class Solver:
    """Turns a request into a reply by asking a channel: once, or as those below it do."""

    begun = 0
    """Episodes whose first reply has come, where a reply takes several requests."""
    finished = 0
    """Those of them that have their reply."""

    def check(self, model: Model) -> None:
        """ConfigError where the model cannot be asked in this way; before anything is opened."""

    async def open(self) -> None:
        """Make ready, once a session and before any model is asked; UsageError in one line."""

    async def knock(self, channel: Channel, sampling: Sampling) -> Sequence[Notice]:
        """Find out with a cheap call, after `open`, what the model cannot do; EndpointError.

        What makes the questions hardly worth asking is returned, to be said before the first.
        """
        return ()

    def __call__(
        self, request: Request, channel: Channel, sample: Sample, epoch: int
    ) -> Awaitable[Exchange]:
        """The reply to `request`, which asks `sample` for the time `epoch` (from 0)."""
        return channel.ask(request)

    async def close(self) -> None:
        """Let go of all that `open` took; called once, whatever happened."""

    def facts(self) -> dict[str, Any]:
        """What determines the replies, for the manifest: never a secret."""
        return {}

    def statistics(self) -> dict[str, Any]:
        """What the session was like beside its records, for the manifest; asked at its end."""
        return {}

    @property
    def notices(self) -> list[Notice]:
        """What a reader of the results must know of the session."""
        return []
