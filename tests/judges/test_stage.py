"""Whole runs with a judge: faults, outages, kills, keys, and judging a stored run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from keju.benchmarks.base import Reader
from keju.errors import ConfigError, DataError, EndpointError
from keju.judges import exam as exam_module
from keju.judges import judge as judge_module
from keju.judges.prompts import Kind
from keju.reporting.format import money
from keju.results.schema import to_document
from keju.results.score import score_run
from keju.runs.journal import VERDICTS, Records
from keju.runs.run import GRADES, Run
from keju.stored_tasks import judge_run
from keju.task import run_exams
from keju.types import Answer, Reading, Reply, Sample
from tests.support.endpoint import FaultyEndpoint
from tests.support.judged import (
    JUDGED,
    KEY,
    PREFLIGHTS,
    RIGHT,
    benchmark_entry,
    candidate,
    candidate_or_verdict,
    judged_config,
    prompt_blocks,
    verdict,
    wait_for,
)
from tests.support.open_exam import SIZE, OpenExam
from tests.support.replies import EndpointRequest, Plan, draw

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("open_exam")]


@pytest.fixture
def plan() -> Plan:
    """How the endpoint answers."""
    return Plan(answers=candidate_or_verdict)


def test_undecided_answers_are_graded_by_the_judge(
    endpoint: FaultyEndpoint, tmp_path: Path
) -> None:
    price = {"input": 2.0, "output": 4.0}
    finished = run_exams(judged_config(tmp_path, endpoint.url, {"price": price}))
    assert finished.exit_code == 0
    benchmark = benchmark_entry(finished.document)
    assert benchmark["outcomes"]["correct"] == RIGHT
    assert benchmark["outcomes"]["incorrect"] == SIZE - RIGHT
    judge = benchmark["judge"]
    assert judge["model"] == "judge"
    assert judge["judged"] == JUDGED
    assert judge["ungraded"] == 0
    assert judge["usage"]["requests"] == JUDGED
    tokens = judge["usage"]["input_tokens"] * 2 + judge["usage"]["output_tokens"] * 4
    assert judge["cost"] == pytest.approx(tokens / 1e6)
    page = (tmp_path / "r" / "report.html").read_text()
    assert money(judge["cost"]) in page.partition("Cost of judging")[2][:200]
    assert benchmark["usage"]["requests"] == SIZE


def test_verdicts_are_records_of_their_own_journal(
    endpoint: FaultyEndpoint, tmp_path: Path
) -> None:
    run_exams(judged_config(tmp_path, endpoint.url, {}))
    verdicts = list(Records(tmp_path / "r", file=VERDICTS))
    assert len(verdicts) == JUDGED
    for record in verdicts:
        assert (record.bench, record.arm) == ("judge:open", "judge")
        assert len(record.hash) == 32
        assert record.reply.text.startswith("I compared them.")
        assert record.readings[0].answer.value in ("correct", "incorrect")
    stored = list(Records(tmp_path / "r"))
    assert Counter(r.readings[0].score.grader for r in stored) == {
        "undecided": JUDGED,
        "": SIZE - JUDGED,
    }
    merged = [record for _, record in Run(tmp_path / "r").answers()]
    assert Counter(r.readings[0].score.grader for r in merged) == {
        "judge": JUDGED,
        "": SIZE - JUDGED,
    }
    assert endpoint.last_body["temperature"] == 0


def test_without_a_judge_undecided_answers_stay_ungraded(
    endpoint: FaultyEndpoint, tmp_path: Path
) -> None:
    for judge in (None, {"strategy": "rule"}):
        benchmark = benchmark_entry(
            run_exams(judged_config(tmp_path, endpoint.url, judge)).document
        )
        assert benchmark["outcomes"]["ungraded"] == JUDGED
        assert "judge" not in benchmark
        assert not (tmp_path / "r" / VERDICTS).exists()
        assert not (tmp_path / "r" / GRADES).exists()


def test_a_judge_that_fails_lies_and_goes_down_costs_no_answer_a_point(tmp_path: Path) -> None:
    judged: Counter[str] = Counter()
    lied = 0

    def unreliable(request: EndpointRequest) -> str:
        nonlocal lied
        if not prompt_blocks(request).question:
            return "A"
        judged[request.key] += 1
        if draw(request.key, judged[request.key]) < 0.15:
            lied += 1
            return "Correct, I should say."
        return verdict(request)

    plan = Plan(answers=unreliable, faults={"500": 0.1, "429": 0.1}, seed=3, latency=0.02)
    with FaultyEndpoint(Plan(answers=candidate)) as good, FaultyEndpoint(plan) as faulty:

        def break_down() -> None:
            wait_for(lambda: faulty.stats.answered >= 8)
            faulty.down()
            time.sleep(0.5)
            faulty.up()

        outage = threading.Thread(target=break_down)
        outage.start()
        judge = {"api_url": faulty.url, "attempts": 10, "eval_batch_size": 2}
        finished = run_exams(judged_config(tmp_path, good.url, judge))
        outage.join()
    assert finished.exit_code == 0
    benchmark = benchmark_entry(finished.document)
    assert benchmark["outcomes"] == {
        "correct": RIGHT, "incorrect": SIZE - RIGHT, "unparsed": 0, "truncated": 0,
        "refused": 0, "ungraded": 0, "error": 0,
    }  # fmt: skip
    verdicts = list(Records(tmp_path / "r", file=VERDICTS))
    kinds = Counter(fault.kind for record in verdicts for fault in record.faults)
    assert kinds["malformed"] == lied
    assert min(kinds["server"], kinds["rate_limit"], kinds["connection"]) > 0
    about_answers = (faulty.stats.attempts[f"{key}:None"] for key in judged)
    journalled = sum(1 + sum(fault.sent for fault in record.faults) for record in verdicts)
    assert 0 <= journalled - sum(about_answers) <= 2, "but for requests that broke on the way"
    assert benchmark["judge"]["usage"]["requests"] == journalled


def test_a_judge_that_never_gives_a_verdict_leaves_answers_ungraded(tmp_path: Path) -> None:
    def mute(request: EndpointRequest) -> str:
        return "Hard to say."

    with FaultyEndpoint(Plan(answers=candidate)) as good, FaultyEndpoint(Plan(answers=mute)) as bad:
        finished = run_exams(judged_config(tmp_path, good.url, {"api_url": bad.url, "attempts": 3}))
        assert bad.stats.requests == 3 * JUDGED + PREFLIGHTS
        paid = benchmark_entry(finished.document)["judge"]["usage"]["input_tokens"]
        assert finished.exit_code == 4
        assert f"no verdict on {JUDGED} of {JUDGED}" in finished.message
        benchmark = benchmark_entry(finished.document)
        assert benchmark["outcomes"]["ungraded"] == JUDGED
        assert benchmark["outcomes"]["incorrect"] == 0
        assert any("no verdict" in warning for warning in benchmark["warnings"])
        records = list(Records(tmp_path / "r", file=VERDICTS))
        assert all(record.reply.text == "Hard to say." for record in records)
        assert paid == sum(record.reply.usage.input for record in records)
        reply_tokens = sum(len(record.reply.text) // 4 for record in records)
        assert sum(record.reply.usage.output for record in records) == 3 * reply_tokens
        bad.plan = Plan(answers=verdict)
        second_run = run_exams(judged_config(tmp_path, good.url, {"api_url": bad.url}))
    assert second_run.exit_code == 0
    assert benchmark_entry(second_run.document)["outcomes"]["correct"] == RIGHT


def test_a_judge_that_dies_leaves_results_and_the_way_to_resume(tmp_path: Path) -> None:
    with FaultyEndpoint(Plan(answers=candidate)) as good:
        with FaultyEndpoint(Plan(answers=verdict, latency=0.05)) as judge:
            settings = {"api_url": judge.url, "eval_batch_size": 1, "give_up_after": 0.3}

            def die() -> None:
                wait_for(lambda: judge.stats.answered >= 8)
                judge.down()

            death = threading.Thread(target=die)
            death.start()
            finished = run_exams(judged_config(tmp_path, good.url, settings))
            death.join()
            assert finished.exit_code == 4
            assert "stayed down" in finished.message
            assert "--resume" in finished.resume_command
            benchmark = benchmark_entry(finished.document)
            judged = benchmark["judge"]["judged"]
            assert 5 <= judged < JUDGED
            assert benchmark["outcomes"]["ungraded"] == JUDGED - judged
            assert json.loads((tmp_path / "r" / "results.json").read_text())["complete"] is False
            resumed = run_exams(judged_config(tmp_path, good.url, settings, resume=True))
            assert resumed.exit_code == 4
            assert "the judge 'judge'" in resumed.message
            assert benchmark_entry(resumed.document)["judge"]["judged"] == judged
            judge.up()
            completed = run_exams(judged_config(tmp_path, good.url, settings, resume=True))
            assert judge.stats.answered >= JUDGED
        assert good.stats.requests == SIZE + 1
    assert completed.exit_code == 0
    assert benchmark_entry(completed.document)["outcomes"]["correct"] == RIGHT


def test_a_wrong_key_of_the_judge_is_found_before_the_candidate_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY, "sk-wrong-judge-key-123456")
    plan = Plan(answers=verdict, key="sk-right-judge-key-654321")
    with FaultyEndpoint(Plan(answers=candidate)) as good, FaultyEndpoint(plan) as judge:
        with pytest.raises(EndpointError) as caught:
            run_exams(judged_config(tmp_path, good.url, {"api_url": judge.url}))
        assert good.stats.requests == 0
        assert caught.value.exit_code == 5
        assert KEY in str(caught.value)
        assert "sk-wrong" not in str(caught.value)
        monkeypatch.setenv(KEY, "sk-right-judge-key-654321")
        headers = {"extra_headers": {"X-More": "sk-marked-header-0123"}}
        settings = {"api_url": judge.url, "generation_config": headers}
        assert run_exams(judged_config(tmp_path, good.url, settings)).exit_code == 0
    for path in (tmp_path / "r").iterdir():
        assert "sk-right" not in path.read_text(), path.name
        assert "sk-marked" not in path.read_text(), path.name


def test_the_key_of_the_candidate_goes_to_no_other_endpoint(tmp_path: Path) -> None:
    with (
        FaultyEndpoint(Plan(answers=candidate)) as good,
        FaultyEndpoint(Plan(answers=verdict)) as j,
    ):
        run_exams(
            judged_config(tmp_path, good.url, {"api_url": j.url}, api_key="sk-candidate-0123456789")
        )
        assert "authorization" in good.last_headers
        assert "authorization" not in j.last_headers


def test_nothing_is_asked_twice(endpoint: FaultyEndpoint, tmp_path: Path) -> None:
    first_run = run_exams(judged_config(tmp_path, endpoint.url, {}))
    requests = endpoint.stats.requests
    second_run = run_exams(judged_config(tmp_path, endpoint.url, {}))
    assert endpoint.stats.requests == requests
    assert (
        benchmark_entry(second_run.document)["metrics"]
        == benchmark_entry(first_run.document)["metrics"]
    )
    scored = to_document(score_run(Run(tmp_path / "r")))
    assert endpoint.stats.requests == requests
    assert benchmark_entry(scored)["metrics"] == benchmark_entry(first_run.document)["metrics"]
    assert benchmark_entry(scored)["judge"] == benchmark_entry(first_run.document)["judge"]


def test_a_budget_of_the_judge_is_its_own_and_covers_both_judges(tmp_path: Path) -> None:
    def answer_in_both_roles(request: EndpointRequest) -> str:
        return verdict(request) if prompt_blocks(request).question else candidate(request)

    with FaultyEndpoint(Plan(answers=answer_in_both_roles)) as endpoint:
        settings = {"second": "other", "budget": {"requests": JUDGED + 5}, "eval_batch_size": 2}
        finished = run_exams(judged_config(tmp_path, endpoint.url, settings))
        assert finished.exit_code == 4
        assert f"{JUDGED + 5} requests" in finished.message
        benchmark = benchmark_entry(finished.document)
        assert benchmark["judge"]["usage"]["requests"] == JUDGED + 5
        assert benchmark["judge"]["agreement"]["second"]["n"] == 5
        assert benchmark["outcomes"]["correct"] == RIGHT


@pytest.mark.parametrize(
    ("judge", "error", "words"),
    [
        ({"second": "judge"}, ConfigError, "judge.repeats"),
        ({"labelled": "nowhere.jsonl"}, DataError, "nowhere.jsonl"),
        ({"budget": {"cost": 1.0}}, ConfigError, "price"),
        ({"model": "hf:"}, ConfigError, "judge: model 'hf:'"),
    ],
)
def test_a_judge_that_cannot_work_is_refused_before_anybody_is_asked(
    endpoint: FaultyEndpoint,
    tmp_path: Path,
    judge: dict[str, Any],
    error: type[Exception],
    words: str,
) -> None:
    with pytest.raises(error, match=words):
        run_exams(judged_config(tmp_path, endpoint.url, judge))
    assert endpoint.stats.requests == 0
    assert not (tmp_path / "r").exists()


def test_a_stored_run_is_judged_later_and_by_another_judge(
    endpoint: FaultyEndpoint, tmp_path: Path
) -> None:
    run_exams(judged_config(tmp_path, endpoint.url, None))
    requests = endpoint.stats.requests
    finished = judge_run(judged_config(tmp_path, endpoint.url, {}), tmp_path / "r")
    assert finished.exit_code == 0
    assert endpoint.stats.requests == requests + JUDGED + 1
    assert benchmark_entry(finished.document)["outcomes"]["correct"] == RIGHT
    stored = json.loads((tmp_path / "r" / "results.json").read_text())
    assert stored["benchmarks"][0]["outcomes"]["correct"] == RIGHT
    assert stored["complete"] is True
    manifest = json.loads((tmp_path / "r" / "manifest.json").read_text())
    assert manifest["graded_by"]["model"] == "judge"
    assert "judge" not in manifest["config"]
    assert manifest["endpoint"]["name"] == "m"
    assert manifest["judges"]["judge"]["endpoint"]["endpoint"].startswith("http://127.0.0.1")
    assert manifest["judges"]["judge"]["sessions"][0]["requests"] == JUDGED
    with FaultyEndpoint(Plan(answers="<grade>refused</grade>")) as refusing:
        rejudged = judge_run(
            judged_config(tmp_path, endpoint.url, {"model": "j2", "api_url": refusing.url}),
            tmp_path / "r",
        )
    assert benchmark_entry(rejudged.document)["outcomes"]["refused"] == JUDGED
    first_judge_again = judge_run(judged_config(tmp_path, endpoint.url, {}), tmp_path / "r")
    assert endpoint.stats.requests == requests + JUDGED + 1
    assert benchmark_entry(first_judge_again.document)["outcomes"]["correct"] == RIGHT


def test_judging_a_stored_run_with_a_dead_judge_changes_nothing(
    endpoint: FaultyEndpoint, tmp_path: Path
) -> None:
    run_exams(judged_config(tmp_path, endpoint.url, {}))
    before = {path.name: path.read_bytes() for path in (tmp_path / "r").iterdir()}
    with pytest.raises(EndpointError, match="the judge 'j2'"):
        judge_run(
            judged_config(
                tmp_path, endpoint.url, {"model": "j2", "api_url": "http://127.0.0.1:9/v1"}
            ),
            tmp_path / "r",
        )
    assert {path.name: path.read_bytes() for path in (tmp_path / "r").iterdir()} == before


def test_errors_of_the_candidate_stay_counted_when_a_run_is_judged_later(tmp_path: Path) -> None:
    plan = Plan(answers=candidate_or_verdict, faults={"500": 0.3}, seed=2)
    with FaultyEndpoint(plan) as endpoint:
        first_result = benchmark_entry(
            run_exams(judged_config(tmp_path, endpoint.url, None, attempts=1)).document
        )
        endpoint.plan = Plan(answers=candidate_or_verdict)
        later = benchmark_entry(
            judge_run(judged_config(tmp_path, endpoint.url, {}), tmp_path / "r").document
        )
    assert first_result["outcomes"]["error"] > 0
    assert later["outcomes"]["error"] == first_result["outcomes"]["error"]
    assert sum(later["outcomes"].values()) == SIZE


KILL_SAMPLES = 300
IN_FLIGHT = 4


def test_kill_in_the_middle_of_grading_loses_no_verdict(tmp_path: Path) -> None:
    def grade(request: EndpointRequest) -> str:
        return f"<grade>{'correct' if draw(request.text) < 0.5 else 'incorrect'}</grade>"

    clean = {k: v for k, v in os.environ.items() if not k.startswith(("KEJU_", "OPENAI_"))}
    with FaultyEndpoint(Plan(answers=grade, latency=0.01)) as endpoint:
        judge = {
            "model": "j",
            "api_url": endpoint.url,
            "strategy": "llm",
            "eval_batch_size": IN_FLIGHT,
        }
        exam = {"demo": {"size": KILL_SAMPLES, "subset_list": ["object_counting"]}}
        argv = [
            *(sys.executable, "-m", "keju", "eval", "--model", "scripted", "--datasets", "demo"),
            *("--dataset-args", json.dumps(exam), "--judge", json.dumps(judge), "--json", "-q"),
            *("--work-dir", str(tmp_path), "--run-id", "r", "--no-report"),
        ]
        journal = tmp_path / "r" / VERDICTS
        for kills in range(3):
            process = subprocess.Popen(argv, env=clean, stdout=subprocess.DEVNULL)
            while not journal.exists() or journal.read_bytes().count(b"\n") < 40 * (kills + 1):
                assert process.poll() is None
                time.sleep(0.002)
            process.send_signal(signal.SIGKILL)
            process.wait()
        journalled = journal.read_bytes().count(b"\n")
        preflights = 2 + 1 + 1
        assert journalled >= endpoint.stats.answered - preflights - 3 * IN_FLIGHT
        assert journalled < KILL_SAMPLES
        before = endpoint.stats.requests
        resumed = subprocess.run(argv, env=clean, capture_output=True, check=True)
        assert endpoint.stats.requests - before == KILL_SAMPLES - journalled + 1
    benchmark = json.loads(resumed.stdout)["benchmarks"][0]
    assert benchmark["judge"]["judged"] == KILL_SAMPLES
    assert len(list(Records(tmp_path / "r", file=VERDICTS))) == KILL_SAMPLES


def test_each_reply_is_graded_once_and_each_verdict_read_once(
    endpoint: FaultyEndpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graded: list[str] = []
    read_answers: list[str] = []
    grade, verdict_of = OpenExam.grade, exam_module.read_verdict

    def count_grade(exam: OpenExam, reply: Reply, sample: Sample, reader: Reader) -> Reading:
        graded.append(sample.id)
        return grade(exam, reply, sample, reader)

    def count_read(text: str, answer: str, kind: Kind, finish: str = "") -> Answer:
        read_answers.append(answer)
        return verdict_of(text, answer, kind, finish)

    monkeypatch.setattr(OpenExam, "grade", count_grade)
    monkeypatch.setattr(judge_module, "read_verdict", count_read)
    monkeypatch.setattr(exam_module, "read_verdict", count_read)
    task = judged_config(tmp_path, endpoint.url, {})
    run_exams(task)
    assert len(graded) == len(set(graded)) == SIZE
    assert len(read_answers) == len(set(read_answers)) == JUDGED
    for repeat in (
        lambda: judge_run(task, tmp_path / "r"),
        lambda: score_run(Run(tmp_path / "r")),
    ):
        graded.clear()
        read_answers.clear()
        repeat()
        assert len(graded) == len(set(graded)) == SIZE
        assert len(read_answers) == len(set(read_answers)) == JUDGED
