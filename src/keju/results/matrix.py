"""Models against exams: what the runs of a plan come to, side by side.

Everything is made of the stored runs. Within an exam the models are compared in pairs on the
questions that they share (`keju.results.compare`), so that a model which is not shown to be below
the highest one by those tests is said to tie with it. Nothing is averaged over exams: such a mean
would be one of nothing that was asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace as changed
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from keju.errors import KejuError, Notice
from keju.results.compare import Compared, compare_sittings
from keju.results.schema import SCHEMA, Comparison, Entry, Metric
from keju.results.score import current_results
from keju.results.sittings import Sitting, sittings_of_run
from keju.runs.manifest import MANIFEST, Manifest
from keju.runs.plan import PlannedRun, StoredPlan
from keju.runs.run import REPORT, Run
from keju.types import Outcome

State = Literal["complete", "incomplete", "missing"]
Standing = Literal["highest", "tie", "below", "not comparable", ""]
"""How a model stands to the one with the highest headline of its exam, by the paired tests of the
mean score on the questions that both have; empty where nothing is known."""


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """What a run took over all its sessions."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    """None where no price is known."""
    seconds: float = 0.0


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One model in one exam, and in one arm where the run has arms."""

    model: str
    exam: str
    arm: str = ""
    run: str
    state: State
    done: int = 0
    total: int = 0
    protocol: str = ""
    protocol_version: str = ""
    reader: str = ""
    metric: str = ""
    """The headline of its protocol."""
    value: float | None = None
    ci95: tuple[float, float] | None = None
    bounds: tuple[float, float] | None = None
    n: int = 0
    """Questions with a grade."""
    ungraded: int = 0
    """Further questions, whose replies have no grade."""
    outcomes: dict[Outcome, int] = {}
    standing: Standing = ""
    error: Notice | None = None
    """Why the run ended early, where it did."""
    warnings: int = 0
    """How many warnings its results have."""
    spent: Spent = Spent()
    report: str = ""
    """Its page, relative to the folder of the plan; empty where there is none."""


class Matrix(msgspec.Struct, frozen=True, kw_only=True):
    """What a plan comes to."""

    schema: int = SCHEMA
    plan: str
    complete: bool
    models: tuple[str, ...]
    exams: tuple[str, ...]
    cells: tuple[Cell, ...]
    comparisons: tuple[Comparison, ...] = ()
    """Every pair of models of each exam; `exam` is the name of the plan's entry."""
    spent: Spent = Spent()
    """Over all runs."""
    notices: tuple[Notice, ...] = ()

    @property
    def document(self) -> dict[str, Any]:
        """The plain document, as ``--json`` prints it and ``results.json`` of a plan holds it."""
        pairs = Compared(comparisons=self.comparisons).document["comparisons"]
        document: dict[str, Any] = msgspec.to_builtins(replace(self, comparisons=()))
        for cell, own in zip(document["cells"], self.cells, strict=True):
            if own.error is not None:
                cell["error"]["message"] = own.error.text()
        slim = ("subsets", "flips", "gained", "lost")
        document["comparisons"] = [
            {name: value for name, value in pair.items() if name not in slim} for pair in pairs
        ]
        return document | {"warnings": [notice.text() for notice in self.notices]}

    def rows(self) -> list[tuple[str, str]]:
        """Models and arms, as rows of a table."""
        return list(dict.fromkeys((cell.model, cell.arm) for cell in self.cells))

    def of(self, exam: str) -> list[Cell]:
        """The cells of one exam, in the order of the models."""
        return [cell for cell in self.cells if cell.exam == exam]


def matrix_of(
    folder: Path,
    *,
    errors: Mapping[str, KejuError] | None = None,
    data_dir: str | None = None,
    compared: bool = True,
) -> Matrix:
    """The matrix of the plan in `folder`; `errors` are what ended runs early, by run.

    Pairs are tested only if it is to be `compared`: that reads all replies.
    """
    plan, told = StoredPlan.read(folder), errors or {}
    cells: list[Cell] = []
    notices: list[Notice] = []
    for planned in plan.runs:
        cells += _cells(planned, folder, told.get(planned.run), data_dir, notices)
    exams = list(dict.fromkeys(planned.exam for planned in plan.runs))
    pairs: list[Comparison] = []
    for exam in exams if compared else ():
        own = [cell for cell in cells if cell.exam == exam]
        found = _compared(own, folder, data_dir, notices)
        pairs += [replace(pair, exam=exam) for pair in found]
    cells = [cell for exam in exams for cell in _standing(exam, cells, pairs)]
    order = {planned.run: place for place, planned in enumerate(plan.runs)}
    cells.sort(key=lambda cell: order[cell.run])
    spent = list({cell.run: cell.spent for cell in cells}.values())
    return Matrix(
        plan=plan.plan,
        complete=all(cell.state == "complete" for cell in cells),
        models=tuple(dict.fromkeys(planned.model for planned in plan.runs)),
        exams=tuple(exams),
        cells=tuple(cells),
        comparisons=tuple(pairs),
        spent=_sum(spent),
        notices=tuple(notices),
    )


