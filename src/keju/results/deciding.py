"""What to do next about a gate: the commands that decide it, and why there are none.

A run that is not finished is gone on with; one that asked a part of its exam asks more of it; an
exam that is generated is sat anew with more questions.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence
from itertools import count
from typing import NamedTuple

import msgspec

from keju.benchmarks import registry
from keju.errors import Notice
from keju.files import typed_path
from keju.results.gate_rows import AT_LEAST, NO_WORSE, GateRow
from keju.results.sittings import Sitting
from keju.runs.run import command_name
from keju.stats.gate import decide


class Step(msgspec.Struct, frozen=True):
    """A command that tells more, and the label that says what it does."""

    label: str
    command: str


def is_itself(sittings: Sequence[Sitting], base: Sequence[Sitting]) -> bool:
    """Whether a run is its own baseline."""
    return bool(base) and sittings[0].is_of(base[0])


def steps(
    own: Sequence[Sitting], base: Sequence[Sitting], rows: Sequence[GateRow]
) -> Iterator[Step]:
    """Commands that decide, or tell more of the runs that were gated; files and logs have none."""
    first, sides = own[0], [own, base]
    if not first.command or is_itself(own, base):
        return
    growth = _growth(sides, rows).commands
    if any(row.verdict == "inconclusive" for row in rows):
        for command in _rest(sides):
            if not any(grown.startswith(f"{command} ") for grown in growth):
                yield Step("gate.resume", command)
    for command in growth:
        yield Step("gate.grow", command)
    anew = _anew(sides, rows)
    for command in anew.commands if anew else ():
        yield Step("gate.anew", command)
    if base and base[0].command:
        yield Step("gate.compare", f"keju compare {base[0].command} {first.command}")
    else:
        yield Step("gate.audit", f"keju audit {first.command}")
    if plan := _plan(first, base, rows):
        if anew:
            yield Step("gate.plan", f"{plan} --dataset-args {','.join(anew.settings)}")
        elif not [*_beyond(sides, rows)]:
            yield Step("gate.plan", plan)


def reasons(
    own: Sequence[Sitting], base: Sequence[Sitting], rows: Sequence[GateRow]
) -> Iterator[Notice]:
    """Why more questions do not decide, or not at once."""
    if is_itself(own, base):
        return
    yield from _too_few([own, base], rows)
    if len(draws := _growth([own, base], rows).draws) > 1:
        first, second = (draw.words for draw in draws[:2])
        values = {
            "run": own[0].name,
            "baseline": base[0].name,
            "first": " ".join(word for word in first if word not in second),
            "second": " ".join(word for word in second if word not in first),
        }
        yield Notice("gate_other_draw", values)


def _resumed(run: Sitting) -> str:
    """The command that goes on with a run."""
    assert run.manifest is not None
    return f"keju eval --config {shlex.quote(typed_path(run.manifest))} --resume"


def _rest(sides: Sequence[Sequence[Sitting]]) -> list[str]:
    """The commands that go on with the runs that are not finished."""
    return [
        _resumed(sittings[0])
        for sittings in sides
        if any(each.manifest and each.job.missing for each in sittings)
    ]


def whole_of(sitting: Sitting) -> int:
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
                if own and (row.needed or 0) > whole_of(sitting):
                    yield row, sitting


def _grows(exam: str) -> str:
    """The setting that says how many questions of an exam are made; empty where they are given."""
    return registry.get(exam).grows if exam in registry.names() else ""


def _too_few(sides: Sequence[Sequence[Sitting]], rows: Sequence[GateRow]) -> Iterator[Notice]:
    """That exams have no more questions, or which setting makes more of them."""
    whole: dict[str, int] = {}
    parts: set[str] = set()
    for row, sitting in _beyond(sides, rows):
        whole[row.exam] = min(whole_of(sitting), whole.get(row.exam, whole_of(sitting)))
        if any(sitting.circumstances.get(name) for name in ("subset_list", "ids", "total")):
            parts.add(row.exam)  # it may have subsets that are not asked at all
    for exam, many in whole.items():
        values = {"exam": exam, "whole": many}
        if setting := _grows(exam):
            yield Notice("gate_makes_more", values | {"setting": f"{exam}.{setting}"})
        else:
            yield Notice("gate_no_more_asked" if exam in parts else "gate_no_more", values)


class _Anew(NamedTuple):
    """How runs of exams that are generated are sat anew with more questions, and gated."""

    settings: list[str]
    commands: list[str]


def _anew(sides: Sequence[Sequence[Sitting]], rows: Sequence[GateRow]) -> _Anew | None:
    """None where more questions are not what is needed, or one of the runs cannot be sat anew."""
    sizes: dict[str, int] = {}
    for row, sitting in _beyond(sides, rows):
        if not _grows(row.exam):
            return None
        size = math.ceil((row.needed or 0) / len(sitting.exam.subsets))
        sizes[row.exam] = max(size, sizes.get(row.exam, 0))
    if not sizes:
        return None
    settings = [f"{exam}.{_grows(exam)}={size}" for exam, size in sizes.items()]
    commands, names = [], []
    for sittings in filter(None, sides):
        run, most = sittings[0], max(sizes.values())
        asked = _all_asked(sittings, most)
        if run.manifest is None or asked is None:
            return None
        folder = run.manifest.parent.with_name(f"{run.manifest.parent.name}-{most}")
        names.append(command_name(folder))
        where = f"--config {shlex.quote(typed_path(run.manifest))}"
        named = f"--run-id {shlex.quote(folder.name)}"
        commands.append(f"keju eval {where} --dataset-args {','.join(settings)}{asked} {named}")
    flags = [f"--baseline {name}" for name in names[1:]]
    for row in rows:
        flags.append(f"--{'at-least' if row.gate == AT_LEAST else 'margin'} {abs(row.limit):g}")
    return _Anew(settings, [*commands, f"keju gate {names[0]} {' '.join(dict.fromkeys(flags))}"])


def _all_asked(sittings: Sequence[Sitting], size: int) -> str | None:
    """Flags with which a run asks all questions of subsets of this size; None if none are known."""
    if all(len(each) == whole_of(each) for each in sittings):
        return ""
    run, *others = sittings
    if others or any(run.circumstances.get(name) for name in ("ids", "shard")):
        return None
    sizes = {"limit": size, "total": size * len(run.exam.subsets)}
    known = [name for name in sizes if run.circumstances.get(name) is not None]
    return "".join(f" --{name} {sizes[name]}" for name in known) or None


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
    how: str
    seed: int | None
    """None where nothing is left to chance."""

    @property
    def words(self) -> list[str]:
        """The flags that say so."""
        chance = [] if self.seed is None else [f"--seed {self.seed}"]
        return [f"--{self.flag}", f"--sample {self.how}", *chance]


class _Growth(NamedTuple):
    """How runs ask as many questions as would decide."""

    commands: list[str]
    draws: list[_Draw]
    """In how many ways they draw them; there are no commands if these are several."""


def _growth(sides: Sequence[Sequence[Sitting]], rows: Sequence[GateRow]) -> _Growth:
    """The commands that let runs ask as many questions as would decide all that is undecided.

    A run that asks so many already needs none. There are no commands where an exam has not so many
    questions, where a run draws them in another way, or the runs do not draw them alike.
    """
    needed: dict[tuple[str, str], int] = {}
    for row in rows:
        if row.verdict == "inconclusive":
            if row.needed is None:
                return _Growth([], [])
            own = row.exam, row.arm
            needed[own] = max(row.needed, needed.get(own, 0))
    commands: list[str] = []
    draws: dict[_Draw, None] = {}
    for sittings in sides:
        grown: list[tuple[str, int]] = []
        for sitting in sittings:
            many = needed.get((sitting.exam.benchmark, sitting.arm))
            if many is None:
                continue
            if whole_of(sitting) < many:
                return _Growth([], [])
            if len(sitting) == whole_of(sitting):
                continue
            draw = _draw_of(sitting)
            if draw is None:
                return _Growth([], [])
            draws[draw] = None
            size = many if draw.flag == "total" else _limit_for(sitting, many)
            if size > sitting.circumstances[draw.flag]:
                grown.append((draw.flag, size))
        if grown:
            flag, size = max(grown)
            commands.append(f"{_resumed(sittings[0])} --{flag} {size}")
    alike = len(draws) == 1
    return _Growth(list(dict.fromkeys(commands)) if alike else [], [*draws])


def _draw_of(sitting: Sitting) -> _Draw | None:
    """How a run that asks a part of its exam draws it; None if it cannot draw more."""
    known = sitting.circumstances
    if sitting.manifest is None or sitting.job.stopping:
        return None
    how = str(known.get("sample"))
    seed = None if how == "first" else known.get("seed")
    if known.get("total") is not None:
        return _Draw("total", how, seed)
    return _Draw("limit", how, seed) if type(known.get("limit")) is int else None


def _limit_for(sitting: Sitting, many: int) -> int:
    """The limit of each subset with which so many questions are asked."""
    sizes = [subset.population or len(subset) for subset in sitting.exam.subsets]
    return next(n for n in count(1) if sum(min(n, size) for size in sizes) >= many)
