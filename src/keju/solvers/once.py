"""One question, one answer."""

from __future__ import annotations

from collections.abc import Awaitable

from keju.engine.channel import Channel, Exchange
from keju.types import Request


def once(request: Request, channel: Channel) -> Awaitable[Exchange]:
    """Ask the channel once; it repeats attempts that failed."""
    return channel.ask(request)
