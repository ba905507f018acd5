"""Runs with arms: the same questions with and without tools, side by side in one run."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from keju.benchmarks import registry
from keju.cli import main
from keju.errors import ConfigError, Notice, UsageError
from keju.models.openai.client import OpenAIModel
from keju.results.score import score_run
from keju.runs.journal import FILE, Records
from keju.runs.run import open_run
from keju.solvers.loop import ToolLoop
from keju.solvers.toolbox import ToolsLost
from keju.task import run_exams
from keju.types import Sample
from tests.support.arms import ARMS, answers, by_arm, config, lookup, many_calls, records
from tests.support.endpoint import FaultyEndpoint
from tests.support.endpoint_faults import FAULTS
from tests.support.judged import verdict
from tests.support.replies import EndpointRequest, Plan
from tests.support.tools import Functions, calling, results_in

pytestmark = pytest.mark.slow


@pytest.fixture
def plan() -> Plan:
    """How the endpoint answers."""
    return Plan(answers=answers)


@pytest.mark.usefixtures("arm_functions")
def test_each_arm_has_its_entry_and_they_are_compared(
    endpoint: FaultyEndpoint, tmp_path: Path
) -> None:
    finished = run_exams(config(endpoint, tmp_path))
    assert finished.exit_code == 0
    entries = by_arm(finished)
    assert list(entries) == ["baseline", "calc"]
    assert entries["calc"]["metrics"]["accuracy"]["value"] == 1.0
    assert entries["baseline"]["metrics"]["accuracy"]["value"] < 1.0
    assert entries["baseline"]["usage"]["requests"] == 24
    assert entries["calc"]["usage"]["requests"] == 48
    (comparison,) = finished.document["comparisons"]
    assert (comparison["base"], comparison["arm"], comparison["n"]) == ("baseline", "calc", 24)
    manifest = json.loads((tmp_path / "r" / "manifest.json").read_text())
    assert len(manifest["benchmarks"]) == 1
    assert manifest["arms"]["calc"]["tools"] == ["lookup"]
    assert manifest["sessions"][0]["episodes_begun"] == 24
    assert manifest["sessions"][0]["episodes_finished"] == 24


def test_prompts_are_the_same_bytes_and_the_transcript_repeats_none(
    arm_functions: Functions, tmp_path: Path
) -> None:
    prompts: dict[bool, Counter[str]] = {True: Counter(), False: Counter()}

    def count_prompts(request: EndpointRequest) -> Any:
        if not results_in(request):
            prompts["tools" in request.body][json.dumps(request.body["messages"])] += 1
        return answers(request)

    with FaultyEndpoint(Plan(answers=count_prompts)) as endpoint:
        run_exams(config(endpoint, tmp_path))
    for probes in prompts.values():  # the preflight's calls
        probes.pop(next(p for p in probes if "one letter" in p or "Say OK" in p), None)
    assert len(prompts[True] & prompts[False]) >= 24
    assert arm_functions.events[0] == "open"
    assert arm_functions.events[-1] == "close"
    acted = [r for r in records(tmp_path) if r.arm == "calc"]
    for record in acted:
        assert record.reply.episode is not None
        assert [t.role for t in record.reply.episode.turns] == ["assistant", "tool", "assistant"]
    lines = (tmp_path / "r" / FILE).read_text().splitlines()
    assert not [line for line in lines if "Answer with the letter" in line]


@pytest.mark.usefixtures("arm_functions")
def test_arms_of_a_question_come_together_in_an_order_drawn_for_each(
    endpoint: FaultyEndpoint, tmp_path: Path
) -> None:
    run_exams(config(endpoint, tmp_path, eval_batch_size=1))
    order = [(record.id, record.arm) for record in records(tmp_path)]
    pairs = [order[i : i + 2] for i in range(0, len(order), 2)]
    assert all(first_arm[0] == second_arm[0] for first_arm, second_arm in pairs)
    assert {first_arm[1] for first_arm, _ in pairs} == {"baseline", "calc"}


@pytest.mark.usefixtures("arm_functions")
def test_a_new_arm_is_growth_and_a_changed_one_is_refused(
    endpoint: FaultyEndpoint, tmp_path: Path
) -> None:
    run_exams(config(endpoint, tmp_path, arms=ARMS[:1]))
    grown = run_exams(config(endpoint, tmp_path))
    assert len(records(tmp_path)) == 48
    assert list(by_arm(grown)) == ["baseline", "calc"]
    requests = endpoint.stats.requests
    run_exams(config(endpoint, tmp_path))
    assert endpoint.stats.requests == requests
    stub = [ARMS[0], ARMS[1] | {"stub_tools": True}]
    with pytest.raises(UsageError, match="arm calc stub_tools: stored none, asked true"):
        run_exams(config(endpoint, tmp_path, arms=stub))
    with pytest.raises(UsageError, match=r"agent\.max_iterations: stored 15, asked 3"):
        run_exams(config(endpoint, tmp_path, agent={"max_iterations": 3}))
    with pytest.raises(UsageError, match="arms: stored"):
        run_exams(config(endpoint, tmp_path, arms=ARMS[:1]))


def test_other_tools_under_the_same_names_are_another_run(
    arm_functions: Functions, endpoint: FaultyEndpoint, tmp_path: Path
) -> None:
    run_exams(config(endpoint, tmp_path))
    arm_functions.tools = (*arm_functions.tools, arm_functions.tools[0].__class__("more"))
    with pytest.raises(UsageError, match="other tools"):
        run_exams(config(endpoint, tmp_path, dataset_args={"demo": {"size": 5}}))


def test_values_of_variables_are_not_stored(tmp_path: Path) -> None:
    from keju.runs.manifest import ManifestFile

    server = {"name": "s", "command": "x", "env": {"TOKEN": "SECRET-1", "OTHER": "${HOME}"}}
    with FaultyEndpoint(Plan(answers=answers)) as endpoint:
        task = config(endpoint, tmp_path, arms=[{"name": "a", "servers": [server]}])
    stored = json.dumps(ManifestFile(tmp_path, task, []).manifest.config)
    assert "SECRET-1" not in stored
    assert "${HOME}" in stored
    assert "TOKEN" in stored
    assert "SECRET-1" not in repr(task)


@pytest.mark.usefixtures("arm_functions")
def test_stored_runs_with_arms_can_be_read_in_every_way(
    endpoint: FaultyEndpoint, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    finished = run_exams(config(endpoint, tmp_path))
    run = str(tmp_path / "r")
    assert main(["score", run, "--json"]) == 0
    scored = json.loads(capsys.readouterr().out)
    for before, after in zip(finished.document["benchmarks"], scored["benchmarks"], strict=True):
        assert after["arm"] == before["arm"]
        assert after["metrics"]["accuracy"] == before["metrics"]["accuracy"]
    for form in ("csv", "jsonl"):
        table = tmp_path / f"table.{form}"
        assert main(["export", run, "--format", form, "--output", str(table)]) == 0
        assert table.read_text().count("calc") == 24
    assert main(["report", run]) == 0


@pytest.mark.usefixtures("arm_functions")
def test_a_dry_run_names_the_arms(
    endpoint: FaultyEndpoint, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "task.json"
    task = {"model": "m", "api_url": endpoint.url, "datasets": ["demo"], "arms": ARMS}
    file.write_text(json.dumps(task))
    assert main(["eval", "--config", str(file), "--dry-run"]) == 0
    output = capsys.readouterr().out
    assert "demo/calc" in output
    assert output.count("first prompt of demo") == 1
    assert "1 to 16 requests" in output


def test_a_model_that_takes_no_conversation_is_refused_before_anything_starts(
    arm_functions: Functions,
    monkeypatch: pytest.MonkeyPatch,
    endpoint: FaultyEndpoint,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(OpenAIModel, "acts", False)
    with pytest.raises(ConfigError, match="cannot use tools"):
        run_exams(config(endpoint, tmp_path))
    monkeypatch.setattr(OpenAIModel, "acts", True)
    monkeypatch.setattr(OpenAIModel, "fixed_history", True)
    with pytest.raises(ConfigError, match="hide_old_env_states"):
        run_exams(config(endpoint, tmp_path, agent={"hide_old_env_states": True}))
    assert arm_functions.events == []
    assert endpoint.stats.requests == 0


@pytest.mark.usefixtures("arm_functions")
def test_a_model_that_never_sees_its_tools_is_refused_with_what_to_add(
    endpoint: FaultyEndpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its endpoint counts the same tokens with tools and without; where the count is certain."""
    monkeypatch.setattr(OpenAIModel, "counts", True)
    with pytest.raises(ConfigError, match=r"never see its tools.* -s agent\.protocol=text "):
        run_exams(config(endpoint, tmp_path))
    assert not (tmp_path / "r" / "records.jsonl").exists()
    assert run_exams(config(endpoint, tmp_path, agent={"protocol": "text"})).exit_code == 0


