"""Gates: test whether a run may replace its baseline, and whether its score is high enough.

Each exam and each arm is tested one-sided at level 0.05. If there are several tests, their p are
adjusted (Holm), and the worst verdict counts for the run. Runs that are not comparable are
rejected, so that a gate never passes without a valid test.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Unpack

import msgspec
from msgspec.structs import replace

from keju.benchmarks.prepare import share_prepared_exams
from keju.errors import KejuError, Notice, TranslatableText, UsageError
from keju.results.assertions import assertion_scores
from keju.results.compare import (
    compare_pair,
    doubt_notices,
    match_exams,
    unfinished_notices,
    unread_notices,
)
from keju.results.gate_rows import AT_LEAST, NO_WORSE, GateRow
from keju.results.gate_rule import sure_verdict_of
from keju.results.next_steps import GatedPart, NextStep, is_itself, reasons, shares_of, steps
from keju.results.pairs import count_unanswered, pairs_of
from keju.results.schema import SCHEMA, Comparison, InNotebook
from keju.results.scored_exam import (
    ScoredExam,
    Source,
    SourceOptions,
    refuse_unused,
    scored_exams_of,
)
from keju.stats.gate import LEVEL, GateDecision, Verdict, decide, decide_at_least, decide_no_worse
from keju.stats.paired import holm, is_binary, paired_difference

EXIT_CODES: dict[Verdict, int] = {"pass": 0, "fail": 1, "inconclusive": 3}
WORST: tuple[Verdict, ...] = ("fail", "inconclusive", "pass")


class GateResult(InNotebook, msgspec.Struct, frozen=True, kw_only=True):
    """The result of ``keju gate``."""

    run: str
    baseline: str
    rows: tuple[GateRow, ...]
    notices: tuple[Notice, ...] = ()
    steps: tuple[NextStep, ...] = ()
    """The commands to run next."""
    model: str = ""
    """The model of the run."""
    baseline_model: str = ""
    """The model of the baseline."""

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of all rows."""
        return next(
            verdict for verdict in WORST if any(row.verdict == verdict for row in self.rows)
        )

    @property
    def exit_code(self) -> int:
        """0 for pass, 1 for fail, 3 for inconclusive."""
        return EXIT_CODES[self.verdict]

    @property
    def document(self) -> dict[str, Any]:
        """The plain document, as ``--json`` prints it."""
        return {
            "schema": SCHEMA,
            "run": self.run,
            "baseline": self.baseline or None,
            "verdict": self.verdict,
            "level": LEVEL,
            "gates": [
                msgspec.to_builtins(row) | {"conclusion": row.conclusion.text()}
                for row in self.rows
            ],
            "notices": [msgspec.to_builtins(notice) for notice in self.notices],
            "warnings": [notice.text() for notice in self.notices],
            "next": [step.command for step in self.steps],
        }


@share_prepared_exams()
def gate(
    run: Source,
    *,
    baseline: Source | None = None,
    margin: float | None = None,
    least: float | None = None,
    **options: Unpack[SourceOptions],
) -> GateResult:
    """Test whether `run` is at most `margin` worse than `baseline`, and whether it scores `least`.

    The further options are those of `compare`. Raise UsageError if the two are not comparable; the
    error names the setting that differs.
    """
    if (baseline is None) != (margin is None):
        raise UsageError("gate_margin")
    if baseline is None and least is None:
        raise UsageError("gate_nothing_asked")
    _check_share("--margin", margin)
    _check_share("--at-least", least)
    run_exams = scored_exams_of(run, **options)
    base = scored_exams_of(baseline, **options) if baseline is not None else []
    refuse_unused((*run_exams, *base), **options)
    gates: list[TestedExam] = []
    notices: list[Notice] = []
    if margin is not None:
        gates, notices = _test_against_base(run_exams, base, margin)
    if least is not None:
        gates += [_test_at_least(scored_exam, least) for scored_exam in run_exams]
        for scored_exam in run_exams:
            notices += doubt_notices(scored_exam, scored_exam.name)
            if baseline is None:
                notices += [
                    *unfinished_notices(scored_exam, scored_exam.name),
                    *unread_notices(scored_exam, scored_exam.name),
                ]
    rows = _decide_rows(gates)
    notices += reasons(run_exams, base, rows)
    return GateResult(
        run=run_exams[0].name,
        baseline=base[0].name if base else "",
        model=run_exams[0].model,
        baseline_model=base[0].model if base else "",
        rows=tuple(rows),
        notices=tuple(notice for at, notice in enumerate(notices) if notice not in notices[:at]),
        steps=tuple(steps(run_exams, base, rows)),
    )


