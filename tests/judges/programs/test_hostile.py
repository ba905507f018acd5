"""No hostile program is graded as correct, none harms the host, and each has a named outcome."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from keju.config.arms import SandboxSettings
from keju.judges.programs.runner import ProgramJob, ProgramRunner, ProgramVerdict
from tests.judges.programs.hostile import HOSTILE

TESTS = """
def check(candidate):
    assert candidate(2, 3) == 5
    assert candidate(-1, 1) == 0
    assert candidate(10, 20) == 30
"""

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs bubblewrap")


def make_job(program: str, tests: str = TESTS) -> ProgramJob:
    return ProgramJob(program, "add", tests, "", None, {"pass@1": ""})


def run(jobs: list[ProgramJob], count: int | None = None) -> list[ProgramVerdict]:
    async def run_all() -> dict[int, ProgramVerdict]:
        async with ProgramRunner(SandboxSettings(), count) as runner:
            return {place: verdict async for place, verdict in runner.run(jobs)}

    verdicts = asyncio.run(run_all())
    return [verdicts[place] for place in range(len(jobs))]


@pytest.fixture(scope="module")
def verdicts() -> dict[str, ProgramVerdict]:
    found = run([make_job(attempt.program) for attempt in HOSTILE])
    return dict(zip([attempt.name for attempt in HOSTILE], found, strict=True))


def test_there_are_enough_attempts() -> None:
    assert len({attempt.name for attempt in HOSTILE}) == len(HOSTILE) >= 25


@pytest.mark.parametrize("attempt", HOSTILE, ids=lambda attempt: attempt.name)
def test_no_attempt_passes(attempt: object, verdicts: dict[str, ProgramVerdict]) -> None:
    (expected,) = [each for each in HOSTILE if each is attempt]
    verdict = verdicts[expected.name]
    assert verdict.results == {"pass@1": False}
    assert verdict.outcome in expected.outcomes, verdict


def test_nothing_is_left_on_the_host(verdicts: dict[str, ProgramVerdict]) -> None:
    assert verdicts
    assert not Path("/usr/keju-was-here").exists()
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    names = [Path(f"/proc/{child}/comm").read_text().strip() for child in children]
    assert "bwrap" not in names


def test_an_honest_program_passes_among_them() -> None:
    honest = make_job("def add(a, b):\n    print('noise')\n    return a + b")
    hostile = [make_job(attempt.program) for attempt in HOSTILE if "endless" in attempt.name][:2]
    verdict, *others = run([honest, *hostile], 3)
    assert verdict == ProgramVerdict({"pass@1": True}, "passed")
    assert {other.attempts for other in others} == {2}
    assert {other.outcome for other in others} == {"timeout"}


@pytest.mark.parametrize(
    ("tests", "text"),
    [
        ("import no_such_package", "no_such_package"),
        ("def check(candidate)", "SyntaxError"),
    ],
)
def test_broken_tests_are_no_verdict_on_the_program(tests: str, text: str) -> None:
    (verdict,) = run([make_job("def add(a, b): return a + b", tests)])
    assert verdict.outcome == "tests_broken"
    assert text in verdict.text


def test_a_program_cannot_escape_its_grade_by_ending_its_tests() -> None:
    ending = "def check(candidate):\n    candidate(2, 3)\n    __import__('os')._exit(3)"
    other = ending.replace("candidate(2, 3)", "pass")
    (ended,) = run([make_job("def add(a, b): return a + b", ending)])
    assert (ended.results, ended.outcome) == ({"pass@1": False}, "protocol")
    job = make_job("def add(a, b): return a + b", other)._replace(
        prelude="__import__('os')._exit(3)"
    )
    (broken,) = run([job])
    assert broken.outcome == "tests_broken"


def test_values_of_all_kinds_cross_the_pipe() -> None:
    program = "def add(a, b): return {'list': [a, (b, 2.5)], 1: {3, 4}, None: 1j, 2: 10 ** 5000}"
    tests = """
def check(candidate):
    value = candidate(b'x', b=range(3))
    assert value == {'list': [b'x', (range(3), 2.5)], 1: {3, 4}, None: 1j, 2: 10 ** 5000}
"""
    (verdict,) = run([make_job(program, tests)])
    assert verdict.outcome == "passed", verdict


def test_exceptions_of_the_program_reach_its_tests() -> None:
    program = "def add(a, b): raise KeyError(a) if a else ArithmeticError"
    tests = """
def check(candidate):
    try:
        candidate(1, 2)
    except KeyError:
        return candidate(0, 0)
"""
    (verdict,) = run([make_job(program, tests)])
    assert (verdict.outcome, verdict.text) == ("exception", "ArithmeticError")
