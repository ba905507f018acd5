"""``keju eval --until-ci`` and ``--until-decided``: when they stop, what they say, resuming."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from keju.runs.journal import FILE, Records
from tests.cli.conftest import Keju, Ran
from tests.support.endpoint import FaultyEndpoint
from tests.support.own_exam import write_exam
from tests.support.processes import environment, wait_for_records
from tests.support.replies import EndpointRequest, Plan, draw

pytestmark = pytest.mark.slow

NUMBER = re.compile(r"case (\d+)")


def right_with(chance: float, salt: str = "") -> Callable[[EndpointRequest], str]:
    """A model that is right on a share of the questions."""

    def answer(request: EndpointRequest) -> str:
        return "Answer: A" if draw(case_of(request) + salt) < chance else "Answer: B"

    return answer


def case_of(request: EndpointRequest) -> str:
    numbers = NUMBER.findall(request.text)
    return numbers[-1] if numbers else "?"


class Evaluate:
    """``keju eval`` of the exam, with further flags."""

    def __init__(self, keju: Keju, endpoint: FaultyEndpoint) -> None:
        self._keju, self.endpoint = keju, endpoint

    def argv(self, *flags: str, run: str = "r") -> list[str]:
        url = ("-m", "m", "--api-url", self.endpoint.url, "--run-id", run)
        return ["eval", *url, "--datasets", "custom:quiz", "--no-report", *flags]

    def __call__(self, *flags: str, run: str = "r", chance: float | None = None) -> Ran:
        if chance is not None:
            self.endpoint.plan = Plan(answers=right_with(chance))
        return self._keju(*self.argv(*flags, "--json", run=run))


@pytest.fixture
def evaluate(keju: Keju) -> Iterator[Evaluate]:
    with FaultyEndpoint(Plan(answers=right_with(0.7))) as endpoint:
        write_exam()
        yield Evaluate(keju, endpoint)


def entry_of(ran: Ran) -> dict[str, Any]:
    (entry,) = ran.json["benchmarks"]
    first_entry: dict[str, Any] = entry
    return first_entry


def ids(run: str = "r") -> list[str]:
    return [record.id for record in Records(Path("runs", run))]


def test_until_ci_stops_when_the_score_is_known_and_says_so(evaluate: Evaluate, keju: Keju) -> None:
    ran = evaluate("--until-ci", "0.05")
    assert ran.code == 0, ran.err
    entry = entry_of(ran)
    stopping = entry["stopping"]
    assert stopping["rule"] == "until_ci"
    assert stopping["met"] is True
    assert stopping["whole"] == 800
    assert 100 < stopping["asked"] < 800
    assert entry["n"] == stopping["asked"] == len(ids()) == len(set(ids()))
    assert ran.json["complete"] is True
    low, high = stopping["interval"]
    assert max(stopping["value"] - low, high - stopping["value"]) <= 0.05
    assert low < 0.7 < high
    fixed = entry["metrics"]["accuracy_whole_set"]
    assert low <= fixed["ci95"][0]
    assert high >= fixed["ci95"][1]
    codes = {notice["code"] for notice in entry["notices"]}
    assert "until_ci_met" in codes
    assert "replies_missing" not in codes
    output = keju("score", "r")
    sentence = f"stopped by --until-ci after {stopping['asked']} of 800 questions"
    assert sentence in output.out
    assert output.code == 0
    report = keju("report", "r", "-o", "page.html")
    assert report.code == 0
    assert "replies are there" not in report.err
    assert sentence in Path("page.html").read_text("utf-8")
    chinese = keju("report", "r", "-o", "page.html", "--language", "zh")
    assert chinese.code == 0
    assert f"800 题中的 {stopping['asked']} 题之后停止" in Path("page.html").read_text("utf-8")
    exported = keju("export", "r", "--format", "csv", "-o", "a.csv", "--json")
    assert exported.json["notices"] == []


def test_every_look_has_each_subset_in_proportion_and_the_order_is_seeded(
    evaluate: Evaluate,
) -> None:
    entry = entry_of(evaluate("--until-ci", "0.06"))
    counts = Counter("easy" if int(sample_id[1:]) < 600 else "hard" for sample_id in ids())
    assert counts["easy"] == pytest.approx(3 * counts["hard"], abs=6)
    repeated = entry_of(evaluate("--until-ci", "0.06", run="again"))
    assert repeated["stopping"] == entry["stopping"]
    assert set(ids("again")) == set(ids())
    evaluate("--until-ci", "0.06", "--seed", "7", run="other")
    assert set(ids("other")) != set(ids())


def test_a_narrow_goal_asks_everything(evaluate: Evaluate) -> None:
    ran = evaluate("--until-ci", "0.001")
    stopping = entry_of(ran)["stopping"]
    assert ran.code == 0
    assert (stopping["met"], stopping["asked"], len(ids())) == (False, 800, 800)
    assert "all 800 questions were asked" in " ".join(entry_of(ran)["warnings"])


def test_a_stopped_run_asks_nothing_more_and_without_the_rule_all_the_rest(
    evaluate: Evaluate,
) -> None:
    stopped = entry_of(evaluate("--until-ci", "0.05"))
    requests = evaluate.endpoint.stats.requests
    assert entry_of(evaluate("--until-ci", "0.05"))["stopping"] == stopped["stopping"]
    assert evaluate.endpoint.stats.requests == requests
    stricter = entry_of(evaluate("--until-ci", "0.04"))
    assert stopped["n"] < stricter["n"] < 800
    full_entry = entry_of(evaluate())
    assert full_entry["n"] == 800
    assert "stopping" not in full_entry
    assert len(ids()) == len(set(ids())) == 800


def test_a_killed_run_goes_on_by_the_same_rule(evaluate: Evaluate) -> None:
    full_entry = entry_of(evaluate("--until-ci", "0.05", run="whole"))
    evaluate.endpoint.plan = Plan(answers=right_with(0.7), latency=0.01)
    command = [sys.executable, "-m", "keju", *evaluate.argv("--until-ci", "0.05", "--quiet")]
    journal = Path("runs", "r", FILE)
    for lines in (60, 130):
        child = subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL)
        wait_for_records(journal, lines, child)
        child.send_signal(signal.SIGKILL)
        child.wait()
    resumed = evaluate("--config", "runs/r/manifest.json", "--resume")
    assert resumed.code == 0, resumed.err
    assert entry_of(resumed)["stopping"] == full_entry["stopping"]
    assert entry_of(resumed)["metrics"] == full_entry["metrics"]
    assert len(ids()) == len(set(ids())) == full_entry["n"]


def test_errors_of_the_endpoint_leave_the_look_and_are_asked_again(evaluate: Evaluate) -> None:
    evaluate.endpoint.plan = Plan(answers=right_with(0.7), faults={"500": 0.3})
    ran = evaluate("--until-ci", "0.05", "--attempts", "1", "--error-limit", "0.9")
    entry = entry_of(ran)
    assert ran.code == 0
    assert entry["outcomes"]["error"] > 10
    evaluate.endpoint.plan = Plan(answers=right_with(0.7))
    assert entry_of(evaluate("--until-ci", "0.05"))["outcomes"]["error"] == 0


def test_a_budget_that_is_spent_first_leaves_the_run_incomplete(evaluate: Evaluate) -> None:
    ran = evaluate("--until-ci", "0.05", "--budget", "requests=60")
    assert ran.code == 4
    assert "stopping" not in entry_of(ran)
    assert "replies_missing" in {notice["code"] for notice in entry_of(ran)["notices"]}


def test_repeats_and_limits_go_with_a_rule(evaluate: Evaluate) -> None:
    repeats = ("--repeats", "3", "--generation-config", "temperature=1")
    entry = entry_of(evaluate("--until-ci", "0.06", *repeats))
    assert entry["stopping"]["met"] is True
    assert len(ids()) == 3 * entry["n"] == 3 * entry["stopping"]["asked"]
    limited = entry_of(evaluate("--until-ci", "0.06", "--limit", "150", run="limited"))
    assert limited["stopping"]["whole"] == 300
    assert limited["n"] <= 300


def test_several_exams_stop_each_by_itself(evaluate: Evaluate) -> None:
    write_exam(Path("small"), sizes={"one": 60})
    ran = evaluate("--until-ci", "0.05", "--datasets", "custom:small")
    assert ran.code == 0
    small, large = sorted(ran.json["benchmarks"], key=lambda entry: int(entry["n"]))
    assert (small["stopping"]["whole"], large["stopping"]["whole"]) == (60, 800)
    assert large["stopping"]["met"]


def test_contexts_are_asked_together(keju: Keju) -> None:
    write_exam(sizes={"one": 400}, group=lambda number: f"c{number // 4}")
    with FaultyEndpoint(Plan(answers=right_with(0.8))) as endpoint:
        entry = entry_of(Evaluate(keju, endpoint)("--until-ci", "0.08"))
    assert entry["stopping"]["met"]
    groups = Counter(int(sample_id[1:]) // 4 for sample_id in ids())
    assert set(groups.values()) == {4}


@pytest.mark.parametrize(("chance", "code"), [(0.75, "until_better"), (0.25, "until_worse")])
def test_until_decided_stops_when_better_or_worse(
    evaluate: Evaluate, chance: float, code: str
) -> None:
    evaluate.endpoint.plan = Plan(answers=right_with(0.5, "other"))
    assert evaluate(run="base").code == 0
    ran = evaluate("--until-decided", "base", chance=chance)
    assert ran.code == 0, ran.err
    stopping, entry = entry_of(ran)["stopping"], entry_of(ran)
    assert stopping["met"] is True
    assert (stopping["baseline"], stopping["whole"]) == ("base", 800)
    assert entry["n"] == stopping["asked"] == len(ids()) < 500
    assert code in {notice["code"] for notice in entry["notices"]}
    assert stopping["e_value"] >= 20
    assert stopping["p"] <= 0.05
    low, high = stopping["interval"]
    assert low < chance - 0.5 < high
    assert (stopping["value"] > 0) == (stopping["wins"] > stopping["losses"]) == (chance > 0.5)
    requests = evaluate.endpoint.stats.requests
    resumed = evaluate("--config", "runs/r/manifest.json", "--resume")
    assert entry_of(resumed)["stopping"] == stopping
    assert evaluate.endpoint.stats.requests == requests


def test_equal_models_are_asked_everything_and_nothing_is_decided(evaluate: Evaluate) -> None:
    evaluate.endpoint.plan = Plan(answers=right_with(0.7, "other"))
    assert evaluate(run="base").code == 0
    ran = evaluate("--until-decided", "base", chance=0.7)
    stopping = entry_of(ran)["stopping"]
    assert ran.code == 0
    assert (stopping["met"], stopping["asked"]) == (False, 800)
    assert "nothing is decided" in " ".join(entry_of(ran)["warnings"])


def test_a_file_of_predictions_is_a_baseline_and_its_questions_alone_are_asked(
    evaluate: Evaluate,
) -> None:
    rows = [{"id": f"q{number}", "output": "Answer: B"} for number in range(0, 800, 4)]
    Path("base.jsonl").write_text("\n".join(map(json.dumps, rows)))
    stopping = entry_of(evaluate("--until-decided", "base.jsonl"))["stopping"]
    assert (stopping["met"], stopping["whole"], stopping["losses"]) == (True, 200, 0)
    assert all(int(sample_id[1:]) % 4 == 0 for sample_id in ids())


def test_graded_scores_of_repeats_decide_too(evaluate: Evaluate) -> None:
    repeats = ("--repeats", "2", "--generation-config", "temperature=1")
    evaluate.endpoint.plan = Plan(answers=right_with(0.4, "other"))
    assert evaluate(*repeats, run="base").code == 0
    stopping = entry_of(evaluate("--until-decided", "base", *repeats, chance=0.8))["stopping"]
    assert stopping["met"] is True
    assert len(ids()) == 2 * stopping["asked"]


def test_errors_leave_the_pairs_and_are_counted(evaluate: Evaluate) -> None:
    evaluate.endpoint.plan = Plan(answers=right_with(0.3, "other"))
    assert evaluate(run="base").code == 0
    evaluate.endpoint.plan = Plan(answers=right_with(0.8), faults={"500": 0.2})
    ran = evaluate("--until-decided", "base", "--attempts", "1", "--error-limit", "0.9")
    stopping = entry_of(ran)["stopping"]
    assert stopping["met"] is True
    assert stopping["left_out"] == entry_of(ran)["outcomes"]["error"] > 0


def test_a_baseline_that_is_not_comparable_is_refused(evaluate: Evaluate, keju: Keju) -> None:
    prompt_flags = ("--dataset-args", '{"custom:quiz": {"system_prompt": "Be brief."}}')
    assert evaluate(*prompt_flags, run="base").code == 0
    requests = evaluate.endpoint.stats.requests
    refusal = evaluate("--until-decided", "base")
    assert refusal.code == 2
    assert "'base' cannot be compared with this run: system_prompt" in refusal.err
    assert refusal.err.count("\n") == 1
    Path("quiz").rename("quiz2")
    write_exam(sizes={"one": 5})
    refusal = evaluate("--until-decided", "base")
    assert refusal.code == 2
    assert refusal.err.count("\n") == 1
    assert evaluate.endpoint.stats.requests == requests


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--until-ci", "0"), "until_ci"),
        (("--until-ci", "0.5"), "until_ci"),
        (("--until-ci", "2"), "until_ci"),
        (("--until-ci", "x"), "--until-ci"),
        (("--until-ci", "0.02", "--until-decided", "r"), "cannot be used together"),
        (("--until-ci", "0.02", "--tools", "python"), "leave out the arms"),
        (("--until-ci", "0.02", "--judge", "model=j,strategy=llm"), "leave out the judge"),
        (("--until-decided", "nowhere"), "nowhere"),
        (("--until-decided", ""), "needs a value"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    evaluate: Evaluate, flags: tuple[str, ...], message: str
) -> None:
    for dry_run_flags in ((), ("--dry-run",)):
        refusal = evaluate(*flags, *dry_run_flags)
        assert refusal.code == 2, refusal.err
        assert message in refusal.err
        assert refusal.err.count("\n") == 1
    assert evaluate.endpoint.stats.requests == 0
    assert not Path("runs", "r").exists()


def test_questions_without_an_answer_are_refused(keju: Keju) -> None:
    Path("quiz").mkdir()
    rows = [{"question": f"case {n}?", "choices": ["a", "b"], "answer": ""} for n in range(9)]
    Path("quiz", "q.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with FaultyEndpoint(Plan(answers="Answer: A")) as endpoint:
        refusal = Evaluate(keju, endpoint)("--until-ci", "0.1")
    assert refusal.code == 2
    assert "no published answer" in refusal.err


def test_a_dry_run_says_that_its_figures_are_the_most(evaluate: Evaluate) -> None:
    ran = evaluate("--until-ci", "0.05", "--dry-run")
    assert ran.code == 0
    assert "the most that can be" in " ".join(ran.json["warnings"])
