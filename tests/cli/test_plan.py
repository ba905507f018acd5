"""``keju plan``: questions, effects and forecasts; pilots; what is refused."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

import keju as public
from keju.stats.power import items_needed_exactly, minimal_detectable_effect
from tests.cli.conftest import Keju, Ran
from tests.support.compared_runs import LOGS, SUBSETS, Evaluate
from tests.support.endpoint import FaultyEndpoint
from tests.support.own_exam import write_exam
from tests.support.replies import EndpointRequest, Plan, draw

pytestmark = pytest.mark.slow


QUIZ = "custom:quiz"


def wordy(request: EndpointRequest) -> str:
    """Replies of many lengths."""
    return "well " * int(1 + 400 * draw(request.text) ** 3) + "Answer: A"


@pytest.fixture
def plan() -> Plan:
    """How the endpoint answers."""
    return Plan(answers=wordy)


def evaluate(keju: Keju, endpoint: FaultyEndpoint, *flags: str, run: str = "r") -> Ran:
    url = ("-m", "m", "--api-url", endpoint.url, "--run-id", run, "--datasets", QUIZ)
    return keju("eval", *url, "--no-report", "--json", *flags)


def planned(keju: Keju, *flags: str) -> dict[str, Any]:
    ran = keju("plan", QUIZ, *flags, "--json")
    assert ran.code == 0, ran.err
    document: dict[str, Any] = ran.json
    return document


def test_a_difference_needs_so_many_questions_of_a_finite_set(keju: Keju) -> None:
    write_exam(sizes={"one": 12_032})
    document = planned(keju, "--mde", "0.03")
    assert document["questions_in_general"] == document["questions"] == 2502
    assert document["questions_on_set"] == 2072
    assert document["effect"] == pytest.approx(0.03, abs=5e-4)
    assert document["effect"] == pytest.approx(minimal_detectable_effect(2502))
    assert document["effect_on_set"] < document["effect"]
    assert (document["discordance"], document["discordance_from"]) == (0.28, "assumed")
    full_size = next(row for row in document["sizes"] if row["questions"] == 12_032)
    assert full_size["effect"] == pytest.approx(0.0135105, abs=6e-8)
    quantised = planned(keju, "--mde", "0.01", "--discordance", "0.05")
    assert quantised["questions_in_general"] == items_needed_exactly(0.03, 0.02)


def test_an_effect_below_what_all_questions_show_is_said(keju: Keju) -> None:
    write_exam()
    document = planned(keju, "--mde", "0.01")
    assert document["questions"] == 800 < document["questions_in_general"]
    assert document["questions_on_set"] < 800
    assert "plan_beyond" in {notice["code"] for notice in document["notices"]}


def test_without_a_pilot_forecasts_are_guesses_and_say_so(keju: Keju) -> None:
    write_exam()
    document = planned(keju, "--limit", "50", "--price", "input=1,output=2")
    assert document["questions"] == 100
    assert document["pilot"] == ""
    assert document["seconds"] is None
    assert "plan_guessed" in {notice["code"] for notice in document["notices"]}
    tokens = document["input_tokens"]["value"] + 2 * document["output_tokens"]["value"]
    assert document["cost"]["value"] == pytest.approx(tokens / 1e6)
    output = keju("plan", QUIZ, "--limit", "50")
    assert "without a pilot the forecasts are guesses" in output.out
    assert f"--datasets {QUIZ} --limit 50 --sample random" in output.out
    titles = {"en": "Quantity  *Value  *95 % interval", "zh": "项目  *数值  *95 % 置信区间"}
    for language, pattern in titles.items():
        output = keju("plan", QUIZ, "--limit", "50", "--language", language)
        assert re.search(f"^{pattern}$", output.out, re.MULTILINE)
    assert "--total 112 --sample random" in keju("plan", QUIZ, "--mde", "0.145").out


def test_contexts_raise_the_number_of_questions(keju: Keju) -> None:
    write_exam(sizes={"one": 4000}, group=lambda number: f"c{number // 5}")
    document = planned(keju, "--mde", "0.05")
    assert document["deff"] == pytest.approx(1.8)
    assert document["questions_in_general"] == math.ceil(1.8 * items_needed_exactly(0.165, 0.115))


def test_a_pilot_tells_what_the_whole_exam_takes(keju: Keju, endpoint: FaultyEndpoint) -> None:
    write_exam()
    price = ("--price", "input=1,output=4")
    assert evaluate(keju, endpoint, "--total", "30", "--sample", "random", *price).code == 0
    document = planned(keju, "--pilot", "r")
    assert (document["pilot"], document["measured"]) == ("r", 30)
    assert document["notices"] == []
    (entry,) = evaluate(keju, endpoint, *price, run="whole").json["benchmarks"]
    usage = entry["usage"]
    for name, actual in (
        ("input_tokens", usage["input_tokens"]),
        ("output_tokens", usage["output_tokens"]),
        ("cost", usage["cost"]),
    ):
        assert document[name]["low"] <= actual <= document[name]["high"]
        assert document[name]["value"] == pytest.approx(actual, rel=0.5)
    assert document["seconds"]["low"] <= document["seconds"]["value"] <= document["seconds"]["high"]
    money = planned(keju, "--pilot", "r", "--max-cost", str(document["cost"]["high"] / 4))
    assert money["questions"] == pytest.approx(200, abs=2)
    assert money["cost"]["high"] <= document["cost"]["high"] / 4
    affordable = public.plan(QUIZ, pilot="r", max_cost=document["cost"]["high"] / 4)
    assert isinstance(affordable, public.Plan)
    assert affordable.questions == money["questions"]
    dearer = planned(keju, "--pilot", "r", "--price", "input=2,output=8")
    assert dearer["cost"]["value"] == pytest.approx(2 * document["cost"]["value"])
    with_repeats = planned(keju, "--pilot", "r", "--repeats", "3")
    assert with_repeats["cost"]["value"] == pytest.approx(3 * document["cost"]["value"])


def test_a_pilot_that_tells_less_is_used_as_far_as_it_goes(keju: Keju) -> None:
    write_exam()
    flags = ("-m", "scripted", "--quiet")  # answers at once: there is nothing to be timed
    document = planned(keju, *flags)
    assert document["seconds"] is None
    assert document["output_tokens"]["low"] > 0
    records = Path("runs", document["pilot"], "records.jsonl")
    lines = [json.loads(line) for line in records.read_text().splitlines()]
    for line in lines:
        line["reply"].pop("usage", None)
        line["reply"]["seconds"] = 2.0
        line.pop("crc", None)
    records.write_text("".join(json.dumps(line) + "\n" for line in lines))
    document = planned(keju, "--pilot", document["pilot"])
    assert "plan_uncounted" in {notice["code"] for notice in document["notices"]}
    assert document["seconds"]["value"] == pytest.approx(800 * 2 / 32)
    assert document["output_tokens"]["value"] == pytest.approx(300 * 800)


def test_a_model_is_asked_thirty_random_questions(keju: Keju, endpoint: FaultyEndpoint) -> None:
    write_exam()
    flags = ("-m", "m", "--api-url", endpoint.url, "--quiet", "--mde", "0.1")
    document = planned(keju, *flags)
    assert document["measured"] == 30
    assert endpoint.stats.requests <= 31, "one of them finds out whether the endpoint works"
    manifest = json.loads(Path("runs", document["pilot"], "manifest.json").read_text())
    assert (manifest["config"]["total"], manifest["config"]["sample"]) == (30, "random")


def test_a_pilot_of_few_or_first_questions_is_warned_about(
    keju: Keju, endpoint: FaultyEndpoint
) -> None:
    write_exam()
    assert evaluate(keju, endpoint, "--limit", "4").code == 0
    document = planned(keju, "--pilot", "r")
    assert [notice["code"] for notice in document["notices"]] == ["plan_few", "plan_first"]
    output = keju("plan", QUIZ, "--pilot", "r")
    assert "the pilot has 8 replies" in output.out


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--mde", "0"), "above 0"),
        (("--mde", "-0.1"), "above 0"),
        (("--mde", "0.5"), "at most the share"),
        (("--mde", "x"), "--mde"),
        (("--mde", "0.02", "--limit", "5"), "cannot be used together"),
        (("--max-cost", "0", "--price", "input=1"), "above 0"),
        (("--max-cost", "5"), "--price"),
        (("--max-cost", "0.000001", "--price", "input=1,output=1"), "does not pay"),
        (("--discordance", "0"), "discordance"),
        (("--discordance", "1.5"), "discordance"),
        (("--limit", "0"), "whole number"),
        (("--pilot", "nothing"), "nothing"),
        (("--pilot", "r", "--model", "m"), "cannot be used together"),
        (("--api-url", "http://localhost:1"), "--model"),
        (("--repeats", "0"), "repeats"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    keju: Keju, flags: tuple[str, ...], message: str
) -> None:
    write_exam(sizes={"one": 20})
    refusal = keju("plan", QUIZ, *flags)
    assert refusal.code == 2
    assert message in refusal.err
    assert refusal.err.count("\n") == 1


def test_a_pilot_of_another_exam_is_refused(keju: Keju, endpoint: FaultyEndpoint) -> None:
    write_exam()
    write_exam(Path("other"), sizes={"one": 20})
    assert evaluate(keju, endpoint, "--limit", "4").code == 0
    refusal = keju("plan", "custom:other", "--pilot", "r")
    assert refusal.code == 2
    assert "does not include 'other'" in refusal.err


def test_the_protocol_of_the_pilot_counts_where_none_is_named(keju: Keju) -> None:
    demo = ("--datasets", "demo", "--run-id", "r", "--no-report", "--json")
    assert keju("eval", "-m", "scripted", "--protocol", "letters", *demo).code == 0
    own_protocol = keju("plan", "demo", "--limit", "2", "--pilot", "r")
    assert "protocol letters" in own_protocol.out
    assert "--protocol letters --datasets demo --limit 2" in own_protocol.out
    assert "another way" not in own_protocol.out
    other_protocol = keju("plan", "demo", "--pilot", "r", "--protocol", "text", "--json").json
    assert other_protocol["protocol"] == "text"
    assert "plan_other_manner" in [notice["code"] for notice in other_protocol["notices"]]
    assert "protocol letters in place of text" in other_protocol["warnings"][-1]


def test_the_data_of_the_pilot_count_where_none_are_named(
    keju: Keju, evaluate_run: Evaluate
) -> None:
    """The command that a gate names works as it stands, as do others with this pilot."""
    for name, salt in (("base", "1"), ("other", "2")):
        evaluate_run(name, salt, "--limit", "2", exams=("bbh",))
    gated = ("--pilot", "other", "--baseline", "base", "--margin", "0.3")
    planned = keju("plan", "bbh", *gated)
    assert planned.code == 0
    assert "keju gate other --baseline base --margin 0.3" in planned.out.splitlines()
    assert keju("plan", "bbh", "--pilot", "other", *SUBSETS).code == 0
    settings = json.loads(SUBSETS[1])["bbh"] | {"local_path": str(LOGS / "data" / "bbh")}
    flags = ("--dataset-args", json.dumps({"bbh": settings}), "--limit", "2", "--no-report", "-q")
    run = ("-m", "scripted", "--datasets", "bbh", "--run-id", "placed")
    assert keju("eval", *run, *flags).code == 0
    assert keju("plan", "bbh", "--pilot", "placed", *SUBSETS).code == 0
    missing = keju("plan", "bbh", "--pilot", "other", *SUBSETS, "--data-dir", "nowhere")
    assert (missing.code, "nowhere" in missing.err) == (2, True)


@pytest.mark.parametrize("spelling", ["quiz", "./quiz", "down/../quiz", "whole"])
def test_the_settings_of_a_pilot_count_however_the_path_of_its_exam_is_written(
    keju: Keju, endpoint: FaultyEndpoint, spelling: str
) -> None:
    write_exam(sizes={"one": 30, "two": 50})
    Path("down").mkdir()
    for run in ("r", "base"):
        one_subset = ("--dataset-args", "quiz.subset_list=[one]")
        assert evaluate(keju, endpoint, *one_subset, run=run).code == 0
    name = f"custom:{Path('quiz').absolute() if spelling == 'whole' else spelling}"
    gated = ("--pilot", "r", "--baseline", "base", "--margin", "0.05")
    planned_ = keju("plan", name, *gated, "--json")
    assert planned_.code == 0, planned_.err
    assert planned_.json["whole"] == 30
