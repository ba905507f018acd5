"""A group of one channel: an error that stops the channel stops the session."""

from __future__ import annotations

from time import monotonic
from types import SimpleNamespace
from typing import Any, cast

import pytest

from keju.engine.channel import Channel
from keju.engine.endpoint_group import NOTHING, EndpointGroup, Rerouted
from keju.errors import KejuError, RunIncomplete


class StoppableChannel:
    """Keeps the reason that it was stopped with."""

    def __init__(self, in_flight: int) -> None:
        self.in_flight, self.seconds = in_flight, float(in_flight)
        self.reason: KejuError | None = None
        self.woken = 0

    def stop(self, reason: KejuError) -> None:
        self.reason = reason

    def wake(self) -> None:
        self.woken += 1


def make_group() -> tuple[EndpointGroup, list[StoppableChannel]]:
    group, channels = EndpointGroup(), [StoppableChannel(2), StoppableChannel(3)]
    group.channels = cast(Any, channels)
    return group, channels


def test_the_first_reason_stops_every_channel() -> None:
    group, channels = make_group()
    reason = RunIncomplete("endpoint_stayed_down", seconds=1)
    group.lose(cast(Channel, channels[0]), reason)
    group.stop(RunIncomplete("endpoint_stayed_limited", seconds=2))
    assert group.stop_reason is reason
    assert [channel.reason for channel in channels] == [reason, reason]


def test_counts_cover_all_channels_and_requests_never_move() -> None:
    group, channels = make_group()
    assert (group.in_flight, group.seconds) == (5, 3.0)
    group.wake()
    assert [channel.woken for channel in channels] == [1, 1]
    first = cast(Channel, channels[0])
    assert not group.can_reroute(first)
    assert not group.has_unlimited_peer(first)
    assert Rerouted().history == NOTHING


@pytest.mark.parametrize(("ago", "ends"), [(None, False), (1.0, False), (60.0, True)])
def test_a_session_ends_when_its_endpoint_refuses_or_is_down_for_too_long(
    ago: float | None, ends: bool
) -> None:
    group, since = EndpointGroup(), None if ago is None else monotonic() - ago
    channel: Any = SimpleNamespace(
        rate_limit=SimpleNamespace(since=since),
        limits=SimpleNamespace(give_up_after=30.0),
        breaker=SimpleNamespace(since=since, give_up_after=30.0),
    )
    assert (group.limited_too_long(channel) is not None) is ends
    assert (group.down_too_long(channel) is not None) is ends
