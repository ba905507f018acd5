"""Fixtures of the tests of data sources: a hub on loopback and an environment of its own."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sources.hub import LoopbackHub


@pytest.fixture
def hub() -> Iterator[LoopbackHub]:
    """A hub that holds nothing yet."""
    with LoopbackHub() as running:
        yield running


@pytest.fixture
def environ(hub: LoopbackHub, tmp_path: Path) -> dict[str, str]:
    """An environment in which all hubs are the one on loopback and all caches are new."""
    return {
        "KEJU_CACHE_DIR": str(tmp_path / "keju-cache"),
        "HF_HOME": str(tmp_path / "hf-home"),
        "HF_ENDPOINT": hub.url,
        "MODELSCOPE_ENDPOINT": hub.url,
        "GITHUB_RAW_ENDPOINT": hub.url,
    }


@pytest.fixture
def no_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any attempt to reach a network fails the test."""

    def forbidden(*args: object, **kwargs: object) -> None:
        raise AssertionError("a socket was used")

    monkeypatch.setattr(socket.socket, "connect", forbidden)
    monkeypatch.setattr(socket, "getaddrinfo", forbidden)


@pytest.fixture
def closed_port() -> int:
    """A port of loopback on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
