"""Limits of a question: the same in every arm, and a cut reply names the limit that cut it."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from perf.arms import LIMITS, Difference, SimulatedLoop, run_once

from keju.config.arms import ServerSettings
from keju.engine import job
from keju.engine.solver import Solver
from keju.errors import UsageError
from keju.results.audit import audit
from keju.results.score import score_run
from keju.runs.run import open_run
from keju.solvers.mcp.shared import SharedServer
from keju.solvers.turn_clock import TurnClock, waiting_for_slot
from keju.task import FinishedTask, run_exams
from keju.types import Record
from tests.support.arms import ARMS, answers, by_arm, config, records
from tests.support.endpoint import FaultyEndpoint
from tests.support.replies import EndpointRequest, Plan, Raw, draw

TOKENS = {"prompt_tokens": 90, "completion_tokens": 60}
BASELINE = [{"name": "baseline"}]


# --- equal in every arm -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "limits",
    [LIMITS, *({name: value} for name, value in LIMITS.items())],
    ids=lambda limit_settings: [*limit_settings][-1],
)
def test_both_arms_are_cut_at_the_same_questions(limits: dict[str, Any]) -> None:
    baseline, with_tools = run_once("same", limits, same_draws=True)
    assert baseline.cut == with_tools.cut
    assert 0 < len(baseline.cut) < 30
    assert baseline.mean == with_tools.mean
    if "timeout_seconds" in limits:
        assert max(baseline.seconds, with_tools.seconds) == pytest.approx(3)


def test_the_mean_difference_of_equal_arms_is_not_one() -> None:
    pairs = [run_once(f"few {number}", LIMITS) for number in range(12)]
    difference = Difference.of([tools_arm.mean - plain_arm.mean for plain_arm, tools_arm in pairs])
    assert abs(difference.mean) <= 2 * difference.se
    assert sum(arm.wrong for pair in pairs for arm in pair) == 0


def test_time_cuts_a_slow_model_alike_and_says_what_to_raise(
    arm_functions: Any,
    tmp_path: Path,
) -> None:
    def slow(request: EndpointRequest, _: int) -> Raw | None:
        question = request.text
        is_slow = len(question) > 80 and draw(question) < 0.5  # not the preflight
        return Raw(data=b"", delay=600.0) if is_slow else None

    with FaultyEndpoint(Plan(answers="So the answer is (A).", raw=slow)) as endpoint:
        settings: dict[str, Any] = {"eval_batch_size": 64, "agent": {"timeout_seconds": 1.5}}
        finished = run_exams(config(endpoint, tmp_path, **settings))
    cut = {
        arm: {r.id for r in records(tmp_path) if r.arm == arm and r.reply.cut_by == "time"}
        for arm in ("baseline", "calc")
    }
    assert cut["baseline"] == cut["calc"]
    assert 0 < len(cut["calc"]) < 24
    for entry in by_arm(finished).values():
        assert entry["outcomes"]["truncated"] == len(cut["calc"])
        (notice,) = [n for n in entry["notices"] if n["code"].startswith("cut_replies")]
        assert (notice["code"], notice["values"]["most"]) == ("cut_replies_time", 1.5)
        warnings = " ".join(entry["warnings"])
        assert "agent.timeout_seconds" in warnings
        assert "raise max_tokens" not in warnings
    causes = [cause.cause for exam in audit(tmp_path / "r").exams for cause in exam.causes]
    assert "cut_by_time" in causes
    assert not {"empty_cut", "empty", "cut_off"} & {*causes}


@pytest.mark.parametrize(
    ("agent", "code", "words"),
    [
        ({"max_tokens": 100}, "cut_replies_tokens", "raise agent.max_tokens"),
        ({"max_cost": 0.0001}, "cut_replies_cost", "raise agent.max_cost"),
    ],
)
@pytest.mark.parametrize("arms", [ARMS, BASELINE, []], ids=["both", "baseline", "none"])
def test_a_reply_over_a_limit_scores_nothing_with_and_without_tools(
    arm_functions: Any,
    tmp_path: Path,
    arms: list[dict[str, Any]],
    agent: dict[str, Any],
    code: str,
    words: str,
) -> None:
    with FaultyEndpoint(Plan(answers="So the answer is (A).", usage=TOKENS)) as endpoint:
        settings: dict[str, Any] = {
            "agent": agent,
            "arms": arms,
            "price": {"input": 1, "output": 1},
        }
        finished = run_exams(config(endpoint, tmp_path, **settings))
    assert finished.exit_code == 0
    for entry in finished.document["benchmarks"]:
        assert entry["outcomes"]["truncated"] == entry["n"] == 24
        assert entry["metrics"]["accuracy"]["value"] == 0
        assert [n["code"] for n in entry["notices"] if n["code"].startswith("cut")] == [code]
        assert words in " ".join(entry["warnings"])
    assert {record.readings[0].answer.reason for record in records(tmp_path)} == {
        "limit_of_tokens" if "max_tokens" in agent else "limit_of_cost"
    }
    assert all(record.reply.text for record in records(tmp_path)), "what came is kept"


@pytest.mark.parametrize("arms", [ARMS, BASELINE], ids=["both", "baseline"])
def test_a_limit_that_cannot_be_kept_stops_the_run(
    arm_functions: Any,
    tmp_path: Path,
    arms: list[dict[str, Any]],
) -> None:
    with FaultyEndpoint(Plan(answers="So the answer is (A).", usage={})) as endpoint:
        finished = run_exams(config(endpoint, tmp_path, arms=arms, agent={"max_tokens": 100}))
    assert finished.exit_code == 5
    assert "does not say how many tokens" in finished.message
    assert records(tmp_path) == []


def test_waits_for_a_rate_limit_are_no_time_of_the_question(
    arm_functions: Any,
    tmp_path: Path,
) -> None:
    plan = Plan(answers=answers, first_faults=("429",), retry_after="1")
    with FaultyEndpoint(plan) as endpoint:
        settings: dict[str, Any] = {"agent": {"timeout_seconds": 0.9}, "eval_batch_size": 64}
        finished = run_exams(
            config(endpoint, tmp_path, dataset_args={"demo": {"size": 1}}, **settings)
        )
    assert [e["outcomes"]["truncated"] for e in finished.document["benchmarks"]] == [0, 0]


# --- what stays as it was -----------------------------------------------------------------------


def as_version_1_0(endpoint: FaultyEndpoint, folder: Path, **settings: Any) -> FinishedTask:
    """Run as version 1.0 did: arms without tools have no limits."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(job, "LimitedSolver", lambda _: Solver())
        return run_exams(config(endpoint, folder, **settings))


