"""Whole runs against a real endpoint on loopback: faults, outages, budgets, resume."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from keju.config import TaskConfig
from keju.errors import ConfigError, EndpointError, UsageError
from keju.runs.journal import Records
from keju.task import run_exams
from keju.types import Record
from tests.support.endpoint import FaultyEndpoint
from tests.support.endpoint_faults import FAULTS
from tests.support.replies import EndpointRequest, Plan, draw

pytestmark = pytest.mark.slow


def answer(asked: EndpointRequest) -> str:
    """A fixed reply to each prompt, right about a quarter of the time."""
    return f"So the answer is ({'ABCD'[int(draw(asked.text) * 4)]})."


@pytest.fixture
def plan() -> Plan:
    """How the endpoint answers."""
    return Plan(answers=answer)


def config(endpoint: FaultyEndpoint, folder: Path, **more: Any) -> TaskConfig:
    size = more.pop("size", 20)
    settings: dict[str, Any] = {
        "model": "m",
        "api_url": endpoint.url,
        "datasets": ["demo"],
        "dataset_args": {"demo": {"size": size}},
        "work_dir": str(folder),
        "run_id": "r",
        "eval_batch_size": 16,
        "retry_interval": 0.02,
    }
    return TaskConfig(**(settings | more))


def scores(folder: Path) -> dict[str, tuple[str | None, str]]:
    """What counts of each sample: the last record's answer and outcome."""
    found: dict[str, tuple[str | None, str]] = {}
    for record in Records(folder):
        reading = record.readings[0]
        found[record.id] = (reading.answer.value, reading.score.outcome)
    return found


def headline(results: dict[str, Any]) -> Any:
    entry = results["benchmarks"][0]
    return entry["metrics"]["accuracy"], entry["outcomes"], entry["subsets"]


def clean_run(tmp_path: Path, size: int = 20) -> dict[str, Any]:
    with FaultyEndpoint(Plan(answers=answer)) as good:
        return run_exams(config(good, tmp_path / "clean", size=size)).document


def when_answered(
    endpoint: FaultyEndpoint, answers: int, *actions: Callable[[], None]
) -> threading.Thread:
    """Do something once the endpoint has given so many answers, while a run is going on."""

    def wait_and_act() -> None:
        while endpoint.stats.answered < answers:
            time.sleep(0.002)
        for action in actions:
            action()

    thread = threading.Thread(target=wait_and_act, daemon=True)
    thread.start()
    return thread


def test_no_fault_of_the_endpoint_changes_a_score(tmp_path: Path) -> None:
    plan = Plan(answers=answer, faults=FAULTS, seed=7, retry_after="0.05", stall=1.0)
    with FaultyEndpoint(plan) as faulty:
        finished = run_exams(config(faulty, tmp_path, size=50, timeout=0.5, attempts=12))
        assert faulty.stats.snapshot()["max_attempts"] <= 12
        assert set(faulty.stats.faults) == set(FAULTS)
    assert finished.exit_code == 0
    assert headline(finished.document) == headline(clean_run(tmp_path, 50))


def test_attempts_are_what_the_user_set_and_every_sample_ends_with_an_outcome(
    tmp_path: Path,
) -> None:
    plan = Plan(answers=answer, faults={"500": 0.6}, seed=1)
    with FaultyEndpoint(plan) as faulty:
        finished = run_exams(config(faulty, tmp_path, size=10, attempts=2))
        stats = faulty.stats.snapshot()
    assert stats["max_attempts"] == 2
    assert finished.exit_code == 4
    assert "ended in an error" in finished.message
    entry = finished.document["benchmarks"][0]
    assert sum(entry["outcomes"].values()) == 60
    assert 5 < entry["outcomes"]["error"] < 40
    metrics = entry["metrics"]
    assert metrics["accuracy"]["n"] == 60 - entry["outcomes"]["error"]
    low, high = metrics["accuracy_worst"]["value"], metrics["accuracy_best"]["value"]
    assert metrics["accuracy"]["value"] is None
    assert metrics["accuracy"]["bounds"] == [low, high]
    failed = [r for r in Records(tmp_path / "r") if r.reply.error is not None]
    assert all(len(record.faults) == 1 for record in failed)