def _test_against_base(
    run_exams: Sequence[ScoredExam], base: Sequence[ScoredExam], margin: float
) -> tuple[list[TestedExam], list[Notice]]:
    """Test each exam of the baseline. Raise UsageError if the run lacks one of its arms."""
    gates: list[TestedExam] = []
    notices: list[Notice] = []
    if is_itself(run_exams, base):
        notices.append(Notice("gate_itself", {"run": run_exams[0].name}))
    pairs, unmatched_exams = match_exams(base, run_exams)
    missing_arms = {(scored_exam.exam.benchmark, scored_exam.arm) for scored_exam in base}
    missing_arms -= {(scored_exam.exam.benchmark, scored_exam.arm) for scored_exam, _ in pairs}
    if missing_arms:
        exam, arm = min(missing_arms)
        title = f"{exam} · {arm}" if arm else exam
        raise UsageError("gate_lacks", run=run_exams[0].name, exam=title)
    notices += [Notice("gate_no_base", {"exam": exam}) for exam in unmatched_exams]
    for base_exam, run_exam in pairs:
        tested, pair = _test_no_worse(base_exam, run_exam, margin)
        gates.append(tested)
        usual = ["compare_itself", *(["compare_stopped"] if tested.row.sure_of is not None else [])]
        notices += (notice for notice in pair.notices if notice.code not in usual)
    return gates, notices


class TestedExam(NamedTuple):
    """The test of one exam, before p are adjusted for several exams."""

    row: GateRow
    at: Callable[[float], GateDecision]
    """Run the same test at another level."""


def _test_no_worse(
    base_exam: ScoredExam, run_exam: ScoredExam, margin: float
) -> tuple[TestedExam, Comparison]:
    """Test one exam against its baseline; return the test and the comparison behind it."""
    pair = compare_pair(base_exam, run_exam, base_exam.name, run_exam.name)
    if obstacle := pair.obstacle:
        hint: TranslatableText | str = ""
        if base_exam.command and run_exam.command:
            hint = TranslatableText("gate_diff", baseline=base_exam.command, run=run_exam.command)
        code, values = obstacle.told("gate_unlike", run=run_exam.name, baseline=base_exam.name)
        raise UsageError(code, **values, hint=hint)
    pairs = pairs_of(base_exam, run_exam)
    difference = paired_difference(pairs.scores, pairs.clusters)
    binary = is_binary(set(pairs.scores))

    def at(level: float) -> GateDecision:
        return (
            NOTHING
            if difference is None
            else decide_no_worse(difference, margin, binary=binary, level=level)
        )

    left_out = pair.left_out + count_unanswered(base_exam, run_exam)
    row = _build_row(run_exam, NO_WORSE, at(LEVEL), pair.n, left_out, pair.arm_rate, -margin)
    question_count = min(share.total_count for share in shares_of(run_exam, base_exam))
    row = replace(row, baseline=pair.base_rate, whole=question_count, assertions=pair.assertions)
    if (stop := sure_verdict_of(run_exam, base_exam, margin)) is not None:
        verdict: Verdict = "pass" if stop.verdict == "pass" else "fail"
        row = replace(row, verdict=verdict, sure_of=stop.whole)
    return TestedExam(row, at), pair


class GateForecast(NamedTuple):
    """The gate's decision about one exam, used to plan the number of questions."""

    row: GateRow
    baseline: str
    discordance: float
    """The share of questions on which the two score differently."""


def decision(
    run: Source,
    baseline: Source,
    margin: float,
    exam: str,
    *,
    data_dir: str | None = None,
    work_dir: str | None = None,
) -> GateForecast:
    """Return the decision of ``keju gate`` about one exam with its present number of questions.

    The p of all exams that both runs have are adjusted together, as ``keju gate`` does.
    """
    _check_share("--margin", margin)
    folders: dict[str, Any] = {"data_dir": data_dir, "work_dir": work_dir}
    run_exams, base_exams = (
        scored_exams_of(source, datasets=exam, **folders) for source in (run, baseline)
    )
    pairs, _ = match_exams(base_exams, run_exams)
    if len(pairs) > 1:
        raise UsageError("plan_arms", run=run_exams[0].name)
    tested, pair = _test_no_worse(*pairs[0], margin)
    other_tests = _test_other_exams(run, baseline, margin, tested.row.exam, folders)
    discordance = (pair.arm_only + pair.base_only) / max(1, pair.n)
    return GateForecast(_decide_rows([tested, *other_tests])[0], base_exams[0].name, discordance)


