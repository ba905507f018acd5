"""Fixtures that every test may use, and which tests are too slow for the fast lane."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

REPOSITORY = Path(__file__).resolve().parent.parent
SLOW = (
    "bridges", "cluster", "hf", "integration", "interop/verifiers",
    "benchmarks/test_linear_time.py", "benchmarks/test_recorded.py", "benchmarks/test_rotation.py",
    "cli/test_main.py", "cli/test_process.py", "cli/test_vf_eval.py", "interop/imports/test_opencompass.py", "interop/imports/test_refusals.py",
    "interop/imports/test_runs.py", "interop/imports/test_tools.py", "interop/imports/test_variants.py", "judges/test_runs.py",
    "models/test_embedded.py", "models/test_weights.py", "sources/test_data_command.py",
    "sources/test_pull.py", "sources/test_snapshots.py",
    "results/test_golds.py", "judges/test_stage.py", "test_kill.py", "test_perf.py", "cli/test_init.py",
    "test_scale.py", "test_soak.py", "test_task.py", "results/test_verify.py",
    "solvers/sandbox/test_attempts.py", "solvers/sandbox/test_kernel.py",
)  # fmt: skip
"""Files and folders that `make test-fast` leaves out, beside all tests of the complete data."""


def pytest_make_parametrize_id(val: object) -> str | None:
    """Bytes are named by their number: an archive holds its time, and names must not change."""
    return f"{len(val)}-bytes" if isinstance(val, bytes) else None


# A busy machine is slow at inventing examples; that says nothing about what is tested.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("patient", PATIENT)
settings.register_profile("fast", PATIENT, max_examples=10)
settings.load_profile("patient")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is slow."""
    tests = REPOSITORY / "tests"
    slow = [tests / name for name in SLOW]
    for item in items:
        whole_data = "data_dir" in getattr(item, "fixturenames", ())
        if whole_data or any(item.path == place or place in item.path.parents for place in slow):
            item.add_marker("slow")


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
