"""Gates: may a run take the place of its baseline, and is its score high enough?

Each exam, and each arm, is gated by a one-sided test at level 0.05; of several the p are Holm's,
and the worst verdict is that of the whole. What is not comparable is refused: a gate that cannot be
read must not pass.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from keju.benchmarks import registry
from keju.errors import Notice, UsageError
from keju.files import typed_path
from keju.results.compare import compare_pair, matched, unfinished, unread
from keju.results.pairs import pairs_of, unanswered
from keju.results.predictions import Gold
from keju.results.schema import SCHEMA, Comparison, InNotebook
from keju.results.sittings import Sitting, Source, refuse_unused, sittings_of
from keju.runs.run import command_name
from keju.stats.estimate import MOST_UNGRADED
from keju.stats.gate import LEVEL, Gated, Verdict, at_least, decide, no_worse_by
from keju.stats.paired import holm, paired_difference

EXIT_CODES: dict[Verdict, int] = {"pass": 0, "fail": 1, "inconclusive": 3}
WORST: tuple[Verdict, ...] = ("fail", "inconclusive", "pass")


class GateRow(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One exam before one gate."""

    exam: str
    arm: str = ""
    gate: str
    """``no worse`` than the baseline by more than a margin, or ``at least`` a score."""
    verdict: Verdict
    n: int
    left_out: int
    """Questions without a grade, which the gate knows nothing of."""
    score: float | None
    baseline: float | None = None
    value: float | None
    """The difference, or the score, that is gated."""
    limit: float
    """What it must be shown to be above: minus the margin, or the least score."""
    low: float
    high: float
    """Both one-sided bounds at level 0.05."""
    p: float
    """Of the test that passes."""
    p_fail: float
    p_holm: float | None = None
    """Both adjusted, where several exams are gated."""
    p_fail_holm: float | None = None
    needed: int | None = None
    """How many questions would decide, where these do not."""

    @property
    def selected(self) -> bool:
        """Whether so many questions lack a grade that the others decide nothing."""
        return self.left_out > MOST_UNGRADED * (self.n + self.left_out)

    @property
    def conclusion(self) -> Notice:
        """What the gate says, in a sentence."""
        shown = ("value", "limit", "low", "high")
        scale = {name: 100 * (getattr(self, name) or 0.0) for name in shown}
        name = f"{self.exam} · {self.arm}" if self.arm else self.exam
        values: dict[str, Any] = {**scale, "exam": name, "n": self.n, "needed": self.needed}
        kind = "least" if self.gate == AT_LEAST else "worse"
        if not self.n:
            return Notice("gate_nothing", values)
        if self.selected:
            lost = {"part": self.left_out, "whole": self.n + self.left_out}
            return Notice("gate_selection", values | lost)
        if self.verdict == "inconclusive" and self.needed is None:
            return Notice(f"gate_{kind}_open", values)
        return Notice(f"gate_{kind}_{self.verdict}", values)


NO_WORSE, AT_LEAST = "no worse", "at least"


class Step(msgspec.Struct, frozen=True):
    """A command that tells more, and the label that says what it does."""

    label: str
    command: str


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
    rows: list[GateRow] = []
    notices: list[Notice] = []
    if baseline is not None and margin is not None:
        base = sittings_of(baseline, **how)
        refuse_unused((*own, *base), **how)
        if _is_itself(own, base):
            notices.append(Notice("gate_itself", {"run": own[0].name}))
        pairs, alone = matched(base, own)
        lacking = {(each.exam.benchmark, each.arm) for each in base}
        lacking -= {(each.exam.benchmark, each.arm) for each, _ in pairs}
        if lacking:
            exam, arm = min(lacking)
            raise UsageError("gate_lacks", run=own[0].name, exam=f"{exam} · {arm}" if arm else exam)
        notices += [Notice("gate_no_base", {"exam": exam}) for exam in alone]
        for one, two in pairs:
            row, pair = _no_worse(one, two, margin)
            rows.append(row)
            notices += (each for each in pair.notices if each.code != "compare_itself")
    else:
        refuse_unused(own, **how)
    if least is not None:
        rows += [_at_least(sitting, least) for sitting in own]
        if baseline is None:
            for each in own:
                notices += [*unfinished(each, each.name), *unread(each, each.name)]
    rows = [*_adjusted([_cautious(row) for row in rows])]
    if not _is_itself(own, base):
        notices += _too_few([own, base], rows)
    return GateResult(
        run=own[0].name,
        baseline=base[0].name if base else "",
        rows=tuple(rows),
        notices=tuple(each for at, each in enumerate(notices) if each not in notices[:at]),
        steps=tuple(_steps(own, base, rows)),
    )


def _is_itself(sittings: Sequence[Sitting], base: Sequence[Sitting]) -> bool:
    """Whether a run is its own baseline."""
    return bool(base) and sittings[0].is_of(base[0])


