"""The next steps after a gate: commands that lead to a decision, or reasons why there are none.

An unfinished run is resumed. A run that asked only a part of its exam asks more questions. An exam
with generated questions is run again with more questions.
"""

from __future__ import annotations

import math
import shlex
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import msgspec

from keju.benchmarks import registry
from keju.benchmarks.base import Subset
from keju.benchmarks.samples import split_total
from keju.errors import Notice
from keju.files import typed_path
from keju.results.gate_rows import AT_LEAST, NO_WORSE, GateRow
from keju.results.scored_exam import ScoredExam
from keju.runs.run import command_name
from keju.stats.gate import decide


class NextStep(msgspec.Struct, frozen=True):
    """A command to run next, and the label that describes it."""

    label: str
    command: str


def is_itself(scored_exams: Sequence[ScoredExam], base: Sequence[ScoredExam]) -> bool:
    """Whether a run is its own baseline."""
    return bool(base) and scored_exams[0].is_same_source(base[0])


def steps(
    run_exams: Sequence[ScoredExam], base: Sequence[ScoredExam], rows: Sequence[GateRow]
) -> Iterator[NextStep]:
    """Yield the next commands for the runs of a gate. Files and logs have no commands."""
    first_exam, sides = run_exams[0], [run_exams, base]
    if not first_exam.command or is_itself(run_exams, base):
        return
    growth = _plan_growth(sides, rows).commands
    if any(row.verdict == "inconclusive" for row in rows):
        for command in _resume_commands(sides):
            if not any(grown.startswith(f"{command} ") for grown in growth):
                yield NextStep("gate.resume", command)
    for command in growth:
        yield NextStep("gate.grow", command)
    rerun = _plan_rerun(sides, rows)
    for command in rerun.commands if rerun else ():
        yield NextStep("gate.anew", command)
    if base and base[0].command:
        yield NextStep("gate.compare", f"keju compare {base[0].command} {first_exam.command}")
    else:
        yield NextStep("gate.audit", f"keju audit {first_exam.command}")
    if plan := _plan_command(first_exam, base, rows):
        if rerun:
            yield NextStep("gate.plan", f"{plan} --dataset-args {','.join(rerun.settings)}")
        elif not [*_find_undersized_exams(sides, rows)]:
            yield NextStep("gate.plan", plan)


def reasons(
    run_exams: Sequence[ScoredExam], base: Sequence[ScoredExam], rows: Sequence[GateRow]
) -> Iterator[Notice]:
    """Yield notices that explain why more questions do not decide, or not at once."""
    if is_itself(run_exams, base):
        return
    yield from _too_few_notices([run_exams, base], rows)
    if len(draws := _plan_growth([run_exams, base], rows).draws) > 1:
        left_flags, right_flags = (draw.flags for draw in draws[:2])
        values = {
            "run": run_exams[0].name,
            "baseline": base[0].name,
            "first": " ".join(word for word in left_flags if word not in right_flags),
            "second": " ".join(word for word in right_flags if word not in left_flags),
        }
        yield Notice("gate_other_draw", values)


def _resume_command(run: ScoredExam) -> str:
    """Return the command that resumes a run."""
    assert run.manifest is not None
    return f"keju eval --config {shlex.quote(typed_path(run.manifest))} --resume{run.key_flag}"


def _resume_commands(sides: Sequence[Sequence[ScoredExam]]) -> list[str]:
    """Return the commands that resume the unfinished runs."""
    return [
        _resume_command(scored_exams[0])
        for scored_exams in sides
        if any(scored_exam.manifest and scored_exam.job.missing for scored_exam in scored_exams)
    ]