def test_errors_are_asked_again_on_resume_and_nothing_else_is(tmp_path: Path) -> None:
    with FaultyEndpoint(Plan(answers=answer, faults={"500": 0.6}, seed=1)) as faulty:
        first = run_exams(config(faulty, tmp_path, size=10, attempts=1))
    errors = first.document["benchmarks"][0]["outcomes"]["error"]
    with FaultyEndpoint(Plan(answers=answer)) as good:
        second = run_exams(config(good, tmp_path, size=10, attempts=1))
        assert good.stats.requests == errors + 1  # the preflight
    assert second.exit_code == 0
    assert headline(second.document) == headline(clean_run(tmp_path, 10))


def test_an_endpoint_that_goes_down_pauses_the_run(tmp_path: Path) -> None:
    with FaultyEndpoint(Plan(answers=answer, latency=0.01)) as endpoint:
        outage = when_answered(endpoint, 50, endpoint.down, lambda: time.sleep(2), endpoint.up)
        finished = run_exams(config(endpoint, tmp_path, size=100, attempts=2))
        outage.join()
    assert finished.exit_code == 0
    assert finished.document["benchmarks"][0]["outcomes"]["error"] == 0
    assert headline(finished.document) == headline(clean_run(tmp_path, 100))


def test_an_endpoint_that_stays_down_ends_the_run_resumable(tmp_path: Path) -> None:
    with FaultyEndpoint(Plan(answers=answer, latency=0.01)) as endpoint:
        outage = when_answered(endpoint, 50, endpoint.down)
        finished = run_exams(config(endpoint, tmp_path, size=200, give_up_after=1.0))
        outage.join()
        assert finished.exit_code == 4
        assert "stayed down" in finished.message
        assert "--resume" in finished.resume_command
        endpoint.up()
        again = run_exams(config(endpoint, tmp_path, size=200, resume=True))
    assert again.exit_code == 0
    assert headline(again.document) == headline(clean_run(tmp_path, 200))


def test_a_context_length_error_is_an_outcome_and_never_an_answer(tmp_path: Path) -> None:
    with FaultyEndpoint(Plan(answers=answer, context=900)) as endpoint:
        finished = run_exams(config(endpoint, tmp_path, error_limit=1.0))
        outcomes = finished.document["benchmarks"][0]["outcomes"]
        assert 0 < outcomes["error"] < 120
        requests = endpoint.stats.requests
        run_exams(config(endpoint, tmp_path, error_limit=1.0))
        assert endpoint.stats.requests == requests
    kinds = {r.reply.error.kind for r in Records(tmp_path / "r") if r.reply.error}
    assert kinds == {"context_length"}


def test_an_endpoint_that_refuses_every_request_is_named_early(tmp_path: Path) -> None:
    with FaultyEndpoint(Plan(answers=answer, context=100)) as endpoint:
        finished = run_exams(config(endpoint, tmp_path, error_limit=0.5))
    assert finished.exit_code == 4

    def refuse(asked: EndpointRequest) -> str:
        return "fine"

    plan = Plan(answers=refuse, faults={"400": 1.0})
    with FaultyEndpoint(plan) as endpoint, pytest.raises(EndpointError):
        run_exams(config(endpoint, tmp_path, run_id="other"))


def test_a_key_that_is_withdrawn_stops_the_run_with_exit_5(tmp_path: Path) -> None:
    with FaultyEndpoint(Plan(answers=answer, latency=0.02)) as endpoint:

        def withdraw() -> None:
            endpoint.plan = Plan(answers=answer, key="another")

        change = when_answered(endpoint, 50, withdraw)
        finished = run_exams(config(endpoint, tmp_path, size=200))
        change.join()
    assert finished.exit_code == 5
    assert "refuses to go on" in finished.message
    records = list(Records(tmp_path / "r"))
    assert all(record.reply.error is None for record in records)