@pytest.mark.usefixtures("arm_functions")
def test_a_run_with_arms_is_said_again(endpoint: FaultyEndpoint, tmp_path: Path) -> None:
    original = run_exams(config(endpoint, tmp_path))
    replay_settings = {"model": f"replay:{tmp_path / 'r'}", "api_url": None, "run_id": "again"}
    replayed = run_exams(config(endpoint, tmp_path, **replay_settings))
    for arm, entry in by_arm(original).items():
        assert by_arm(replayed)[arm]["metrics"] == entry["metrics"]
    stored = {(r.id, r.arm): r.reply.text for r in records(tmp_path)}
    for record in Records(tmp_path / "again"):
        assert stored[record.id, record.arm] == record.reply.text
        assert (record.reply.episode is not None) == (record.arm == "calc")


def test_one_crash_among_many_samples_at_once_is_one_error(
    arm_functions: Functions, tmp_path: Path
) -> None:
    waiting: list[str] = []

    async def crash(sample: Sample) -> str:
        """Break down for one question, while all the others are being served."""
        waiting.append(sample.id)
        while len(waiting) < 41:
            await asyncio.sleep(0.001)
        if sample.index == 17:
            raise ToolsLost("server_lost", "the server died")
        return sample.target

    arm_functions.functions = {"lookup": crash}
    with FaultyEndpoint(Plan(answers=answers)) as endpoint:
        task = config(
            endpoint,
            tmp_path,
            arms=ARMS[1:],
            eval_batch_size=41,
            dataset_args={"demo": {"size": 41, "subset_list": ["object_counting"]}},
            error_limit=0.5,
        )
        finished = run_exams(task)
    (entry,) = finished.document["benchmarks"]
    assert entry["outcomes"]["correct"] == 40
    assert entry["outcomes"]["error"] == 1
    assert entry["errors"]["kinds"] == {"tools": 1}
    (failed,) = [r for r in records(tmp_path) if r.reply.error is not None]
    assert failed.id.endswith("_17")
    assert failed.reply.episode is not None
    assert failed.reply.episode.stop == "server_lost"
    # What the tools broke is asked again.
    arm_functions.functions = {"lookup": lookup}
    with FaultyEndpoint(Plan(answers=answers)) as endpoint:
        task = task.model_copy(update={"api_url": endpoint.url})
        assert run_exams(task).document["benchmarks"][0]["outcomes"]["correct"] == 41


