"""Gates on scored exams made of structs: verdicts, p, adjustment for several tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from scipy import stats  # type: ignore[import-untyped]

from keju.errors import UsageError
from keju.results import gate as gates
from keju.results.gate import GateResult, gate
from keju.results.scored_exam import ScoredExam
from keju.stats.paired import holm
from tests.results.fake_exam import make_scored

SCORED: dict[str, list[ScoredExam]] = {}


@pytest.fixture(autouse=True)
def stored(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Sources are names in `SCORED`; no run is read."""
    monkeypatch.setattr(gates, "scored_exams_of", lambda name, **_: SCORED[name])
    yield
    SCORED.clear()


def run_gate(base: str, run: str, *, margin: float = 0.1) -> GateResult:
    SCORED.update(base=[make_scored(base, "base")], run=[make_scored(run, "run")])
    return gate("run", baseline="base", margin=margin)


@pytest.mark.parametrize(
    ("base", "run", "verdict"),
    [
        ("01" * 40, "1" * 80, "pass"),
        ("1" * 80, "0" * 20 + "1" * 60, "fail"),
        ("10" * 5, "01" * 5, "inconclusive"),
    ],
)
def test_the_verdict_and_its_exit_code(base: str, run: str, verdict: str) -> None:
    result = run_gate(base, run)
    assert (result.verdict, result.exit_code) == (
        verdict,
        {"pass": 0, "fail": 1, "inconclusive": 3}[verdict],
    )
    (row,) = result.rows
    assert row.value == pytest.approx((run.count("1") - base.count("1")) / len(run))
    assert row.low <= (row.value or 0.0) <= row.high
    assert result.document["gates"][0]["verdict"] == verdict


def test_an_undecided_gate_says_how_many_questions_decide() -> None:
    (row,) = run_gate("10" * 30, "01" * 10 + "10" * 20).rows
    assert row.verdict == "inconclusive"
    assert row.needed is not None
    assert row.needed > row.n == 60
    assert row.conclusion.code == "gate_worse_beyond"


def test_at_least_tests_one_score_against_the_binomial_distribution() -> None:
    SCORED["run"] = [make_scored("1" * 45 + "0" * 5, "run")]
    (row,) = gate("run", least=0.7).rows
    assert (row.verdict, row.n, row.score) == ("pass", 50, 0.9)
    exact = stats.binomtest(45, 50, 0.7, alternative="greater").pvalue
    assert row.p == pytest.approx(exact, rel=0.6)
    (row,) = gate("run", least=0.99).rows
    assert row.verdict == "fail"


def test_several_arms_are_adjusted_together() -> None:
    base = [make_scored("10" * 20, "base", arm=arm) for arm in ("one", "two")]
    run = [make_scored("1" * 40, "run", arm="one"), make_scored("10" * 19 + "11", "run", arm="two")]
    SCORED.update(base=base, run=run)
    rows = gate("run", baseline="base", margin=0.2).rows
    assert [row.p_holm for row in rows] == pytest.approx(holm([row.p for row in rows]))
    assert all((row.p_holm or 0.0) >= row.p for row in rows)


def test_many_questions_without_a_grade_decide_nothing() -> None:
    (row,) = run_gate("1" * 20, "1" * 10 + "g" * 10).rows
    assert (row.verdict, row.p, row.left_out) == ("inconclusive", 1.0, 10)
    assert row.conclusion.code == "gate_selection"


def test_a_run_that_lacks_an_arm_or_a_margin_is_refused() -> None:
    SCORED["base"] = [make_scored("1", "base", arm="one"), make_scored("1", "base", arm="two")]
    SCORED["run"] = [make_scored("1", "run", arm="one")]
    with pytest.raises(UsageError, match="two") as lacking:
        gate("run", baseline="base", margin=0.1)
    assert lacking.value.code == "gate_lacks"
    with pytest.raises(UsageError) as without_margin:
        gate("run", baseline="base")
    assert without_margin.value.code == "gate_margin"
    with pytest.raises(UsageError) as wide:
        gate("run", baseline="base", margin=5)
    assert wide.value.code == "gate_share"


def test_runs_that_are_not_comparable_are_refused() -> None:
    SCORED["base"] = [make_scored("1", "base", conditions={"protocol": "plain"})]
    SCORED["run"] = [make_scored("1", "run", conditions={"protocol": "other"})]
    with pytest.raises(UsageError, match="protocol") as refused:
        gate("run", baseline="base", margin=0.1)
    assert refused.value.code.startswith("gate_unlike")


def test_a_run_gated_with_itself_gets_a_notice() -> None:
    SCORED["run"] = [make_scored("10" * 20, "run")]
    assert "gate_itself" in [n.code for n in gate("run", baseline="run", margin=0.1).notices]
