"""Actors that ask, be lost and be replaced: what a run is worth does not depend on them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from keju import messages
from keju.config import Budget, TaskConfig
from keju.engine.channel import Channel, ChannelLimits
from keju.engine.cluster import nodes as ray_nodes
from keju.engine.cluster.actor import Actor, divide_slots
from keju.engine.cluster.executor import ActorHandle, RayExecutor, Worker
from keju.engine.cluster.nodes import ActorResources
from keju.engine.cluster.wire import ActorReady, ActorReport, decode_report, encode
from keju.engine.limits import SpendingMeter
from keju.models.registry import make_model
from keju.runs.journal import Records
from tests.cli.conftest import Keju
from tests.cli.conftest import keju as keju
from tests.support.actors import PretendedActor, pretended
from tests.support.endpoint import FaultyEndpoint
from tests.support.replies import EndpointRequest, Plan, draw

pytestmark = pytest.mark.slow

SIZE = 40
QUESTIONS = 6 * SIZE


def answer(request: EndpointRequest) -> str:
    return f"So the answer is ({'ABCD'[int(draw(request.text) * 4)]})."


def words(endpoint: FaultyEndpoint, run: str, *flags: str, size: int = SIZE) -> list[str]:
    settings = json.dumps({"demo": {"size": size}})
    return [
        *("eval", "--model", "m", "--api-url", endpoint.url, "--datasets", "demo", "-q", "--json"),
        *("--dataset-args", settings, "--run-id", run, "--retry-interval", "0.01", *flags),
    ]


RAY = ("--executor", "ray")


def numbers(document: dict[str, Any]) -> Any:
    return [(e["n"], e["metrics"], e["outcomes"], e["subsets"]) for e in document["benchmarks"]]


def record_hashes(run: str) -> dict[tuple[str, int], str]:
    records = [
        answered_record
        for answered_record in Records(Path("runs", run))
        if answered_record.reply.error is None
    ]
    by_key = {(record.id, record.epoch): record.hash for record in records}
    assert len(by_key) == len(records)
    return by_key


def test_a_run_with_actors_is_the_run_without(keju: Keju, monkeypatch: pytest.MonkeyPatch) -> None:
    with FaultyEndpoint(Plan(answers=answer, faults={"429": 0.1, "drop": 0.05})) as endpoint:
        plain = keju(*words(endpoint, "plain", "--attempts", "20"))
        endpoint.stats.attempts.clear()
        with pretended(monkeypatch) as opened:
            ran = keju(*words(endpoint, "ray", *RAY, "--attempts", "20"))
        assert ran.code == plain.code == 0, ran.err
    assert numbers(ran.json) == numbers(plain.json)
    assert record_hashes("ray") == record_hashes("plain")
    assert len(opened[0].handle) == 3
    manifest = json.loads(Path("runs/ray/manifest.json").read_text())
    expected_cluster = {"executor": "ray", "actors": 3, "nodes": 3, "lost": 0}
    assert manifest["sessions"][0]["cluster"] == expected_cluster
    assert manifest["config"].get("executor") is None
    usage = {"requests": 0, "input_tokens": 0, "output_tokens": 0, "retries": 0}
    sums = [
        {
            key: json.loads(Path(f"runs/{run}/manifest.json").read_text())["sessions"][0][key]
            for key in usage
        }
        for run in ("plain", "ray")
    ]
    assert sums[0]["output_tokens"] == sums[1]["output_tokens"]
    assert sums[1]["requests"] == QUESTIONS + sum(
        sum(fault.sent for fault in record.faults) for record in Records(Path("runs/ray"))
    )


def test_lost_actors_cost_nothing_but_what_they_had_in_their_hands(
    keju: Keju, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports: Counter[int] = Counter()

    def fate(worker: PretendedActor, report: ActorReport) -> str:
        reports[worker.number] += 1
        # Two alone, since a question that is lost with three actors is an error.
        return "lost" if worker.number < 2 and reports[worker.number] == 2 else "twice"

    with FaultyEndpoint(Plan(answers=answer, latency=0.01)) as endpoint:
        plain = keju(*words(endpoint, "plain"))
        with pretended(monkeypatch, fate=fate) as opened:
            ran = keju(*words(endpoint, "ray", *RAY))
        assert ran.code == 0, ran.err
    assert len(opened[0].handle) == 5
    assert numbers(ran.json) == numbers(plain.json)
    assert record_hashes("ray") == record_hashes("plain")
    manifest = json.loads(Path("runs/ray/manifest.json").read_text())
    assert manifest["sessions"][0]["cluster"]["lost"] == 2


def test_a_question_that_ends_its_actors_is_an_error_and_is_asked_again(
    keju: Keju, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers so late that its actor is always lost while it is asked."""

    def slow(request: EndpointRequest) -> bool:
        return draw(request.text, "slow") < 0.01

    poisoned: set[int] = set()
    with FaultyEndpoint(Plan(answers=answer, latency={0.0: 0.99, 5.0: 0.01})) as endpoint:

        def fate(worker: PretendedActor, report: ActorReport) -> str:
            stuck = report.begun and not report.answers
            poisoned.update([worker.number] if stuck else [])
            return "lost" if stuck else ""

        with pretended(monkeypatch, nodes=1, fate=fate):
            ran = keju(
                *words(endpoint, "ray", *RAY, "--error-limit", "0.5", "--eval-batch-size", "4")
            )
        assert ran.code == 0, ran.err
        (entry,) = ran.json["benchmarks"]
        assert entry["n"] == QUESTIONS - entry["outcomes"]["error"]
        assert 0 < entry["outcomes"]["error"] < 12
        endpoint.plan = Plan(answers=answer)
        second_run = keju(*words(endpoint, "ray"))
        assert second_run.json["benchmarks"][0]["outcomes"]["error"] == 0
    assert len(poisoned) >= 3