USAGE = {"prompt_tokens": 80, "completion_tokens": 20}
PREFLIGHT = 1


@pytest.mark.parametrize(
    ("budget", "words", "paid"),
    [
        ({"requests": 30}, "30 requests", 30),
        ({"tokens": 1999}, "1999 tokens", 19),
        ({"tokens": 2000}, "2000 tokens", 20),
        ({"tokens": 100}, "100 tokens", 1),
        ({"tokens": 50}, "50 tokens", 1),  # what the first reply takes cannot be known
        ({"cost": 0.0012}, "0.0012 in cost", 12),
    ],
)
def test_a_budget_is_not_overspent_by_what_is_in_flight(
    tmp_path: Path, budget: dict[str, Any], words: str, paid: int
) -> None:
    price = {"input": 1.0, "output": 1.0}
    limits = {"budget": budget, "price": price, "eval_batch_size": 16}
    with FaultyEndpoint(Plan(answers=answer, usage=USAGE, latency=0.02)) as endpoint:
        finished = run_exams(config(endpoint, tmp_path, **limits))
        assert endpoint.stats.requests == paid + PREFLIGHT
        assert finished.exit_code == 4
        assert words in finished.message
        # Nothing is left of it for a second session.
        assert run_exams(config(endpoint, tmp_path, **limits)).exit_code == 4
        assert endpoint.stats.requests == paid + 2 * PREFLIGHT
        more = run_exams(config(endpoint, tmp_path))
    assert more.exit_code == 0
    assert sum(more.document["benchmarks"][0]["outcomes"].values()) == 120


def test_a_budget_is_overspent_by_nothing_but_replies_dearer_than_all_before(
    endpoint: FaultyEndpoint, tmp_path: Path
) -> None:
    finished = run_exams(config(endpoint, tmp_path, budget={"tokens": 2000}))
    taken = [r.reply.usage.input + r.reply.usage.output for r in Records(tmp_path / "r")]
    assert finished.exit_code == 4
    assert sum(taken) <= 2000 + 16 * (max(taken) - min(taken))
    assert sum(taken) > 2000 - 2 * max(taken)


def test_a_budget_that_nobody_can_keep_stops_the_run(tmp_path: Path) -> None:
    with FaultyEndpoint(Plan(answers=answer, usage={})) as endpoint:
        finished = run_exams(config(endpoint, tmp_path, budget={"tokens": 2000}))
        assert endpoint.stats.requests == 1 + PREFLIGHT
    assert finished.exit_code == 5
    assert "does not say how many tokens" in finished.message


def test_a_larger_limit_another_port_and_an_added_subset_reuse_what_is_valid(
    endpoint: FaultyEndpoint, tmp_path: Path
) -> None:
    kinds = {"demo": {"subset_list": ["object_counting"], "size": 20}}
    run_exams(config(endpoint, tmp_path, limit=5, dataset_args=kinds))
    assert endpoint.stats.requests == 5 + 1
    with FaultyEndpoint(Plan(answers=answer)) as other:
        run_exams(config(other, tmp_path, limit=12, dataset_args=kinds))
        assert other.stats.requests == 7 + 1
        both = {"demo": {"subset_list": ["object_counting", "word_sorting"], "size": 20}}
        finished = run_exams(config(other, tmp_path, limit=12, dataset_args=both))
        assert other.stats.requests == 8 + 12 + 1
    assert finished.document["benchmarks"][0]["n"] == 24


def test_use_cache_takes_replies_of_another_run_and_copies_them(
    endpoint: FaultyEndpoint, tmp_path: Path
) -> None:
    run_exams(config(endpoint, tmp_path, size=2))
    asked = endpoint.stats.requests
    finished = run_exams(config(endpoint, tmp_path, size=2, run_id="copy", use_cache="r"))
    assert endpoint.stats.requests == asked
    assert len(list(Records(tmp_path / "copy"))) == 12
    assert (
        headline(finished.document)[1]
        == headline(run_exams(config(endpoint, tmp_path, size=2)).document)[1]
    )