class GatedPart(NamedTuple):
    """The part of an exam that a gate is based on: the subsets that the other side asks as well."""

    scored_exam: ScoredExam
    other_subsets: Collection[str] | None = None
    """The subsets of the run on the other side of the gate; None for a gate on a score alone."""

    @property
    def subsets(self) -> list[Subset]:
        """The subsets whose questions count."""
        return [subset for subset in self.scored_exam.exam.subsets if self.counts(subset.name)]

    @property
    def asked_count(self) -> int:
        """The number of questions of these subsets that are asked."""
        return sum(map(len, self.subsets))

    @property
    def total_count(self) -> int:
        """The number of questions that these subsets have in total."""
        return sum(map(_subset_size, self.subsets))

    def counts(self, subset: str) -> bool:
        """Whether the questions of a subset count."""
        return self.other_subsets is None or subset in self.other_subsets


def shares_of(left_exam: ScoredExam, right_exam: ScoredExam) -> list[GatedPart]:
    """Return what two scored exams have in common, as a part of each."""
    return [
        GatedPart(left_exam, _subset_names(right_exam)),
        GatedPart(right_exam, _subset_names(left_exam)),
    ]


def _subset_names(scored_exam: ScoredExam) -> frozenset[str]:
    """Return the subsets that an exam asks, or would ask with a larger total."""
    return frozenset(
        (*(subset.name for subset in scored_exam.exam.subsets), *scored_exam.exam.undrawn)
    )


def _subset_size(subset: Subset) -> int:
    """Return the number of questions that a subset has."""
    return subset.population or len(subset)


def _shares(sides: Sequence[Sequence[ScoredExam]], row: GateRow) -> list[GatedPart]:
    """Return the parts of exams that a row is based on: one for a score, two with a baseline."""
    scored_exams = [
        scored_exam
        for side in (sides[:1] if row.gate == AT_LEAST else sides)
        for scored_exam in side
        if (scored_exam.exam.benchmark, scored_exam.arm) == (row.exam, row.arm)
    ]
    return (
        shares_of(*scored_exams)
        if len(scored_exams) == 2
        else [GatedPart(scored_exam) for scored_exam in scored_exams]
    )


def _find_undersized_exams(
    sides: Sequence[Sequence[ScoredExam]], rows: Sequence[GateRow]
) -> Iterator[tuple[GateRow, GatedPart]]:
    """Yield the undecided rows whose exams have too few questions to decide, each with its exam."""
    for row in rows:
        for share in _shares(sides, row):
            if (row.needed or 0) > share.total_count:
                yield row, share


def _find_size_setting(exam: str) -> str:
    """Return the setting that makes more questions of a generated exam; empty for other exams."""
    return registry.get(exam).grows if exam in registry.names() else ""


def _too_few_notices(
    sides: Sequence[Sequence[ScoredExam]], rows: Sequence[GateRow]
) -> Iterator[Notice]:
    """Yield notices of exams that have too few questions; they name the setting that makes more."""
    totals: dict[str, int] = {}
    partial_exams: set[str] = set()
    for row, share in _find_undersized_exams(sides, rows):
        totals[row.exam] = min(share.total_count, totals.get(row.exam, share.total_count))
        if any(
            share.scored_exam.circumstances.get(name) for name in ("subset_list", "ids", "total")
        ):
            partial_exams.add(row.exam)  # The exam may have subsets that were not asked at all.
    for exam, total in totals.items():
        values = {"exam": exam, "whole": total}
        if setting := _find_size_setting(exam):
            yield Notice("gate_makes_more", values | {"setting": f"{exam}.{setting}"})
        else:
            yield Notice("gate_no_more_asked" if exam in partial_exams else "gate_no_more", values)


class _FreshRerun(NamedTuple):
    """The commands that run generated exams again with more questions, and then gate them."""

    settings: list[str]
    commands: list[str]


