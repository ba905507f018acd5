"""Fixtures that every test may use, and which tests are too slow for the fast lane."""

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

pytest.register_assert_rewrite("tests.support.recorded_checks")

REPOSITORY = Path(__file__).resolve().parent.parent
SLOW = (
    # Real tools, whole data, large inputs, simulations.
    "audit/test_audit.py", "benchmarks/fresh/test_expressions.py", "benchmarks/fresh/test_grid.py",
    "benchmarks/fresh/test_levels.py", "benchmarks/fresh/test_properties.py",
    "benchmarks/test_linear_time.py",
    "benchmarks/test_recorded.py", "benchmarks/test_rotation.py", "bridges", "cluster", "hf",
    "integration", "interop/imports/test_opencompass.py", "interop/imports/test_refusals.py",
    "interop/imports/test_runs.py", "interop/imports/test_tools.py",
    "interop/imports/test_variants.py", "interop/verifiers", "results/test_golds.py",
    "results/test_verify.py", "stats/test_coverage.py", "stats/test_curve.py",
    "stats/test_early.py", "stats/test_gate.py", "test_perf.py", "test_scale.py", "test_soak.py",
    # Processes, servers, browsers, sandboxes, models.
    "cli/test_agentic.py", "cli/test_endpoint.py", "cli/test_init.py", "cli/test_look.py",
    "cli/test_main.py", "cli/test_mcp_check.py", "cli/test_process.py", "cli/test_python_tool.py",
    "cli/test_unsafe.py", "cli/test_vf_eval.py", "cli/test_watch.py", "models/openai/test_client.py",
    "models/test_embedded.py", "models/test_weights.py", "matrix/test_kill_plan.py",
    "solvers/mcp/test_crashes.py", "solvers/mcp/test_tools.py", "solvers/sandbox/test_attempts.py",
    "solvers/sandbox/test_kernel.py", "solvers/sandbox/test_supervisor.py",
    "solvers/test_killed.py", "sources/test_data_command.py", "sources/test_pull.py",
    "sources/test_snapshots.py", "test_endpoints.py", "test_kill.py", "test_serve.py",
    "viewer/test_browser.py", "viewer/test_pages.py", "viewer/test_report_page.py",
    # Many whole runs.
    "cli/test_anthropic.py", "cli/test_choose.py", "cli/test_compare.py",
    "cli/test_contamination.py",
    "cli/test_events.py", "cli/test_export.py", "cli/test_export_results.py",
    "cli/test_forecast.py", "cli/test_fresh.py", "cli/test_gate.py", "cli/test_judge.py",
    "cli/test_judgement.py", "cli/test_merge.py", "cli/test_odd_replies.py", "cli/test_one_run.py",
    "cli/test_plan.py", "cli/test_plot.py", "cli/test_remote.py", "cli/test_stored_runs.py",
    "cli/test_telemetry.py", "cli/test_until.py", "cli/test_words.py", "engine/test_cluster.py",
    "judges/test_injections.py", "judges/test_runs.py", "judges/test_stage.py",
    "matrix/test_plans.py", "reporting/test_comparison.py", "solvers/test_arms.py", "test_api.py",
    "test_examples.py",
    "test_runs01.py", "test_runs10.py", "test_task.py",
)  # fmt: skip
"""Files and folders that `make test-fast` leaves out, beside all tests of the complete data."""
SLOW_TESTS = frozenset(
    {
        "test_a_collector_that_is_not_there_is_said_once",
        "test_a_flag_with_a_value_is_given_once_unless_it_is_a_list",
        "test_a_full_disk_stops_cleanly_with_whole_lines",
        "test_a_gzip_bomb_is_refused_before_it_fills_the_memory",
        "test_a_looping_reply_is_read_to_its_end",
        "test_a_model_that_learnt_rows_by_heart_is_found_and_no_other",
        "test_a_stratified_draw_favours_no_answer",
        "test_a_table_grows",
        "test_below_a_table_stands_what_to_do_with_it",
        "test_every_key_finds_its_reply",
        "test_figures_of_runs",
        "test_keju_sits_the_folder_as_bbh_and_says_that_it_is_not",
        "test_lm_eval_compares_the_label_with_its_space_over_http",
        "test_long_loops_are_read_right",
        "test_looping_text_is_read_to_its_end",
        "test_nothing_is_forecast_from_a_run_of_another_kind_or_where_nothing_is_left",
        "test_png_and_pdf_are_drawn",
        "test_prefixes_stay_together_and_endpoints_are_used_for_what_they_can_do",
        "test_the_command_line_takes_every_command",
        "test_the_first_notebook_runs_as_it_is_written",
        "test_wrong_input_is_told_in_one_line",
    }
)
"""The slow tests of files that are quick but for them."""


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
        alone = getattr(item, "originalname", None) in SLOW_TESTS
        whole_data = "data_dir" in getattr(item, "fixturenames", ())
        listed = any(item.path == place or place in item.path.parents for place in slow)
        if alone or whole_data or listed:
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
