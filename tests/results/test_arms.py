"""Arms of one exam side by side, against figures computed by hand."""

from __future__ import annotations

import io
import re
from typing import Any, cast

import pytest
from msgspec.structs import replace
from scipy import stats  # type: ignore[import-untyped]

from keju.answers.kinds import Choice
from keju.answers.robust import RobustReader
from keju.answers.wordings import ANSWER_COLON
from keju.config import Price
from keju.engine.job import Job
from keju.messages import Language, format_p
from keju.reporting.arms import arm_table, pair_lines, pair_table
from keju.reporting.format import Labels, money
from keju.reporting.terminal import render_results
from keju.results.compare import compare_arms
from keju.results.schema import SCHEMA, Comparison, ResultEntry, Results
from keju.results.summarise import entries_of
from keju.scores.tally import EpisodeToolUse, ToolCallStats
from keju.types import Answer, CallKind, Reading, Reply, Sampling, Score, Usage
from tests.results.fake_exam import OUTCOME_OF, make_exam, make_sample

SIZES = {"sums": 12, "dates": 8}


def job(
    arm: str, outcomes: str, *, epochs: int = 1, tokens: int = 100, **exam_attributes: Any
) -> Job:
    exam = make_exam({"all": len(outcomes) // epochs} if epochs > 1 else SIZES, **exam_attributes)
    new_job = Job(
        exam,
        Sampling(),
        [RobustReader(Choice(), strict=ANSWER_COLON)],
        model="m",
        arm=arm,
        epochs=epochs,
    )
    for unit, letter in enumerate(outcomes):
        if letter != ".":
            score = Score(float(letter == "1"), OUTCOME_OF[letter])
            reply = Reply("A", usage=Usage(tokens + unit, 10), seconds=1.0)
            new_job.enter_readings(unit, reply, (), (Reading("robust", Answer("A"), score),))
    return new_job


def compared(base: Job, arm: Job) -> Comparison:
    (comparison,) = compare_arms([base, arm])
    return comparison


#                  sums (12)      dates (8)
BASE = "100010000001" + "11000110"
CALC = "111110110111" + "10000110"


def test_the_difference_of_two_arms_is_that_of_the_table_of_pairs() -> None:
    """7 questions are gained and 1 is lost: 7 - 1 of 20, McNemar 2 (1 + 8) / 2^8."""
    comparison = compared(job("baseline", BASE), job("calc", CALC))
    assert (comparison.both, comparison.arm_only, comparison.base_only, comparison.neither) == (
        6,
        7,
        1,
        6,
    )
    assert comparison.base_rate == 7 / 20
    assert comparison.arm_rate == 13 / 20
    assert comparison.difference == pytest.approx(6 / 20)
    assert comparison.p == pytest.approx(18 / 256)
    assert comparison.p == pytest.approx(stats.binomtest(1, 8).pvalue)
    # Bonett and Price: (8/22 - 2/22) ± 1.96 sqrt((8/22 + 2/22 - (6/22)²) / 22).
    half_width = 1.959964 * ((10 / 22 - (6 / 22) ** 2) / 22) ** 0.5
    assert comparison.ci95 == pytest.approx((6 / 22 - half_width, 6 / 22 + half_width), abs=1e-6)
    assert (comparison.gained[0], comparison.lost) == ("fake_sums_1", ("fake_dates_1",))
    sums, dates = comparison.subsets
    assert (sums.n, sums.arm_only, sums.base_only) == (12, 7, 0)
    assert sums.p == pytest.approx(2 / 2**7)
    assert sums.p_adjusted == pytest.approx(2 * 2 / 2**7)
    assert sums.detectable is not None
    assert sums.ci95 is not None
    assert (8 * dates.difference, dates.p) == (-1.0, 1.0)
    assert comparison.needed == 36  # by the exact test; the normal approximation says 28
    assert comparison.conclusion.code == "arms_undecided"


def test_a_clear_effect_a_harm_and_none_are_told_apart() -> None:
    helps = compared(job("baseline", "0" * 20), job("calc", "1" * 8 + "0" * 12))
    harms = compared(job("baseline", "1" * 8 + "0" * 12), job("calc", "0" * 20))
    no_effect = compared(job("baseline", BASE), job("placebo", BASE))
    even = compared(job("baseline", "10" * 10), job("placebo", "01" * 10))
    codes = [comparison.conclusion.code for comparison in (helps, harms, no_effect, even)]
    assert codes == ["arms_better", "arms_worse", "arms_alike", "arms_even"]
    assert no_effect.p == even.p == 1.0
    assert no_effect.difference == even.difference == 0.0
    # Bonett and Price: ± 1.96 sqrt(2 / 22 / 22)
    assert no_effect.conclusion.text() == (
        "placebo and baseline score the same on every one of 20 questions (95 % interval -12.6 to "
        "+12.6 points); a difference of less than 12.6 points would need more questions to show"
    )
    assert "points would need more questions to show" in even.conclusion.text()
    languages: tuple[Language, ...] = ("en", "zh")
    for comparison in (helps, harms, no_effect, even):
        for language in languages:
            assert (
                "calc" in (sentence := comparison.conclusion.text(language))
                or "placebo" in sentence
            )


def test_a_question_with_an_error_in_either_arm_is_left_out_and_counted() -> None:
    comparison = compared(job("baseline", "1e0" + "." * 17), job("calc", "11g" + "." * 17))
    assert (comparison.n, comparison.left_out) == (1, 2)
    assert comparison.ci95 is None
    assert comparison.conclusion.code == "arms_one_question"
    no_answers = compared(job("baseline", "e" + "." * 19), job("calc", "1" + "." * 19))
    assert (no_answers.difference, no_answers.p, no_answers.tokens) == (None, None, None)


def test_repeats_are_averaged_inside_a_question_first() -> None:
    """4 questions, twice each: differences 1/2, 1/2, 0 and -1/2."""
    comparison = compared(job("baseline", "10000011", epochs=2), job("calc", "11100010", epochs=2))
    assert comparison.n == 4
    assert comparison.difference == pytest.approx(1 / 8)
    assert comparison.both is comparison.neither is None
    assert (comparison.arm_only, comparison.base_only) == (2, 1)
    # Signs of three halves: the sum is at least 1/2 away from 0 under every one of them.
    assert comparison.p == 1.0


def test_questions_of_one_context_are_one_cluster() -> None:
    groups = [make_sample("all", i, group=f"g{i // 4}") for i in range(20)]
    exam_attributes = {"clustered": True}
    base, arm = (
        job("baseline", "0" * 20, **exam_attributes),
        job("calc", "1" * 8 + "0" * 12, **exam_attributes),
    )
    for one_job in (base, arm):
        one_job.exam.samples = groups
    comparison = compared(base, arm)
    assert comparison.clusters == 5
    assert comparison.p == pytest.approx(1 / 2)  # two of five clusters moved, both the same way


def test_tokens_money_and_time_are_compared_question_by_question() -> None:
    base, arm = job("baseline", BASE), job("calc", CALC, tokens=300)
    (comparison,) = compare_arms([base, arm], Price(input=1.0, output=5.0))
    assert comparison.tokens is not None
    assert comparison.cost is not None
    assert comparison.seconds is not None
    assert comparison.tokens.difference == pytest.approx(200)
    assert comparison.tokens.ci95 == pytest.approx((200, 200))
    assert comparison.cost.difference == pytest.approx(200e-6)
    assert comparison.seconds.difference == 0
    assert compared(base, arm).cost is None


def test_every_pair_of_arms_is_compared_with_the_earlier_one_as_its_base() -> None:
    arms = [job(name, BASE) for name in ("baseline", "calc", "placebo")]
    pairs = [(comparison.base, comparison.arm) for comparison in compare_arms(arms)]
    assert pairs == [("baseline", "calc"), ("baseline", "placebo"), ("calc", "placebo")]
    assert compare_arms(arms[:1]) == []


def test_as_many_questions_are_needed_as_the_exact_test_takes() -> None:
    """12 to 0 of 20: six discordant questions are the fewest that show anything."""
    assert compared(job("baseline", "0" * 20), job("calc", "1" * 12 + "0" * 8)).needed == 12


def test_one_question_shows_nothing_and_none_is_another_thing() -> None:
    one_question = compared(job("baseline", "1" + "." * 19), job("calc", "0" + "." * 19))
    no_question = compared(job("baseline", "e" + "." * 19), job("calc", "1" + "." * 19))
    assert [one_question.conclusion.code, no_question.conclusion.code] == [
        "arms_one_question",
        "arms_not_compared",
    ]


def test_only_the_first_arm_is_what_others_help_or_harm() -> None:
    """The placebo equals the baseline: it harms nobody, whatever calc does."""
    arms = [job("baseline", "0" * 20), job("calc", "1" * 12 + "0" * 8), job("placebo", "0" * 20)]
    comparisons = compare_arms(arms)
    codes = [comparison.conclusion.code for comparison in comparisons]
    assert codes == ["arms_better", "arms_alike", "arms_below"]
    assert comparisons[2].conclusion.text().startswith("placebo is 60.0 points below calc")
    # Holm over the three pairs: p, p and 1 become 3 p, 3 p and 1.
    p = 2 / 2**12
    assert [comparison.p_holm for comparison in comparisons] == pytest.approx([3 * p, 1.0, 3 * p])
    # The sentence says which p it tells.
    assert f", Holm's p {format_p(3 * p, 2)})" in comparisons[0].conclusion.text()
    assert f"，经 Holm 校正的 p {3 * p:.2g}）" in comparisons[0].conclusion.text("zh")
    assert f", p {format_p(p, 2)})" in compare_arms(arms[:2])[0].conclusion.text()
    assert compare_arms(arms[:2])[0].p_holm is None


def test_what_is_left_out_bounds_the_difference() -> None:
    """Of 20 questions 4 are gained, one lacks a grade in both arms, one in the arm alone."""
    base = job("baseline", "0" * 18 + "e" + "1")
    arm = job("calc", "1111" + "0" * 14 + "e" + "g")
    comparison = compared(base, arm)
    assert (comparison.n, comparison.left_out) == (18, 2)
    assert comparison.bounds == pytest.approx(((4 - 1 - 1) / 20, (4 + 1 + 0) / 20))
    assert "from +10.0 points" in " ".join(pair_lines(results_of(base, arm), Labels("en")))
    assert compared(job("baseline", BASE), job("calc", CALC)).bounds is None


def with_calls(arm: Job, kinds: str) -> ResultEntry:
    """The entry of an arm whose only episode made calls that ended so."""
    ended = cast("list[CallKind]", kinds.split())
    calls = tuple(ToolCallStats("calc", kind, float(i), 0.0, 1) for i, kind in enumerate(ended))
    arm.uses[0] = EpisodeToolUse("final", 1, calls)
    return entries_of(arm, tools={"tools": ["calc"]})[0]


def test_tools_that_mostly_fail_are_warned_about() -> None:
    failing = with_calls(job("calc", CALC), "ok tool_error tool_error timeout tool_error")
    (notice_of_failures,) = [notice for notice in failing.notices if notice.code == "tools_failing"]
    assert notice_of_failures.values == {"part": 4, "whole": 5, "kind": "tool_error", "n": 3}
    for kinds in ("timeout timeout timeout timeout", "ok ok ok timeout timeout timeout"):
        notices = with_calls(job("calc", CALC), kinds).notices
        assert "tools_failing" not in [notice.code for notice in notices]


def test_the_median_of_two_lies_between_them() -> None:
    entry = with_calls(job("calc", CALC), "ok ok")
    assert entry.tools is not None
    assert entry.tools.tools[0].seconds_p50 == 0.5
    timed_job = job("calc", "11" + "." * 18)
    timed_job.seconds[0], timed_job.seconds[1] = 1.0, 3.0
    assert entries_of(timed_job)[0].timing.latency_p50 == 2.0


def results_of(*jobs: Job) -> Results:
    price = Price(input=1.0, output=1.0)
    entries = [entry for one_job in jobs for entry in entries_of(one_job, price=price)]
    return Results(
        schema=SCHEMA,
        run="r",
        model="m",
        benchmarks=tuple(entries),
        comparisons=tuple(compare_arms(jobs, price)),
    )


def test_tokens_are_those_of_a_reply_and_money_that_of_a_solved_question() -> None:
    """Two questions twice, three replies: 110, 111 and 112 tokens; one question and a half."""
    results = results_of(job("calc", "1110", epochs=2), job("cut", "111.", epochs=2))
    table = arm_table(results, Labels("en"))
    row, cut = (dict(zip(table.titles, row, strict=True)) for row in table.rows)
    assert cut["tokens a question"] == "111"
    cost = sum(110 + unit for unit in range(4)) / 1e6
    assert row["cost a solved question"] == money(cost / 1.5)


def test_tables_name_the_arm_of_every_row() -> None:
    results = results_of(job("baseline", BASE), job("calc", CALC), job("placebo", BASE))
    file = io.StringIO()
    render_results(results, file=file, width=200)
    overview = file.getvalue().split("\n\n")[0]
    assert [f"fake · {arm}" in overview for arm in ("baseline", "calc", "placebo")] == [True] * 3
    pairs = pair_table(results, Labels("en"))
    assert pairs.rows[0][0] == "fake · calc against baseline"
    assert pairs.titles[2:4] == ["arm alone", "base alone"]
    assert pairs.titles[-1] == "p (Holm)"
    assert "not adjusted" in file.getvalue()


def test_an_arm_that_several_readers_read_has_a_row_for_each_with_its_name() -> None:
    results = results_of(job("baseline", BASE), job("calc", CALC))
    assert "reader" not in arm_table(results, Labels("en")).titles
    entries = [
        replace(entry, reader=name) for entry in results.benchmarks for name in ("l2", "robust")
    ]
    table = arm_table(replace(results, benchmarks=tuple(entries)), Labels("en"))
    place = table.titles.index("reader")
    arms = ["baseline", "baseline", "calc", "calc"]
    assert [row[0] for row in table.rows] == [f"fake · {arm}" for arm in arms]
    assert [row[place] for row in table.rows] == ["l2", "robust"] * 2


def test_times_of_arms_are_in_the_language() -> None:
    results = results_of(job("baseline", BASE), job("calc", CALC))
    for labels, unit in ((Labels("en"), " s"), (Labels("zh"), " 秒")):
        table = arm_table(results, labels)
        place = table.titles.index(labels("arms.latency"))
        assert all(re.fullmatch(rf"[\d.]+{unit}", row[place]) for row in table.rows)


def test_the_pairs_of_arms_that_several_readers_read_name_the_reader_that_they_are_by() -> None:
    results = results_of(job("baseline", BASE), job("calc", CALC))
    assert "reader" not in pair_table(results, Labels("en")).titles
    (pair,) = results.comparisons
    entries = [
        replace(entry, reader=name) for entry in results.benchmarks for name in ("l2", "robust")
    ]
    results = replace(
        results, benchmarks=tuple(entries), comparisons=(replace(pair, reader="robust"),)
    )
    for labels, title in ((Labels("en"), "reader"), (Labels("zh"), "答案提取器")):
        table = pair_table(results, labels)
        assert [row[table.titles.index(title)] for row in table.rows] == ["robust"]


def test_arms_without_any_answer_have_no_tables() -> None:
    results = results_of(job("baseline", "." * 20), job("calc", "." * 20))
    file = io.StringIO()
    render_results(results, file=file, width=200)
    assert "---" not in file.getvalue()
    assert "difference" not in file.getvalue()
    assert "fake · arm calc" in file.getvalue()
