"""Solvers turn a request into a reply: with one call here, with several turns in `keju.solvers`."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Any

from keju.engine.channel import Channel, ReplyWithAttempts
from keju.errors import Notice
from keju.models.base import Model
from keju.types import Request, Sample, Sampling


class Solver:
    """Turns a request into a reply by asking a channel. This base class asks once."""

    episodes_begun = 0
    """Episodes whose first reply has come, where a reply takes several requests."""
    episodes_finished = 0
    """Those of them that have their reply."""

    def check(self, model: Model) -> None:
        """Raise ConfigError if the model cannot be used in this way. Called before anything is
        opened."""

    async def open(self) -> None:
        """Prepare once per session, before any model is asked. Raise UsageError with one line."""

    async def preflight(self, channel: Channel, sampling: Sampling) -> Sequence[Notice]:
        """Find out with a cheap call, after `open`, what the model cannot do. Raise EndpointError.

        Return notices about problems that make the questions hardly useful, to show before the
        first one.
        """
        return ()

    def __call__(
        self, request: Request, channel: Channel, sample: Sample, epoch: int
    ) -> Awaitable[ReplyWithAttempts]:
        """Return the reply to `request`, which asks `sample` in `epoch` (from 0)."""
        return channel.ask(request)

    async def close(self) -> None:
        """Release everything that `open` acquired. Called once in every case."""

    def facts(self) -> dict[str, Any]:
        """Return the settings that determine the replies, for the manifest. They never include a
        secret."""
        return {}

    def statistics(self) -> dict[str, Any]:
        """Return facts about the session for the manifest, in addition to its records. Called at
        its end."""
        return {}

    @property
    def notices(self) -> list[Notice]:
        """Notices about the session for readers of the results."""
        return []
