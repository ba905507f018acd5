"""The parts of the benchmarks that can be right or wrong; no figure is asserted."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest
from perf import endpoints
from perf.__main__ import NAMES
from perf.measure import NotMeasured, alternate, in_child, run, within
from perf.million import LIMIT, commands, row, taken_by, write_questions
from perf.resume import pick_up, store
from perf.scaling import evaluate, slow_endpoint
from perf.slots import LOADS, ideal_seconds, latencies
from perf.tools import CALL, TURNS, plain_session, session

from tests.support.endpoint import FaultyEndpoint
from tests.support.replies import Plan

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", NAMES)
def test_every_benchmark_can_be_loaded(name: str) -> None:
    assert callable(importlib.import_module(f"perf.{name}").measure)


def test_a_resumed_run_is_measured_up_to_its_queue(tmp_path: Path) -> None:
    settings = {
        "model": "scripted",
        "datasets": ["demo"],
        "dataset_args": {"demo": {"size": 3}},
        "work_dir": str(tmp_path),
        "run_id": "r",
    }
    store(settings)
    found = pick_up(settings)
    assert found["known"] == 3 * 6 - 1
    assert found["seconds"] > 0


def test_episodes_take_their_turns_and_plain_requests_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perf.tools.SAMPLES", 6)
    monkeypatch.setattr("perf.tools.PLAIN_SAMPLES", 6)
    with FaultyEndpoint(Plan(answers=lambda _: {"content": "", "tool_calls": [CALL]})) as endpoint:
        settings = {"model": "m", "api_url": endpoint.url, "datasets": ["demo"]}
        assert session(settings)["requests"] == 6 * (TURNS + 1)
        assert plain_session(settings)["requests"] == 6


def test_the_pace_of_two_drivers_with_a_part_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perf.scaling.QUESTIONS", 600)
    in_flight = 16
    with slow_endpoint() as url:
        paces = evaluate(Path(sys.executable), url, in_flight, drivers=2)
    assert len(paces) == 2
    for pace in paces:
        assert pace.rate > 0
        assert pace.driver > 0 == pace.actors


def test_the_ideal_schedule_fills_the_first_free_slot() -> None:
    assert ideal_seconds([3.0, 1.0, 1.0, 1.0], 2) == 3.0
    assert ideal_seconds([1.0, 1.0, 3.0], 2) == 4.0


def test_the_best_schedule_of_endpoints_counts_an_outage_in() -> None:
    calm = endpoints.ideal_seconds()
    speed = sum(endpoints.SLOTS / each for each in endpoints.LATENCIES)
    assert calm == pytest.approx(endpoints.QUESTIONS / speed, rel=0.05)
    lost = 5 * endpoints.SLOTS / endpoints.LATENCIES[1] / speed
    stormy = endpoints.ideal_seconds(endpoints.Outage(1, 5.0, 10.0))
    assert calm + lost <= stormy < calm + lost + 1


def test_about_a_tenth_of_the_mixed_load_is_slow() -> None:
    times = latencies(LOADS[0], 1)
    assert len(times) == LOADS[0].requests
    assert {*times} == {0.1, 0.9}
    assert 0.05 < times.count(0.9) / len(times) < 0.15


def test_a_child_returns_its_value_and_its_processor_time() -> None:
    used = in_child(ideal_seconds, times=[3.0, 1.0, 1.0, 1.0], slots=2)
    assert used.value == 3.0
    assert used.cpu > 0


def test_a_command_that_fails_is_not_measured() -> None:
    with pytest.raises(NotMeasured, match="ended with 3: why"):
        run(["sh", "-c", "echo why; exit 3"])


def test_the_ratio_is_the_median_of_the_rounds() -> None:
    ours, other = iter([2.0, 9.0, 4.0]), iter([1.0, 3.0, 4.0])
    assert alternate(3, lambda: next(ours), lambda: next(other)) == (4.0, 3.0, 2.0)


def test_a_figure_above_its_limit_is_over() -> None:
    assert within("x", 3.0, 2.0, "s").ok is False
    assert within("x", 2.0, 2.0, "s").ok is True


def test_the_anonymous_memory_of_a_command_is_read_off(tmp_path: Path) -> None:
    write_questions(tmp_path / "q.jsonl", 30)
    taken = taken_by(f"stats {tmp_path}/q.jsonl --json")
    assert taken is not None
    assert 5 < taken.peak < 500
    assert taken.cpu > 0
    with pytest.raises(NotMeasured, match="keju stats ended with 2"):
        taken_by(f"stats {tmp_path}/none.jsonl")


def test_every_command_is_measured_on_questions_of_a_file(tmp_path: Path) -> None:
    takings = dict(commands(tmp_path / "small", 40))
    assert len(takings) == 14
    for step, taken in takings.items():
        shown = row(step, 40, (taken, taken, None), 0)
        assert taken is not None
        assert shown.ratio == taken.peak / LIMIT
        assert shown.ok
        assert "1.0x of a tenth" in shown.title
