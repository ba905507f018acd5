"""The results of a matrix: several models on several exams.

It is computed from the stored runs. Within an exam, models are compared in pairs on the questions
that they share (`keju.results.compare`). A model ties with the highest one unless the test shows
that it is below it. Nothing is averaged over exams, because such a mean would have no meaning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace as replace_dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from keju.benchmarks.prepare import share_prepared_exams
from keju.errors import KejuError, Notice
from keju.results.compare import Compared, compare_groups
from keju.results.schema import SCHEMA, Comparison, Metric, ResultEntry
from keju.results.score import current_results
from keju.results.scored_exam import ScoredExam, scored_exams_of_run
from keju.runs.manifest import MANIFEST, Manifest
from keju.runs.matrix import StoredMatrix, StoredMatrixRun
from keju.runs.run import REPORT, Run
from keju.types import Outcome

State = Literal["complete", "incomplete", "missing"]
Standing = Literal["highest", "tie", "below", "not comparable", ""]
"""How a model compares with the highest headline of its exam, by paired tests of the mean score on
the questions that both have; empty if unknown."""


class SpentTotals(msgspec.Struct, frozen=True, kw_only=True):
    """The amounts that a run used over all its sessions."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    """None if no price is known."""
    seconds: float = 0.0


class MatrixCell(msgspec.Struct, frozen=True, kw_only=True):
    """One model in one exam, and in one arm if the run has arms."""

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
    """The headline metric of its protocol."""
    value: float | None = None
    ci95: tuple[float, float] | None = None
    bounds: tuple[float, float] | None = None
    n: int = 0
    """The number of questions with a grade."""
    ungraded: int = 0
    """The number of further questions, whose replies have no grade."""
    outcomes: dict[Outcome, int] = {}
    standing: Standing = ""
    error: Notice | None = None
    """Why the run ended early, if it did."""
    warnings: int = 0
    """The number of warnings of its results."""
    spent: SpentTotals = SpentTotals()
    report: str = ""
    """Its report, relative to the folder of the matrix; empty if there is none."""


class Matrix(msgspec.Struct, frozen=True, kw_only=True):
    """The results of a matrix."""

    schema: int = SCHEMA
    plan: str
    complete: bool
    models: tuple[str, ...]
    exams: tuple[str, ...]
    cells: tuple[MatrixCell, ...]
    comparisons: tuple[Comparison, ...] = ()
    """Every pair of models of each exam; `exam` is the name of the matrix's entry."""
    spent: SpentTotals = SpentTotals()
    """The total over all runs."""
    notices: tuple[Notice, ...] = ()

    @property
    def document(self) -> dict[str, Any]:
        """The plain document, as ``--json`` prints it and ``results.json`` of a matrix holds it."""
        pairs = Compared(comparisons=self.comparisons).document["comparisons"]
        document: dict[str, Any] = msgspec.to_builtins(replace(self, comparisons=()))
        for cell, stored_cell in zip(document["cells"], self.cells, strict=True):
            if stored_cell.error is not None:
                cell["error"]["message"] = stored_cell.error.text()
        omitted_keys = ("subsets", "flips", "gained", "lost")
        document["comparisons"] = [
            {name: value for name, value in pair.items() if name not in omitted_keys}
            for pair in pairs
        ]
        return document | {"warnings": [notice.text() for notice in self.notices]}

    def rows(self) -> list[tuple[str, str]]:
        """Return the pairs of model and arm, as rows of a table."""
        return list(dict.fromkeys((cell.model, cell.arm) for cell in self.cells))

    def of(self, exam: str) -> list[MatrixCell]:
        """Return the cells of one exam, in the order of the models."""
        return [cell for cell in self.cells if cell.exam == exam]


@share_prepared_exams()
def matrix_of(
    folder: Path,
    *,
    errors: Mapping[str, KejuError] | None = None,
    data_dir: str | None = None,
    compared: bool = True,
) -> Matrix:
    """Return the results of the matrix in `folder`; `errors` has the errors that ended runs.

    `compared` tests all pairs of models, which requires reading all replies.
    """
    stored, run_errors = StoredMatrix.read(folder), errors or {}
    cells: list[MatrixCell] = []
    notices: list[Notice] = []
    for planned in stored.runs:
        cells += _build_cells(planned, folder, run_errors.get(planned.run), data_dir, notices)
    exams = list(dict.fromkeys(planned.exam for planned in stored.runs))
    pairs: list[Comparison] = []
    for exam in exams if compared else ():
        exam_cells = [cell for cell in cells if cell.exam == exam]
        exam_pairs = _compare_models(exam_cells, folder, data_dir, notices)
        pairs += [replace(pair, exam=exam) for pair in exam_pairs]
    cells = [cell for exam in exams for cell in _with_standings(exam, cells, pairs)]
    order = {planned.run: place for place, planned in enumerate(stored.runs)}
    cells.sort(key=lambda cell: order[cell.run])
    run_amounts = list({cell.run: cell.spent for cell in cells}.values())
    return Matrix(
        plan=stored.plan,
        complete=all(cell.state == "complete" for cell in cells),
        models=tuple(dict.fromkeys(planned.model for planned in stored.runs)),
        exams=tuple(exams),
        cells=tuple(cells),
        comparisons=tuple(pairs),
        spent=_add_amounts(run_amounts),
        notices=tuple(notices),
    )