def _plan_rerun(
    sides: Sequence[Sequence[ScoredExam]], rows: Sequence[GateRow]
) -> _FreshRerun | None:
    """Return how to run generated exams again with more questions.

    None if more questions would not help, or if one of the runs cannot be run again.
    """
    sizes: dict[str, int] = {}
    for row, share in _find_undersized_exams(sides, rows):
        if not (_find_size_setting(row.exam) and share.subsets):
            return None
        size = math.ceil((row.needed or 0) / len(share.subsets))
        sizes[row.exam] = max(size, sizes.get(row.exam, 0))
    if not sizes:
        return None
    settings = [f"{exam}.{_find_size_setting(exam)}={size}" for exam, size in sizes.items()]
    commands, names = [], []
    for scored_exams in filter(None, sides):
        run, largest_size = scored_exams[0], max(sizes.values())
        question_flags = _question_flags(scored_exams, largest_size)
        if run.manifest is None or question_flags is None:
            return None
        folder = run.manifest.parent.with_name(f"{run.manifest.parent.name}-{largest_size}")
        names.append(command_name(folder))
        config_flag = f"--config {shlex.quote(typed_path(run.manifest))}"
        run_id_flag = f"--run-id {shlex.quote(folder.name)}"
        limits = [
            f"{run_exam.exam.benchmark}.limit={_largest_subset_size([run_exam], largest_size)}"
            for run_exam in scored_exams
            if run_exam.has_exam_limit
        ]
        args = ",".join([*settings, *limits])
        flags_of_exams = f"--dataset-args {args}{question_flags}"
        commands.append(f"keju eval {config_flag} {flags_of_exams} {run_id_flag}{run.key_flag}")
    flags = [f"--baseline {name}" for name in names[1:]]
    for row in rows:
        flags.append(f"--{'at-least' if row.gate == AT_LEAST else 'margin'} {abs(row.limit):g}")
    return _FreshRerun(
        settings, [*commands, f"keju gate {names[0]} {' '.join(dict.fromkeys(flags))}"]
    )


def _question_flags(scored_exams: Sequence[ScoredExam], size: int) -> str | None:
    """Return flags that make a run ask all questions of subsets of this size; None if unknown.

    A limit that covers all present questions would not cover the ones that are generated in
    addition. If a run has several exams and asks only a part of them, the result is None, because
    each exam needs a different limit.
    """
    circumstances = scored_exams[0].circumstances
    parts = map(GatedPart, scored_exams)
    asks_everything = all(part.asked_count == part.total_count for part in parts)
    if circumstances.get("ids") or circumstances.get("shard"):
        return None
    if len(scored_exams) > 1 and not asks_everything:
        return None
    limited = [scored_exam for scored_exam in scored_exams if not scored_exam.has_exam_limit]
    if not limited:  # The settings of the exams limit all of them.
        return ""
    sizes = {
        "limit": _largest_subset_size(limited, size),
        "total": max(size * len(_subset_names(scored_exam)) for scored_exam in limited),
    }
    circumstances = limited[0].circumstances
    flags = "".join(
        f" --{name} {sizes[name]}" for name in sizes if circumstances.get(name) is not None
    )
    return flags if flags or asks_everything else None


def _largest_subset_size(scored_exams: Sequence[ScoredExam], size: int) -> int:
    """Return the size of the largest subset, if subsets of `size` are generated as well."""
    return max(
        size,
        *(
            _subset_size(subset)
            for scored_exam in scored_exams
            for subset in scored_exam.exam.subsets
        ),
    )


def _plan_command(run_exam: ScoredExam, base: Sequence[ScoredExam], rows: Sequence[GateRow]) -> str:
    """Return the command that estimates the cost of deciding the one undecided exam.

    The result is empty in these cases: several exams are undecided, the row is for an arm, only the
    adjusted p (Holm) is too large, or the exam is a folder of the user without a registered name.
    """
    undecided_rows = [row for row in rows if row.verdict == "inconclusive" and row.needed]
    if len(undecided_rows) != 1 or not (base and base[0].command):
        return ""
    (row,) = undecided_rows
    if row.gate != NO_WORSE or row.arm or decide(row.p, row.p_fail) != "inconclusive":
        return ""
    if row.exam not in registry.names():
        return ""
    runs = f"--pilot {run_exam.command} --baseline {base[0].command}"
    return f"keju plan {row.exam} {runs} --margin {-row.limit:g}"


