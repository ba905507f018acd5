"""Runs with several endpoints: who answers what, and what becomes of those that fail."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from keju.config import TaskConfig
from keju.errors import ConfigError, EndpointError
from keju.results.score import score_run
from keju.runs.journal import FILE, Records
from keju.runs.run import Run
from keju.task import FinishedTask, run_exams
from tests.cli.conftest import Keju, keju  # noqa: F401
from tests.support.endpoint import FaultyEndpoint
from tests.support.replies import EndpointRequest, Plan, Raw, draw

pytestmark = pytest.mark.slow

SIZE = 30
WHOLE = 6 * SIZE


def answer(asked: EndpointRequest) -> str:
    """A fixed reply to each prompt, right about a quarter of the time."""
    return f"So the answer is ({'ABCD'[int(draw(asked.text) * 4)]})."


GOOD = Plan(answers=answer, latency=0.01)
USUAL = Plan(answers=answer, latency=0.02)


@contextmanager
def running(*plans: Plan) -> Iterator[list[FaultyEndpoint]]:
    with ExitStack() as stack:
        yield [stack.enter_context(FaultyEndpoint(plan)) for plan in plans]


def evaluate(fleet: Sequence[FaultyEndpoint], folder: Path, **more: Any) -> FinishedTask:
    settings: dict[str, Any] = {
        "model": "m",
        "datasets": ["demo"],
        "dataset_args": {"demo": {"size": SIZE}},
        "work_dir": str(folder),
        "run_id": "r",
        "eval_batch_size": 4,
        "retry_interval": 0.02,
    }
    if "endpoints" not in more:
        settings["api_url"] = [each.url for each in fleet]
    return run_exams(TaskConfig(**(settings | more)), report=False)


def meanwhile(endpoints: Sequence[FaultyEndpoint], answers: int, act: Callable[[], None]) -> None:
    """Do something in a thread when so many questions were answered."""

    def wait() -> None:
        while sum(each.stats.answered for each in endpoints) < answers:
            time.sleep(0.002)
        act()

    threading.Thread(target=wait, daemon=True).start()


def check_whole(finished: FinishedTask) -> dict[str, Any]:
    """All is answered, once, and nothing is an error; the results as a document."""
    assert finished.error is None
    (entry,) = finished.document["benchmarks"]
    assert entry["n"] == WHOLE
    assert entry["outcomes"]["error"] == 0
    records = list(Records(finished.folder))
    assert len(records) == len({record.hash for record in records}) == WHOLE
    return finished.document


def codes(document: dict[str, Any]) -> list[str]:
    return [notice["code"] for entry in document["benchmarks"] for notice in entry["notices"]]


def scores(folder: Path) -> dict[str, Any]:
    return {record.id: record.readings for record in Records(folder)}


def test_four_endpoints_share_the_work_and_the_numbers_are_those_of_one(tmp_path: Path) -> None:
    plans = [Plan(answers=answer, latency=seconds) for seconds in (0.005, 0.01, 0.02, 0.04)]
    with running(*plans) as endpoints:
        document = check_whole(evaluate(endpoints, tmp_path / "four"))
        told = {use["address"]: use for use in document["endpoints"]}
        assert sum(use["replies"] for use in told.values()) == WHOLE
        for endpoint in endpoints:
            own = told[endpoint.url]
            assert 0 < own["replies"] <= endpoint.stats.answered
            assert own["input_tokens"] > 0
            assert "moved" not in own
        session = json.loads((tmp_path / "four/r/manifest.json").read_text())["sessions"][0]
        assert [each["address"] for each in session["endpoints"]] == list(told)
        one = evaluate(endpoints[:1], tmp_path / "one").document
    assert scores(tmp_path / "four/r") == scores(tmp_path / "one/r")
    assert "endpoints" not in one
    by_subset: dict[str, Counter[str]] = defaultdict(Counter)
    for record in Records(tmp_path / "four/r"):
        assert record.endpoint in told
        by_subset[record.id.rpartition("_")[0]][record.endpoint] += 1
    together = sum(max(places.values()) for places in by_subset.values())
    assert together > 0.7 * WHOLE  # six prefixes on four endpoints: some must be shared
    assert all(not record.endpoint for record in Records(tmp_path / "one/r"))


def test_one_endpoint_dies_and_returns(tmp_path: Path) -> None:
    with running(USUAL, USUAL, USUAL) as endpoints:
        second = endpoints[1]

        def act() -> None:
            second.down()
            time.sleep(0.3)
            second.up()

        meanwhile(endpoints, 40, act)
        document = check_whole(evaluate(endpoints, tmp_path))
    own = next(use for use in document["endpoints"] if use["address"] == second.url)
    assert own["outages"] == 1
    assert own["moved"] >= 1


def test_all_die_and_return(tmp_path: Path) -> None:
    with running(USUAL, USUAL) as endpoints:

        def act() -> None:
            for endpoint in endpoints:
                endpoint.down()
            time.sleep(0.5)
            for endpoint in endpoints:
                endpoint.up()

        meanwhile(endpoints, 40, act)
        check_whole(evaluate(endpoints, tmp_path))


def test_all_stay_down_and_the_run_can_be_resumed_with_one(tmp_path: Path) -> None:
    with running(USUAL, USUAL) as endpoints:

        def act() -> None:
            for endpoint in endpoints:
                endpoint.down()

        meanwhile(endpoints, 40, act)
        finished = evaluate(endpoints, tmp_path, give_up_after=0.5)
        assert finished.exit_code == 4
        assert finished.error is not None
        assert finished.error.code == "endpoints_stayed_down"
        known = len(list(Records(tmp_path / "r")))
        assert 0 < known < WHOLE
    with running(GOOD) as endpoints:
        document = check_whole(evaluate(endpoints, tmp_path))
        assert endpoints[0].stats.answered <= WHOLE - known + 2
    uses = document["endpoints"]
    assert [use["address"] for use in uses[2:]] == [endpoints[0].url]
    assert uses[2]["replies"] == WHOLE - known
    assert uses[2]["mean_seconds"] > 0


def test_a_run_with_one_endpoint_at_a_time_has_no_table_of_them(tmp_path: Path) -> None:
    with running(GOOD) as endpoints:
        assert "endpoints" not in check_whole(evaluate(endpoints, tmp_path))


def test_where_none_answers_each_address_is_named_with_its_reason(keju: Keju) -> None:  # noqa: F811
    with running(GOOD) as endpoints, running(Plan(faults={"503": 1.0})) as others:
        gone, key = endpoints[0].url, "sk-nobody-sees-it"
        endpoints[0].down()
        secret = others[0].url.replace("http://", f"http://user:{key}@")
        ran = keju(
            *("eval", "-m", "m", "--datasets", "demo", "--limit", "2", "-q"),
            *("--api-url", gone, "--api-url", secret, "--api-key", key),
            *("--retry-interval", "0.01"),
        )
    assert ran.code == 5, ran.err
    last = ran.err.splitlines()[-1]
    assert "none of the 2 endpoints answers" in last
    assert f"{gone} (" in last
    assert "refused" in last
    assert f"{others[0].url} (" in last
    assert "503" in last
    assert key not in ran.err


def test_one_that_always_fails_is_taken_out(tmp_path: Path) -> None:
    later = Plan(answers=answer, faults={"500": 1.0})
    with running(GOOD, GOOD) as endpoints:
        meanwhile(endpoints, 30, lambda: setattr(endpoints[1], "plan", later))
        document = check_whole(evaluate(endpoints, tmp_path))
    assert next(use for use in document["endpoints"] if use["address"] == endpoints[1].url)["moved"]


def test_one_that_fails_from_the_start_is_not_used(tmp_path: Path) -> None:
    with running(GOOD, Plan(faults={"500": 1.0})) as endpoints:
        document = check_whole(evaluate(endpoints, tmp_path))
    replies = [use["replies"] for use in document["endpoints"]]
    assert replies == [WHOLE, 0]


def test_one_that_is_not_there_may_come_later(tmp_path: Path) -> None:
    with running(USUAL, USUAL) as endpoints:
        endpoints[1].down()
        meanwhile(endpoints, 20, endpoints[1].up)
        document = check_whole(evaluate(endpoints, tmp_path, dataset_args={"demo": {"size": SIZE}}))
    assert document["endpoints"][1]["outages"] == 1


def test_a_request_that_fails_at_one_endpoint_has_its_last_attempts_at_another(
    tmp_path: Path,
) -> None:
    broken = Raw(data=b"HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n", then="keep")
    failing: set[str] = set()

    def two(asked: EndpointRequest, _attempt: int) -> Raw | None:
        # No more than two: three attempts each are too few to take the endpoint itself out.
        if draw(asked.key) < 0.2 and len(failing) < 2:
            failing.add(asked.key)
        return broken if asked.key in failing else None

    with running(GOOD, Plan(answers=answer, latency=0.01, raw=two)) as endpoints:
        document = check_whole(evaluate(endpoints, tmp_path))
    moved = [record for record in Records(tmp_path / "r") if record.faults]
    assert len(moved) == len(failing) > 0
    assert {len(record.faults) for record in moved} == {3}
    assert {record.endpoint for record in moved} == {endpoints[0].url}
    assert document["endpoints"][1]["moved"] == len(moved)
    assert "outages" not in document["endpoints"][1]


def test_one_with_another_model_is_not_used_and_that_is_said(tmp_path: Path) -> None:
    other = Plan(answers=answer, model_name="another")
    with running(GOOD, other, GOOD) as endpoints:
        document = check_whole(evaluate(endpoints, tmp_path / "a"))
        assert "endpoint_other_model" in codes(document)
        assert document["endpoints"][1]["replies"] == 0
        assert document["endpoints"][1]["other_models"] == {"another": 0}
        settings: list[dict[str, Any]] = [{"url": each.url} for each in endpoints]
        settings[1]["reports"] = "another"
        document = check_whole(evaluate(endpoints, tmp_path / "b", endpoints=settings))
    assert not {"endpoint_other_model", "reported_models"} & {*codes(document)}
    assert document["endpoints"][1]["replies"] > 0
    again = score_run(Run(tmp_path / "b" / "r"))
    assert all(notice.code != "reported_models" for notice in again.benchmarks[0].notices)


def test_the_name_that_an_endpoint_is_asked_for_need_not_be_declared_again(tmp_path: Path) -> None:
    with running(GOOD, Plan(answers=answer, latency=0.01, model_name="m2")) as endpoints:
        settings = [{"url": endpoints[0].url}, {"url": endpoints[1].url, "model": "m2"}]
        document = check_whole(evaluate(endpoints, tmp_path, endpoints=settings))
    assert not {"endpoint_other_model", "reported_models"} & {*codes(document)}
    assert document["endpoints"][1]["replies"] > 0
    assert {record.reply.model for record in Records(tmp_path / "r")} == {"m", "m2"}


def test_one_that_changes_its_model_is_taken_out_and_its_replies_do_not_count(
    tmp_path: Path,
) -> None:
    other = Plan(answers="wrong", latency=0.02, model_name="another")
    with running(USUAL, USUAL) as endpoints:
        meanwhile(endpoints, 40, lambda: setattr(endpoints[1], "plan", other))
        document = check_whole(evaluate(endpoints, tmp_path))
    assert document["endpoints"][1]["other_models"]["another"] >= 1
    assert "endpoint_other_model" in codes(document)
    assert not any(record.reply.text == "wrong" for record in Records(tmp_path / "r"))


def test_one_with_another_key_is_left_out_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECOND_KEY", "sk-second-endpoint")
    locked = Plan(answers=answer, latency=0.01, key="sk-second-endpoint")
    with running(GOOD, locked) as endpoints:
        document = check_whole(evaluate(endpoints, tmp_path / "a", api_key="sk-wrong"))
        assert "endpoint_given_up" in codes(document)
        assert document["endpoints"][1]["lost"]["code"] == "endpoint_refused_key"
        settings: list[dict[str, Any]] = [{"url": each.url} for each in endpoints]
        settings[1]["api_key_var"] = "SECOND_KEY"
        document = check_whole(evaluate(endpoints, tmp_path / "b", endpoints=settings))
        assert document["endpoints"][1]["replies"] > 0
        manifest = (tmp_path / "b/r/manifest.json").read_text()
        assert "SECOND_KEY" in manifest
        assert "sk-second" not in manifest
        with pytest.raises(ConfigError, match="NO_SUCH_KEY"):
            evaluate(
                endpoints,
                tmp_path,
                endpoints=[settings[0], settings[1] | {"api_key_var": "NO_SUCH_KEY"}],
            )
    with running(locked, locked) as endpoints, pytest.raises(EndpointError) as raised:
        evaluate(endpoints, tmp_path / "c", api_key="sk-wrong")
    assert raised.value.exit_code == 5
    assert not (tmp_path / "c" / "r").exists()


def test_one_that_stalls_is_taken_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keju.engine.pool.SILENCE", 0.3)
    monkeypatch.setattr("keju.engine.pool.WATCH_EVERY", 0.05)
    stalled = Plan(answers=answer, faults={"stall": 1.0}, stall=30)
    with running(USUAL, USUAL) as endpoints:
        meanwhile(endpoints, 40, lambda: setattr(endpoints[1], "plan", stalled))
        document = check_whole(evaluate(endpoints, tmp_path, timeout=2))
    assert document["endpoints"][1]["moved"] >= 1
    assert document["endpoints"][1]["outages"] == 1


def test_a_budget_and_a_rate_are_those_of_all_endpoints(tmp_path: Path) -> None:
    with running(GOOD, GOOD, GOOD) as endpoints:
        before = sum(each.stats.requests for each in endpoints)
        finished = evaluate(endpoints, tmp_path, budget={"requests": 50})
        asked = sum(each.stats.requests for each in endpoints) - before
    assert finished.exit_code == 4
    assert len(list(Records(tmp_path / "r"))) == 50
    assert asked == 50 + len(endpoints)  # one cheap call each


def command(endpoints: Sequence[FaultyEndpoint], folder: Path) -> list[str]:
    urls = [word for each in endpoints for word in ("--api-url", each.url)]
    return [
        *(sys.executable, "-m", "keju", "eval", "--model", "m", *urls, "--datasets", "demo"),
        *("--dataset-args", json.dumps({"demo": {"size": SIZE}}), "--json", "--quiet"),
        *("--work-dir", str(folder), "--run-id", "r", "--eval-batch-size", "4"),
    ]


def environment() -> dict[str, str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("KEJU_", "OPENAI_"))}
    root = Path(__file__).parent.parent
    return clean | {"PYTHONPATH": os.pathsep.join((str(root / "src"), str(root)))}


@pytest.mark.parametrize(("number", "code"), [(signal.SIGKILL, -9), (signal.SIGINT, 130)])
def test_a_run_that_was_broken_off_goes_on_with_fewer_endpoints(
    number: signal.Signals, code: int, tmp_path: Path
) -> None:
    slow = Plan(answers=answer, latency=0.05)
    with running(slow, slow, slow) as endpoints:
        child = subprocess.Popen(
            command(endpoints, tmp_path), env=environment(), stdout=subprocess.DEVNULL
        )
        journal = tmp_path / "r" / FILE
        while not journal.exists() or journal.read_bytes().count(b"\n") < 40:
            time.sleep(0.01)
        child.send_signal(number)
        assert child.wait(20) == code
        known = len(list(Records(tmp_path / "r")))
        assert 40 <= known < WHOLE
        document = check_whole(evaluate(endpoints[:2], tmp_path))
    assert len(document["endpoints"]) in (2, 3)  # a kill in the first second leaves no books
    asked = sum(sum(each.stats.attempts.values()) for each in endpoints)
    assert asked <= WHOLE + 3 * 4 + 5  # what was in flight, and the cheap calls


def test_the_command_line(keju: Keju) -> None:  # noqa: F811
    with running(GOOD, GOOD) as endpoints:
        urls = [word for each in endpoints for word in ("--api-url", each.url)]
        words = ("-m", "m", "--datasets", "demo", "--limit", "5", "-q")
        ran = keju("eval", *urls, *words, "--run-id", "a")
        assert ran.code == 0, ran.err
        assert all(each.url in ran.out for each in endpoints)
        assert "Endpoints" in Path("runs/a/report.html").read_text()
        assert keju("report", "a").code == 0
        again = keju("score", "a", "--json").json
        assert len(again["endpoints"]) == 2
        ran = keju("eval", "--api-url", endpoints[0].url, "--api-url", endpoints[0].url, *words)
        assert (ran.code, ran.out) == (2, "")
        assert "named twice" in ran.err
        Path("task.yaml").write_text(
            f"endpoints:\n- url: {endpoints[0].url}\n  weight: 2\n  concurrency: 3\n  rpm: 100000\n"
            f"- {{url: {endpoints[1].url}, tpm: 1.0e+9, model: other-name}}\n"
        )
        ran = keju("eval", "-c", "task.yaml", *words, "--json")
        assert ran.code == 0, ran.err
        addresses = [use["address"] for use in ran.json["endpoints"]]
        assert addresses == [endpoints[0].url, f"{endpoints[1].url} (other-name)"]
        one = keju("eval", "-c", "task.yaml", "--api-url", endpoints[1].url, *words, "--json")
        assert "endpoints" not in one.json
        dry = keju("eval", *urls, *words, "--dry-run", "--json").json
        assert (dry["endpoints"], dry["at_once"]) == ([each.url for each in endpoints], 64)
        judged = keju("eval", *urls, *words, "--judge", "model=j")
        assert judged.code == 2
        assert "judge.api_url" in judged.err
        local = keju("eval", *urls, *words[2:], "-m", "scripted")
        assert (local.code, "no effect" in local.err) == (2, True)


def test_an_address_alone_is_an_endpoint_and_what_is_none_is_refused_in_keju_s_words(
    keju: Keju,  # noqa: F811
) -> None:
    words = ("eval", "-c", "task.yaml", "-m", "m", "--datasets", "demo", "--dry-run", "--json")
    task = Path("task.yaml")
    task.write_text("endpoints: ['http://a:1/v1', {url: 'http://b:2/v1', weight: 2}]\n")
    assert keju(*words).json["endpoints"] == ["http://a:1/v1", "http://b:2/v1"]
    task.write_text("endpoints: ['http://a:1/v1', not an address]\n")
    assert "endpoints.1.url" in keju(*words).err
    task.write_text("endpoints: ['http://a:1/v1', 5]\n")
    refused = keju(*words)
    assert refused.code == 2
    assert "endpoints.1: it takes keys with values, such as {" in refused.err
