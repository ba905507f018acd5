"""Runs on three nodes: equal to the plain run, whoever is killed on the way."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from keju.runs.journal import Records
from keju.types import Record
from tests.cluster.conftest import Keju, Ran, Raylets, wait_until, with_signal
from tests.support.endpoint import FaultyEndpoint
from tests.support.replies import EndpointRequest, Plan, draw

pytestmark = pytest.mark.slow

KEY = "sk-never-to-be-seen"
SIZE = 100
QUESTIONS = 6 * SIZE


def answer(request: EndpointRequest) -> str:
    return f"So the answer is ({'ABCD'[int(draw(request.text) * 4)]})."


def plan(latency: float = 0.0, **faults: float) -> Plan:
    return Plan(answers=answer, key=KEY, latency=latency, faults=faults)


def words(endpoint: FaultyEndpoint, run: str, *flags: str, size: int = SIZE) -> list[str]:
    settings = json.dumps({"demo": {"size": size}})
    return [
        *("eval", "--model", "m", "--api-url", endpoint.url, "--api-key", KEY, "--json", "-q"),
        *("--datasets", "demo", "--dataset-args", settings, "--run-id", run, "--no-report"),
        *("--retry-interval", "0.05", "--eval-batch-size", "12", *flags),
    ]


def ray(raylets: Raylets, **settings: Any) -> list[str]:
    return [
        *("--executor", "ray", "--ray-address", raylets.address),
        *("--ray", json.dumps({"patience": 30, "resources": {"place": 1}} | settings)),
    ]


def numbers(ran: Ran) -> Any:
    return [(e["n"], e["metrics"], e["outcomes"], e["subsets"]) for e in ran.json["benchmarks"]]


def records(keju: Keju, run: str) -> dict[str, Record]:
    """The records of a run, of which no question may have two."""
    lines = list(Records(keju.folder / "runs" / run))
    by_id = {record.id: record for record in lines}
    assert len(by_id) == len(lines)
    return by_id


def hashes(keju: Keju, run: str) -> dict[str, str]:
    return {key: record.hash for key, record in records(keju, run).items()}


def cluster_of(keju: Keju, run: str) -> dict[str, Any]:
    manifest = json.loads((keju.folder / "runs" / run / "manifest.json").read_text())
    cluster: dict[str, Any] = manifest["sessions"][-1]["cluster"]
    return cluster


def same_as_plain(keju: Keju, endpoint: FaultyEndpoint, ran: Ran, run: str) -> None:
    assert ran.code == 0, ran.err
    plain = keju(*words(endpoint, "plain"))
    assert numbers(ran) == numbers(plain)
    assert hashes(keju, run) == hashes(keju, "plain")


def test_three_nodes_give_the_results_of_a_plain_run(keju: Keju, raylets: Raylets) -> None:
    with FaultyEndpoint(plan(0.05, **{"429": 0.05, "drop": 0.05})) as endpoint:
        ran = keju(*words(endpoint, "r", *ray(raylets), "--attempts", "20"))
        same_as_plain(keju, endpoint, ran, "r")
    assert cluster_of(keju, "r") == {"executor": "ray", "actors": 3, "nodes": 3, "lost": 0}
    assert raylets.actors() == []
    assert len(raylets.alive()) == 3
    # The key was an argument of the command, and of calls; nobody keeps it.
    assert KEY not in str(raylets.ask("jobs"))
    for place in (raylets.folder, keju.folder):
        logs = [path for path in place.rglob("*") if path.is_file()]
        assert logs
        assert not [path for path in logs if KEY.encode() in path.read_bytes()]


def test_killed_actors_and_a_killed_node_change_nothing(keju: Keju, raylets: Raylets) -> None:
    with FaultyEndpoint(plan(latency=0.1)) as endpoint:
        child = keju.start(*words(endpoint, "r", *ray(raylets)))
        keju.wait_for_records("r", 30)
        first_node, second_node, *_ = raylets.alive()
        for pid in raylets.actors(first_node):
            with_signal(pid, signal.SIGKILL)
        keju.wait_for_records("r", keju.records("r") + 30)
        raylets.kill_node(second_node)
        ran = keju.finish(child)
        endpoint.plan = plan()
        same_as_plain(keju, endpoint, ran, "r")
    assert cluster_of(keju, "r")["lost"] >= 2


def test_a_killed_driver_goes_on_without_ray_and_with_it(keju: Keju, raylets: Raylets) -> None:
    with FaultyEndpoint(plan(latency=0.1)) as endpoint:
        for ray_flags in (ray(raylets), [], ray(raylets)):
            before = keju.records("r")
            child = keju.start(*words(endpoint, "r", *ray_flags))
            keju.wait_for_records("r", before + 30)
            child.send_signal(signal.SIGKILL)
            child.communicate()
        wait_until(lambda: raylets.actors() == [])
        endpoint.plan = plan()
        ran = keju(*words(endpoint, "r"))
        same_as_plain(keju, endpoint, ran, "r")


def test_what_hangs_is_found_and_replaced(keju: Keju, raylets: Raylets) -> None:
    stopped: list[int] = []
    with FaultyEndpoint(plan(latency=0.1)) as endpoint:
        child = keju.start(*words(endpoint, "r", *ray(raylets, patience=8)))
        try:
            keju.wait_for_records("r", 30)
            first_node, second_node, *_ = raylets.alive()
            stopped += [*raylets.actors(first_node)[:1], second_node]  # a worker, and a node
            for pid in stopped:
                with_signal(pid, signal.SIGSTOP)
            ran = keju.finish(child)
        finally:
            for pid in stopped:
                with_signal(pid, signal.SIGCONT)
        endpoint.plan = plan()
        same_as_plain(keju, endpoint, ran, "r")
    raylets.kill_node(second_node)  # Ray has given it up
    assert cluster_of(keju, "r")["lost"] >= 1


def test_without_a_place_the_run_ends_and_can_be_resumed(keju: Keju, raylets: Raylets) -> None:
    with FaultyEndpoint(plan()) as endpoint:
        nowhere = ray(raylets, resources={"nowhere": 1}, patience=2)
        ran = keju(*words(endpoint, "r", *nowhere))
        assert ran.code == 4
        assert "no node has a place for an actor, which needs 1 nowhere" in ran.err
        assert "Traceback" not in ran.err
        same_as_plain(keju, endpoint, keju(*words(endpoint, "r", *ray(raylets))), "r")


def test_ctrl_c_drains_and_the_second_one_ends(keju: Keju, raylets: Raylets) -> None:
    for times, latency in ((1, 0.3), (2, 20.0)):
        run = f"r{times}"
        with FaultyEndpoint(
            Plan(answers=answer, key=KEY, latency={0.05: 0.9, latency: 0.1})
        ) as endpoint:
            child = keju.start(*words(endpoint, run, *ray(raylets)))
            keju.wait_for_records(run, 20)
            for _ in range(times):
                child.send_signal(signal.SIGINT)
            ran = keju.finish(child)
            answered = endpoint.stats.answered
        assert ran.code == 130, ran.err
        assert "--resume --executor ray" in ran.err
        assert "Traceback" not in ran.err
        assert ran.json["complete"] is False
        if times == 1:  # all that was answered was saved, beside one knock of each actor that began
            assert answered - 3 <= len(records(keju, run)) < answered
        wait_until(lambda: raylets.actors() == [])
    assert len(raylets.alive()) == 3


def test_a_cluster_that_is_not_there_is_refused_in_one_line(keju: Keju, raylets: Raylets) -> None:
    arguments = (
        "eval",
        "-m",
        "scripted",
        "--datasets",
        "demo",
        "-q",
        "--executor",
        "ray",
        "--json",
    )
    patience = ("--ray", "patience=20")
    nobody = ("--ray-address", "127.0.0.1:6399")
    wrong_token = {"RAY_AUTH_TOKEN_PATH": "", "RAY_AUTH_TOKEN": "f" * 64}
    for ran in (
        keju(*arguments, *patience, *nobody),
        keju(*arguments, *patience, RAY_ADDRESS="127.0.0.1:6399"),
        keju(*arguments, *patience, "--ray-address", raylets.address, **wrong_token),
    ):
        assert ran.code == 2, ran.err
        assert ran.json["error"]["code"] == "ray_no_cluster"
        assert ran.err.count("\n") == 1, ran.err
    assert "token is missing or incorrect" in ran.err


def test_the_loss_of_the_head_loses_no_line(python: str, tmp_path: Path) -> None:
    raylets = Raylets(python, nodes=1)
    keju = Keju(python, tmp_path, raylets.around)
    try:
        with FaultyEndpoint(plan(latency=0.2)) as endpoint:
            short = {"RAY_gcs_rpc_server_reconnect_timeout_s": "2"}
            child = keju.start(*words(endpoint, "r", *ray(raylets)), **short)
            keju.wait_for_records("r", 20)
            with_signal(raylets.cluster_state["gcs"], signal.SIGKILL)
            ran = keju.finish(child)
            assert ran.code != 0 or ran.json["benchmarks"][0]["n"] == QUESTIONS
            endpoint.plan = plan()
            same_as_plain(keju, endpoint, keju(*words(endpoint, "r")), "r")
    finally:
        raylets.close()


@pytest.mark.parametrize("place", ["cluster", "local"])
def test_local_models_on_a_cluster(place: str, keju: Keju, raylets: Raylets, python: str) -> None:
    look = "import os; from keju.models import weights as w; print(w.find_file(w.EMBEDDED, os.environ))"
    found = subprocess.run(
        [python, "-c", look], capture_output=True, env=keju.around, text=True, check=True
    )
    if found.stdout.strip() == "None":
        pytest.skip("the embedded model is not installed there")
    common = [
        "eval",
        "--model",
        "embedded",
        "--datasets",
        "demo",
        "--protocol",
        "letters",
        "-q",
        "--json",
    ]
    common += ["--dataset-args", json.dumps({"demo": {"size": 3}})]
    ray_flags = (
        ray(raylets) if place == "cluster" else ["--executor", "ray", "--ray-address", "local"]
    )
    around = {"KEJU_TEST_MARK": f"mark-{place}"}
    ran = keju(*common, "--run-id", "r", *ray_flags, **around)
    assert ran.code == 0, ran.err
    assert ran.err == ""
    plain = keju(*common, "--run-id", "plain")
    assert ran.json["benchmarks"][0]["n"] == plain.json["benchmarks"][0]["n"] == 18
    ray_records, plain_records = records(keju, "r"), records(keju, "plain")
    assert hashes(keju, "r") == hashes(keju, "plain")
    for key, record in ray_records.items():
        gaps = gap(record), gap(plain_records[key])
        if record.readings[0].answer.value != plain_records[key].readings[0].answer.value:
            assert min(gaps) < 1e-3
    cluster = cluster_of(keju, "r")
    assert cluster["lost"] == 0
    assert cluster["actors"] == (3 if place == "cluster" else 1)
    if place == "local":  # nothing is left of it
        wait_until(lambda: not marked(around["KEJU_TEST_MARK"]))


def gap(record: Record) -> float:
    """Between the likeliest label and the next."""
    best_value, next_value, *_ = sorted((record.reply.label_logprobs or {}).values(), reverse=True)
    return best_value - next_value


def marked(mark: str) -> list[int]:
    """The processes that have a word in their environment."""
    pids = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes():
                pids.append(int(folder.name))
        except OSError:
            continue
    return pids