@pytest.mark.usefixtures("arm_functions")
def test_no_fault_of_the_endpoint_in_the_middle_of_episodes_changes_a_score(
    tmp_path: Path,
) -> None:
    six_calls = partial(many_calls, 6)
    plan = Plan(answers=six_calls, faults=FAULTS, seed=3, retry_after="0.05", stall=1.0)
    with FaultyEndpoint(plan) as faulty:
        task = config(faulty, tmp_path, timeout=0.5, attempts=12, eval_batch_size=16)
        finished = run_exams(task)
        assert set(faulty.stats.faults) == set(FAULTS)
    with FaultyEndpoint(Plan(answers=six_calls)) as good:
        clean = run_exams(config(good, tmp_path / "clean"))
    assert finished.exit_code == 0
    for arm, entry in by_arm(clean).items():
        assert by_arm(finished)[arm]["metrics"] == entry["metrics"]
    transcripts = [
        {
            (r.id, r.arm): [(t.role, t.text, t.kind) for t in r.reply.episode.turns]
            for r in records(folder)
            if r.reply.episode is not None
        }
        for folder in (tmp_path, tmp_path / "clean")
    ]
    assert transcripts[0] == transcripts[1]


@pytest.mark.usefixtures("arm_functions")
def test_a_budget_is_looked_at_in_every_turn(tmp_path: Path) -> None:
    with FaultyEndpoint(Plan(answers=partial(many_calls, 8))) as endpoint:
        task = config(endpoint, tmp_path, arms=ARMS[1:], budget={"requests": 30})
        finished = run_exams(task)
        assert finished.exit_code == 4
        assert endpoint.stats.requests <= 30 + 8 + 3
        sessions = json.loads((tmp_path / "r" / "manifest.json").read_text())["sessions"]
        broken_off = sessions[0]["episodes_begun"] - sessions[0]["episodes_finished"]
        assert 0 < broken_off <= 8
        assert len(records(tmp_path)) == sessions[0]["episodes_finished"]
        # What broken episodes have spent is spent: the same budget allows nothing more.
        requests = endpoint.stats.requests
        assert run_exams(task).exit_code == 4
        assert endpoint.stats.requests - requests <= 3
        resumed = run_exams(task.model_copy(update={"budget": type(task.budget)()}))
    assert by_arm(resumed)["calc"]["n"] == 24
    (interruption,) = [
        n for n in by_arm(resumed)["calc"]["notices"] if n["code"] == "episodes_broken_off"
    ]
    assert interruption["values"] == {"episodes": broken_off}


