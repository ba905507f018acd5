"""Gates: may a run take the place of its baseline, and is its score high enough?

Each exam, and each arm, is gated by a one-sided test at level 0.05; of several the p are Holm's,
and the worst verdict is that of the whole. What is not comparable is refused: a gate that cannot be
read must not pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from keju.errors import Hint, KejuError, Notice, UsageError
from keju.results.compare import compare_pair, doubts, matched, unfinished, unread
from keju.results.deciding import Share, Step, is_itself, reasons, shares_of, steps
from keju.results.gate_rows import AT_LEAST, NO_WORSE, GateRow
from keju.results.pairs import pairs_of, unanswered
from keju.results.predictions import Gold
from keju.results.schema import SCHEMA, Comparison, InNotebook
from keju.results.sittings import Sitting, Source, refuse_unused, sittings_of
from keju.stats.gate import LEVEL, Gated, Verdict, decide, decide_at_least, decide_no_worse
from keju.stats.paired import holm, paired_difference

EXIT_CODES: dict[Verdict, int] = {"pass": 0, "fail": 1, "inconclusive": 3}
WORST: tuple[Verdict, ...] = ("fail", "inconclusive", "pass")


class GateResult(InNotebook, msgspec.Struct, frozen=True, kw_only=True):
    """What ``keju gate`` finds."""

    run: str
    baseline: str
    rows: tuple[GateRow, ...]
    notices: tuple[Notice, ...] = ()
    steps: tuple[Step, ...] = ()
    """What to do next."""

    @property
    def verdict(self) -> Verdict:
        """The worst of all."""
        return next(each for each in WORST if any(row.verdict == each for row in self.rows))

    @property
    def exit_code(self) -> int:
        """0 pass, 1 fail, 3 inconclusive."""
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


def gate(
    run: Source,
    *,
    baseline: Source | None = None,
    margin: float | None = None,
    least: float | None = None,
    datasets: str | None = None,
    reader: str | None = None,
    gold: Gold | None = None,
    protocol: str | None = None,
    dataset_args: dict[str, Any] | None = None,
    data_dir: str | None = None,
    work_dir: str | None = None,
) -> GateResult:
    """Whether `run` is no worse than `baseline` by more than `margin`, and its score `least`.

    UsageError where the two are not comparable; it names the field.
    """
    if (baseline is None) != (margin is None):
        raise UsageError("gate_margin")
    if baseline is None and least is None:
        raise UsageError("gate_nothing_asked")
    _refuse_share("--margin", margin)
    _refuse_share("--at-least", least)
    how: dict[str, Any] = {
        "datasets": datasets,
        "reader": reader,
        "gold": gold,
        "protocol": protocol,
        "dataset_args": dataset_args,
        "data_dir": data_dir,
        "work_dir": work_dir,
    }
    own = sittings_of(run, **how)
    base: Sequence[Sitting] = ()
    gates: list[Tested] = []
    notices: list[Notice] = []
    if baseline is not None and margin is not None:
        base = sittings_of(baseline, **how)
        refuse_unused((*own, *base), **how)
        if is_itself(own, base):
            notices.append(Notice("gate_itself", {"run": own[0].name}))
        pairs, alone = matched(base, own)
        lacking = {(each.exam.benchmark, each.arm) for each in base}
        lacking -= {(each.exam.benchmark, each.arm) for each, _ in pairs}
        if lacking:
            exam, arm = min(lacking)
            raise UsageError("gate_lacks", run=own[0].name, exam=f"{exam} · {arm}" if arm else exam)
        notices += [Notice("gate_no_base", {"exam": exam}) for exam in alone]
        for one, two in pairs:
            tested, pair = _no_worse(one, two, margin)
            gates.append(tested)
            notices += (each for each in pair.notices if each.code != "compare_itself")
    else:
        refuse_unused(own, **how)
    if least is not None:
        gates += [_at_least(sitting, least) for sitting in own]
        for each in own:
            notices += doubts(each, each.name)
            if baseline is None:
                notices += [*unfinished(each, each.name), *unread(each, each.name)]
    rows = _decided(gates)
    notices += reasons(own, base, rows)
    return GateResult(
        run=own[0].name,
        baseline=base[0].name if base else "",
        rows=tuple(rows),
        notices=tuple(each for at, each in enumerate(notices) if each not in notices[:at]),
        steps=tuple(steps(own, base, rows)),
    )


class Tested(NamedTuple):
    """One exam before the gate, as if it were the only one."""

    row: GateRow
    at: Callable[[float], Gated]
    """The same test at another level."""


def _no_worse(base: Sitting, own: Sitting, margin: float) -> tuple[Tested, Comparison]:
    """One exam against its baseline, and the comparison that this rests on."""
    pair = compare_pair(base, own, base.name, own.name)
    if unlike := pair.obstacle:
        hint: Hint | str = ""
        if base.command and own.command:
            hint = Hint("gate_diff", baseline=base.command, run=own.command)
        code, values = unlike.told("gate_unlike", run=own.name, baseline=base.name)
        raise UsageError(code, **values, hint=hint)
    pairs = pairs_of(base, own)
    apart = paired_difference(pairs.scores, pairs.clusters)
    binary = all(score in (0.0, 1.0) for scores in set(pairs.scores) for score in scores)

    def at(level: float) -> Gated:
        return (
            NOTHING if apart is None else decide_no_worse(apart, margin, binary=binary, level=level)
        )

    left_out = pair.left_out + unanswered(base, own)
    row = _row(own, NO_WORSE, at(LEVEL), pair.n, left_out, pair.arm_rate, -margin)
    whole = min(share.whole for share in shares_of(own, base))
    return Tested(replace(row, baseline=pair.base_rate, whole=whole), at), pair


class Decision(NamedTuple):
    """One exam before the gate, for those who plan how many questions decide it."""

    row: GateRow
    baseline: str
    discordance: float
    """The share of questions on which the two score otherwise."""


def decision(
    run: Source,
    baseline: Source,
    margin: float,
    exam: str,
    *,
    data_dir: str | None = None,
    work_dir: str | None = None,
) -> Decision:
    """What ``keju gate`` decides about one exam, with its own number of questions.

    The p of all exams that both runs have are adjusted together, as ``keju gate`` does.
    """
    _refuse_share("--margin", margin)
    where: dict[str, Any] = {"data_dir": data_dir, "work_dir": work_dir}
    own, base = (sittings_of(each, datasets=exam, **where) for each in (run, baseline))
    pairs, _ = matched(base, own)
    if len(pairs) > 1:
        raise UsageError("plan_arms", run=own[0].name)
    tested, pair = _no_worse(*pairs[0], margin)
    others = _other_exams(run, baseline, margin, tested.row.exam, where)
    apart = (pair.arm_only + pair.base_only) / max(1, pair.n)
    return Decision(_decided([tested, *others])[0], base[0].name, apart)


def _other_exams(
    run: Source, baseline: Source, margin: float, exam: str, where: dict[str, Any]
) -> list[Tested]:
    """The gates of all exams but one; none where ``keju gate`` would refuse to gate them all."""
    try:
        own, base = (sittings_of(each, **where) for each in (run, baseline))
        pairs, _ = matched(base, own)
        others = [pair for pair in pairs if pair[0].exam.benchmark != exam]
        return [_no_worse(*pair, margin)[0] for pair in others]
    except KejuError:
        return []


def _refuse_share(flag: str, value: float | None) -> None:
    """Refuse what is no share between 0 and 1."""
    if value is not None and not 0 < value < 1:
        raise UsageError("gate_share", flag=flag, value=value)


def _at_least(own: Sitting, least: float) -> Tested:
    """The score of one exam against the least that is asked for."""
    scores: list[tuple[float, float]] = []
    clusters: list[str] = []
    left_out = 0
    for item in own:
        if item.score is not None:
            scores.append((item.score, 0.0))
            clusters.append(item.cluster or item.id)
        elif item.outcome is not None or own.job.missing:  # a rule that stops chooses at random
            left_out += 1
    mean = paired_difference(scores, clusters if own.exam.clustered else None)
    binary = all(score in (0.0, 1.0) for score, _ in set(scores))

    def at(level: float) -> Gated:
        return NOTHING if mean is None else decide_at_least(mean, least, binary=binary, level=level)

    score = mean.value if mean else None
    return Tested(_row(own, AT_LEAST, at(LEVEL), len(scores), left_out, score, least), at)


NOTHING = Gated("inconclusive", 0.0, -1.0, 1.0, 1.0, 1.0, None)
"""What no question at all decides."""


def _row(
    own: Sitting, gate: str, found: Gated, n: int, left_out: int, score: float | None, limit: float
) -> GateRow:
    return GateRow(
        exam=own.exam.benchmark,
        arm=own.arm,
        headline=own.exam.other_headline,
        gate=gate,
        verdict=found.verdict,
        n=n,
        left_out=left_out,
        score=score,
        value=found.value if n else None,
        limit=limit,
        low=found.low,
        high=found.high,
        p=found.p,
        p_fail=found.p_fail,
        p_log10=found.p_log10,
        p_fail_log10=found.p_fail_log10,
        needed=found.needed,
        whole=Share(own).whole,
    )


def _cautious(row: GateRow) -> GateRow:
    """A gate that leaves out more questions than a score may: it decides nothing."""
    if not row.selected:
        return row
    unknown = {"p": 1.0, "p_fail": 1.0, "p_log10": 0.0, "p_fail_log10": 0.0}
    return replace(row, **unknown, verdict="inconclusive", needed=None)


def _decided(gates: Sequence[Tested]) -> list[GateRow]:
    """The rows with p that allow for gating all of them, and the verdicts that these give."""
    rows = [_cautious(tested.row) for tested in gates]
    passes, fails = (holm([getattr(row, name) for row in rows]) for name in ("p", "p_fail"))
    decided = []
    for row, tested, p, p_fail in zip(rows, gates, passes, fails, strict=True):
        verdict = decide(p, p_fail)
        several = {"p_holm": p, "p_fail_holm": p_fail} if len(rows) > 1 else {}
        needed = planned = None
        if verdict == "inconclusive" and not row.selected:
            name = "p" if (row.value or 0.0) > row.limit else "p_fail"
            # Holm holds a p against the level over the number of those that are not smaller.
            least = getattr(row, name)
            level = LEVEL / sum(getattr(each, name) >= least for each in rows)
            again = tested.at(level)
            needed, planned = again.needed, again.planned
        open_ = {"needed": needed, "planned": planned}
        decided.append(replace(row, verdict=verdict, **open_, **several))
    return decided
