"""The channels of a session as one of them sees them; and what a request takes from one to another.

A session with one endpoint has one channel, whose company is itself: whatever stops the channel
stops the session, and nothing moves. `keju.engine.pool` has several.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from keju.engine.limits import Rates
from keju.errors import KejuError, RunIncomplete
from keju.types import Fault

if TYPE_CHECKING:
    from keju.engine.channel import Channel
    from keju.engine.presence import Presence


class Carried(NamedTuple):
    """What became of a request at the endpoints that it came from."""

    faults: tuple[Fault, ...] = ()
    attempts: int = 0
    """Those of them that count as attempts of the request."""
    outages: int = 0
    """How often an endpoint went down under it."""


NOTHING = Carried()


class Moved(KejuError):
    """The endpoint does not serve this request at present, and another one may: ask there."""

    def __init__(self) -> None:
        super().__init__("endpoint_moved")
        self.carried = NOTHING


class Company:
    """A channel that is alone."""

    several = False
    """Whether there is more than one channel."""

    def __init__(self, rates: Rates | None = None) -> None:
        """`rates` are those over all channels."""
        self.channels: list[Channel] = []
        self.rates = rates or Rates()
        self.stop_reason: KejuError | None = None
        """Why the session ends."""
        self.carried: dict[str, Carried] = {}
        """What requests that have moved bring along, by their hash."""

    @property
    def in_flight(self) -> int:
        """Attempts that wait for their reply, over all channels."""
        return sum(channel.in_flight for channel in self.channels)

    @property
    def seconds(self) -> float:
        """Seconds since the first channel was opened."""
        return max((channel.seconds for channel in self.channels), default=0.0)

    def stop(self, reason: KejuError) -> None:
        """Send nothing more; what is in flight comes in, everybody else gets the reason raised."""
        if self.stop_reason is None:
            self.stop_reason = reason
        for channel in self.channels:
            channel.stop(self.stop_reason)

    def wake(self) -> None:
        """Let everybody who waits for clearance look again."""
        for channel in self.channels:
            channel.wake()

    def lose(self, channel: Channel, reason: KejuError) -> None:
        """An endpoint cannot be used any more, whatever is sent."""
        self.stop(reason)

    def elsewhere(self, channel: Channel) -> bool:
        """Whether another channel can take over what waits at this one."""
        return False

    def unlimited_elsewhere(self, channel: Channel) -> bool:
        """Whether another channel accepts requests while this one refuses them."""
        return False

    def limited_too_long(self, channel: Channel) -> KejuError | None:
        """Return why the session ends where every request was refused for too long."""
        since, seconds = channel.rate_limit.since, channel.limits.give_up_after
        if since is None or monotonic() - since < seconds:
            return None
        return RunIncomplete("endpoint_stayed_limited", seconds=seconds)

    def accepts(self, channel: Channel, name: str) -> bool:
        """Whether a reply may come from a model that is called so."""
        return True

    async def welcomes(self, channel: Presence) -> bool:
        """Whether an endpoint that answers can be asked: it is the one that it was."""
        return True

    def changed(self, channel: Presence) -> None:
        """A channel went down, or is there again."""

    def patience_over(self, channel: Presence) -> KejuError | None:
        """Why nobody should wait any longer for an endpoint that is down."""
        since, seconds = channel.breaker.since, channel.breaker.give_up_after
        if since is None or monotonic() - since <= seconds:
            return None
        return RunIncomplete("endpoint_stayed_down", seconds=seconds)