def _steps(
    sittings: Sequence[Sitting], base: Sequence[Sitting], rows: Sequence[GateRow]
) -> Iterator[Step]:
    """Commands that decide, or tell more of the runs that were gated; files and logs have none."""
    own = sittings[0]
    if not own.command or _is_itself(sittings, base):
        return
    for command in _growth([sittings, base], rows):
        yield Step("gate.grow", command)
    anew = _anew([sittings, base], rows)
    for command in anew.commands if anew else ():
        yield Step("gate.anew", command)
    if base and base[0].command:
        yield Step("gate.compare", f"keju compare {base[0].command} {own.command}")
    else:
        yield Step("gate.audit", f"keju audit {own.command}")
    if plan := _plan(own, base, rows):
        if anew:
            yield Step("gate.plan", f"{plan} --dataset-args {anew.setting}")
        elif not [*_beyond([sittings, base], rows)]:
            yield Step("gate.plan", plan)


def _whole(sitting: Sitting) -> int:
    """How many questions the exam has, of which a sitting may ask a part."""
    return sum(subset.population or len(subset) for subset in sitting.exam.subsets)


def _beyond(
    sides: Sequence[Sequence[Sitting]], rows: Sequence[GateRow]
) -> Iterator[tuple[GateRow, Sitting]]:
    """The undecided exams that have fewer questions than would decide, each with a sitting."""
    for row in rows:
        for sittings in sides:
            for sitting in sittings:
                own = (sitting.exam.benchmark, sitting.arm) == (row.exam, row.arm)
                if own and (row.needed or 0) > _whole(sitting):
                    yield row, sitting


def _grows(exam: str) -> str:
    """The setting that says how many questions of an exam are made; empty where they are given."""
    return registry.get(exam).grows if exam in registry.names() else ""


def _too_few(sides: Sequence[Sequence[Sitting]], rows: Sequence[GateRow]) -> Iterator[Notice]:
    """That exams have no more questions, or which setting makes more of them."""
    whole: dict[str, int] = {}
    for row, sitting in _beyond(sides, rows):
        whole[row.exam] = min(_whole(sitting), whole.get(row.exam, _whole(sitting)))
    for exam, many in whole.items():
        values = {"exam": exam, "whole": many}
        if setting := _grows(exam):
            yield Notice("gate_makes_more", values | {"setting": f"{exam}.{setting}"})
        else:
            yield Notice("gate_no_more", values)


class _Anew(NamedTuple):
    """How runs of an exam that is generated are sat anew with more questions, and gated."""

    setting: str
    commands: list[str]


def _anew(sides: Sequence[Sequence[Sitting]], rows: Sequence[GateRow]) -> _Anew | None:
    """None where more questions are not what is needed, or one of the runs cannot be sat anew."""
    runs = [sittings[0] for sittings in sides if sittings]
    many = max((row.needed or 0 for row, _ in _beyond(sides, rows)), default=0)
    grows = _grows(runs[0].exam.benchmark)
    if not many or not grows or sum(map(len, sides)) > len(runs):
        return None
    size = math.ceil(many / len(runs[0].exam.subsets))
    setting = f"{runs[0].exam.benchmark}.{grows}={size}"
    commands, names = [], []
    for run in runs:
        if run.manifest is None or run.arm or len(run) < _whole(run):
            return None
        folder = run.manifest.parent.with_name(f"{run.manifest.parent.name}-{size}")
        names.append(command_name(folder))
        where = f"--config {shlex.quote(typed_path(run.manifest))}"
        named = f"--run-id {shlex.quote(folder.name)}"
        commands.append(f"keju eval {where} --dataset-args {setting} {named}")
    flags = [f"--baseline {name}" for name in names[1:]]
    for row in rows:
        flags.append(f"--{'at-least' if row.gate == AT_LEAST else 'margin'} {abs(row.limit):g}")
    return _Anew(setting, [*commands, f"keju gate {names[0]} {' '.join(flags)}"])


def _plan(own: Sitting, base: Sequence[Sitting], rows: Sequence[GateRow]) -> str:
    """The command that tells what the questions take that decide the one exam that is undecided.

    Empty where `decision` finds another number, for arms and where only Holm's p are too large, and
    for an exam of the user's own, which has a place and no name.
    """
    undecided = [row for row in rows if row.verdict == "inconclusive" and row.needed]
    if len(undecided) != 1 or not (base and base[0].command):
        return ""
    (row,) = undecided
    if row.gate != NO_WORSE or row.arm or decide(row.p, row.p_fail) != "inconclusive":
        return ""
    if row.exam not in registry.names():
        return ""
    runs = f"--pilot {own.command} --baseline {base[0].command}"
    return f"keju plan {row.exam} {runs} --margin {-row.limit:g}"


class _Draw(NamedTuple):
    """How a run draws its questions; two that draw alike share those of the smaller one."""

    flag: str
    size: int
    how: str
    seed: int | None