def _add_amounts(amounts: Sequence[SpentTotals]) -> SpentTotals:
    costs = [amount.cost for amount in amounts if amount.cost is not None]
    return SpentTotals(
        requests=sum(amount.requests for amount in amounts),
        input_tokens=sum(amount.input_tokens for amount in amounts),
        output_tokens=sum(amount.output_tokens for amount in amounts),
        cost=sum(costs) if costs else None,
        seconds=round(sum(amount.seconds for amount in amounts), 3),
    )


def _build_cells(
    planned: StoredMatrixRun,
    folder: Path,
    error: KejuError | None,
    data_dir: str | None,
    notices: list[Notice],
) -> Iterator[MatrixCell]:
    """Yield the cells of one run of a matrix, one for each arm."""
    run_folder = folder.parent / planned.run
    empty_cell = MatrixCell(
        model=planned.model,
        exam=planned.exam,
        run=planned.run,
        state="missing",
        error=None if error is None else error.notice,
    )
    if not (run_folder / MANIFEST).is_file():
        yield empty_cell
        return
    run = Run(run_folder)
    try:
        manifest, results = run.manifest, current_results(run, data_dir)
    except KejuError as problem:
        notices.append(Notice("plan_run_unread", {"run": planned.run, "problem": problem.notice}))
        yield replace(empty_cell, state="incomplete")
        return
    sessions = manifest.sessions
    costs = [session.cost for session in sessions if isinstance(session.cost, float)]
    run_amounts = SpentTotals(
        requests=sum(session.requests for session in sessions),
        input_tokens=sum(session.input_tokens for session in sessions),
        output_tokens=sum(session.output_tokens for session in sessions),
        cost=sum(costs) if costs else None,
        seconds=round(sum(session.seconds for session in sessions), 3),
    )
    page = f"../{planned.run}/{REPORT}" if (run_folder / REPORT).is_file() else ""
    state: State = "complete" if manifest.complete else "incomplete"
    run_cell = replace(
        empty_cell, state=state, spent=run_amounts, report=page, total=manifest.expected_replies
    )
    headline_entries: dict[str, ResultEntry] = {}
    for entry in results.benchmarks:  # Of several readers, the first one gives the headline.
        headline_entries.setdefault(entry.arm, entry)
    yield from (_fill_cell(run_cell, entry, manifest) for entry in headline_entries.values())
    if not headline_entries:
        yield run_cell


def _count_answers(manifest: Manifest, arm: str) -> int:
    """Return the number of answers of one arm when the run, which has one exam, is complete."""
    (exam,) = manifest.benchmarks
    if stopping := (manifest.stopped or {}).get(exam.name):
        return stopping.asked * exam.epochs
    return (exam.samples_of or {}).get(arm, exam.samples) * exam.epochs


def _fill_cell(cell: MatrixCell, entry: ResultEntry, manifest: Manifest) -> MatrixCell:
    metric: Metric | None = entry.metrics.get(entry.headline)
    return replace(
        cell,
        arm=entry.arm,
        done=sum(entry.outcomes.values()),
        total=_count_answers(manifest, entry.arm),
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


def _compare_models(
    cells: Sequence[MatrixCell], folder: Path, data_dir: str | None, notices: list[Notice]
) -> Sequence[Comparison]:
    """Compare every pair of models of one exam that have answers."""
    groups: list[list[ScoredExam]] = []
    names: list[str] = []
    for cell in {cell.run: cell for cell in cells if cell.done}.values():
        try:
            scored_exams = scored_exams_of_run(Run(folder.parent / cell.run), data_dir=data_dir)
        except KejuError as problem:
            values = {"run": cell.run, "problem": problem.notice}
            notices.append(Notice("plan_run_unread", values))
            continue
        groups.append(
            [replace_dataclass(scored_exam, name=cell.model) for scored_exam in scored_exams]
        )
        names.append(cell.model)
    return compare_groups(groups, names).comparisons if len(groups) > 1 else ()


def _with_standings(
    exam: str, cells: Sequence[MatrixCell], pairs: Sequence[Comparison]
) -> Iterator[MatrixCell]:
    """Yield the cells of one exam, each compared with the highest cell of its arm."""
    exam_pairs = [pair for pair in pairs if pair.exam == exam]
    verdicts = {frozenset((pair.base, pair.arm)): _find_standing(pair) for pair in exam_pairs}
    cells_by_arm: dict[str, list[MatrixCell]] = {}
    for cell in cells:
        if cell.exam == exam:
            cells_by_arm.setdefault(cell.arm, []).append(cell)
    for arm_cells in cells_by_arm.values():
        scored_cells = [cell for cell in arm_cells if cell.value is not None]
        best = max(scored_cells, key=lambda cell: cell.value or 0.0, default=None)
        for cell in arm_cells:
            standing: Standing = ""
            if best is not None and cell is not best:
                standing = verdicts.get(frozenset((side_name(best), side_name(cell))), "")
            elif cell is best and len(scored_cells) > 1:
                standing = "highest"
            yield replace(cell, standing=standing)


def side_name(cell: MatrixCell) -> str:
    """Return the name of a cell's model and arm in comparisons."""
    return f"{cell.model} · {cell.arm}" if cell.arm else cell.model


def _find_standing(pair: Comparison) -> Standing:
    """Return how the lower one of a pair compares with the highest."""
    if pair.verdict == "not comparable":
        return "not comparable"
    if pair.verdict == "nothing":
        return ""
    return "tie" if pair.verdict == "tie" else "below"
