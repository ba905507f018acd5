"""What to do next about a gate: the commands that decide it, and why there are none.

A run that is not finished is gone on with; one that asked a part of its exam asks more of it; an
exam that is generated is sat anew with more questions.
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
    return f"keju eval --config {shlex.quote(typed_path(run.manifest))} --resume{run.key_flag}"


def _rest(sides: Sequence[Sequence[Sitting]]) -> list[str]:
    """The commands that go on with the runs that are not finished."""
    return [
        _resumed(sittings[0])
        for sittings in sides
        if any(each.manifest and each.job.missing for each in sittings)
    ]


class Share(NamedTuple):
    """The part of a sitting that a gate rests on: the subsets that its baseline asks too."""

    sitting: Sitting
    others: Collection[str] | None = None
    """The subsets of the baseline, or of the run that it is one for; None for a score alone."""

    @property
    def subsets(self) -> list[Subset]:
        """Those of which questions count."""
        return [own for own in self.sitting.exam.subsets if self.counts(own.name)]

    @property
    def asked(self) -> int:
        """How many questions of these subsets are asked."""
        return sum(map(len, self.subsets))

    @property
    def whole(self) -> int:
        """How many questions these subsets have, of which a sitting may ask a part."""
        return sum(map(_size_of, self.subsets))

    def counts(self, subset: str) -> bool:
        """Whether the questions of a subset count."""
        return self.others is None or subset in self.others


def shares_of(one: Sitting, two: Sitting) -> list[Share]:
    """What two sittings of an exam have in common, as the part of each."""
    return [Share(one, _names_of(two)), Share(two, _names_of(one))]


def _names_of(sitting: Sitting) -> frozenset[str]:
    """The subsets that a sitting asks, or would with a larger total."""
    return frozenset((*(own.name for own in sitting.exam.subsets), *sitting.exam.undrawn))


def _size_of(subset: Subset) -> int:
    """How many questions there are of a subset."""
    return subset.population or len(subset)


def _shares(sides: Sequence[Sequence[Sitting]], row: GateRow) -> list[Share]:
    """What a row rests on: the run alone, or what it and its baseline have in common."""
    sittings = [
        each
        for side in (sides[:1] if row.gate == AT_LEAST else sides)
        for each in side
        if (each.exam.benchmark, each.arm) == (row.exam, row.arm)
    ]
    return shares_of(*sittings) if len(sittings) == 2 else [Share(each) for each in sittings]


def _beyond(
    sides: Sequence[Sequence[Sitting]], rows: Sequence[GateRow]
) -> Iterator[tuple[GateRow, Share]]:
    """The undecided exams that have fewer questions than would decide, each with a sitting."""
    for row in rows:
        for share in _shares(sides, row):
            if (row.needed or 0) > share.whole:
                yield row, share


def _grows(exam: str) -> str:
    """The setting that says how many questions of an exam are made; empty where they are given."""
    return registry.get(exam).grows if exam in registry.names() else ""


def _too_few(sides: Sequence[Sequence[Sitting]], rows: Sequence[GateRow]) -> Iterator[Notice]:
    """That exams have no more questions, or which setting makes more of them."""
    whole: dict[str, int] = {}
    parts: set[str] = set()
    for row, share in _beyond(sides, rows):
        whole[row.exam] = min(share.whole, whole.get(row.exam, share.whole))
        if any(share.sitting.circumstances.get(name) for name in ("subset_list", "ids", "total")):
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
    for row, share in _beyond(sides, rows):
        if not (_grows(row.exam) and share.subsets):
            return None
        size = math.ceil((row.needed or 0) / len(share.subsets))
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
        limits = [
            f"{each.exam.benchmark}.limit={_largest_subset([each], most)}"
            for each in sittings
            if each.has_exam_limit
        ]
        args = ",".join([*settings, *limits])
        commands.append(f"keju eval {where} --dataset-args {args}{asked} {named}{run.key_flag}")
    flags = [f"--baseline {name}" for name in names[1:]]
    for row in rows:
        flags.append(f"--{'at-least' if row.gate == AT_LEAST else 'margin'} {abs(row.limit):g}")
    return _Anew(settings, [*commands, f"keju gate {names[0]} {' '.join(dict.fromkeys(flags))}"])


def _all_asked(sittings: Sequence[Sitting], size: int) -> str | None:
    """Flags with which a run asks all questions of subsets of this size; None if none are known.

    A limit that lets all of today's questions through would not let those through that are made
    beside them. Of several exams a part stays a part: its limit is another for each.
    """
    known = sittings[0].circumstances
    whole = all(Share(each).asked == Share(each).whole for each in sittings)
    if any(known.get(name) for name in ("ids", "shard")) or (len(sittings) > 1 and not whole):
        return None
    limited = [each for each in sittings if not each.has_exam_limit]
    if not limited:  # the exams' own settings limit them all
        return ""
    sizes = {
        "limit": _largest_subset(limited, size),
        "total": max(size * len(_names_of(each)) for each in limited),
    }
    known = limited[0].circumstances
    flags = "".join(f" --{name} {sizes[name]}" for name in sizes if known.get(name) is not None)
    return flags if flags or whole else None


def _largest_subset(sittings: Sequence[Sitting], size: int) -> int:
    """The number of questions in the largest subset, if subsets of `size` are made as well."""
    return max(size, *(_size_of(subset) for each in sittings for subset in each.exam.subsets))


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
    undecided = [each for each in rows if each.verdict == "inconclusive"]
    grown: dict[str, int] = {}
    draws: dict[_Draw, None] = {}
    for row, share in ((each, part) for each in undecided for part in _shares(sides, each)):
        if row.needed is None or share.whole < row.needed:
            return _Growth([], [])
        if share.asked == share.whole:
            continue
        draw = _draw_of(share.sitting)
        size = draw and _drawn_for(share, draw.flag, row.needed)
        if draw is None or size is None:
            return _Growth([], [])
        draws[draw] = None
        if size > share.sitting.circumstances[draw.flag]:
            command = f"{_resumed(share.sitting)} {_option(share.sitting, draw.flag)}"
            grown[command] = max(size, grown.get(command, 0))
    alike = len(draws) == 1
    commands = [f"{command}{size}" for command, size in grown.items()]
    return _Growth(commands if alike else [], [*draws])


def _option(sitting: Sitting, flag: str) -> str:
    """The option that sets the limit or the total of a run, up to its number.

    A limit in the exam's own settings outranks ``--limit``, so it is set there.
    """
    if flag == "limit" and sitting.has_exam_limit:
        return f"--dataset-args {shlex.quote(sitting.exam.benchmark)}.limit="
    return f"--{flag} "


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


def _drawn_for(share: Share, flag: str, many: int) -> int | None:
    """The limit, or the total, with which so many questions that count are asked.

    None where a total goes to subsets too whose size is not known, since it drew none of them.
    """
    exam = share.sitting.exam
    if flag == "total" and all(map(share.counts, _names_of(share.sitting))):
        return many
    if flag == "total" and exam.undrawn:
        return None
    sizes = [_size_of(own) for own in exam.subsets]
    counts = [share.counts(own.name) for own in exam.subsets]

    def asked(drawn: int) -> int:
        """How many questions that count are among those drawn with this limit or total."""
        limits = [drawn] * len(sizes) if flag == "limit" else split_total(sizes, drawn)
        parts = zip(sizes, limits, counts, strict=True)
        return sum(min(size, limit) for size, limit, counts in parts if counts)

    return bisect_left(range(sum(sizes)), many, key=asked)