def test_repeats_have_records_and_seeds_of_their_own(
    endpoint: FaultyEndpoint, tmp_path: Path
) -> None:
    settings = {"generation_config": {"temperature": 1.0}, "repeats": 3}
    finished = run_exams(config(endpoint, tmp_path, size=2, **settings))
    records: list[Record] = list(Records(tmp_path / "r"))
    assert len({record.hash for record in records}) == 36
    assert {record.epoch for record in records} == {0, 1, 2}
    entry = finished.document["benchmarks"][0]
    assert entry["n"] == 12
    assert "pass@3" in entry["metrics"]


def test_the_manifest_and_the_folder_hold_no_secret(tmp_path: Path) -> None:
    marked = "sk-marked-secret-0123456789"
    with FaultyEndpoint(Plan(answers=answer, key=marked)) as endpoint:
        run_exams(
            config(
                endpoint,
                tmp_path,
                size=1,
                api_key=marked,
                headers={"X-Other": marked},
                generation_config={"extra_headers": {"X-More": marked}},
            )
        )
    for path in (tmp_path / "r").iterdir():
        assert marked not in path.read_text(), path.name


def test_two_sessions_of_one_run_at_a_time_are_refused(tmp_path: Path) -> None:
    with FaultyEndpoint(Plan(answers=answer, latency=0.2)) as endpoint:
        first = threading.Thread(target=run_exams, args=(config(endpoint, tmp_path),))
        first.start()
        while not endpoint.stats.requests:
            pass
        with pytest.raises(UsageError, match="another process"):
            run_exams(config(endpoint, tmp_path))
        first.join()


