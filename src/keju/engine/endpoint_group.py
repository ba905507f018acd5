"""The channels of a session as one of them sees them, and the history of a request that moves.

A session with one endpoint has one channel. An error that stops the channel stops the session, and
no request moves. `keju.engine.pool` has several channels.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from keju.engine.limits import RateLimits
from keju.errors import KejuError, RunIncomplete
from keju.types import Fault

if TYPE_CHECKING:
    from keju.engine.channel import Channel
    from keju.engine.endpoint_health import EndpointHealth


class RetryHistory(NamedTuple):
    """The history of a request at the endpoints that it came from."""

    faults: tuple[Fault, ...] = ()
    attempts: int = 0
    """Those of the faults that count as attempts of the request."""
    outages: int = 0
    """How often an endpoint went down while this request waited for its reply."""


NOTHING = RetryHistory()


class Rerouted(KejuError):
    """The endpoint does not serve this request at present, but another one may."""

    def __init__(self) -> None:
        super().__init__("endpoint_moved")
        self.history = NOTHING


class EndpointGroup:
    """A single channel."""

    is_group = False
    """Whether there is more than one channel."""

    def __init__(self, rates: RateLimits | None = None) -> None:
        """Create a group. `rates` apply to all channels together."""
        self.channels: list[Channel] = []
        self.rates = rates or RateLimits()
        self.stop_reason: KejuError | None = None
        """The reason why the session ends."""
        self.histories: dict[str, RetryHistory] = {}
        """The histories of requests that have moved, by their hash."""

    @property
    def in_flight(self) -> int:
        """Attempts that wait for their reply, over all channels."""
        return sum(channel.in_flight for channel in self.channels)

    @property
    def seconds(self) -> float:
        """Seconds since the first channel was opened."""
        return max((channel.seconds for channel in self.channels), default=0.0)

    def stop(self, reason: KejuError) -> None:
        """Send nothing more. Requests in flight finish; all others get the reason raised."""
        if self.stop_reason is None:
            self.stop_reason = reason
        for channel in self.channels:
            channel.stop(self.stop_reason)

    def wake(self) -> None:
        """Let all requests that wait for clearance check again."""
        for channel in self.channels:
            channel.wake()

    def lose(self, channel: Channel, reason: KejuError) -> None:
        """Handle that an endpoint cannot be used any more."""
        self.stop(reason)

    def can_reroute(self, channel: Channel) -> bool:
        """Whether another channel can take over the requests that wait at this one."""
        return False

    def has_unlimited_peer(self, channel: Channel) -> bool:
        """Whether another channel accepts requests while this one refuses them."""
        return False

    def limited_too_long(self, channel: Channel) -> KejuError | None:
        """Return the reason to end the session if every request was refused for too long."""
        since, seconds = channel.rate_limit.since, channel.limits.give_up_after
        if since is None or monotonic() - since < seconds:
            return None
        return RunIncomplete("endpoint_stayed_limited", seconds=seconds)

    def accepts(self, channel: Channel, name: str) -> bool:
        """Whether a reply may come from a model with this name."""
        return True

    async def can_be_asked(self, channel: EndpointHealth) -> bool:
        """Whether an endpoint that answers can be asked, because it has not changed."""
        return True

    def handle_change(self, channel: EndpointHealth) -> None:
        """Handle that a channel went down or is back."""

    def down_too_long(self, channel: EndpointHealth) -> KejuError | None:
        """Return the reason to end the session if the endpoint is down for too long."""
        since, seconds = channel.breaker.since, channel.breaker.give_up_after
        if since is None or monotonic() - since <= seconds:
            return None
        return RunIncomplete("endpoint_stayed_down", seconds=seconds)