def identity(record: Record) -> tuple[str, str, str]:
    return record.arm, record.id, record.hash


def test_a_run_of_1_0_is_resumed_and_scored_and_its_unequal_limits_are_named(
    arm_functions: Any,
    tmp_path: Path,
) -> None:
    with FaultyEndpoint(Plan(answers=answers, usage=TOKENS)) as endpoint:
        settings: dict[str, Any] = {"agent": {"max_tokens": 100}}
        before = as_version_1_0(endpoint, tmp_path, total=6, **settings)
        stored = {identity(record) for record in records(tmp_path)}
        scored_again = score_run(open_run(tmp_path / "r"))
        resumed = run_exams(config(endpoint, tmp_path, total=12, **settings))
    old, scored = before.results.benchmarks[0], scored_again.benchmarks[0]
    assert (old.metrics["accuracy"], old.outcomes) == (scored.metrics["accuracy"], scored.outcomes)
    assert "limits_ignored" in [notice.code for notice in scored.notices]
    assert resumed.exit_code == 0
    assert stored < {identity(record) for record in records(tmp_path)}
    baseline = by_arm(resumed)["baseline"]
    assert baseline["outcomes"]["truncated"] == 6, "what was asked later has the limit"
    (notice,) = [n for n in baseline["notices"] if n["code"] == "limits_ignored"]
    assert notice["values"] | {"share": 0} == {
        "part": 6, "whole": 12, "share": 0, "setting": "agent.max_tokens", "most": 100,
    }  # fmt: skip