def _test_other_exams(
    run: Source, baseline: Source, margin: float, exam: str, folders: dict[str, Any]
) -> list[TestedExam]:
    """Return the tests of all other exams; none if ``keju gate`` would reject one of them."""
    try:
        run_exams, base_exams = (scored_exams_of(source, **folders) for source in (run, baseline))
        pairs, _ = match_exams(base_exams, run_exams)
        other_pairs = [pair for pair in pairs if pair[0].exam.benchmark != exam]
        return [_test_no_worse(*pair, margin)[0] for pair in other_pairs]
    except KejuError:
        return []


def _check_share(flag: str, value: float | None) -> None:
    """Raise UsageError unless the value is between 0 and 1."""
    if value is not None and not 0 < value < 1:
        raise UsageError("gate_share", flag=flag, value=value)


def _test_at_least(scored_exam: ScoredExam, threshold: float) -> TestedExam:
    """Test whether the score of one exam is at least `threshold`."""
    scores: list[tuple[float, float]] = []
    clusters: list[str] = []
    left_out = 0
    for question in scored_exam:
        if question.score is not None:
            scores.append((question.score, 0.0))
            clusters.append(question.cluster or question.id)
        elif question.outcome is not None or scored_exam.job.missing:
            # Without missing replies, a stopping rule left out the question at random.
            left_out += 1
    mean = paired_difference(scores, clusters if scored_exam.exam.clustered else None)
    binary = is_binary(set(scores))

    def at(level: float) -> GateDecision:
        return (
            NOTHING
            if mean is None
            else decide_at_least(mean, threshold, binary=binary, level=level)
        )

    score = mean.value if mean else None
    row = _build_row(scored_exam, AT_LEAST, at(LEVEL), len(scores), left_out, score, threshold)
    return TestedExam(replace(row, assertions=tuple(assertion_scores(scored_exam))), at)


NOTHING = GateDecision("inconclusive", 0.0, -1.0, 1.0, 1.0, 1.0, None)
"""The result for an exam without questions."""


def _build_row(
    scored_exam: ScoredExam,
    gate: str,
    gated: GateDecision,
    n: int,
    left_out: int,
    score: float | None,
    limit: float,
) -> GateRow:
    return GateRow(
        exam=scored_exam.exam.benchmark,
        arm=scored_exam.arm,
        headline=scored_exam.exam.other_headline,
        gate=gate,
        verdict=gated.verdict,
        n=n,
        left_out=left_out,
        score=score,
        value=gated.value if n else None,
        limit=limit,
        low=gated.low,
        high=gated.high,
        p=gated.p,
        p_fail=gated.p_fail,
        p_log10=gated.p_log10,
        p_fail_log10=gated.p_fail_log10,
        needed=gated.needed,
        whole=GatedPart(scored_exam).total_count,
    )


def _withhold_if_selected(row: GateRow) -> GateRow:
    """Return the row without a decision if too many of its questions are left out."""
    if not row.selected:
        return row
    unknown = {"p": 1.0, "p_fail": 1.0, "p_log10": 0.0, "p_fail_log10": 0.0}
    return replace(row, **unknown, verdict="inconclusive", needed=None, sure_of=None)


def _find_level(row: GateRow, rows: Sequence[GateRow]) -> float:
    """Return the level that the test of a row has to reach, by the side of the limit it is on.

    Holm compares a p with the level divided by the number of p that are not smaller.
    """
    name = "p" if (row.value or 0.0) > row.limit else "p_fail"
    tested_p = getattr(row, name)
    not_smaller: int = sum(getattr(compared_row, name) >= tested_p for compared_row in rows)
    return LEVEL / not_smaller


def _decide_rows(gates: Sequence[TestedExam]) -> list[GateRow]:
    """Return the rows with p adjusted for their number (Holm), and the verdicts that follow."""
    rows = [_withhold_if_selected(tested.row) for tested in gates]
    passes, fails = (holm([getattr(row, name) for row in rows]) for name in ("p", "p_fail"))
    decided = []
    for row, tested, p, p_fail in zip(rows, gates, passes, fails, strict=True):
        verdict = decide(p, p_fail) if row.sure_of is None else row.verdict
        holm_fields = {"p_holm": p, "p_fail_holm": p_fail} if len(rows) > 1 else {}
        needed = planned = None
        if verdict == "inconclusive" and not row.selected:
            retest = tested.at(_find_level(row, rows))
            needed, planned = retest.needed, retest.planned
        question_counts = {"needed": needed, "planned": planned}
        decided.append(replace(row, verdict=verdict, **question_counts, **holm_fields))
    return decided
