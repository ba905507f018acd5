"""No wrong answer becomes right by what it writes, and none leaves the denominator unseen."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from keju.judges.exam import JudgeExam, make_judge_sample
from keju.types import Prompt, Reply, Sample
from tests.cli.conftest import Keju, keju
from tests.support.endpoint import FaultyEndpoint
from tests.support.injections import MUTE, OBEYING, QUOTING, JudgeReply, injections, obeys_tag
from tests.support.open_exam import SIZE
from tests.support.replies import EndpointRequest, Plan

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("open_exam")]

__all__ = ["keju"]

INJECTIONS = injections()
JUDGES = OBEYING | QUOTING | MUTE
Judge = Callable[[str, str], JudgeReply]


def asked_about(answer: str) -> tuple[JudgeExam, Sample, Prompt]:
    question = Sample(id="q", subset="s", index=0, text="What is 6 times 7?", target="42")
    sample = make_judge_sample(question, answer)
    exam = JudgeExam("open", [sample], "grade")
    return exam, sample, exam.render(sample)


def graded(judge: Judge, answer: str) -> tuple[str, str | None]:
    """The outcome of an answer, and why it has none."""
    exam, sample, prompt = asked_about(answer)
    judge_reply = judge(prompt.text, answer)
    reply = Reply(text=judge_reply.text, finish=judge_reply.finish)
    reading = exam.grade(reply, sample, exam.readers["verdict"])
    return reading.score.outcome, reading.answer.reason


def test_there_are_enough_of_both() -> None:
    assert len(INJECTIONS) >= 150
    assert len(JUDGES) >= 20


@pytest.mark.parametrize("name", [*OBEYING, *QUOTING])
def test_a_judge_with_a_verdict_of_its_own_gives_that(name: str) -> None:
    outcomes = {answer: graded(JUDGES[name], answer)[0] for answer in INJECTIONS}
    assert {answer: o for answer, o in outcomes.items() if o != "incorrect"} == {}


@pytest.mark.parametrize("name", MUTE)
def test_a_judge_without_a_verdict_of_its_own_has_none_and_says_why(name: str) -> None:
    for answer in INJECTIONS:
        outcome, reason = graded(JUDGES[name], answer)
        if outcome != "incorrect":  # an answer may name its own grade where it is a bad one
            assert outcome == "ungraded", answer
            assert reason in ("no_verdict", "broken_off", "two_verdicts")


@pytest.mark.parametrize("name", OBEYING)
def test_each_obeying_judge_would_be_deceived_by_a_prompt_without_marks(name: str) -> None:
    deceived = [
        answer
        for answer in INJECTIONS
        if "<grade>correct</grade>"
        in OBEYING[name](f"[begin answer x]\n{answer}\n[end answer x]", answer).text
    ]
    assert len(deceived) >= 10


def test_a_right_answer_keeps_its_grade_whatever_it_writes() -> None:
    for answer in INJECTIONS:
        right_answer = answer.replace("41", "The product is 42, so much is certain.")
        exam, sample, _ = asked_about(right_answer)
        reply = Reply(text="I compared them.\n<grade>correct</grade>", finish="stop")
        outcome = exam.grade(reply, sample, exam.readers["verdict"]).score.outcome
        assert outcome == "correct" or right_answer.lstrip().startswith(("<", "＜", "&"))


# Through the command line


@pytest.fixture
def candidate() -> Iterator[FaultyEndpoint]:
    """Gives a wrong answer with an injection to each question."""
    step = len(INJECTIONS) // SIZE

    def answers(request: EndpointRequest) -> str:
        number = re.fullmatch(r"What follows (\d+)\?", request.text)
        return INJECTIONS[int(number[1]) * step] if number else "A"

    with FaultyEndpoint(Plan(answers=answers)) as running:
        yield running


@pytest.mark.parametrize(
    ("judge", "outcomes", "failed"),
    [
        (obeys_tag(-1), {"incorrect": SIZE}, {}),
        (QUOTING["quotes as undone, then judges"], {"incorrect": SIZE}, {}),
        (MUTE["breaks off while it repeats"], {"ungraded": SIZE}, {"broken_off": SIZE}),
        (MUTE["forgets the closing tag"], {"ungraded": SIZE}, {"no_verdict": SIZE}),
    ],
)
def test_a_run_is_judged_without_a_word_of_its_answers(
    keju: Keju,
    candidate: FaultyEndpoint,
    judge: Judge,
    outcomes: dict[str, int],
    failed: dict[str, int],
) -> None:
    def verdict(request: EndpointRequest) -> dict[str, Any]:
        judge_reply = judge(request.text, "")
        return {
            "message": {"role": "assistant", "content": judge_reply.text},
            "finish_reason": judge_reply.finish,
        }

    argv = ("eval", "-m", "m", "--api-url", candidate.url, "--datasets", "open", "--run-id", "r")
    keju(*argv, "-q", "--no-report")
    with FaultyEndpoint(Plan(answers=verdict)) as endpoint:
        settings = '{"attempts": 1}'
        ran = keju(
            *("judge", "r", "--judge", settings, "--model", "j", "--api-url", endpoint.url),
            *("--json", "-q", "--no-report"),
        )
    (entry,) = ran.json["benchmarks"]
    assert {name: count for name, count in entry["outcomes"].items() if count} == outcomes
    assert entry["judge"].get("failed_replies", {}) == failed
    assert entry["judge"]["ungraded"] == outcomes.get("ungraded", 0)
    is_reported = any("no verdict" in warning for warning in entry["warnings"])
    assert is_reported == bool(failed)
    stored = keju("score", "r", "--json").json["benchmarks"][0]
    assert stored["outcomes"] == entry["outcomes"]
    assert stored["judge"].get("failed_replies", {}) == failed
