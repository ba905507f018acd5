"""From a reply to an outcome, where no exam differs."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from keju import run_task
from keju.answers.segments import as_reply
from keju.benchmarks.base import Reader
from keju.benchmarks.grading import grade
from keju.benchmarks.mmlu_pro.readers import Level1Reader
from keju.runs.journal import Records
from keju.types import Answer, Fault, Reply, Sample
from tests.support.endpoint import FaultyEndpoint
from tests.support.replies import Plan

SAMPLE = Sample(id="1", subset="s", index=0, text="?", target="B", choices=("x", "y"))


class Letter(Reader):
    """Reads the last of A and B."""

    name = "letter"

    def read(self, text: str, sample: Sample) -> Answer:
        letters = [letter for letter in text if letter in sample.labels]
        return Answer(letters[-1], "strict") if letters else Answer(reason="no_marker")

    def matches(self, value: str, sample: Sample) -> bool:
        return value == sample.target


@pytest.mark.parametrize(
    ("reply", "outcome", "reason"),
    [
        (Reply(text="B", finish="stop"), "correct", ""),
        (Reply(text="A", finish="stop"), "incorrect", ""),
        (Reply(text="?", finish="stop"), "unparsed", "no_marker"),
        (Reply(text="?", finish="length"), "truncated", "no_marker"),
        (Reply(text="B", finish="content_filter"), "correct", ""),
        (Reply(text="A", finish="content_filter"), "incorrect", ""),
        (Reply(text="I th", finish="content_filter"), "error", "content_filter"),
        (Reply(label_logprobs={}, finish="content_filter"), "error", "content_filter"),
        (Reply(error=Fault("server", "down")), "error", "server"),
    ],
)
def test_outcome(reply: Reply, outcome: str, reason: str) -> None:
    reading = grade(reply, SAMPLE, Letter())
    assert (reading.score.outcome, reading.answer.reason) == (outcome, reason)


def test_a_refusal_that_the_endpoint_tells_is_set_aside_unread() -> None:
    class Broken(Letter):
        def read(self, text: str, sample: Sample) -> Answer:
            raise AssertionError(f"nobody may read {text!r}")

    for target in ("B", ""):
        sample = replace(SAMPLE, target=target)
        reading = grade(Reply(text="I cannot. B", refusal="I cannot."), sample, Broken())
        assert reading.answer == Answer(reason="refused_by_api")
        assert reading.score.outcome == ("refused" if target else "unlabelled")


@pytest.mark.parametrize("logprobs", [{"B": -0.7, "A": -0.7}, {"A": -0.7, "B": -0.7}])
def test_a_tie_of_labels_goes_to_the_first_and_is_named(logprobs: dict[str, float]) -> None:
    reading = grade(Reply(label_logprobs=logprobs, finish="stop"), SAMPLE, Letter())
    assert (reading.answer.value, reading.answer.reason) == ("A", "tie")


def test_an_endpoint_that_prefers_no_label_is_read_as_the_first(tmp_path: Path) -> None:
    plan = Plan(answers="B", tokens=lambda _: {"B": -0.7, "A": -0.7, "Z": -3.0})
    with FaultyEndpoint(plan) as endpoint:
        run_task(
            {
                "model": "m",
                "api_url": endpoint.url,
                "datasets": ["demo"],
                "protocol": "letters",
                "limit": 1,
                "work_dir": str(tmp_path),
                "run_id": "r",
            }
        )
    answers = [record.readings[0].answer for record in Records(tmp_path / "r")]
    assert {(answer.value, answer.reason) for answer in answers} == {("A", "tie")}


def test_a_published_rule_may_read_the_think_block() -> None:
    """As the script of its authors does, which knows nothing of ``<think>``."""
    reply = as_reply("<think>At first the answer is (A).</think>So the answer is (B).")
    sample = Sample(id="x", subset="s", index=0, text="?", target="A", choices=("one", "two"))
    rule = Level1Reader()
    assert grade(reply, sample, rule).answer.value == "B"
    raw = rule.with_thinking()
    assert (raw.name, grade(reply, sample, raw).answer.value) == ("l1@raw", "A")
    assert rule.name == "l1"
    plain = as_reply("So the answer is (B).")
    assert grade(plain, sample, raw).answer.value == "B"
