"""``keju eval --dry-run``: how many requests go out at once, and how long they may take."""

from __future__ import annotations

import msgspec
import pytest

from keju.models.scripted import ScriptedModel
from keju.types import Reply, Request
from tests.cli.conftest import Keju

pytestmark = pytest.mark.slow

TASK = ("eval", "-m", "scripted", "--datasets", "demo", "--eval-batch-size", "4")
EVAL = (*TASK, "-q", "--no-report", "--run-id", "monday")


def test_a_model_with_one_slot_is_asked_one_thing_at_a_time(
    keju: Keju, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ScriptedModel, "slots", 1)
    assert "at most 1 at once" in keju(*TASK, "--dry-run").out
    document = keju(*TASK, "--dry-run", "--json").json
    assert (document["at_once"], document["eval_batch_size"]) == (1, 4)


def test_no_more_are_in_flight_than_there_are(keju: Keju) -> None:
    ran = keju(*TASK, "--eval-batch-size=4", "--dry-run", "--total", "3")
    assert ran.code == 2  # given twice
    assert "at most 3 at once" in keju(*TASK, "--dry-run", "--total", "3").out


def test_time_is_forecast_from_an_earlier_run_that_asked_the_same(keju: Keju) -> None:
    assert "pace" not in keju(*TASK, "--dry-run", "--json").json
    assert "no time is forecast: the work folder has no finished run of scripted" in (
        keju(*TASK, "--dry-run").out
    )
    keju(*EVAL)
    assert "no time is forecast" not in keju(*TASK, "--dry-run").out
    document = keju(*TASK, "--dry-run", "--json", "--limit", "5").json
    pace = document["pace"]
    assert (pace["run"], pace["replies"]) == ("monday", 120)
    assert document["seconds_estimate"] == round(30 * pace["seconds"] / 120, 1)
    assert "at the pace of run monday (120 replies in " in keju(*TASK, "--dry-run").out
    assert "按运行 monday 的速度" in keju("--language", "zh", *TASK, "--dry-run").out


def test_few_replies_tell_a_pace_where_no_run_has_more(keju: Keju) -> None:
    """Later runs that were stopped early do not hide them."""
    serial_eval = ("eval", "-m", "scripted", "--datasets", "demo", "--eval-batch-size", "1")
    evaluate = (*serial_eval, "-q", "--no-report", "--run-id")
    forecast = (*serial_eval, "--dry-run", "--json")
    assert keju(*evaluate, "a", "--total", "4").code == 0
    assert keju(*evaluate, "b", "--budget", "requests=1").code == 4
    pace = keju(*forecast).json["pace"]
    assert (pace["run"], pace["replies"]) == ("a", 4)
    keju(*evaluate, "c")
    keju(*evaluate, "d", "--total", "4")
    assert keju(*forecast).json["pace"]["run"] == "c"


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        ("--protocol", "letters"),
        ("--generation-config", "max_tokens=7"),
        ("--rpm", "60"),
        ("--run-id", "monday"),
    ],
)
def test_nothing_is_forecast_from_a_run_of_another_kind_or_where_nothing_is_left(
    keju: Keju, changes: tuple[str, ...]
) -> None:
    keju(*EVAL)
    ran = keju(*TASK, *changes, "--dry-run", "--json")
    assert ran.code == 0, ran.err
    assert "pace" not in ran.json


def test_a_run_with_other_slots_tells_no_pace(keju: Keju) -> None:
    keju(*EVAL)
    ran = keju("eval", "-m", "scripted", "--datasets", "demo", "--dry-run", "--json")
    assert "pace" not in ran.json


def test_a_plan_from_a_pilot_with_one_slot_counts_one_request_at_a_time(
    keju: Keju, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts, ask = ScriptedModel.facts, ScriptedModel.ask

    async def slowly(self: ScriptedModel, request: Request, *, timeout: float) -> Reply:
        return msgspec.structs.replace(await ask(self, request, timeout=timeout), seconds=0.5)

    monkeypatch.setattr(ScriptedModel, "ask", slowly)
    monkeypatch.setattr(ScriptedModel, "facts", lambda self: {**facts(self), "slots": 1})
    keju(*EVAL)
    document = keju("plan", "demo", "--pilot", "monday", "--limit", "5", "--json").json
    assert document["at_once"] == 1
    assert document["seconds"]["value"] == pytest.approx(30 * 0.5)
