"""Matrix: every model answers every exam, with shared limits and one report; no question is asked twice."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Keju
from tests.matrix.conftest import PREFLIGHT, SIZE, Asking, WritePlan
from tests.support.endpoint import FaultyEndpoint

pytestmark = pytest.mark.slow

EXAMS = ("north", "east", "south", "west")


def cells(document: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(cell["model"], cell["exam"]): cell for cell in document["cells"]}


def test_three_models_and_four_exams_give_one_report_and_a_fourth_model_asks_its_own_alone(
    keju: Keju, asking: Asking, write_plan: WritePlan, tmp_path: Path
) -> None:
    with (
        FaultyEndpoint(asking.plan(latency=0.002)) as first_endpoint,
        FaultyEndpoint(asking.plan()) as second_endpoint,
    ):
        models: list[Any] = ["good", {"model": "poor", "name": "poor one"}]
        models += [{"model": "good-2", "api_url": second_endpoint.url, "eval_batch_size": 5}]
        settings: dict[str, Any] = {
            "plan": "weekly",
            "api_url": first_endpoint.url,
            "eval_batch_size": 6,
        }
        file = write_plan(models=models, **settings)
        ran = keju("eval", "-c", file, "--json", "--events", "events.jsonl")
        assert ran.code == 0, ran.err
        assert asking.questions == dict.fromkeys(("good", "poor", "good-2"), 4 * SIZE)
        assert first_endpoint.stats.requests == 2 * 4 * (SIZE + PREFLIGHT)
        assert first_endpoint.stats.max_in_flight <= 6, (
            "the slots of an endpoint are those of all its runs"
        )
        assert second_endpoint.stats.max_in_flight <= 5
        document = ran.json
        assert json.loads((tmp_path / "runs/weekly/results.json").read_text()) == document
        cell_of = cells(document)
        assert document["complete"]
        assert cell_of["good", "north"]["value"] == 1.0
        assert cell_of["poor one", "north"]["value"] == 0.25
        assert {cell_of[m, e]["standing"] for m in ("good", "good-2") for e in EXAMS} == {
            "highest",
            "tie",
        }
        assert {cell_of["poor one", exam]["standing"] for exam in EXAMS} == {"below"}
        pairs = [pair for pair in document["comparisons"] if pair["exam"] == "east"]
        assert len(pairs) == 3
        assert {pair["n"] for pair in pairs} == {SIZE}
        page = (tmp_path / "runs/weekly/report.html").read_text()
        links = set(re.findall(r'href="(\.\./[^"]+)"', page))
        assert len(links) == 12
        assert all((tmp_path / "runs/weekly" / link).resolve().is_file() for link in links)
        assert "<script" not in page
        assert keju("report", "weekly", "-o", "elsewhere/all.html").code == 0
        elsewhere = (tmp_path / "elsewhere/all.html").read_text()
        assert 'href="../runs/weekly--good--north/report.html"' in elsewhere
        runs = keju("list", "runs", "--json").json["runs"]
        assert "weekly--poor-one--north" in {run["run"] for run in runs}
        assert len(runs) == 12
        events = [json.loads(line) for line in Path("events.jsonl").read_text().splitlines()]
        assert [events[0]["event"], events[-1]["event"]] == ["plan_started", "plan_finished"]
        assert sum(event["event"] == "sample" for event in events) == 12 * SIZE

        before = first_endpoint.stats.requests
        forecast = keju(
            "eval", "-c", write_plan(models=[*models, "good-4"], **settings), "--dry-run"
        )
        assert f"{4 * SIZE} requests would be sent, {12 * SIZE} replies are there" in forecast.out
        later = keju("eval", "-c", file, "--json")
        assert later.code == 0, later.err
        assert asking.questions["good-4"] == 4 * SIZE
        assert first_endpoint.stats.requests == before + 4 * (SIZE + PREFLIGHT)
        assert sum(asking.questions.values()) == 16 * SIZE
        assert len(later.json["cells"]) == 16
        assert keju("eval", "-c", file, "--json").json == later.json
        assert sum(asking.questions.values()) == 16 * SIZE
        printed = keju("eval", "-c", file)
        assert "north: good is highest" in printed.out
        assert "below it: poor one" in printed.out


def test_what_ends_one_model_ends_no_other_and_the_same_command_goes_on(
    keju: Keju,
    asking: Asking,
    write_plan: WritePlan,
    exams: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("THEIR_KEY", "sk-wrong")
    with (
        FaultyEndpoint(asking.plan()) as first_endpoint,
        FaultyEndpoint(asking.plan(key="sk-right")) as second_endpoint,
    ):
        their = {"model": "poor", "api_url": second_endpoint.url, "api_key_var": "THEIR_KEY"}
        file = write_plan(
            plan="p", models=[their, "good"], api_url=first_endpoint.url, datasets=exams[:2]
        )
        ran = keju("eval", "-c", file, "--json")
        assert ran.code == 4
        assert "2 of 4 runs of the plan are incomplete" in ran.err
        assert f"keju eval --config {file}" in ran.err
        cell_of = cells(ran.json)
        assert cell_of["poor", "north"]["state"] == "missing"
        assert "refused the key (401)" in cell_of["poor", "north"]["error"]["message"]
        assert cell_of["good", "east"]["value"] == 1.0
        assert not ran.json["complete"]
        assert "sk-wrong" not in ran.out + ran.err
        requests = first_endpoint.stats.requests
        monkeypatch.setenv("THEIR_KEY", "sk-right")
        resumed = keju("eval", "-c", file, "--json")
        assert resumed.code == 0, resumed.err
        assert first_endpoint.stats.requests == requests
        assert asking.questions == {"poor": 2 * SIZE, "good": 2 * SIZE}


def test_a_budget_over_all_runs_is_kept_and_a_larger_one_goes_on(
    keju: Keju, asking: Asking, write_plan: WritePlan, exams: list[str]
) -> None:
    with (
        FaultyEndpoint(asking.plan(latency=0.002)) as first_endpoint,
        FaultyEndpoint(asking.plan()) as second_endpoint,
    ):
        models: list[Any] = [{"model": "good", "api_url": first_endpoint.url}]
        models += [{"model": "poor", "api_url": second_endpoint.url}]
        how: dict[str, Any] = {"plan": "p", "models": models, "datasets": exams[:2]}
        file = write_plan(**how, budget={"requests": 90}, run_budget={"requests": 35})
        ran = keju("eval", "-c", file, "--json")
        assert ran.code == 4
        assert sum(asking.questions.values()) == 90
        assert max(cell["done"] for cell in ran.json["cells"]) == 35
        reasons = {cell["error"]["code"] for cell in ran.json["cells"]}
        assert reasons == {"plan_budget", "budget_of_requests"}
        resumed = keju("eval", "-c", write_plan(**how), "--budget", "requests=159", "--json")
        assert resumed.code == 4
        assert sum(asking.questions.values()) == 159
        completed = keju("eval", "-c", write_plan(**how), "--json")
        assert completed.code == 0, completed.err
        assert sum(asking.questions.values()) == 4 * SIZE


def test_money_of_several_models_is_one_budget(
    keju: Keju, asking: Asking, write_plan: WritePlan, exams: list[str]
) -> None:
    """Each reply costs 1 at the one and 3 at the other; nothing is overspent."""
    plan = asking.plan(usage={"prompt_tokens": 500_000, "completion_tokens": 500_000})
    with FaultyEndpoint(plan) as first_endpoint, FaultyEndpoint(plan) as second_endpoint:
        models = [
            {"model": "good", "api_url": first_endpoint.url, "price": {"input": 1, "output": 1}},
            {"model": "poor", "api_url": second_endpoint.url, "price": {"input": 3, "output": 3}},
        ]
        file = write_plan(plan="p", models=models, datasets=exams[:1], budget={"cost": 70})
        ran = keju("eval", "-c", file, "--json")
        assert ran.code == 4
        expected_cost = asking.questions["good"] + 3 * asking.questions["poor"]
        assert 60 < expected_cost <= 70
        assert ran.json["spent"]["cost"] == pytest.approx(expected_cost)


def test_the_next_run_begins_while_the_last_replies_of_the_one_before_are_awaited(
    keju: Keju, asking: Asking, write_plan: WritePlan, exams: list[str]
) -> None:
    with FaultyEndpoint(asking.plan(latency={0.0: 0.97, 3.0: 0.03})) as first_endpoint:
        file = write_plan(plan="p", models=["good"], api_url=first_endpoint.url, datasets=exams[:2])
        assert keju("eval", "-c", file, "--events", "events.jsonl").code == 0
    events = [json.loads(line) for line in Path("events.jsonl").read_text().splitlines()]
    order = [(event["event"], event["run"]) for event in events]
    assert order.index(("session_started", "p--good--east")) < order.index(
        ("session_ended", "p--good--north")
    )


def test_keys_go_only_where_they_were_said(
    keju: Keju,
    asking: Asking,
    write_plan: WritePlan,
    exams: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-mine")
    with (
        FaultyEndpoint(asking.plan()) as first_endpoint,
        FaultyEndpoint(asking.plan()) as second_endpoint,
    ):
        models: list[Any] = ["good", {"model": "poor", "api_url": second_endpoint.url}]
        file = write_plan(plan="p", models=models, api_url=first_endpoint.url, datasets=exams[:1])
        assert keju("eval", "-c", file).code == 0
        assert first_endpoint.last_headers["authorization"] == "Bearer sk-mine"
        assert "authorization" not in second_endpoint.last_headers


def test_settings_of_entries_flags_and_the_whole(
    keju: Keju, asking: Asking, write_plan: WritePlan, exams: list[str], tmp_path: Path
) -> None:
    with FaultyEndpoint(asking.plan()) as first_endpoint:
        file = write_plan(
            plan="p",
            api_url=first_endpoint.url,
            models=[{"model": "good", "generation_config": {"max_tokens": 99}}, "poor"],
            datasets=[
                {"dataset": exams[0], "name": "few", "limit": 3, "few_shot_num": 0},
                {"dataset": exams[0], "name": "twice", "repeats": 2, "total": 5},
                exams[1],
            ],
            limit=7,
            generation_config={"temperature": 0.5},
        )
        ran = keju("eval", "-c", file, "--json")
        assert ran.code == 0, ran.err
        sizes = {cell["exam"]: cell["total"] for cell in ran.json["cells"]}
        assert sizes == {"few": 3, "twice": 10, "east": 7}
        stored = json.loads((tmp_path / "runs/p--good--few/manifest.json").read_text())["config"]
        assert stored["generation_config"] == {"temperature": 0.5, "max_tokens": 99}
        assert stored["limit"] == 3
        only = keju("eval", "-c", file, "--datasets", "few", "--limit", "4", "--json")
        assert only.code == 0, only.err
        assert {cell["exam"]: cell["total"] for cell in only.json["cells"]} == {"few": 4}


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no models": ({"models": []}, "models: a list with at least one entry"),
    "no name": (
        {"models": [{"api_url": "http://x/v1"}]},
        "models.0: a name, or a mapping with 'model'",
    ),
    "unknown": ({"models": [{"model": "a", "limitt": 1}]}, "limitt"),
    "of an exam": (
        {"models": [{"model": "a", "limit": 1}]},
        "'limit' is not a setting of one model",
    ),
    "twice": ({"models": ["a/b", "a b"]}, "two entries are called 'a-b'"),
    "no key": ({"models": [{"model": "a", "api_key_var": "NOT_SET"}]}, "NOT_SET is not set"),
    "model": ({"models": ["a"], "model": "b"}, "model: a plan has no place for it"),
    "run id": ({"models": ["a"], "run_id": "b"}, "run_id: a plan has no place for it"),
    "name": ({"models": ["a"], "plan": "../up"}, "plan: a name of letters"),
    "cost": ({"models": ["a"], "budget": {"cost": 1}}, "price"),
    "exam": ({"models": ["a"], "datasets": ["nowhere"]}, "nowhere"),
    "args": ({"models": ["a"], "dataset_args": {"bbh": {}}}, "bbh"),
    "value": ({"models": [{"model": "a", "rpm": -1}]}, "a × north"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_plan_that_cannot_be_carried_out_is_one_line(
    case: str, keju: Keju, write_plan: WritePlan
) -> None:
    settings, words = BAD[case]
    ran = keju("eval", "-c", write_plan(**({"api_url": "http://127.0.0.1:9/v1"} | settings)))
    assert ran.code == 2, ran.err
    assert words in ran.err
    assert len(ran.err.splitlines()) == 1
    assert not Path("runs").exists()


@pytest.mark.parametrize("flag", ["--model", "--api-url", "--run-id", "--use-cache", "--api-key"])
def test_flags_that_are_of_one_run_are_refused(
    flag: str, keju: Keju, write_plan: WritePlan
) -> None:
    ran = keju("eval", "-c", write_plan(models=["a"]), flag, "http://127.0.0.1:9/v1")
    assert ran.code == 2
    assert flag in ran.err
    assert "plan" in ran.err


def test_a_plan_and_a_run_are_two_things(
    keju: Keju, asking: Asking, write_plan: WritePlan, exams: list[str]
) -> None:
    with FaultyEndpoint(asking.plan()) as first_endpoint:
        how: dict[str, Any] = {
            "models": ["good"],
            "api_url": first_endpoint.url,
            "datasets": exams[:1],
        }
        words = (
            "eval",
            "-m",
            "good",
            "--api-url",
            first_endpoint.url,
            "--datasets",
            exams[0],
            "--limit",
            "1",
        )
        assert keju(*words, "--run-id", "p").code == 0
        ran = keju("eval", "-c", write_plan(**how, plan="p"))
        assert ran.code == 2
        assert "give the plan another name" in ran.err
        assert keju("eval", "-c", write_plan(**how, plan="q"), "--resume").code == 2
        assert keju("eval", "-c", write_plan(**how, plan="q")).code == 0
        assert keju("eval", "-c", write_plan(**how, plan="q"), "--resume").code == 0
