"""``keju gate`` with two endpoints: both are asked the same until the verdict is sure."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from keju.runs.journal import FILE, Records
from tests.cli.conftest import Keju
from tests.cli.test_until import case_of, right_with
from tests.support.endpoint import FaultyEndpoint
from tests.support.own_exam import write_exam
from tests.support.processes import environment, wait_for_records
from tests.support.replies import EndpointRequest, Plan

pytestmark = pytest.mark.slow

SIDES = ("candidate", "baseline")


def mostly_right(request: EndpointRequest) -> str:
    """Right on all questions but each twentieth."""
    number = case_of(request)
    return f"Answer: {'B' if number.isdigit() and int(number) % 20 == 0 else 'A'}"


class Gate:
    """``keju gate`` of two endpoints, with further flags."""

    def __init__(self, keju: Keju, new: FaultyEndpoint, old: FaultyEndpoint) -> None:
        self.keju, self.new, self.old = keju, new, old

    def argv(self, *flags: str) -> list[str]:
        urls = ("--api-url", self.new.url, "--baseline-url", self.old.url)
        exam = ("--datasets", "custom:quiz", "--margin", "0.05", "--no-report", "--json")
        return ["gate", "--model", "m", *urls, *exam, "--eval-batch-size", "8", *flags]

    def __call__(self, *flags: str) -> Any:
        return self.keju(*self.argv(*flags))


@pytest.fixture
def gate(keju: Keju) -> Iterator[Gate]:
    plan = Plan(answers=mostly_right)
    with FaultyEndpoint(plan) as new, FaultyEndpoint(plan) as old:
        write_exam()
        yield Gate(keju, new, old)


def ids(run: str) -> list[str]:
    return [record.id for record in Records(Path("runs", run))]


def asked_ids(name: str) -> list[str]:
    """The questions of both runs, which are the same."""
    candidate, baseline = (ids(f"{name}-{side}") for side in SIDES)
    assert len(set(candidate)) == len(candidate)
    assert sorted(candidate) == sorted(baseline)
    return candidate


def test_an_equal_copy_passes_early_and_a_worse_one_fails_early(gate: Gate) -> None:
    ran = gate("--run-id", "g")
    assert ran.code == 0, ran.err
    (row,) = ran.json["gates"]
    (asked,) = ran.json["asked"]
    assert (ran.json["verdict"], row["sure_of"], row["n"]) == ("pass", 800, asked["asked"])
    assert 50 < asked["asked"] < asked["whole"] == 800
    assert len(asked_ids("g")) == asked["asked"]
    assert "compare_stopped" not in {notice["code"] for notice in ran.json["notices"]}
    for side, endpoint in (("candidate", gate.new), ("baseline", gate.old)):
        assert ran.json["spent"][side]["requests"] >= asked["asked"]
        assert endpoint.stats.requests < 400
        manifest = json.loads(Path("runs", f"g-{side}", "manifest.json").read_text("utf-8"))
        assert manifest["complete"] is True
        assert manifest["stopped"]["quiz"]["verdict"] == "pass"
    stored = gate.keju(
        "gate", "g-candidate", "--baseline", "g-baseline", "--margin", "0.05", "--json"
    )
    assert (stored.code, stored.json["gates"]) == (0, ran.json["gates"])
    wider = gate.keju(
        "gate", "g-candidate", "--baseline", "g-baseline", "--margin", "0.2", "--json"
    )
    assert "sure_of" not in wider.json["gates"][0]
    gate.new.plan = Plan(answers=right_with(0.6))
    worse = gate("--run-id", "worse")
    assert (worse.code, worse.json["verdict"]) == (1, "fail")
    assert worse.json["gates"][0]["sure_of"] == 800
    assert len(asked_ids("worse")) < 400


def test_a_named_gate_that_is_decided_asks_nothing_more_and_a_smaller_margin_does(
    gate: Gate,
) -> None:
    first = gate("--run-id", "g")
    requests = gate.new.stats.requests
    again = gate("--run-id", "g")
    assert (again.code, again.json["gates"]) == (0, first.json["gates"])
    assert gate.new.stats.requests == requests
    narrower = gate("--run-id", "g", "--margin=0.04")
    assert narrower.code == 2, "a flag is used once"
    narrower = gate.keju(
        *[word if word != "0.05" else "0.03" for word in gate.argv("--run-id", "g")]
    )
    assert narrower.code == 0
    assert narrower.json["asked"][0]["asked"] > first.json["asked"][0]["asked"]
    assert gate.new.stats.requests > requests
    assert len(asked_ids("g")) == narrower.json["asked"][0]["asked"]


def test_without_a_sure_verdict_all_is_asked_and_the_ordinary_gate_decides(gate: Gate) -> None:
    gate.new.plan = Plan(answers=right_with(0.7, "new"))
    gate.old.plan = Plan(answers=right_with(0.7, "old"))
    ran = gate("--run-id", "g", "--limit", "40")
    assert ran.json["asked"] == [{"exam": "quiz", "asked": 80, "whole": 80}]
    assert "sure_of" not in ran.json["gates"][0]
    assert ran.code == {"pass": 0, "fail": 1, "inconclusive": 3}[ran.json["verdict"]]
    usual = gate.keju(
        "gate", "g-candidate", "--baseline", "g-baseline", "--margin", "0.05", "--json"
    )
    assert (usual.code, usual.json["gates"]) == (ran.code, ran.json["gates"])


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_the_same_command_goes_on_where_it_was_ended(gate: Gate, number: signal.Signals) -> None:
    whole = gate("--run-id", "whole")
    for endpoint in (gate.new, gate.old):
        endpoint.plan = Plan(answers=mostly_right, latency=0.02)
    child = subprocess.Popen(
        [sys.executable, "-m", "keju", *gate.argv("--quiet")],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    run = Path("runs", "gate-custom-quiz-m-candidate")
    wait_for_records(run / FILE, 60, child)
    child.send_signal(number)
    output, messages = child.communicate(timeout=60)
    assert run.is_dir(), messages
    assert "Traceback" not in messages
    if number is signal.SIGINT:
        assert child.returncode == 130
        assert "keju gate" in messages
        document = json.loads(output)
        assert (document["verdict"], document["complete"]) == (None, False)
    before = ids(run.name)
    for endpoint in (gate.new, gate.old):
        endpoint.plan = Plan(answers=mostly_right)
    resumed = gate()
    assert resumed.code == 0
    assert resumed.json["run"] == run.name, "the unfinished runs, and no new ones"
    assert resumed.json["asked"] == whole.json["asked"]
    assert ids(run.name)[: len(before)] == before
    assert sorted(asked_ids("gate-custom-quiz-m")) == sorted(ids("whole-candidate"))
    assert gate().json["run"] == "gate-custom-quiz-m-2-candidate", "a complete gate is asked anew"


def test_an_endpoint_that_is_not_there_stops_both(gate: Gate) -> None:
    words = [word if word != gate.new.url else "http://127.0.0.1:9/v1" for word in gate.argv()]
    ran = gate.keju(*words, "--give-up-after", "1")
    assert ran.code == 5
    assert "the candidate" in ran.err
    assert "resume with" in ran.err
    assert ran.json["complete"] is False
    assert gate.old.stats.requests < 100, "the other endpoint is not asked for nothing"
    assert gate().code == 0


def test_keys_go_only_to_their_own_host(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    gate.new.plan = gate.old.plan = Plan(answers=mostly_right, key="secret-new")
    old_url = gate.old.url.replace("127.0.0.1", "localhost")
    words = [word if word != gate.old.url else old_url for word in gate.argv()]
    refused = gate.keju(*words, "--api-key", "secret-new", "--run-id", "one")
    assert refused.code == 5, "the key of the candidate does not go to another host"
    assert "--baseline-api-key" in refused.err
    assert "the baseline" in refused.err
    gate.old.plan = Plan(answers=mostly_right, key="secret-old")
    monkeypatch.setenv("KEJU_BASELINE_API_KEY", "secret-old")
    assert gate.keju(*words, "--api-key", "secret-new", "--run-id", "two").code == 0
    for path in Path("runs").rglob("*"):
        assert not path.is_file() or b"secret-" not in path.read_bytes()


def test_a_budget_covers_both_endpoints(gate: Gate) -> None:
    ran = gate("--budget", "requests=80", "--run-id", "g")
    assert ran.code == 4
    assert sum(spent["requests"] for spent in ran.json["spent"].values()) <= 80
    assert gate("--run-id", "g").code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--model m --api-url http://h/v1 --datasets quiz", "--margin"),
        ("--model m --api-url http://h/v1 --datasets quiz --margin 0.1", "--baseline-url"),
        ("g --model m --baseline h --margin 0.1", "--model"),
        ("g --max-cost 3 --baseline h --margin 0.1", "--max-cost"),
        ("--model m --at-least 0.1", "RUN"),
        ("--model scripted --baseline-model scripted --datasets demo --margin 0.1", "differ"),
        (
            "--model m --api-url http://h/v1 --baseline-model embedded --baseline-url http://o/v1 "
            "--datasets demo --margin 0.1",
            "--baseline-url",
        ),
    ],
)
def test_settings_without_effect_are_refused(words: str, said: str, keju: Keju) -> None:
    ran = keju("gate", *words.split())
    assert ran.code == 2
    assert said in ran.err
    assert not Path("runs").exists()


def test_two_exams_are_decided_one_by_one(gate: Gate) -> None:
    write_exam(Path("second"), sizes={"only": 300})
    ran = gate("--datasets", "custom:second", "--run-id", "g")
    assert ran.code == 0, ran.err
    assert {row["exam"] for row in ran.json["gates"]} == {"quiz", "second"}
    assert all(row["verdict"] == "pass" for row in ran.json["gates"])
    assert {row["exam"]: row["whole"] for row in ran.json["asked"]} == {"quiz": 800, "second": 300}


def test_models_in_this_process_can_be_gated(keju: Keju) -> None:
    assert keju("eval", "--model", "scripted", "--datasets", "demo", "--run-id", "s").code == 0
    ran = keju(
        *("gate", "--model", "replay:s", "--baseline-model", "scripted", "--datasets", "demo"),
        *("--margin", "0.2", "--json"),
    )
    assert ran.code in (0, 3), ran.err
    assert ran.json["gates"][0]["value"] == 0