class _QuestionDraw(NamedTuple):
    """The way a run draws its questions.

    If two runs draw in the same way, they share the questions of the smaller one.
    """

    flag: str
    method: str
    seed: int | None
    """None if nothing is random."""

    @property
    def flags(self) -> list[str]:
        """The flags that draw questions in this way."""
        seed_flags = [] if self.seed is None else [f"--seed {self.seed}"]
        return [f"--{self.flag}", f"--sample {self.method}", *seed_flags]


class _LargerRun(NamedTuple):
    """The commands that make runs ask enough questions to decide."""

    commands: list[str]
    draws: list[_QuestionDraw]
    """The ways in which the runs draw questions. If there are several, the commands are empty."""


def _plan_growth(sides: Sequence[Sequence[ScoredExam]], rows: Sequence[GateRow]) -> _LargerRun:
    """Return the commands that make runs ask enough questions to decide every undecided row.

    A run that already asks enough needs no command. The result is empty if an exam has too few
    questions, if a run cannot draw more, or if the runs draw in different ways.
    """
    undecided_rows = [row for row in rows if row.verdict == "inconclusive"]
    grown: dict[str, int] = {}
    draws: dict[_QuestionDraw, None] = {}
    for row, share in (
        (undecided_row, part)
        for undecided_row in undecided_rows
        for part in _shares(sides, undecided_row)
    ):
        if row.needed is None or share.total_count < row.needed:
            return _LargerRun([], [])
        if share.asked_count == share.total_count:
            continue
        draw = _find_draw(share.scored_exam)
        size = draw and _find_size_to_draw(share, draw.flag, row.needed)
        if draw is None or size is None:
            return _LargerRun([], [])
        draws[draw] = None
        if size > share.scored_exam.circumstances[draw.flag]:
            option = _limit_option(share.scored_exam, draw.flag)
            command = f"{_resume_command(share.scored_exam)} {option}"
            grown[command] = max(size, grown.get(command, 0))
    is_same_draw = len(draws) == 1
    commands = [f"{command}{size}" for command, size in grown.items()]
    return _LargerRun(commands if is_same_draw else [], [*draws])


def _limit_option(scored_exam: ScoredExam, flag: str) -> str:
    """Return the option that sets the limit or total of a run, without its number.

    A limit in the exam's settings takes precedence over ``--limit``, so it is changed there.
    """
    if flag == "limit" and scored_exam.has_exam_limit:
        return f"--dataset-args {shlex.quote(scored_exam.exam.benchmark)}.limit="
    return f"--{flag} "


def _find_draw(scored_exam: ScoredExam) -> _QuestionDraw | None:
    """Return how a run that asks a part of its exam draws it; None if it cannot draw more."""
    circumstances = scored_exam.circumstances
    if scored_exam.manifest is None or scored_exam.job.stopping:
        return None
    method = str(circumstances.get("sample"))
    seed = None if method == "first" else circumstances.get("seed")
    if circumstances.get("total") is not None:
        return _QuestionDraw("total", method, seed)
    return _QuestionDraw("limit", method, seed) if type(circumstances.get("limit")) is int else None


def _find_size_to_draw(share: GatedPart, flag: str, needed: int) -> int | None:
    """Return the limit or total with which `needed` questions that count are asked.

    None if a total would also draw from subsets whose size is unknown.
    """
    exam = share.scored_exam.exam
    if flag == "total" and all(map(share.counts, _subset_names(share.scored_exam))):
        return needed
    if flag == "total" and exam.undrawn:
        return None
    sizes = [_subset_size(subset) for subset in exam.subsets]
    is_counted = [share.counts(subset.name) for subset in exam.subsets]

    def count_drawn(setting: int) -> int:
        """Return how many drawn questions count, with this limit or total."""
        limits = [setting] * len(sizes) if flag == "limit" else split_total(sizes, setting)
        parts = zip(sizes, limits, is_counted, strict=True)
        return sum(min(size, limit) for size, limit, counted in parts if counted)

    return bisect_left(range(sum(sizes)), needed, key=count_drawn)
