"""Fixtures that every test may use, and checks that hold for every test."""

from __future__ import annotations

import asyncio
import os
import weakref
from asyncio.selector_events import _SelectorTransport  # type: ignore[attr-defined]
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from keju.benchmarks import registry
from keju.solvers import tool_setup
from tests.support.arms import lookup
from tests.support.endpoint import FaultyEndpoint
from tests.support.replies import Plan
from tests.support.tools import Functions

pytest.register_assert_rewrite("tests.support.recorded_checks")

REPOSITORY = Path(__file__).resolve().parent.parent


def pytest_make_parametrize_id(val: object) -> str | None:
    """Bytes are named by their number: an archive holds its time, and names must not change."""
    return f"{len(val)}-bytes" if isinstance(val, bytes) else None


# A busy machine is slow at inventing examples; that says nothing about what is tested.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("patient", PATIENT)
settings.register_profile("fast", PATIENT, max_examples=10)
settings.load_profile("patient")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of the complete data as slow; all others have the mark in their own file."""
    for item in items:
        if "data_dir" in getattr(item, "fixturenames", ()):
            item.add_marker("slow")


_connections: weakref.WeakSet[Any] = weakref.WeakSet()
"""The connections of asyncio that were made in this process and are still in memory."""
_make_connection = _SelectorTransport.__init__


def _remember_connection(transport: Any, *args: Any, **settings: Any) -> None:
    _make_connection(transport, *args, **settings)
    _connections.add(transport)


_SelectorTransport.__init__ = _remember_connection


@pytest.fixture(autouse=True)
def no_connection_is_left() -> Iterator[None]:
    """Fail a test that leaves a connection open when its event loop has ended.

    Python reports such a connection only when its memory is freed, in whatever test runs then.
    """
    yield
    open_connections = [
        connection
        for connection in _connections
        if connection._sock is not None and connection._loop.is_closed()
    ]
    _connections.clear()
    assert open_connections == []


@pytest.fixture(scope="module", autouse=True)
def no_loop_is_left() -> Iterator[None]:
    """A file that leaves an event loop running fails itself, not whatever file comes after it.

    It is the first fixture of its file, so it ends after the file's own fixtures.
    """
    yield
    with pytest.raises(RuntimeError, match="no running event loop"):
        asyncio.get_running_loop()


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of complete real data sets; tests that need it skip where it is missing."""
    named = os.environ.get("KEJU_DATA_DIR")
    folder = Path(named) if named else REPOSITORY.parent / "shared" / "data"
    if not (folder / "bbh").is_dir():
        pytest.skip(f"no real data at {folder}: set KEJU_DATA_DIR to run this test")
    return folder


@pytest.fixture(scope="session")
def seeds() -> Path:
    """The pages of other tools that users come from; tests skip where they are missing."""
    folder = REPOSITORY.parent / "shared" / "seeds"
    if not folder.is_dir():
        pytest.skip(f"no pages at {folder}")
    return folder


@pytest.fixture
def plan() -> Plan:
    """How the endpoint answers; a test file that needs other answers has its own `plan`."""
    return Plan()


@pytest.fixture
def endpoint(plan: Plan) -> Iterator[FaultyEndpoint]:
    """A local HTTP endpoint that answers as `plan` says."""
    with FaultyEndpoint(plan) as running:
        yield running


@pytest.fixture
def open_exam(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register the exam ``open``, whose answers no rule decides."""
    monkeypatch.setitem(registry.BUILT_IN, "open", ("tests.support.open_exam:OPEN",))


@pytest.fixture
def arm_functions(monkeypatch: pytest.MonkeyPatch) -> Functions:
    """The tools of every arm that has any."""
    functions = Functions({"lookup": lookup})
    monkeypatch.setattr(tool_setup, "arm_sources", lambda arm, _: [functions] if arm.tools else [])
    return functions