def test_a_run_that_stops_waits_for_no_tool(
    arm_functions: Functions, endpoint: FaultyEndpoint, tmp_path: Path
) -> None:
    async def wait_forever(sample: Sample) -> str:
        """Hang, but for the first question."""
        if arm_functions.calls["lookup"] > 1:
            await asyncio.sleep(600)
        return sample.target

    arm_functions.functions = {"lookup": wait_forever}
    finished = run_exams(config(endpoint, tmp_path, arms=ARMS[1:], budget={"requests": 9}))
    assert finished.exit_code == 4
    assert arm_functions.events[-1] == "close"
    begun, ended = ({e[1:] for e in arm_functions.events if e[0] == sign} for sign in "+-")
    assert begun == ended


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"protocol": "letters"}, "chat form"),
    ({"generation_config": {"extra_body": {"tools": []}}}, "extra_body"),
    ({"arms": [{"name": "a"}, {"name": "a"}]}, "named twice: a"),
    ({"arms": [{"name": "a", "stub_tools": True}]}, "no tools"),
    ({"arms": [{"name": "a", "tool": []}]}, r"arms\.0\.tool.*tools"),
    ({"agent": {"max_cost": 1}}, "price"),
]


@pytest.mark.parametrize(("settings", "message"), REFUSED)
@pytest.mark.usefixtures("arm_functions")
def test_what_cannot_be_carried_out_is_refused(
    settings: dict[str, Any], message: str, endpoint: FaultyEndpoint, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=message):
        run_exams(config(endpoint, tmp_path, **settings))
    assert endpoint.stats.requests == 0


@pytest.mark.usefixtures("arm_functions")
def test_judged_exams_have_arms_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(registry.BUILT_IN, "open", ("tests.support.open_exam:OPEN",))

    def answer_or_judge(request: EndpointRequest) -> Any:
        if request.body["model"] == "judge":
            return verdict(request)
        if "tools" in request.body and not results_in(request):
            return calling(("lookup", {}))
        return f"It is {results_in(request)[-1]}." if results_in(request) else "No idea."

    with FaultyEndpoint(Plan(answers=answer_or_judge)) as endpoint:
        judge = {"model": "judge", "api_url": endpoint.url}
        settings = {"datasets": ["open"], "dataset_args": {}, "limit": 6, "judge": judge}
        finished = run_exams(config(endpoint, tmp_path, **settings))
    assert finished.exit_code == 0
    entries = by_arm(finished)
    assert [entries[arm]["judge"]["judged"] for arm in ("baseline", "calc")] == [6, 6]
    assert entries["calc"]["outcomes"]["correct"] == 6
    assert entries["baseline"]["outcomes"]["incorrect"] == 6


@pytest.mark.usefixtures("arm_functions")
def test_what_is_told_of_tools_stands_on_the_arms_that_have_them(
    endpoint: FaultyEndpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool_notices = [Notice("tools_take_no_tokens")]
    monkeypatch.setattr(ToolLoop, "notices", property(lambda _: tool_notices))
    entries = by_arm(run_exams(config(endpoint, tmp_path)))
    codes = {arm: [n["code"] for n in entry["notices"]] for arm, entry in entries.items()}
    assert "tools_take_no_tokens" in codes["calc"]
    assert "tools_take_no_tokens" not in codes["baseline"]


@pytest.mark.usefixtures("arm_functions")
def test_a_run_that_is_scored_again_costs_what_it_cost(
    endpoint: FaultyEndpoint, tmp_path: Path
) -> None:
    price = {"input": 1.0, "output": 2.0}
    finished = run_exams(config(endpoint, tmp_path, price=price))
    rescored = score_run(open_run(tmp_path / "r"))
    assert [entry.usage.cost for entry in rescored.benchmarks] == [
        entry.usage.cost for entry in finished.results.benchmarks
    ]
    assert rescored.comparisons[0].cost == finished.results.comparisons[0].cost is not None