def test_actors_that_never_answer_end_the_run_which_goes_on_without_them(
    keju: Keju, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FaultyEndpoint(Plan(answers=answer)) as endpoint:
        with pretended(monkeypatch, nodes=1, fate=lambda _hand, _report: "lost") as opened:
            ran = keju(*words(endpoint, "r", *RAY))
        assert ran.code == 4
        assert "no actor is left" in ran.err
        assert "--resume --executor ray" in ran.err
        assert len(opened[0].handle) == 5
        ran = keju(*words(endpoint, "r"))
        assert ran.code == 0
        assert ran.json["benchmarks"][0]["n"] == QUESTIONS
    record_hashes("r")


def test_a_run_goes_on_with_and_without_actors(keju: Keju, monkeypatch: pytest.MonkeyPatch) -> None:
    budget = ("--budget", "requests=70")
    with FaultyEndpoint(Plan(answers=answer)) as endpoint:
        plain = keju(*words(endpoint, "plain"))
        with pretended(monkeypatch):
            assert keju(*words(endpoint, "r", *RAY, *budget)).code == 4
            answered_before = len(record_hashes("r"))
            assert keju(*words(endpoint, "r", "--budget", "requests=140")).code == 4
            assert answered_before < len(record_hashes("r"))
            last_run = keju(*words(endpoint, "r", *RAY))
    assert last_run.code == 0
    assert numbers(last_run.json) == numbers(plain.json)
    assert record_hashes("r") == record_hashes("plain")


@pytest.mark.parametrize("most_requests", [3, 50])
def test_a_budget_of_requests_is_kept_though_actors_repeat_what_failed(
    most_requests: int, keju: Keju, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FaultyEndpoint(Plan(answers=answer, faults={"500": 0.4})) as endpoint:
        with pretended(monkeypatch):
            ran = keju(*words(endpoint, "r", *RAY, "--budget", f"requests={most_requests}"))
        preflights = 3 * 6  # each of the three actors knocks at most six times
        assert ran.code == 4
        assert f"the budget of {most_requests} requests" in ran.err
        session = json.loads(Path("runs/r/manifest.json").read_text())["sessions"][0]
        assert session["requests"] == most_requests
        assert endpoint.stats.requests <= most_requests + preflights
    assert ran.json["benchmarks"][0]["outcomes"]["error"] == 0


def test_rules_that_stop_early_decide_alike(keju: Keju, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = ("--until-ci", "0.09")
    with FaultyEndpoint(Plan(answers=answer)) as endpoint:
        plain = keju(*words(endpoint, "plain", *rule, size=200))
        with pretended(monkeypatch):
            ran = keju(*words(endpoint, "ray", *rule, *RAY, size=200))
    assert numbers(ran.json) == numbers(plain.json)
    assert record_hashes("ray") == record_hashes("plain")
    assert 0 < len(record_hashes("ray")) < 1200


def test_what_stops_a_channel_stops_the_run(keju: Keju, monkeypatch: pytest.MonkeyPatch) -> None:
    with FaultyEndpoint(Plan(answers=answer, key="sk-right-key")) as endpoint:
        with pretended(monkeypatch):
            ran = keju(*words(endpoint, "r", *RAY, "--api-key", "sk-wrong-key"))
        assert ran.code == 5
        assert "key" in ran.err
        endpoint.plan = Plan(answers=answer)
        reports = 0

        def fate(_: PretendedActor, report: ActorReport) -> str:
            nonlocal reports
            reports += 1
            if reports == 3:
                endpoint.plan = Plan(key="sk-another")
            return ""

        with pretended(monkeypatch, fate=fate):
            ran = keju(*words(endpoint, "r2", *RAY))
    assert ran.code == 5
    assert "refuses" in ran.err
    assert len(record_hashes("r2")) > 0


def test_a_setting_of_ray_needs_its_executor_and_tools_do_not_go_with_it(keju: Keju) -> None:
    arguments = ("eval", "-m", "scripted", "--datasets", "demo", "-q")
    ran = keju(*arguments, "--ray-address", "local")
    assert (ran.code, "--executor ray" in ran.err) == (2, True)
    ran = keju(*arguments, *RAY, "--ray-address", "ray://host:10001")
    assert (ran.code, "address" in ran.err) == (2, True)
    ran = keju("eval", "-m", "replay:x", "--datasets", "demo", *RAY, "-q")
    assert ran.code == 2


def test_tools_are_refused_in_one_line(keju: Keju, monkeypatch: pytest.MonkeyPatch) -> None:
    with pretended(monkeypatch) as opened, FaultyEndpoint() as endpoint:
        flags = ("--tools", "python")
        ran = keju(*words(endpoint, "r", *RAY, *flags))
        dry = keju(*words(endpoint, "r", *RAY, *flags, "--dry-run"))
    for outcome in (ran, dry):
        assert outcome.code == 2
        assert "leave out --executor ray" in outcome.err
    assert not opened


def test_without_ray_one_line_says_what_to_install(
    keju: Keju, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_nodes, "find_spec", lambda _: None)
    ran = keju("eval", "-m", "scripted", "--datasets", "demo", *RAY, "-q")
    assert ran.code == 2
    assert "pip install 'keju[ray]'" in ran.err
    assert not Path("runs").exists()


def test_places_are_counted_node_by_node() -> None:
    nodes = [{"CPU": 4.0}, {"CPU": 7.0, "GPU": 2.0}, {"GPU": 1.0, "own": 1.0}]
    assert ActorResources(0, 0).count_places(nodes) == 3
    assert ActorResources(2, 0).count_places(nodes) == 5
    assert ActorResources(0, 0.5).count_places(nodes) == 6
    assert ActorResources(1, 1).count_places(nodes) == 2
    assert ActorResources(0, 0, {"own": 1}).count_places(nodes) == 1
    assert [divide_slots(10, part, 3) for part in range(3)] == [4, 3, 3]
    assert sum(divide_slots(7, part, 7) for part in range(7)) == 7


def test_the_driver_says_in_its_own_language_what_actors_wait_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = TaskConfig(model="scripted", datasets=["demo"])
    model = make_model(config)
    monkeypatch.setattr(Channel, "pause", "rate")
    actor = Actor()
    actor._channel = Channel(model, ChannelLimits.of(config, model))
    monkeypatch.setattr(messages, "_language", "en")  # as in a process that was started elsewhere
    data = encode(actor._report(cast("Any", SimpleNamespace(take_answers=list, keys_in_flight={}))))
    executor, worker = (
        RayExecutor(config, model, SpendingMeter(Budget(), None)),
        Worker(0, cast("ActorHandle", None)),
    )
    worker.opened, worker.last_report = ActorReady(), decode_report(data)
    executor._workers[0] = worker
    monkeypatch.setattr(messages, "_language", "zh")
    assert executor.waiting_for == "1 个 actor 中的 1 个：速率限制"
    monkeypatch.setattr(messages, "_language", "en")
    assert executor.waiting_for == "1 of 1 actors: the rate limit"