def test_a_reader_that_breaks_down_loses_no_reply(
    endpoint: FaultyEndpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from keju.benchmarks.demo import MarkerReader

    def fail(self: MarkerReader, text: str, sample: object) -> None:
        raise ZeroDivisionError("a bug")

    with monkeypatch.context() as patched:
        patched.setattr(MarkerReader, "read", fail)
        broken = run_exams(config(endpoint, tmp_path, size=2))
    assert broken.document["benchmarks"][0]["outcomes"]["ungraded"] == 12
    assert len(list(Records(tmp_path / "r"))) == 12
    asked = endpoint.stats.requests
    monkeypatch.setattr(MarkerReader, "version", 99)
    mended = run_exams(config(endpoint, tmp_path, size=2))
    assert endpoint.stats.requests == asked
    assert headline(mended.document) == headline(clean_run(tmp_path, 2))


def test_a_filter_whose_group_takes_no_part_gives_an_empty_reply(
    endpoint: FaultyEndpoint, tmp_path: Path
) -> None:
    args = {"demo": {"size": 2, "filters": {"regex": "(zzz)?So the answer"}}}
    outcomes = run_exams(config(endpoint, tmp_path, dataset_args=args)).document["benchmarks"][0]
    assert outcomes["outcomes"]["unparsed"] == 12


def test_changed_filters_are_applied_on_resume(endpoint: FaultyEndpoint, tmp_path: Path) -> None:
    run_exams(config(endpoint, tmp_path, size=2))
    asked = endpoint.stats.requests
    args = {"demo": {"size": 2, "filters": {"regex": "zzzz"}}}
    finished = run_exams(config(endpoint, tmp_path, dataset_args=args))
    assert endpoint.stats.requests == asked
    assert finished.document["benchmarks"][0]["outcomes"]["unparsed"] == 12


def test_runs_without_an_id_never_share_a_folder(endpoint: FaultyEndpoint, tmp_path: Path) -> None:
    folders = {run_exams(config(endpoint, tmp_path, size=1, run_id=None)).folder for _ in range(3)}
    assert len(folders) == 3


def test_a_refused_run_leaves_no_folder(tmp_path: Path) -> None:
    with FaultyEndpoint(Plan(key="another")) as endpoint, pytest.raises(EndpointError):
        run_exams(config(endpoint, tmp_path, size=1))
    assert not (tmp_path / "r").exists()
    with FaultyEndpoint(Plan()) as endpoint, pytest.raises(UsageError, match="to resume"):
        run_exams(config(endpoint, tmp_path, size=1, resume=True))
    assert not (tmp_path / "r").exists()


def test_a_budget_covers_all_sessions_and_what_failed(tmp_path: Path) -> None:
    plan = Plan(answers=answer, faults={"500": 0.5}, seed=2)
    with FaultyEndpoint(plan) as endpoint:
        limits = {"budget": {"requests": 60}, "attempts": 1, "error_limit": 1.0}
        for _ in range(3):
            finished = run_exams(config(endpoint, tmp_path, size=10, **limits))
        assert endpoint.stats.requests <= 60 + 3 * 6  # the preflights and their retries
    assert finished.exit_code == 4


def test_copied_replies_cost_this_run_nothing(endpoint: FaultyEndpoint, tmp_path: Path) -> None:
    run_exams(config(endpoint, tmp_path, size=2))
    limits = {"budget": {"requests": 12}, "run_id": "copy", "use_cache": "r"}
    finished = run_exams(config(endpoint, tmp_path, size=4, **limits))
    assert finished.exit_code == 0
    assert finished.document["benchmarks"][0]["n"] == 24


def test_errors_that_asking_again_cannot_mend_are_called_final(tmp_path: Path) -> None:
    with FaultyEndpoint(Plan(answers=answer, context=100)) as endpoint:
        finished = run_exams(config(endpoint, tmp_path, size=1))
    assert finished.exit_code == 4
    assert "asking again would not change that" in finished.message
    assert finished.resume_command == ""
    assert finished.document["benchmarks"][0]["errors"]["kinds"] == {"context_length": 6}
    assert finished.document["complete"] is False


def test_a_wait_longer_than_allowed_does_not_stop_the_run_and_is_reported(tmp_path: Path) -> None:
    plan = Plan(answers=answer, faults={"429": 0.5}, retry_after="3600", seed=4)
    with FaultyEndpoint(plan) as endpoint:
        finished = run_exams(config(endpoint, tmp_path, size=5, retry_interval=0.001))
    assert finished.exit_code == 0
    (entry,) = finished.document["benchmarks"]
    assert entry["outcomes"]["error"] == 0
    assert "endpoint_odd_wait" in [notice["code"] for notice in entry["notices"]]


def test_a_killed_session_leaves_its_count_in_the_manifest(
    endpoint: FaultyEndpoint, tmp_path: Path
) -> None:
    from keju.files import read_json

    run_exams(config(endpoint, tmp_path, size=2))
    session = read_json(tmp_path / "r" / "manifest.json")["sessions"][0]
    assert (session["ended"], session["requests"], session["in_flight"]) == (True, 12, 0)


def test_repeats_keep_what_a_single_run_has_answered(
    endpoint: FaultyEndpoint, tmp_path: Path
) -> None:
    warm = {"generation_config": {"temperature": 1.0}}
    run_exams(config(endpoint, tmp_path, size=2, **warm))
    run_exams(config(endpoint, tmp_path, size=2, repeats=2, **warm))
    assert endpoint.stats.requests == 12 + 12 + 2  # the preflights


def test_credentials_in_the_address_are_not_stored(tmp_path: Path) -> None:
    with FaultyEndpoint(Plan(answers=answer)) as endpoint:
        secret = endpoint.url.replace("://", "://user:s3cr3t-word@") + "?key=s3cr3t-query"
        run_exams(config(endpoint, tmp_path, size=1, api_url=secret))
    for path in (tmp_path / "r").iterdir():
        assert "s3cr3t" not in path.read_text(), path.name


@pytest.mark.parametrize("how", ["random", "stratified"])
def test_a_larger_limit_keeps_what_a_smaller_one_drew(
    endpoint: FaultyEndpoint, tmp_path: Path, how: str
) -> None:
    run_exams(config(endpoint, tmp_path, size=40, limit=10, sample=how))
    run_exams(config(endpoint, tmp_path, size=40, limit=20, sample=how))
    assert endpoint.stats.requests == 60 + 60 + 2  # the preflights


def test_sampling_settings_are_refused_where_labels_are_compared(
    endpoint: FaultyEndpoint, tmp_path: Path
) -> None:
    settings = {"protocol": "letters", "generation_config": {"max_tokens": 512}}
    with pytest.raises(ConfigError, match=r"generation_config.max_tokens has no effect"):
        run_exams(config(endpoint, tmp_path, size=1, **settings))


def test_labels_that_were_not_returned_are_unparsed_and_not_truncated(tmp_path: Path) -> None:
    plan = Plan(answers="Z", tokens=lambda _: {"Z": -0.1, "Y": -2.0})
    with FaultyEndpoint(plan) as endpoint:
        finished = run_exams(config(endpoint, tmp_path, size=1, protocol="letters"))
    assert finished.document["benchmarks"][0]["outcomes"]["unparsed"] == 6
    reasons = {record.readings[0].answer.reason for record in Records(tmp_path / "r")}
    assert reasons == {"labels_not_in_top_logprobs"}


def test_much_probability_outside_the_labels_is_a_warning(tmp_path: Path) -> None:
    def tokens(_: EndpointRequest) -> dict[str, float]:
        return {"The": math.log(0.9), "A": math.log(0.05), "B": math.log(0.03)}

    with FaultyEndpoint(Plan(tokens=tokens)) as endpoint:
        finished = run_exams(config(endpoint, tmp_path, size=1, protocol="letters"))
    (warning,) = [
        text for text in finished.document["benchmarks"][0]["warnings"] if "outside" in text
    ]
    assert warning.startswith("92.00 % of the probability lies outside the labels")


def test_labels_beyond_the_first_log_probabilities_are_looked_for(tmp_path: Path) -> None:
    def tokens(_: EndpointRequest) -> dict[str, float]:
        return {f"w{n}": math.log(0.01) for n in range(50)} | {"B": -8.0, "A": -9.0}

    with FaultyEndpoint(Plan(tokens=tokens, max_logprobs=1000)) as endpoint:
        finished = run_exams(config(endpoint, tmp_path, size=1, protocol="letters"))
    assert finished.document["benchmarks"][0]["outcomes"]["unparsed"] == 0
    assert {record.readings[0].answer.value for record in Records(tmp_path / "r")} == {"B"}


def test_replies_that_a_filter_broke_off_are_among_the_errors(tmp_path: Path) -> None:
    def filtered(asked: EndpointRequest) -> dict[str, Any]:
        return {"message": {"content": "Well, I th"}, "finish_reason": "content_filter"}

    with FaultyEndpoint(Plan(answers=filtered)) as endpoint:
        finished = run_exams(config(endpoint, tmp_path))
    (entry,) = finished.document["benchmarks"]
    total = sum(entry["outcomes"].values())
    assert entry["outcomes"]["error"] == total > 0
    assert entry["errors"]["kinds"] == {"content_filter": total}
    assert "filter broke the reply off" in entry["errors"]["example"]
    assert finished.exit_code == 4
    assert finished.resume_command == ""


def test_questions_that_were_too_long_are_asked_again_where_the_model_is_another(
    tmp_path: Path,
) -> None:
    with FaultyEndpoint(Plan(answers=answer, context=900)) as small:
        cut = run_exams(config(small, tmp_path, error_limit=1.0))
    before = cut.document["benchmarks"][0]["outcomes"]["error"]
    assert 0 < before < sum(cut.document["benchmarks"][0]["outcomes"].values())
    with FaultyEndpoint(Plan(answers=answer)) as large:
        mended = run_exams(config(large, tmp_path, error_limit=1.0))
        asked = large.stats.requests
        again = run_exams(config(large, tmp_path, error_limit=1.0))
        assert large.stats.requests == asked
    assert asked <= before + 1
    for finished in (mended, again):
        assert finished.document["benchmarks"][0]["outcomes"]["error"] == 0