def _sum(spent: Sequence[Spent]) -> Spent:
    costs = [own.cost for own in spent if own.cost is not None]
    return Spent(
        requests=sum(own.requests for own in spent),
        input_tokens=sum(own.input_tokens for own in spent),
        output_tokens=sum(own.output_tokens for own in spent),
        cost=sum(costs) if costs else None,
        seconds=round(sum(own.seconds for own in spent), 3),
    )


def _cells(
    planned: PlannedRun,
    folder: Path,
    error: KejuError | None,
    data_dir: str | None,
    notices: list[Notice],
) -> Iterator[Cell]:
    """What one run of a plan comes to: a cell for each of its arms."""
    own = folder.parent / planned.run
    bare = Cell(
        model=planned.model,
        exam=planned.exam,
        run=planned.run,
        state="missing",
        error=None if error is None else error.notice,
    )
    if not (own / MANIFEST).is_file():
        yield bare
        return
    run = Run(own)
    try:
        manifest, results = run.manifest, current_results(run, data_dir)
    except KejuError as problem:
        notices.append(Notice("plan_run_unread", {"run": planned.run, "problem": problem.notice}))
        yield replace(bare, state="incomplete")
        return
    sessions = manifest.sessions
    costs = [each.cost for each in sessions if isinstance(each.cost, float)]
    spent = Spent(
        requests=sum(each.requests for each in sessions),
        input_tokens=sum(each.input_tokens for each in sessions),
        output_tokens=sum(each.output_tokens for each in sessions),
        cost=sum(costs) if costs else None,
        seconds=round(sum(each.seconds for each in sessions), 3),
    )
    page = f"../{planned.run}/{REPORT}" if (own / REPORT).is_file() else ""
    state: State = "complete" if manifest.complete else "incomplete"
    shared = replace(bare, state=state, spent=spent, report=page, total=manifest.expected_replies)
    firsts: dict[str, Entry] = {}
    for entry in results.benchmarks:  # of several readers the first has the headline
        firsts.setdefault(entry.arm, entry)
    yield from (_of_entry(shared, entry, manifest) for entry in firsts.values())
    if not firsts:
        yield shared


def _total(manifest: Manifest, arm: str) -> int:
    """Answers that a run has in one arm when it is complete; it has one exam."""
    (exam,) = manifest.benchmarks
    if stopping := (manifest.stopped or {}).get(exam.name):
        return stopping.asked * exam.epochs
    return (exam.samples_of or {}).get(arm, exam.samples) * exam.epochs


def _of_entry(cell: Cell, entry: Entry, manifest: Manifest) -> Cell:
    metric: Metric | None = entry.metrics.get(entry.headline)
    return replace(
        cell,
        arm=entry.arm,
        done=sum(entry.outcomes.values()),
        total=_total(manifest, entry.arm),
        protocol=entry.protocol,
        protocol_version=entry.protocol_version,
        reader=entry.reader,
        metric=entry.headline,
        value=metric.value if metric is not None else None,
        ci95=metric.ci95 if metric is not None else None,
        bounds=metric.bounds if metric is not None else None,
        n=metric.n if metric is not None else 0,
        ungraded=entry.ungraded,
        outcomes=dict(entry.outcomes),
        warnings=len(entry.notices),
    )


def _compared(
    cells: Sequence[Cell], folder: Path, data_dir: str | None, notices: list[Notice]
) -> Sequence[Comparison]:
    """Every pair of models of one exam, as far as they have answers."""
    groups: list[list[Sitting]] = []
    names: list[str] = []
    for cell in {cell.run: cell for cell in cells if cell.done}.values():
        try:
            sittings = sittings_of_run(Run(folder.parent / cell.run), data_dir=data_dir)
        except KejuError as problem:
            values = {"run": cell.run, "problem": problem.notice}
            notices.append(Notice("plan_run_unread", values))
            continue
        groups.append([changed(sitting, name=cell.model) for sitting in sittings])
        names.append(cell.model)
    return compare_sittings(groups, names).comparisons if len(groups) > 1 else ()


def _standing(exam: str, cells: Sequence[Cell], pairs: Sequence[Comparison]) -> Iterator[Cell]:
    """The cells of one exam, each with how it stands to the highest of its arm."""
    own = [cell for cell in cells if cell.exam == exam]
    verdicts = {
        frozenset((pair.base, pair.arm)): _against(pair) for pair in pairs if pair.exam == exam
    }
    for arm in dict.fromkeys(cell.arm for cell in own):
        beside = [cell for cell in own if cell.arm == arm]
        known = [cell for cell in beside if cell.value is not None]
        best = max(known, key=lambda cell: cell.value or 0.0, default=None)
        for cell in beside:
            standing: Standing = ""
            if best is not None and cell is not best:
                standing = verdicts.get(frozenset((side_name(best), side_name(cell))), "")
            elif cell is best and len(known) > 1:
                standing = "highest"
            yield replace(cell, standing=standing)


def side_name(cell: Cell) -> str:
    """What comparisons call the model of a cell, in its arm."""
    return f"{cell.model} · {cell.arm}" if cell.arm else cell.model


def _against(pair: Comparison) -> Standing:
    """How the one that has the lower headline stands to the highest."""
    if pair.verdict == "not comparable":
        return "not comparable"
    if pair.verdict == "nothing":
        return ""
    return "tie" if pair.verdict == "tie" else "below"