def _growth(sides: Sequence[Sequence[Sitting]], rows: Sequence[GateRow]) -> list[str]:
    """The commands that let runs ask as many questions as would decide all that is undecided.

    A run that asks so many already needs none. There are no commands where an exam has not so many
    questions, where a run draws them in another way, or the runs do not draw them alike.
    """
    needed: dict[tuple[str, str], int] = {}
    for row in rows:
        if row.verdict == "inconclusive":
            if row.needed is None:
                return []
            own = row.exam, row.arm
            needed[own] = max(row.needed, needed.get(own, 0))
    commands: list[str] = []
    draws: set[tuple[str, str, int | None]] = set()
    for sittings in sides:
        grown: list[_Draw] = []
        for sitting in sittings:
            many = needed.get((sitting.exam.benchmark, sitting.arm))
            if many is None:
                continue
            sizes = [subset.population or len(subset) for subset in sitting.exam.subsets]
            if _whole(sitting) < many:
                return []
            if len(sitting) == _whole(sitting):
                continue
            draw = _draw_of(sitting, sizes, many)
            if draw is None:
                return []
            draws.add((draw.flag, draw.how, draw.seed))
            if draw.size > sitting.circumstances[draw.flag]:
                grown.append(draw)
        if grown:
            assert sittings[0].manifest is not None
            manifest = shlex.quote(typed_path(sittings[0].manifest))
            flag, size, *_ = max(grown)
            commands.append(f"keju eval --config {manifest} --resume --{flag} {size}")
    return list(dict.fromkeys(commands)) if len(draws) == 1 else []


def _draw_of(sitting: Sitting, sizes: Sequence[int], many: int) -> _Draw | None:
    """How a run that asks a part of its exam would draw `many` questions; None if it cannot."""
    known = sitting.circumstances
    if sitting.manifest is None or sitting.job.stopping:
        return None
    how = str(known.get("sample")), known.get("seed")
    if known.get("total") is not None:
        return _Draw("total", many, *how)
    if type(known.get("limit")) is not int:
        return None
    least = next(n for n in count(1) if sum(min(n, size) for size in sizes) >= many)
    return _Draw("limit", least, *how)


def _no_worse(base: Sitting, own: Sitting, margin: float) -> tuple[GateRow, Comparison]:
    """One exam against its baseline, and the comparison that this rests on."""
    pair = compare_pair(base, own, base.name, own.name)
    if unlike := pair.obstacle:
        code, values = unlike.told("gate_unlike", run=own.name, baseline=base.name)
        raise UsageError(code, **values)
    pairs = pairs_of(base, own)
    apart = paired_difference(pairs.scores, pairs.clusters)
    gated = NOTHING
    if apart is not None:
        binary = all(score in (0.0, 1.0) for scores in set(pairs.scores) for score in scores)
        gated = no_worse_by(apart, margin, binary=binary)
    left_out = pair.left_out + unanswered(base, own)
    row = _row(own, NO_WORSE, gated, pair.n, left_out, pair.arm_rate, -margin)
    return replace(row, baseline=pair.base_rate), pair


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
    """What ``keju gate`` finds for one exam alone, with its own number of questions."""
    _refuse_share("--margin", margin)
    where: dict[str, Any] = {"data_dir": data_dir, "work_dir": work_dir}
    own, base = (sittings_of(each, datasets=exam, **where) for each in (run, baseline))
    pairs, _ = matched(base, own)
    if len(pairs) > 1:
        raise UsageError("plan_arms", run=own[0].name)
    row, pair = _no_worse(*pairs[0], margin)
    apart = (pair.arm_only + pair.base_only) / max(1, pair.n)
    return Decision(_cautious(row), base[0].name, apart)


def _refuse_share(flag: str, value: float | None) -> None:
    """Refuse what is no share between 0 and 1."""
    if value is not None and not 0 < value < 1:
        raise UsageError("gate_share", flag=flag, value=value)


def _at_least(own: Sitting, least: float) -> GateRow:
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
    gated = NOTHING
    if mean is not None:
        binary = all(score in (0.0, 1.0) for score, _ in set(scores))
        gated = at_least(mean, least, binary=binary)
    score = mean.value if mean else None
    return _row(own, AT_LEAST, gated, len(scores), left_out, score, least)


NOTHING = Gated("inconclusive", 0.0, -1.0, 1.0, 1.0, 1.0, None)
"""What no question at all decides."""


def _row(
    own: Sitting, gate: str, found: Gated, n: int, left_out: int, score: float | None, limit: float
) -> GateRow:
    return GateRow(
        exam=own.exam.benchmark,
        arm=own.arm,
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
        needed=found.needed,
    )


def _cautious(row: GateRow) -> GateRow:
    """A gate that leaves out more questions than a score may: it decides nothing."""
    if not row.selected:
        return row
    return replace(row, p=1.0, p_fail=1.0, verdict="inconclusive", needed=None)


def _adjusted(rows: Sequence[GateRow]) -> Iterator[GateRow]:
    """The rows with p that allow for gating all of them, and the verdicts that these give."""
    passes, fails = (holm([getattr(row, name) for row in rows]) for name in ("p", "p_fail"))
    for row, p, p_fail in zip(rows, passes, fails, strict=True):
        verdict = decide(p, p_fail)
        several = {"p_holm": p, "p_fail_holm": p_fail} if len(rows) > 1 else {}
        needed = row.needed if verdict == "inconclusive" else None
        yield replace(row, verdict=verdict, needed=needed, **several)
