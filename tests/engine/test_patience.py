"""How the engine treats what answers it: it waits as asked, pauses late, and fills a batch."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from keju import Model, Reply, Request, run_task
from tests.support.endpoint import FaultyEndpoint
from tests.support.replies import EndpointRequest, Plan

MAKE_MODEL = "keju.task.make_model"
"""What turns the name of a model into the model."""
KNOCK = "Answer with one letter, A or B."


def run_demo(folder: Path, **options: Any) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "model": "m",
        "datasets": ["demo"],
        "dataset_args": {"demo": {"size": 4, "subset_list": ["word_sorting", "object_counting"]}},
        "work_dir": str(folder),
        "retry_interval": 0.001,
    }
    return run_task(settings | options)


def test_no_question_is_asked_again_before_the_endpoint_allows_it(tmp_path: Path) -> None:
    waits: list[float] = []

    def answer(request: EndpointRequest) -> str:
        waits.append(time.monotonic() - endpoint.stats.failed_at[request.key])
        return "So the answer is (A)."

    plan = Plan(answers=answer, first_faults=("429",), retry_after="0.2")
    with FaultyEndpoint(plan) as endpoint:
        run_demo(tmp_path, api_url=endpoint.url)
    assert len(waits) == 8 + 1
    assert min(waits) >= 0.2


def test_a_few_failures_in_a_row_do_not_pause_the_run(tmp_path: Path) -> None:
    """Where the endpoint counts as down, the engine knocks until somebody answers."""
    knocks: list[EndpointRequest] = []

    def answer(request: EndpointRequest) -> str:
        if request.text == KNOCK:
            knocks.append(request)
            endpoint.plan = replace(endpoint.plan, first_faults=("503",) * 7)
        return "So the answer is (A)."

    with FaultyEndpoint(Plan(answers=answer)) as endpoint:
        one_question = {"demo": {"size": 1, "subset_list": ["word_sorting"]}}
        results = run_demo(tmp_path, api_url=endpoint.url, attempts=8, dataset_args=one_question)
    assert endpoint.stats.faults == {"503": 7}
    assert results["benchmarks"][0]["outcomes"]["error"] == 0
    assert len(knocks) == 1


class Batching(Model):
    """A model with places, which knows how many were taken at most."""

    name = "m"

    def __init__(self, slots: int, *, batches: bool) -> None:
        self.slots = slots
        self.batches = batches
        self.in_flight = self.most_in_flight = 0

    async def ask(self, request: Request, *, timeout: float) -> Reply:
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        for _ in range(200):  # turns of the loop, so that nothing hangs on the clock
            await asyncio.sleep(0)
        self.in_flight -= 1
        return Reply(text="So the answer is (A).", finish="stop")


@pytest.mark.parametrize(
    ("slots", "batches", "most_in_flight"),
    [(6, True, 6), (6, False, 2), (1, False, 1), (1, True, 1)],
)
def test_a_model_that_batches_is_given_all_its_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slots: int, batches: bool, most_in_flight: int
) -> None:
    model = Batching(slots, batches=batches)
    monkeypatch.setattr(MAKE_MODEL, lambda _: model)
    run_demo(tmp_path, eval_batch_size=2)
    assert model.most_in_flight == most_in_flight


class Watching(Model):
    """A model that notes how many records are on disk whenever it is asked."""

    name = "m"

    def __init__(self, journal: Path) -> None:
        self.journal = journal
        self.lines: list[int] = []

    async def ask(self, request: Request, *, timeout: float) -> Reply:
        self.lines.append(self.journal.read_bytes().count(b"\n"))
        await asyncio.sleep(0)
        return Reply(text="So the answer is (A).", finish="stop")


def test_a_reply_is_on_disk_before_its_slot_sends_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Watching(tmp_path / "r" / "records.jsonl")
    monkeypatch.setattr(MAKE_MODEL, lambda _: model)
    run_demo(tmp_path, eval_batch_size=1, run_id="r")
    assert model.lines == list(range(8))