def test_limits_are_no_part_of_a_request_without_tools(
    arm_functions: Any,
    tmp_path: Path,
) -> None:
    hashes = []
    for name, settings in (("plain", {}), ("limited", {"agent": {"timeout_seconds": 60.0}})):
        with FaultyEndpoint(Plan(answers=answers)) as endpoint:
            run_exams(config(endpoint, tmp_path / name, arms=BASELINE, **settings))
        hashes.append(sorted(record.hash for record in records(tmp_path / name)))
    assert hashes[0] == hashes[1]


@pytest.mark.parametrize("arms", [BASELINE, []], ids=["baseline", "none"])
def test_other_limits_are_another_run(
    arm_functions: Any,
    tmp_path: Path,
    arms: list[dict[str, Any]],
) -> None:
    with FaultyEndpoint(Plan(answers=answers)) as endpoint:
        run_exams(config(endpoint, tmp_path, arms=arms, agent={"timeout_seconds": 60.0}))
        with pytest.raises(UsageError, match=r"agent\.timeout_seconds"):
            run_exams(config(endpoint, tmp_path, arms=arms, agent={"timeout_seconds": 90.0}))
        manifest = json.loads((tmp_path / "r" / "manifest.json").read_text())
        second_run = run_exams(
            config(endpoint, tmp_path, arms=arms, agent={"timeout_seconds": 60.0})
        )
    assert second_run.exit_code == 0
    (facts,) = manifest["arms"].values()
    assert facts == {"limits": {"timeout_seconds": 60.0, "max_tokens": None, "max_cost": None}}


# --- the clock of calls -------------------------------------------------------------------------


def simulate(main: Any) -> Any:
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        return runner.run(main)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let clocks of turns read the simulated time."""
    monkeypatch.setattr(
        "keju.solvers.turn_clock.monotonic", lambda: asyncio.get_running_loop().time()
    )


@pytest.mark.usefixtures("clock")
def test_a_call_that_waits_for_its_server_takes_no_time_of_the_question() -> None:
    class Connection:
        async def call(self, tool: str, arguments: dict[str, Any]) -> str:
            await asyncio.sleep(arguments["seconds"])
            return tool

    async def start() -> Any:
        return Connection()

    async def main() -> list[float]:
        settings = ServerSettings(name="s", command=sys.executable, max_in_flight=1)
        server = SharedServer(settings, start, max_restarts=0)
        await server.open()

        async def question(seconds: float) -> float:
            clock = TurnClock(limit=3.0)
            async with clock.call():
                await server.call("t", {"seconds": seconds}, may_repeat=False)
            return clock.seconds

        return list(await asyncio.gather(question(2.0), question(2.0), question(2.5)))

    assert simulate(main()) == pytest.approx([2.0, 2.0, 2.5])


@pytest.mark.usefixtures("clock")
def test_calls_of_one_turn_share_its_time() -> None:
    async def main() -> tuple[list[str], float]:
        clock, slot = TurnClock(limit=3.0), asyncio.Lock()

        async def call(seconds: float) -> str:
            try:
                async with clock.call():
                    with waiting_for_slot():
                        await slot.acquire()
                    try:
                        await asyncio.sleep(seconds)
                    finally:
                        slot.release()
            except TimeoutError:
                return "cut"
            return "done"

        return [*await asyncio.gather(call(2.0), call(2.0))], clock.seconds

    endings, seconds = simulate(main())
    assert (endings, seconds) == (["done", "cut"], pytest.approx(3.0))
