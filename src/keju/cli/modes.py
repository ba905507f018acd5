"""``keju modes``: C-Eval sat with and without a chain of thought, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from keju import settings
from keju.cli import options
from keju.cli.arguments import StrictCommand
from keju.cli.output import note, print_json, print_lines
from keju.errors import UsageError

if TYPE_CHECKING:
    from keju.benchmarks.ceval.modes import SubjectModes

app = options.new_app()

BENCHMARK = "ceval"
ANSWER_ONLY, COT = "answer-only", "cot"
OTHER = {ANSWER_ONLY: COT, COT: ANSWER_ONLY}


class Sat(NamedTuple):
    """A run of C-Eval."""

    run: str
    model: str
    mode: str
    entry: dict[str, Any]


@app.command(
    cls=StrictCommand,
    epilog=options.examples("keju modes monday-answer-only monday-cot"),
)
def modes(
    answer_only: Annotated[
        str, typer.Argument(metavar="RUN_AO", help="The run that answered at once.")
    ],
    cot: Annotated[str, typer.Argument(metavar="RUN_COT", help="The run with a chain of thought.")],
    work_dir: options.WorkDir = None,
    as_json: options.Json = False,
) -> None:
    """Knowledge or reasoning? Two C-Eval runs of a model, subject by subject.

    A subject that gains from a chain of thought is one of reasoning; one that does not is one of
    knowledge. Subjects are small: only differences whose intervals do not overlap are marked.
    """
    from keju.benchmarks.ceval.modes import groups_side_by_side, side_by_side

    folder = settings.work_dir(work_dir)
    direct = _sat(answer_only, folder, ANSWER_ONLY)
    reasoned = _sat(cot, folder, COT)
    if direct.model != reasoned.model:
        note(f"keju: two models are compared: {direct.model} and {reasoned.model}")
    subjects = side_by_side(direct.entry, reasoned.entry)
    groups = groups_side_by_side(direct.entry, reasoned.entry)
    if as_json:
        document = {"model": direct.model, "answer_only": direct.run, "cot": reasoned.run}
        rows = {"subjects": subjects, "categories": groups}
        print_json(document | {key: [r._asdict() for r in own] for key, own in rows.items()})
        return
    _print("subject", subjects)
    if groups:
        print_lines("")
        _print("category", groups)


def _sat(name: str, work_dir: Path, mode: str) -> Sat:
    from keju.runs import MANIFEST, RESULTS, find_run, read_json

    folder = find_run(name, str(work_dir))
    manifest = read_json(folder / MANIFEST)
    found = mode_of(manifest)
    if found is None:
        raise UsageError(f"run '{folder.name}' did not sit {BENCHMARK}")
    if found != mode:
        raise UsageError(
            f"run '{folder.name}' sat {BENCHMARK} in mode {found}, not {mode}; "
            "the answer-only run comes first, then the one with a chain of thought"
        )
    entries = read_json(folder / RESULTS)["benchmarks"]
    entry = next(entry for entry in entries if entry["name"] == BENCHMARK)
    return Sat(folder.name, str(manifest["model"]), mode, entry)


def mode_of(manifest: dict[str, Any]) -> str | None:
    """In which mode a run sat C-Eval; None if it did not."""
    for exam in manifest.get("benchmarks", ()):
        if exam["name"] == BENCHMARK:
            return str(exam["settings"].get("mode"))
    return None


def mode_hint(folder: Path) -> str | None:
    """The command that compares a run with its counterpart in the other mode, if there is one.

    The counterpart is the newest complete run of the same model and split beside `folder`.
    """
    from keju.runs import MANIFEST, RESULTS, list_runs, read_json

    manifest = read_json(folder / MANIFEST)
    mode = mode_of(manifest)
    if mode is None or mode not in OTHER:
        return None
    for run in reversed(list_runs(str(folder.parent))):
        if run.model != manifest["model"] or BENCHMARK not in run.benchmarks or not run.complete:
            continue
        other = read_json(run.folder / MANIFEST)
        same = mode_of(other) == OTHER[mode] and _split(other) == _split(manifest)
        if same and (run.folder / RESULTS).is_file():
            pair = {mode: folder, OTHER[mode]: run.folder}
            return f"keju modes {pair[ANSWER_ONLY]} {pair[COT]}"
    return None


def _split(manifest: dict[str, Any]) -> Any:
    exams = manifest["benchmarks"]
    return next(exam["settings"].get("split") for exam in exams if exam["name"] == BENCHMARK)


def _print(kind: str, rows: list[SubjectModes]) -> None:
    from keju.report.format import interval, percent
    from keju.report.table import Column, render_table

    columns = [
        Column(kind),
        Column("title"),
        Column("answer-only", "right"),
        Column("95 % interval", "right"),
        Column("chain of thought", "right"),
        Column("95 % interval", "right"),
        Column("difference", "right"),
        Column("beyond noise"),
    ]
    cells = [
        [
            row.subject,
            row.title if row.title != row.subject else "",
            percent(row.answer_only),
            interval(row.answer_only_ci95),
            percent(row.cot),
            interval(row.cot_ci95),
            None if row.difference is None else f"{100 * row.difference:+.2f}",
            "yes" if row.apart else "",
        ]
        for row in rows
    ]
    render_table(columns, cells)
