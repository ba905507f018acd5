"""One question, one answer."""

from __future__ import annotations

from keju.engine.channel import Channel, Exchange
from keju.types import Request


async def once(request: Request, channel: Channel) -> Exchange:
    """Ask the channel once; it repeats attempts that failed."""
    return await channel.ask(request)
