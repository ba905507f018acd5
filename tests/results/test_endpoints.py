"""The use of each endpoint, added up over the sessions of a manifest."""

from __future__ import annotations

import pytest

from keju.errors import Notice
from keju.results.endpoints import endpoint_notices, endpoints_of
from keju.runs.manifest import Manifest, StoredEndpoint, StoredSession


def make_manifest(*sessions: list[StoredEndpoint]) -> Manifest:
    return Manifest(sessions=[StoredSession(endpoints=endpoints) for endpoints in sessions])


def test_counts_are_added_up_by_address() -> None:
    first = StoredEndpoint(address="a", requests=6, replies=4, seconds=8.0, input_tokens=100)
    second = StoredEndpoint(
        address="a", requests=5, replies=4, seconds=4.0, input_tokens=100, cached_tokens=50
    )
    (use, other) = endpoints_of(make_manifest([first], [second, StoredEndpoint(address="b")]))
    assert (use.address, use.requests, use.replies) == ("a", 11, 8)
    assert use.mean_seconds == pytest.approx(1.5)
    assert use.cached_share == 0.25
    assert (other.address, other.mean_seconds, other.cached_share) == ("b", None, None)


def test_a_session_without_endpoints_has_no_use() -> None:
    assert endpoints_of(Manifest(sessions=[StoredSession()])) == ()


def test_the_last_session_says_whether_an_endpoint_is_lost() -> None:
    lost = Notice("endpoint_stayed_down", {"seconds": 5})
    before = StoredEndpoint(address="a", lost=lost)
    (back,) = endpoints_of(make_manifest([before], [StoredEndpoint(address="a", replies=3)]))
    assert back.lost is None
    (gone,) = endpoints_of(make_manifest([StoredEndpoint(address="a", replies=3)], [before]))
    (notice,) = endpoint_notices((gone,))
    assert (notice.code, notice.values["used"]) == ("endpoint_given_up", 3)


def test_another_model_and_an_odd_wait_are_reported() -> None:
    odd = StoredEndpoint(address="a", odd_wait="soon", other_models={"x": 2, "y": 1})
    notices = list(endpoint_notices(endpoints_of(make_manifest([odd]))))
    assert [notice.code for notice in notices] == ["endpoint_odd_wait", "endpoint_other_model"]
    assert notices[1].values["thrown"] == 3
